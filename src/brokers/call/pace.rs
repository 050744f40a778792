//! Pacing of one endpoint class of one upstream, and the penalty after a "too many requests".
//!
//! Each class has one limiter in the process, which its feed owns. Runs on upstream lanes and in
//! readiness checks. It never blocks or sleeps: a caller that comes too early gets the time to
//! wait.
//!
//! Calls of a class are spaced evenly (burst of one). With bursts of three, an upstream that counts
//! "3 per second" could count five within one second.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use crate::base::limiter::{Limiter, Rate};
use crate::base::{Clock, rng};

/// Longest `Retry-After` that is honoured. A longer one, perhaps a mistake, would stop the feed for
/// the day.
pub(crate) const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);

/// This fraction of an interval is room for jitter: 50 ms of broker A's 1,050.
const JITTER_PART: u64 = 21;

/// Beside a call that has not ended, the next one waits so much longer: the request of that call
/// may have arrived so much later than it began. A new connection with TLS takes three round trips.
const CONNECTING_MS: u64 = 300;

/// In place of the begin of a call: none is under way.
const NONE_UNDER_WAY: u64 = u64::MAX;

/// Pause after an upstream refused for too many requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Penalty {
    /// Pause after the first refusal; doubles with each further one in a row.
    pub first: Duration,
    /// The doubling stops here.
    pub max: Duration,
}

/// One class: at most one call per interval, none during a penalty.
pub(crate) struct Pace {
    clock: Clock,
    limiter: Limiter,
    interval_ms: u64,
    penalty: Penalty,
    refusals_in_row: AtomicU32,
    /// When the latest call began, until it ends.
    under_way_mono_ms: AtomicU64,
}

impl Pace {
    /// One call per `interval_ms` (0 counts as 1).
    pub(crate) fn new(clock: Clock, interval_ms: u64, penalty: Penalty) -> Self {
        Self {
            clock,
            limiter: Limiter::new(Rate::every_ms(interval_ms)),
            interval_ms: interval_ms.max(1),
            penalty,
            refusals_in_row: AtomicU32::new(0),
            under_way_mono_ms: AtomicU64::new(NONE_UNDER_WAY),
        }
    }

    /// Time until a call could be made; zero means now. Takes no slot.
    pub(crate) fn wait(&self) -> Duration {
        let now_mono_ms = self.clock.monotonic_ms();
        let wait_ms = self.limiter.wait_ms(now_mono_ms);
        Duration::from_millis(wait_ms.max(self.wait_beside_ms(now_mono_ms)))
    }

    /// Time for which the call that is under way, if one is, keeps the next one back.
    fn wait_beside_ms(&self, now_mono_ms: u64) -> u64 {
        match self.under_way_mono_ms.load(Relaxed) {
            NONE_UNDER_WAY => 0,
            began => (began + self.interval_ms + CONNECTING_MS).saturating_sub(now_mono_ms),
        }
    }

    /// Takes the slot for one call, and returns when that was.
    ///
    /// # Errors
    /// The time to wait, if no slot is free now.
    pub(crate) fn take(&self) -> Result<u64, Duration> {
        let now_mono_ms = self.clock.monotonic_ms();
        let beside_ms = self.wait_beside_ms(now_mono_ms);
        if beside_ms > 0 {
            return Err(Duration::from_millis(beside_ms));
        }
        let admitted = self.limiter.admit(now_mono_ms);
        admitted.map_err(|early| Duration::from_millis(early.retry_after_ms))?;
        self.under_way_mono_ms.store(now_mono_ms, Relaxed);
        Ok(now_mono_ms)
    }

    /// The call that took its slot then has ended. The upstream counts from the arrival of the
    /// request, which after a slow connect is long after [`Pace::take`]. So the next call also
    /// keeps the interval, without its room for jitter, from the end of this one.
    pub(crate) fn ended(&self, taken_mono_ms: u64) {
        // A later call may be under way.
        let _ = self.under_way_mono_ms.compare_exchange(
            taken_mono_ms,
            NONE_UNDER_WAY,
            Relaxed,
            Relaxed,
        );
        let distance_ms = self.interval_ms - self.interval_ms / JITTER_PART;
        self.limiter
            .hold_until(self.clock.monotonic_ms() + distance_ms);
    }

    /// The upstream refused for too many requests. Starts or doubles the penalty and returns its
    /// length, which is at least `retry_after`.
    pub(crate) fn refused(&self, retry_after: Duration) -> Duration {
        let more = |refusals: u32| Some(refusals.saturating_add(1));
        let before = self.refusals_in_row.fetch_update(Relaxed, Relaxed, more);
        let doublings = before.unwrap_or(u32::MAX).min(16);
        let level = self
            .penalty
            .first
            .saturating_mul(1 << doublings)
            .min(self.penalty.max);
        let jittered = Duration::from_millis(rng::jittered_ms(level.as_millis() as u64))
            .clamp(self.penalty.first, self.penalty.max);
        let length = jittered.max(retry_after.min(RETRY_AFTER_MAX));
        self.limiter
            .hold_until(self.clock.monotonic_ms() + length.as_millis() as u64);
        length
    }

    /// The upstream answered: the next penalty starts from the first step again.
    pub(crate) fn accepted(&self) {
        self.refusals_in_row.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ManualClock;

    const PENALTY: Penalty = Penalty {
        first: Duration::from_secs(60),
        max: Duration::from_secs(900),
    };

    fn paced(interval_ms: u64) -> (ManualClock, Pace) {
        let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
        let pace = Pace::new(clock.clone(), interval_ms, PENALTY);
        (clock, pace)
    }

    #[test]
    fn lets_out_one_call_per_interval_and_says_how_long_to_wait() {
        let (clock, pace) = paced(1_050);
        assert_eq!(pace.wait(), Duration::ZERO);
        let taken = pace.take().unwrap();
        pace.ended(taken);
        assert_eq!(pace.take(), Err(Duration::from_millis(1_050)));
        clock.advance_ms(1_000);
        assert_eq!(pace.wait(), Duration::from_millis(50));
        assert_eq!(pace.take(), Err(Duration::from_millis(50)));
        clock.advance_ms(50);
        assert!(pace.take().is_ok());
    }

    #[test]
    fn a_slow_call_keeps_the_next_one_away_from_its_end() {
        let (clock, pace) = paced(1_050);
        let taken = pace.take().unwrap();
        clock.advance_ms(30);
        pace.ended(taken);
        assert_eq!(pace.wait(), Duration::from_millis(1_020), "a usual call changes nothing");
        clock.advance_ms(1_020);
        let taken = pace.take().unwrap();
        clock.advance_ms(400);
        pace.ended(taken);
        assert_eq!(pace.take(), Err(Duration::from_millis(1_000)));
    }

    #[test]
    fn idle_time_is_not_saved_up_for_a_burst() {
        let (clock, pace) = paced(334);
        clock.advance_ms(60_000);
        let taken = pace.take().unwrap();
        pace.ended(taken);
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
            let taken = pace.take().unwrap();
            pace.ended(taken);
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
