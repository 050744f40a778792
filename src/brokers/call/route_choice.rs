//! Chooses between an upstream's two routes: the better one, or the spare one while the better one
//! fails (gone, refused, another shape) although the host answers.
//!
//! Relaxed atomics, for any thread. Two calls that race may try the same route, which is harmless.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use crate::base::Clock;

/// Failures in a row after which the spare route is used.
const FAILURES_MAX: u32 = 2;

/// How long the spare route is used before one call tries the better one again. A probe that fails
/// costs one poll, which no price notices.
pub(crate) const SPARE_MS: u64 = 60_000;

/// The choice, with its memory.
pub(crate) struct RouteChoice {
    name: &'static str,
    clock: Clock,
    failures_in_row: AtomicU32,
    spare_until_ms: AtomicU64,
    /// The better route was left and has not worked since. For the log.
    is_left: AtomicBool,
}

impl RouteChoice {
    /// `name` is the better route's, for the log.
    pub(crate) fn new(name: &'static str, clock: Clock) -> Self {
        Self {
            name,
            clock,
            failures_in_row: AtomicU32::new(0),
            spare_until_ms: AtomicU64::new(0),
            is_left: AtomicBool::new(false),
        }
    }

    /// Whether the spare route is to be used now.
    pub(crate) fn spare(&self) -> bool {
        self.clock.monotonic_ms() < self.spare_until_ms.load(Relaxed)
    }

    /// The better route worked.
    pub(crate) fn worked(&self) {
        self.failures_in_row.store(0, Relaxed);
        if self.is_left.load(Relaxed) && self.is_left.swap(false, Relaxed) {
            tracing::info!(route = self.name, "the usual route answers again and is used");
        }
    }

    /// The spare route failed as well, so the better one is used again.
    pub(crate) fn spare_failed(&self) {
        self.spare_until_ms.store(0, Relaxed);
    }

    /// The better route failed as a route.
    pub(crate) fn failed(&self) {
        if self.failures_in_row.fetch_add(1, Relaxed) + 1 >= FAILURES_MAX {
            // After this time one more failure is enough to leave it again.
            self.failures_in_row.store(FAILURES_MAX - 1, Relaxed);
            self.spare_until_ms
                .store(self.clock.monotonic_ms() + SPARE_MS, Relaxed);
            if !self.is_left.swap(true, Relaxed) {
                let probed_each_s = SPARE_MS / 1_000;
                tracing::warn!(
                    route = self.name,
                    probed_each_s,
                    "the usual route fails; another one is used meanwhile"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_after_two_failures_in_a_row_and_comes_back() {
        let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
        let choice = RouteChoice::new("test", clock.clone());
        choice.failed();
        choice.worked();
        choice.failed();
        assert!(!choice.spare());
        choice.failed();
        assert!(choice.spare());
        clock.advance_ms(60_000);
        assert!(!choice.spare());
        choice.failed();
        assert!(choice.spare(), "the first failure after the spell is enough");
        choice.spare_failed();
        assert!(!choice.spare());
    }
}
