//! Overwrites copies of secrets that finished functions left on the stack.
//!
//! Heap memory that held a secret is wiped when it is freed. But code that reads the secret
//! (hashing, vectorised parsing, comparing) also copies it into registers and spills those to its
//! stack frame. After the function returns, the copy stays there until another frame overwrites it.

/// More stack than any function that reads secrets uses: a few hundred to a few thousand bytes, and
/// more in a build without optimisation. A coroutine's stack is four times as large.
const SCRUBBED_BYTES: usize = 16 * 1024;

/// Overwrites the stack below its caller's frame. Call it after the last function that reads the
/// secret has returned.
#[inline(never)]
pub(crate) fn scrub() {
    // `black_box` keeps the compiler from removing the write as unused.
    std::hint::black_box(&mut [0_u8; SCRUBBED_BYTES]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATTERN: u8 = 0xa7;

    /// Fills its stack frame with the pattern and returns the frame's address.
    #[inline(never)]
    fn fill_frame() -> usize {
        let mut frame = [0_u8; 4096];
        std::hint::black_box(&mut frame).fill(PATTERN);
        std::hint::black_box(&frame).as_ptr() as usize
    }

    /// Reads the stack at an address without a reference to it, which would be undefined behaviour.
    fn bytes_at(address: usize) -> Vec<u8> {
        use std::io::{Read, Seek, SeekFrom};
        let mut memory = std::fs::File::open("/proc/self/mem").unwrap();
        memory.seek(SeekFrom::Start(address as u64)).unwrap();
        let mut bytes = vec![0; 1024];
        memory.read_exact(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_returned_frame_is_overwritten() {
        assert!(bytes_at(fill_frame()).contains(&PATTERN), "without scrub the pattern remains");
        let address = fill_frame();
        scrub();
        assert!(!bytes_at(address).contains(&PATTERN));
    }
}
