//! Pacing of one endpoint class of one upstream, and the penalty after it said "too many requests".
//!
//! Process-wide: the feed that owns the class owns the one limiter. Runs on upstream lanes and in
//! readiness checks; never blocks and never sleeps, a caller that comes too early is told how long.
//!
//! Every class is spaced evenly (burst of one): an upstream that counts "3 per second" would see a
//! burst of three and its refills inside one second as five.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use crate::base::limiter::{Limiter, Rate};
use crate::base::{Clock, rng};

/// Longest `Retry-After` that is honoured; a longer one would take the feed out for the day on a
/// typo.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);

/// This part of an interval is room for jitter: 50 ms of broker A's 1,050.
const JITTER_PART: u64 = 21;

/// How long an upstream is left alone after it refused for too many requests.
#[derive(Clone, Copy, Debug)]
pub struct Penalty {
    /// After the first refusal; doubles with each further one in a row.
    pub first: Duration,
    /// The doubling stops here.
    pub max: Duration,
}

/// One class: at most one call per interval, none during a penalty.
pub struct Pace {
    clock: Clock,
    limiter: Limiter,
    interval_ms: u64,
    penalty: Penalty,
    refusals_in_row: AtomicU32,
}

impl Pace {
    /// One call per `interval_ms` (0 counts as 1).
    pub fn new(clock: Clock, interval_ms: u64, penalty: Penalty) -> Self {
        Self {
            clock,
            limiter: Limiter::new(Rate::every_ms(interval_ms)),
            interval_ms: interval_ms.max(1),
            penalty,
            refusals_in_row: AtomicU32::new(0),
        }
    }

    /// How long until a call would be let out; zero means now. Takes nothing.
    pub fn wait(&self) -> Duration {
        Duration::from_millis(self.limiter.wait_ms(self.clock.monotonic_ms()))
    }

    /// Takes the slot for one call.
    ///
    /// # Errors
    /// How long to wait, if there is none now.
    pub fn take(&self) -> Result<(), Duration> {
        let admitted = self.limiter.admit(self.clock.monotonic_ms());
        admitted.map_err(|early| Duration::from_millis(early.retry_after_ms))
    }

    /// A call has ended. The upstream counts from when the request reached it, which after a slow
    /// connect is long after [`Pace::take`]: the next call keeps its distance from the end too,
    /// less the part of the interval that is only room for jitter.
    pub fn ended(&self) {
        let distance_ms = self.interval_ms - self.interval_ms / JITTER_PART;
        self.limiter.hold_until(self.clock.monotonic_ms() + distance_ms);
    }

    /// The upstream refused for too many requests: starts or doubles the penalty and tells its
    /// length, which is at least `retry_after`.
    pub fn refused(&self, retry_after: Duration) -> Duration {
        let more = |refusals: u32| Some(refusals.saturating_add(1));
        let before = self.refusals_in_row.fetch_update(Relaxed, Relaxed, more);
        let doublings = before.unwrap_or(u32::MAX).min(16);
        let level = self.penalty.first.saturating_mul(1 << doublings).min(self.penalty.max);
        let jittered = Duration::from_millis(rng::jittered_ms(level.as_millis() as u64))
            .clamp(self.penalty.first, self.penalty.max);
        let length = jittered.max(retry_after.min(RETRY_AFTER_MAX));
        self.limiter.hold_until(self.clock.monotonic_ms() + length.as_millis() as u64);
        length
    }

    /// The upstream answered: the next penalty starts from the first step again.
    pub fn accepted(&self) {
        self.refusals_in_row.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ManualClock;

    const PENALTY: Penalty =
        Penalty { first: Duration::from_secs(60), max: Duration::from_secs(900) };

    fn paced(interval_ms: u64) -> (ManualClock, Pace) {
        let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
        let pace = Pace::new(clock.clone(), interval_ms, PENALTY);
        (clock, pace)
    }

    #[test]
    fn lets_out_one_call_per_interval_and_says_how_long_to_wait() {
        let (clock, pace) = paced(1_050);
        assert_eq!(pace.wait(), Duration::ZERO);
        assert_eq!(pace.take(), Ok(()));
        assert_eq!(pace.take(), Err(Duration::from_millis(1_050)));
        clock.advance_ms(1_000);
        assert_eq!(pace.wait(), Duration::from_millis(50));
        assert_eq!(pace.take(), Err(Duration::from_millis(50)));
        clock.advance_ms(50);
        assert_eq!(pace.take(), Ok(()));
    }

    #[test]
    fn a_slow_call_keeps_the_next_one_away_from_its_end() {
        let (clock, pace) = paced(1_050);
        assert_eq!(pace.take(), Ok(()));
        clock.advance_ms(30);
        pace.ended();
        assert_eq!(pace.wait(), Duration::from_millis(1_020), "a usual call changes nothing");
        clock.advance_ms(1_020);
        assert_eq!(pace.take(), Ok(()));
        clock.advance_ms(400);
        pace.ended();
        assert_eq!(pace.take(), Err(Duration::from_millis(1_000)));
    }

    #[test]
    fn idle_time_is_not_saved_up_for_a_burst() {
        let (clock, pace) = paced(334);
        clock.advance_ms(60_000);
        assert_eq!(pace.take(), Ok(()));
        assert!(pace.take().is_err());
    }

    #[test]
    fn penalties_double_up_to_the_maximum_and_start_over_after_an_answer() {
        let (clock, pace) = paced(1);
        let mut expected_s = 60.0;
        for _ in 0..8 {
            let length = pace.refused(Duration::ZERO).as_secs_f64();
            assert!((expected_s * 0.8..=expected_s * 1.2).contains(&length), "{length}");
            assert!((60.0..=900.0).contains(&length), "{length}");
            assert!(pace.take().is_err());
            clock.advance_ms((length * 1_000.0) as i64 + 1);
            assert_eq!(pace.take(), Ok(()));
            clock.advance_ms(1);
            expected_s = (expected_s * 2.0).min(900.0);
        }
        pace.accepted();
        assert!(pace.refused(Duration::ZERO) <= Duration::from_secs(72));
    }

    #[test]
    fn retry_after_lengthens_a_penalty_but_not_without_end() {
        let (_clock, pace) = paced(1);
        assert_eq!(pace.refused(Duration::from_secs(500)), Duration::from_secs(500));
        assert_eq!(pace.refused(Duration::from_secs(1_000_000)), RETRY_AFTER_MAX);
        assert_eq!(pace.wait(), RETRY_AFTER_MAX);
    }
}
