//! What values leave behind on a stack. Pure; runs on whatever thread or coroutine calls it.
//!
//! A secret in wiped memory is still copied by who reads it: into registers, and from there into
//! the frame, by hashing, by vectorised parsing, by comparing. A frame that has returned keeps that
//! until another one overwrites it.

/// More stack than anything takes that reads secrets: some hundred bytes to a few thousand, in a
/// build without optimisation more. A coroutine has four times as much.
const SCRUBBED_BYTES: usize = 16 * 1024;

/// Overwrites the stack below its caller, where functions that have returned kept their values.
#[inline(never)]
pub fn scrub() {
    // Handed out, so that the compiler cannot leave the writing away.
    std::hint::black_box(&mut [0_u8; SCRUBBED_BYTES]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATTERN: u8 = 0xa7;

    /// Fills a frame, and leaves it.
    #[inline(never)]
    fn leave() -> usize {
        let mut frame = [0_u8; 4096];
        std::hint::black_box(&mut frame).fill(PATTERN);
        std::hint::black_box(&frame).as_ptr() as usize
    }

    /// What stands at an address of this thread's stack.
    fn bytes_at(address: usize) -> Vec<u8> {
        use std::io::{Read, Seek, SeekFrom};
        let mut memory = std::fs::File::open("/proc/self/mem").unwrap();
        memory.seek(SeekFrom::Start(address as u64)).unwrap();
        let mut bytes = vec![0; 1024];
        memory.read_exact(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_a_frame_held_is_overwritten() {
        assert!(bytes_at(leave()).contains(&PATTERN), "it would be there");
        let address = leave();
        scrub();
        assert!(!bytes_at(address).contains(&PATTERN));
    }
}
