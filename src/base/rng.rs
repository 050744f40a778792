//! The only place that draws randomness for ids and jitter. Not for keys or secrets.

/// Sixteen lower-case hexadecimal characters: a new request id.
pub fn request_id() -> [u8; 16] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut bits = fastrand::u64(..);
    let mut id = [0u8; 16];
    for slot in &mut id {
        *slot = HEX[(bits & 15) as usize];
        bits >>= 4;
    }
    id
}

/// `base_ms` moved by up to a fifth either way, so that retries of many parties spread out.
pub fn jittered_ms(base_ms: u64) -> u64 {
    let fifth = base_ms / 5;
    base_ms - fifth + fastrand::u64(0..=fifth * 2)
}
