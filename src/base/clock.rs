//! The only place that reads the machine's clocks.
//!
//! A [`Clock`] is a handle that is cheap to clone. There are two kinds. A running clock follows the
//! machine's, possibly from another starting instant (`BHAV_NOW`, the demo, tests). A
//! [`ManualClock`] moves only when it is advanced, and no other clock can be. Any thread may read a
//! clock; reading never blocks.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ToSpan, Zoned};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// Time between two reads of a manual clock by a thread that waits for an instant.
const MANUAL_READ_MS: u64 = 5;

/// Source of wall time and monotonic time.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Kind>);

#[derive(Debug)]
enum Kind {
    /// The machine's clock plus `offset_ms`, which only [`Clock::jump_ms`] changes. `set` is true
    /// if the clock was given a starting instant other than the machine's.
    Running {
        offset_ms: AtomicI64,
        started_ns: u64,
        set: bool,
    },
    /// Moves only by [`ManualClock::advance_ms`].
    Manual {
        start_ms: i64,
        elapsed_ms: Arc<AtomicI64>,
    },
}

impl Clock {
    /// A clock that reads the machine's time.
    pub fn system() -> Self {
        let offset_ms = AtomicI64::new(0);
        let started_ns = monotonic_ns();
        Self(Arc::new(Kind::Running {
            offset_ms,
            started_ns,
            set: false,
        }))
    }

    /// A clock that reads `start` now and runs on from there.
    pub fn starting_at(start: Timestamp) -> Self {
        let offset_ms = AtomicI64::new(start.as_millisecond() - system_ms());
        Self(Arc::new(Kind::Running {
            offset_ms,
            started_ns: monotonic_ns(),
            set: true,
        }))
    }

    /// A clock that reads `start` until it is advanced; for tests of anything that depends on time.
    pub fn manual(start: Timestamp) -> ManualClock {
        let elapsed_ms = Arc::new(AtomicI64::new(0));
        let kind = Kind::Manual {
            start_ms: start.as_millisecond(),
            elapsed_ms: Arc::clone(&elapsed_ms),
        };
        ManualClock {
            clock: Self(Arc::new(kind)),
            elapsed_ms,
        }
    }

    /// Moves a running clock's wall time and not its monotonic time, as setting the machine's clock
    /// does. A manual clock ignores it. For tests of a machine whose clock is wrong.
    pub fn jump_ms(&self, by_ms: i64) {
        if let Kind::Running { offset_ms, .. } = &*self.0 {
            offset_ms.fetch_add(by_ms, Ordering::SeqCst);
        }
    }

    /// Whether the clock was given its time ([`Clock::starting_at`], [`Clock::manual`]) instead of
    /// reading the machine's.
    pub(crate) fn is_set(&self) -> bool {
        !matches!(&*self.0, Kind::Running { set: false, .. })
    }

    /// Wall time in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> i64 {
        match &*self.0 {
            Kind::Running { offset_ms, .. } => system_ms() + offset_ms.load(Ordering::Relaxed),
            Kind::Manual {
                start_ms,
                elapsed_ms,
            } => start_ms + elapsed_ms.load(Ordering::SeqCst),
        }
    }

    /// Wall time.
    pub fn now(&self) -> Timestamp {
        // Both kinds stay within jiff's range of years -9999 to 9999 by many thousand years.
        Timestamp::from_millisecond(self.now_ms()).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Milliseconds since this clock was made; never goes back, whatever the wall clock does. The
    /// time for which the machine was suspended counts, so that nothing is younger after it.
    pub fn monotonic_ms(&self) -> u64 {
        match &*self.0 {
            Kind::Running { started_ns, .. } => {
                monotonic_ns().saturating_sub(*started_ns) / 1_000_000
            }
            Kind::Manual { elapsed_ms, .. } => elapsed_ms.load(Ordering::SeqCst).max(0) as u64,
        }
    }

    /// Waits until `ms` have passed by this clock or by the machine's, whichever comes first.
    /// `wait` waits for the time that it is given, and returns what ended that early. Nobody knows
    /// when a manual clock will be moved, so it is read every few milliseconds.
    pub(crate) fn wait_ms<T>(
        &self,
        ms: u64,
        mut wait: impl FnMut(Duration) -> Option<T>,
    ) -> Option<T> {
        if matches!(&*self.0, Kind::Running { .. }) {
            return wait(Duration::from_millis(ms));
        }
        let end_ms = self.monotonic_ms() + ms;
        for _ in 0..ms.div_ceil(MANUAL_READ_MS) {
            let ended = wait(Duration::from_millis(MANUAL_READ_MS));
            if ended.is_some() || self.monotonic_ms() >= end_ms {
                return ended;
            }
        }
        None
    }

    /// Starts to measure a duration below a millisecond. Two reads of the clock cost about 50 ns.
    pub(crate) fn stopwatch(&self) -> Stopwatch {
        match &*self.0 {
            Kind::Running { .. } => Stopwatch(Some(monotonic_ns())),
            Kind::Manual { .. } => Stopwatch(None),
        }
    }

    /// [`monotonic_ms`](Self::monotonic_ms) at the start of a stopwatch of this clock, without
    /// another reading.
    pub(crate) fn started_mono_ms(&self, stopwatch: Stopwatch) -> u64 {
        match (&*self.0, stopwatch.0) {
            (Kind::Running { started_ns, .. }, Some(at_ns)) => {
                at_ns.saturating_sub(*started_ns) / 1_000_000
            }
            _ => self.monotonic_ms(),
        }
    }
}

/// Measures one duration; see [`Clock::stopwatch`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Option<u64>);

impl Stopwatch {
    /// Nanoseconds since the start; zero on a manual clock.
    pub(crate) fn elapsed_ns(self) -> u64 {
        self.0
            .map_or(0, |started_ns| monotonic_ns().saturating_sub(started_ns))
    }
}

/// The kernel's clock since the boot as one number. It goes on while the machine is suspended, so
/// prices age and leases end meanwhile. `Instant` stands then, and takes half as many instructions
/// again, for a difference of two numbers that checks both. The clock always exists, so it cannot
/// fail.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap_or(TimeSpec::new(0, 0));
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// A clock that stands still until it is advanced. It reads as a [`Clock`]. Its clone is a `Clock`,
/// which shows the same time and cannot be advanced.
#[derive(Debug)]
pub struct ManualClock {
    clock: Clock,
    elapsed_ms: Arc<AtomicI64>,
}

impl ManualClock {
    /// Another handle that can advance this clock.
    pub fn share(&self) -> Self {
        Self {
            clock: self.clock.clone(),
            elapsed_ms: Arc::clone(&self.elapsed_ms),
        }
    }

    /// Advances this clock and all its clones.
    pub fn advance_ms(&self, by_ms: i64) {
        self.elapsed_ms.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Deref for ManualClock {
    type Target = Clock;

    fn deref(&self) -> &Clock {
        &self.clock
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the clock seam")]
fn system_ms() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_millis() as i64,
        Err(before) => -(before.duration().as_millis() as i64),
    }
}

// ---- Ist
//
// Indian Standard Time: a fixed offset of +05:30 with no daylight saving, so no zone database is
// needed.

/// Seconds that IST is ahead of UTC.
pub(crate) const OFFSET_S: i32 = 19_800;

/// IST as a jiff zone.
pub(crate) fn zone() -> TimeZone {
    TimeZone::fixed(
        Offset::constant(0).saturating_add(jiff::SignedDuration::from_secs(OFFSET_S as i64)),
    )
}

/// `at` in IST.
pub fn zoned(at: Timestamp) -> Zoned {
    at.to_zoned(zone())
}

/// The date in IST of a time in Unix milliseconds; `None` if it is beyond the years of dates.
pub(crate) fn date_of_ms(ms: i64) -> Option<Date> {
    Timestamp::from_millisecond(ms)
        .ok()
        .map(|at| zoned(at).date())
}

/// The instant of a civil time in IST. Brokers send times without a zone and mean IST.
pub fn instant(civil: DateTime) -> Timestamp {
    // Cannot fail: a fixed offset has neither gaps nor folds, and the years in use are far inside
    // jiff's range.
    civil
        .to_zoned(zone())
        .map(|z| z.timestamp())
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

/// `2026-11-20T15:30:00+05:30`, whole seconds: the form of every market time in the API.
pub(crate) fn iso(at: Timestamp) -> String {
    zoned(at).strftime("%Y-%m-%dT%H:%M:%S+05:30").to_string()
}

/// The first IST midnight after `at`.
pub(crate) fn next_midnight(at: Timestamp) -> Timestamp {
    let tomorrow = zoned(at).date().saturating_add(1.day());
    instant(tomorrow.at(0, 0, 0, 0))
}

/// Time from `at` until [`next_midnight`].
pub(crate) fn until_midnight(at: Timestamp) -> Duration {
    Duration::try_from(next_midnight(at).duration_since(at)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_by_exactly_what_it_is_advanced() {
        let clock = Clock::manual("2026-11-20T10:00:00Z".parse().unwrap());
        assert_eq!(clock.now().to_string(), "2026-11-20T10:00:00Z");
        clock.advance_ms(61_000);
        assert_eq!(clock.now().to_string(), "2026-11-20T10:01:01Z");
        assert_eq!(clock.monotonic_ms(), 61_000);
    }

    #[test]
    fn a_wait_by_a_manual_clock_ends_when_it_has_been_moved_far_enough_or_its_time_has_passed() {
        let clock = Clock::manual("2026-11-20T10:00:00Z".parse().unwrap());
        let mut reads = 0;
        let moved = clock.wait_ms(200, |_| {
            reads += 1;
            clock.advance_ms(100);
            None::<()>
        });
        assert_eq!((moved, reads), (None, 2));
        let mut waited = Duration::ZERO;
        let stands = clock.wait_ms(200, |limit| {
            waited += limit;
            None::<()>
        });
        assert_eq!((stands, waited), (None, Duration::from_millis(200)));
        assert_eq!(clock.wait_ms(200, |_| Some("an event")), Some("an event"));
    }

    #[test]
    fn a_jump_moves_wall_time_and_not_monotonic_time() {
        let clock = Clock::starting_at("2026-08-03T03:45:00Z".parse().unwrap());
        let before_ms = clock.now_ms();
        let mono_ms = clock.monotonic_ms();
        clock.jump_ms(-3_600_000);
        assert!((-3_600_000..-3_540_000).contains(&(clock.now_ms() - before_ms)));
        assert!((0..60_000).contains(&(clock.monotonic_ms() - mono_ms)));
    }

    #[test]
    fn a_clock_started_at_another_instant_runs_on_from_it() {
        let start: Timestamp = "2026-08-03T03:45:00Z".parse().unwrap();
        let clock = Clock::starting_at(start);
        let first = clock.now_ms();
        assert!((0..60_000).contains(&(first - start.as_millisecond())));
        assert!(clock.is_set() && !Clock::system().is_set());
        while clock.now_ms() == first {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod ist_tests {
    use super::*;

    #[test]
    fn ist_midnight_is_at_half_past_six_in_the_evening_utc() {
        for (at, midnight) in [
            ("2026-11-20T18:29:59Z", "2026-11-20T18:30:00Z"),
            ("2026-11-20T18:30:00Z", "2026-11-21T18:30:00Z"),
        ] {
            let at = at.parse().unwrap();
            assert_eq!(next_midnight(at), midnight.parse().unwrap());
        }
        let at = "2026-11-20T18:29:30Z".parse().unwrap();
        assert_eq!(until_midnight(at), Duration::from_secs(30));
    }

    #[test]
    fn ist_is_five_and_a_half_hours_ahead_of_utc() {
        let at: Timestamp = "2026-11-20T10:00:00Z".parse().unwrap();
        assert_eq!(iso(at), "2026-11-20T15:30:00+05:30");
        assert_eq!(instant("2026-11-20T15:30:00".parse().unwrap()), at);
    }
}
