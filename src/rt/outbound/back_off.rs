//! The wait before the next try after a failure: doubling, bounded, with a jitter.

use crate::base::rng;

/// The wait after the first failure; a server that was only restarted is back by then.
const FIRST_MS: u64 = 100;
/// Longest wait; there is no last try.
const LONGEST_MS: u64 = 5_000;

/// Waits between tries. Times are of the monotonic clock.
#[derive(Debug)]
pub(crate) struct BackOff {
    next_ms: u64,
    not_before_mono_ms: u64,
}

impl BackOff {
    pub(crate) fn new() -> Self {
        Self { next_ms: FIRST_MS, not_before_mono_ms: 0 }
    }

    /// Time until the next try may be made; zero if it may be made now.
    pub(crate) fn wait_ms(&self, now_mono_ms: u64) -> u64 {
        self.not_before_mono_ms.saturating_sub(now_mono_ms)
    }

    /// A try failed.
    pub(crate) fn failed(&mut self, now_mono_ms: u64) {
        self.not_before_mono_ms = now_mono_ms + rng::jittered_ms(self.next_ms);
        self.next_ms = (self.next_ms * 2).min(LONGEST_MS);
    }

    /// A try succeeded.
    pub(crate) fn succeeded(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_five_seconds_and_begin_anew_after_a_success() {
        let (mut back_off, mut now_ms) = (BackOff::new(), 0);
        for expected_ms in [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000] {
            back_off.failed(now_ms);
            let wait_ms = back_off.wait_ms(now_ms);
            let fifth = expected_ms / 5;
            assert!((expected_ms - fifth..=expected_ms + fifth).contains(&wait_ms), "{wait_ms}");
            now_ms += wait_ms;
            assert_eq!(back_off.wait_ms(now_ms), 0);
        }
        back_off.succeeded();
        back_off.failed(now_ms);
        assert!(back_off.wait_ms(now_ms) <= 120);
    }
}
