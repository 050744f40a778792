//! Checks that the limit on address space (RLIMIT_AS) is high enough for the service's threads.
//!
//! Called on the main thread before anything starts. Under a lower limit some later thread or
//! allocation would fail, with an error that does not name the cause. A thread reserves address
//! space for its stack and 64 MiB for its heap and uses little of it, so this limit does not limit
//! memory in any useful way.

use std::num::NonZero;
use std::thread;

use rlimit::Resource;

const MIB: u64 = 1024 * 1024;
/// Address space for the program, its stacks and everything else outside heaps. Measured: 140 MiB.
const BASE_MIB: u64 = 256;
/// Address space that glibc reserves for one heap (malloc arena).
const HEAP_MIB: u64 = 64;
/// Most heaps that glibc makes, by core.
const HEAPS_PER_CORE: u64 = 8;
/// There are never more heaps than threads that allocate, and the service has about forty.
const HEAPS_MAX: u64 = 40;

/// The limit on address space is too low.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the limit on address space (RLIMIT_AS; ulimit -v, LimitAS=) is {limit_mib} MiB, and \
     {needed_mib} MiB are reserved, most of it never used: raise or remove it; MemoryMax= limits \
     memory"
)]
pub struct TooLittle {
    limit_mib: u64,
    needed_mib: u64,
}

/// Checks the limit in force.
///
/// # Errors
/// [`TooLittle`].
pub fn expect_enough() -> Result<(), TooLittle> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get) as u64;
    // If the limit cannot be read, assume that there is none.
    let limit = Resource::AS.get_soft().unwrap_or(u64::MAX);
    check(limit, cores)
}

fn check(limit_bytes: u64, cores: u64) -> Result<(), TooLittle> {
    let heaps = (cores * HEAPS_PER_CORE).min(HEAPS_MAX);
    let (limit_mib, needed_mib) = (limit_bytes / MIB, BASE_MIB + heaps * HEAP_MIB);
    if limit_mib < needed_mib { Err(TooLittle { limit_mib, needed_mib }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_needed_address_space_grows_with_the_cores_up_to_a_maximum() {
        assert_eq!(check(u64::MAX, 64), Ok(()));
        assert_eq!(check(1_280 * MIB, 2), Ok(()));
        let too_little = check(1_280 * MIB - 1, 2).unwrap_err();
        assert_eq!(too_little, TooLittle { limit_mib: 1_279, needed_mib: 1_280 });
        assert_eq!(
            check(64 * MIB, 64).unwrap_err().needed_mib,
            check(0, 8).unwrap_err().needed_mib
        );
        let text = too_little.to_string();
        assert!(text.contains("is 1279 MiB, and 1280 MiB are reserved"), "{text}");
    }
}
