//! Whether the process may reserve as much address space as its threads do.
//!
//! Main thread, before anything starts: with less, whichever thread or allocation comes last fails,
//! and says so in words that lead nowhere. A thread reserves its stack and, for its heap, 64 MiB of
//! which it uses little; so a limit on address space (RLIMIT_AS) says nothing of memory.

use std::num::NonZero;
use std::thread;

use rlimit::Resource;

const MIB: u64 = 1024 * 1024;
/// The program, its stacks and what is not on a heap: 140 MiB were seen.
const BASE_MIB: u64 = 256;
/// What glibc reserves for a heap, of which it makes at most so many a core.
const HEAP_MIB: u64 = 64;
const HEAPS_PER_CORE: u64 = 8;
/// No more heaps than threads that allocate; of these a service has some forty.
const HEAPS_MAX: u64 = 40;

/// The limit is too low.
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

/// Looks at the limit in force.
///
/// # Errors
/// [`TooLittle`].
pub fn expect_enough() -> Result<(), TooLittle> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get) as u64;
    // A system that does not say sets none.
    let limit = Resource::AS.get_soft().unwrap_or(u64::MAX);
    judged(limit, cores)
}

fn judged(limit_bytes: u64, cores: u64) -> Result<(), TooLittle> {
    let heaps = (cores * HEAPS_PER_CORE).min(HEAPS_MAX);
    let (limit_mib, needed_mib) = (limit_bytes / MIB, BASE_MIB + heaps * HEAP_MIB);
    if limit_mib < needed_mib { Err(TooLittle { limit_mib, needed_mib }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_grows_with_the_cores_and_not_for_ever() {
        assert_eq!(judged(u64::MAX, 64), Ok(()));
        assert_eq!(judged(1_280 * MIB, 2), Ok(()));
        let too_little = judged(1_280 * MIB - 1, 2).unwrap_err();
        assert_eq!(too_little, TooLittle { limit_mib: 1_279, needed_mib: 1_280 });
        assert_eq!(
            judged(64 * MIB, 64).unwrap_err().needed_mib,
            judged(0, 8).unwrap_err().needed_mib
        );
        let said = too_little.to_string();
        assert!(said.contains("is 1279 MiB, and 1280 MiB are reserved"), "{said}");
    }
}
