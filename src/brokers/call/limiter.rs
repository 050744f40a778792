//! Pacing of one endpoint class of one upstream, and the penalty after it said "too many requests".
//!
//! Process-wide: the feed that owns the class owns the one limiter. Runs on upstream lanes and in
//! readiness checks; never blocks and never sleeps, a caller that comes too early is told how long.
//!
//! Every class is spaced evenly (burst of one): an upstream that counts "3 per second" would see a
//! burst of three and its refills inside one second as five.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use parking_lot::Mutex;

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
pub struct Limiter {
    clock: Clock,
    pace: RateLimiter<NotKeyed, InMemoryState, PaceClock, NoOpMiddleware<Duration>>,
    interval_ms: u64,
    /// Monotonic time before which the pace lets nothing out, for [`Limiter::wait`]: governor
    /// itself can only be asked by taking.
    paced_until_ms: AtomicU64,
    penalty: Penalty,
    throttled: Mutex<Throttled>,
}

#[derive(Default)]
struct Throttled {
    refusals_in_row: u32,
    until_ms: u64,
}

/// governor's view of our clock.
#[derive(Clone)]
struct PaceClock(Clock);

impl governor::clock::Clock for PaceClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        Duration::from_millis(self.0.monotonic_ms())
    }
}

impl Limiter {
    /// One call per `interval_ms` (0 counts as 1).
    pub fn new(clock: Clock, interval_ms: u64, penalty: Penalty) -> Self {
        let interval_ms = interval_ms.max(1);
        let quota = Quota::with_period(Duration::from_millis(interval_ms))
            .expect("a period of at least one millisecond is a quota");
        Self {
            pace: RateLimiter::direct_with_clock(quota, PaceClock(clock.clone())),
            clock,
            interval_ms,
            paced_until_ms: AtomicU64::new(0),
            penalty,
            throttled: Mutex::default(),
        }
    }

    /// How long until a call would be let out; zero means now. Takes nothing.
    pub fn wait(&self) -> Duration {
        let until_ms =
            self.paced_until_ms.load(Ordering::Acquire).max(self.throttled.lock().until_ms);
        Duration::from_millis(until_ms.saturating_sub(self.clock.monotonic_ms()))
    }

    /// Takes the slot for one call.
    ///
    /// # Errors
    /// How long to wait, if there is none now.
    pub fn take(&self) -> Result<(), Duration> {
        let wait = self.wait();
        if !wait.is_zero() {
            return Err(wait);
        }
        let now_ms = self.clock.monotonic_ms();
        match self.pace.check() {
            Ok(()) => {
                self.paced_until_ms.fetch_max(now_ms + self.interval_ms, Ordering::AcqRel);
                Ok(())
            }
            Err(early) => Err(early
                .wait_time_from(Duration::from_millis(now_ms))
                .max(Duration::from_millis(1))),
        }
    }

    /// A call has ended. The upstream counts from when the request reached it, which after a slow
    /// connect is long after [`Limiter::take`]: the next call keeps its distance from the end too,
    /// less the part of the interval that is only room for jitter.
    pub fn ended(&self) {
        let distance_ms = self.interval_ms - self.interval_ms / JITTER_PART;
        let until_ms = self.clock.monotonic_ms() + distance_ms;
        self.paced_until_ms.fetch_max(until_ms, Ordering::AcqRel);
    }

    /// The upstream refused for too many requests: starts or doubles the penalty and tells its
    /// length, which is at least `retry_after`.
    pub fn refused(&self, retry_after: Duration) -> Duration {
        let mut throttled = self.throttled.lock();
        let doublings = throttled.refusals_in_row.min(16);
        throttled.refusals_in_row = throttled.refusals_in_row.saturating_add(1);
        let level = self.penalty.first.saturating_mul(1 << doublings).min(self.penalty.max);
        let jittered = Duration::from_millis(rng::jittered_ms(level.as_millis() as u64))
            .clamp(self.penalty.first, self.penalty.max);
        let length = jittered.max(retry_after.min(RETRY_AFTER_MAX));
        let until_ms = self.clock.monotonic_ms() + length.as_millis() as u64;
        throttled.until_ms = throttled.until_ms.max(until_ms);
        length
    }

    /// The upstream answered: the next penalty starts from the first step again.
    pub fn accepted(&self) {
        self.throttled.lock().refusals_in_row = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PENALTY: Penalty =
        Penalty { first: Duration::from_secs(60), max: Duration::from_secs(900) };

    fn limiter(interval_ms: u64) -> (Clock, Limiter) {
        let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
        (clock.clone(), Limiter::new(clock, interval_ms, PENALTY))
    }

    #[test]
    fn lets_out_one_call_per_interval_and_says_how_long_to_wait() {
        let (clock, limiter) = limiter(1_050);
        assert_eq!(limiter.wait(), Duration::ZERO);
        assert_eq!(limiter.take(), Ok(()));
        assert_eq!(limiter.take(), Err(Duration::from_millis(1_050)));
        clock.advance_ms(1_000);
        assert_eq!(limiter.wait(), Duration::from_millis(50));
        assert_eq!(limiter.take(), Err(Duration::from_millis(50)));
        clock.advance_ms(50);
        assert_eq!(limiter.take(), Ok(()));
    }

    #[test]
    fn a_slow_call_keeps_the_next_one_away_from_its_end() {
        let (clock, limiter) = limiter(1_050);
        assert_eq!(limiter.take(), Ok(()));
        clock.advance_ms(30);
        limiter.ended();
        assert_eq!(limiter.wait(), Duration::from_millis(1_020), "a usual call changes nothing");
        clock.advance_ms(1_020);
        assert_eq!(limiter.take(), Ok(()));
        clock.advance_ms(400);
        limiter.ended();
        assert_eq!(limiter.take(), Err(Duration::from_millis(1_000)));
    }

    #[test]
    fn idle_time_is_not_saved_up_for_a_burst() {
        let (clock, limiter) = limiter(334);
        clock.advance_ms(60_000);
        assert_eq!(limiter.take(), Ok(()));
        assert!(limiter.take().is_err());
    }

    #[test]
    fn many_threads_share_one_slot() {
        let (_clock, limiter) = limiter(1_000);
        let taken = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        if limiter.take().is_ok() {
                            taken.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(taken.into_inner(), 1);
    }

    #[test]
    fn penalties_double_up_to_the_maximum_and_start_over_after_an_answer() {
        let (clock, limiter) = limiter(1);
        let mut expected_s = 60.0;
        for _ in 0..8 {
            let length = limiter.refused(Duration::ZERO).as_secs_f64();
            assert!((expected_s * 0.8..=expected_s * 1.2).contains(&length), "{length}");
            assert!((60.0..=900.0).contains(&length), "{length}");
            assert!(limiter.take().is_err());
            clock.advance_ms((length * 1_000.0) as i64 + 1);
            assert_eq!(limiter.take(), Ok(()));
            clock.advance_ms(1);
            expected_s = (expected_s * 2.0).min(900.0);
        }
        limiter.accepted();
        assert!(limiter.refused(Duration::ZERO) <= Duration::from_secs(72));
    }

    #[test]
    fn retry_after_lengthens_a_penalty_but_not_without_end() {
        let (_clock, limiter) = limiter(1);
        assert_eq!(limiter.refused(Duration::from_secs(500)), Duration::from_secs(500));
        assert_eq!(limiter.refused(Duration::from_secs(1_000_000)), RETRY_AFTER_MAX);
        assert_eq!(limiter.wait(), RETRY_AFTER_MAX);
    }
}
