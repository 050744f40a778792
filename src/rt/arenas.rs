//! Memory that the C library keeps for threads.
//!
//! It gives threads arenas of their own, up to eight for each core, and keeps what was freed in
//! them. A public demo starts all its threads anew for each day, so arenas of two days fill up. A
//! few arenas and a look back at a day's end bound that. A service, whose threads stay, gives back
//! what a large ledger took.

/// Arenas of a process whose threads come and go: one for each of the few cores that its limits
/// keep busy.
const ARENAS_MAX: i32 = 2;

#[cfg(target_env = "gnu")]
mod glibc {
    /// `M_ARENA_MAX` of `malloc.h`.
    pub(super) const ARENA_MAX: i32 = -8;

    #[expect(unsafe_code, reason = "as glibc declares them")]
    unsafe extern "C" {
        pub(super) fn mallopt(parameter: i32, value: i32) -> i32;
        pub(super) fn malloc_trim(pad: usize) -> i32;
    }
}

/// Bounds the arenas. Called before threads start.
pub(crate) fn keep_few() {
    #[cfg(target_env = "gnu")]
    #[expect(
        unsafe_code,
        reason = "a function of the C library with plain arguments"
    )]
    // SAFETY: it takes its own lock and changes a number.
    unsafe {
        glibc::mallopt(glibc::ARENA_MAX, ARENAS_MAX);
    }
}

/// Gives freed memory back to the system. Takes milliseconds, in which other threads may wait for
/// memory.
pub(crate) fn give_back() {
    #[cfg(target_env = "gnu")]
    #[expect(
        unsafe_code,
        reason = "a function of the C library with plain arguments"
    )]
    // SAFETY: it takes the locks of the arenas and touches only free memory.
    unsafe {
        glibc::malloc_trim(0);
    }
}
