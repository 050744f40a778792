//! A sliding-window limit, for brokers that allow "N calls a second": no window of that length ever
//! contains more calls, wherever it begins.
//!
//! A [`Limiter`](super::limiter::Limiter) with a burst of N would admit up to 2 N calls within one
//! window: the burst, and what is refilled behind it. `CallWindow` has no lock of its own: to share
//! one, wrap it in a lock.

use std::collections::VecDeque;

/// The times of the latest calls.
#[derive(Debug)]
pub struct CallWindow {
    calls_max: usize,
    span_ms: u64,
    /// One entry a call, oldest first; never more than `calls_max`.
    times_ms: VecDeque<u64>,
}

impl CallWindow {
    /// At most `calls_max` calls within any `span_ms`.
    pub fn new(calls_max: usize, span_ms: u64) -> Self {
        Self { calls_max, span_ms, times_ms: VecDeque::new() }
    }

    /// How long until `calls` more calls fit, if only `share` of the `calls_max` places may be
    /// used. Zero if they fit now. Counts nothing.
    pub fn wait_ms(&mut self, calls: usize, share: usize, now_ms: u64) -> u64 {
        self.forget_past(now_ms);
        let over = (self.times_ms.len() + calls).saturating_sub(share.min(self.calls_max));
        if over == 0 {
            return 0;
        }
        // A request for more calls than are ever allowed waits until the window is empty.
        let last_ms = self.times_ms.get(over - 1).copied().unwrap_or(now_ms);
        (last_ms + self.span_ms).saturating_sub(now_ms).max(1)
    }

    /// Records calls as made, even beyond the limit. Only the latest `calls_max` are remembered.
    pub fn count(&mut self, calls: usize, now_ms: u64) {
        self.forget_past(now_ms);
        self.times_ms.extend(std::iter::repeat_n(now_ms, calls));
        let surplus = self.times_ms.len().saturating_sub(self.calls_max);
        self.times_ms.drain(..surplus);
    }

    /// Records one call if the limit allows it; says whether it did.
    pub fn admit(&mut self, now_ms: u64) -> bool {
        let admitted = self.wait_ms(1, self.calls_max, now_ms) == 0;
        if admitted {
            self.count(1, now_ms);
        }
        admitted
    }

    /// Removes up to `calls` calls that were recorded for the time `at_ms`: they were not made.
    pub fn give_back(&mut self, calls: usize, at_ms: u64) {
        let first = self.times_ms.partition_point(|at| *at < at_ms);
        let same = self.times_ms.partition_point(|at| *at <= at_ms) - first;
        self.times_ms.drain(first..first + same.min(calls));
    }

    /// How many calls the window that ends now contains.
    pub fn calls(&mut self, now_ms: u64) -> usize {
        self.forget_past(now_ms);
        self.times_ms.len()
    }

    fn forget_past(&mut self, now_ms: u64) {
        // A call exactly `span_ms` ago is outside the window; one of a millisecond less is inside.
        while self.times_ms.front().is_some_and(|at| at + self.span_ms <= now_ms) {
            self.times_ms.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn calls_leave_the_window_one_span_after_they_were_made() {
        let mut window = CallWindow::new(2, 1_000);
        let admitted = [0, 999, 999, 1_000, 1_500, 1_999, 2_000].map(|at| window.admit(at));
        assert_eq!(admitted, [true, true, false, true, false, true, true]);
    }

    #[test]
    fn given_back_calls_leave_their_own_instant_and_count_records_beyond_the_limit() {
        let mut window = CallWindow::new(5, 1_000);
        window.count(3, 0);
        window.count(2, 500);
        window.give_back(9, 0);
        assert_eq!((window.calls(500), window.wait_ms(3, 5, 500)), (2, 0));
        window.count(12, 600);
        assert_eq!((window.calls(600), window.wait_ms(1, 5, 600)), (5, 1_000));
        assert_eq!(window.wait_ms(6, 5, 600), 1_000, "more calls than are ever allowed");
    }

    proptest! {
        #[test]
        fn no_span_has_more_than_allowed_and_waits_are_exact(
            calls_max in 1usize..12,
            span_ms in 1u64..2_000,
            tries in prop::collection::vec((0u64..600, 1usize..6), 1..150),
        ) {
            let mut window = CallWindow::new(calls_max, span_ms);
            let (mut now_ms, mut made) = (0, Vec::new());
            for (pause_ms, calls) in tries {
                now_ms += pause_ms;
                let calls = calls.min(calls_max);
                let wait_ms = window.wait_ms(calls, calls_max, now_ms);
                let within = |end_ms: u64| {
                    made.iter().filter(|at| **at + span_ms > end_ms).count() + calls
                };
                if wait_ms > 0 {
                    prop_assert!(within(now_ms + wait_ms - 1) > calls_max);
                    prop_assert!(within(now_ms + wait_ms) <= calls_max);
                    continue;
                }
                prop_assert!(within(now_ms) <= calls_max);
                window.count(calls, now_ms);
                made.extend(std::iter::repeat_n(now_ms, calls));
            }
        }
    }
}
