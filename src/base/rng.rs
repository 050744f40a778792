//! The only source of randomness for request ids and jitter. Not for keys or secrets.

/// A new request id: sixteen lower-case hexadecimal characters.
pub(crate) fn request_id() -> String {
    format!("{:016x}", fastrand::u64(..))
}

/// Seeds what this thread draws from now on, and gives a generator of that seed. For a stage.
pub(crate) fn seeded(seed: u64) -> fastrand::Rng {
    fastrand::seed(seed);
    fastrand::Rng::with_seed(seed)
}

/// Bits that tell one attempt from another.
pub fn bits() -> u64 {
    fastrand::u64(..)
}

/// `base_ms` plus or minus up to a fifth, so that the retries of many clients spread out.
pub(crate) fn jittered_ms(base_ms: u64) -> u64 {
    let fifth = base_ms / 5;
    base_ms - fifth + fastrand::u64(0..=fifth * 2)
}
