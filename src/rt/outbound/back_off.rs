//! The wait before the next try after a failure: doubling, bounded, with a jitter.

use crate::base::rng;

/// Waits between tries. Times are of the monotonic clock.
#[derive(Debug)]
pub(crate) struct BackOff {
    first_ms: u64,
    longest_ms: u64,
    next_ms: u64,
    not_before_mono_ms: u64,
}

impl BackOff {
    /// The waits for a server of the operator's; one that was only restarted is back after the
    /// first. There is no last try.
    #[cfg(feature = "engines")]
    pub(crate) fn new() -> Self {
        Self::of(100, 5_000)
    }

    /// The wait after the first failure, and the longest.
    pub(crate) fn of(first_ms: u64, longest_ms: u64) -> Self {
        Self {
            first_ms,
            longest_ms,
            next_ms: first_ms,
            not_before_mono_ms: 0,
        }
    }

    /// Time until the next try may be made; zero if it may be made now.
    pub(crate) fn wait_ms(&self, now_mono_ms: u64) -> u64 {
        self.not_before_mono_ms.saturating_sub(now_mono_ms)
    }

    /// A try failed. The next is not made before `least_ms`, jitter aside.
    pub(crate) fn failed(&mut self, now_mono_ms: u64, least_ms: u64) {
        let wait_ms = self.next_ms.max(least_ms);
        self.not_before_mono_ms = now_mono_ms + rng::jittered_ms(wait_ms);
        self.next_ms = (wait_ms * 2).min(self.longest_ms);
    }

    /// A try succeeded.
    pub(crate) fn succeeded(&mut self) {
        *self = Self::of(self.first_ms, self.longest_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_five_seconds_and_begin_anew_after_a_success() {
        let mut back_off = BackOff::of(100, 5_000);
        let mut now_ms = 0;
        for expected_ms in [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000] {
            back_off.failed(now_ms, 0);
            let wait_ms = back_off.wait_ms(now_ms);
            let fifth = expected_ms / 5;
            assert!((expected_ms - fifth..=expected_ms + fifth).contains(&wait_ms), "{wait_ms}");
            now_ms += wait_ms;
            assert_eq!(back_off.wait_ms(now_ms), 0);
        }
        back_off.succeeded();
        back_off.failed(now_ms, 0);
        assert!(back_off.wait_ms(now_ms) <= 120);
    }
}
