//! The only place that reads the machine's clocks.
//!
//! A [`Clock`] is a cheap handle. The system clock can be started at another instant (`BHAV_NOW`,
//! the demo, tests) and then runs on. A [`ManualClock`] moves only when told to, and no other clock
//! can be told. Any thread may read a clock; it never blocks.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// Wall time and monotonic time, from one seam.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Kind>);

#[derive(Debug)]
enum Kind {
    /// The machine's clock, moved by what is constant but for [`Clock::jump_ms`].
    /// `set`: it was started at another instant.
    Running { offset_ms: AtomicI64, started: Instant, set: bool },
    /// Stands still until [`ManualClock::advance_ms`].
    Manual { start_ms: i64, elapsed_ms: Arc<AtomicI64> },
}

#[expect(clippy::disallowed_methods, reason = "this is the clock seam")]
impl Clock {
    /// The machine's own time.
    pub fn system() -> Self {
        let (offset_ms, started) = (AtomicI64::new(0), Instant::now());
        Self(Arc::new(Kind::Running { offset_ms, started, set: false }))
    }

    /// A clock that reads `start` now and runs on from there.
    pub fn starting_at(start: Timestamp) -> Self {
        let offset_ms = AtomicI64::new(start.as_millisecond() - system_ms());
        Self(Arc::new(Kind::Running { offset_ms, started: Instant::now(), set: true }))
    }

    /// A clock that reads `start` until it is advanced; for tests of anything that depends on time.
    pub fn manual(start: Timestamp) -> ManualClock {
        let elapsed_ms = Arc::new(AtomicI64::new(0));
        let kind =
            Kind::Manual { start_ms: start.as_millisecond(), elapsed_ms: Arc::clone(&elapsed_ms) };
        ManualClock { clock: Self(Arc::new(kind)), elapsed_ms }
    }

    /// Moves a running clock's wall time alone, as setting the machine's clock does; a manual clock
    /// ignores it. For tests of what a wrong clock does.
    pub fn jump_ms(&self, by_ms: i64) {
        if let Kind::Running { offset_ms, .. } = &*self.0 {
            offset_ms.fetch_add(by_ms, Ordering::SeqCst);
        }
    }

    /// Whether somebody chose what it reads, instead of the machine.
    pub fn is_set(&self) -> bool {
        !matches!(&*self.0, Kind::Running { set: false, .. })
    }

    /// Wall time in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> i64 {
        match &*self.0 {
            Kind::Running { offset_ms, .. } => system_ms() + offset_ms.load(Ordering::Relaxed),
            Kind::Manual { start_ms, elapsed_ms } => start_ms + elapsed_ms.load(Ordering::SeqCst),
        }
    }

    /// Wall time.
    pub fn now(&self) -> Timestamp {
        // Both kinds stay within jiff's range of years -9999 to 9999 by many thousand years.
        Timestamp::from_millisecond(self.now_ms()).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Milliseconds since this clock was made; never goes back, whatever the wall clock does.
    pub fn monotonic_ms(&self) -> u64 {
        match &*self.0 {
            Kind::Running { started, .. } => started.elapsed().as_millis() as u64,
            Kind::Manual { elapsed_ms, .. } => elapsed_ms.load(Ordering::SeqCst).max(0) as u64,
        }
    }

    /// The same in nanoseconds, for durations that are over in one millisecond. Costs about 25 ns.
    pub fn monotonic_ns(&self) -> u64 {
        match &*self.0 {
            Kind::Running { started, .. } => started.elapsed().as_nanos() as u64,
            Kind::Manual { .. } => self.monotonic_ms() * 1_000_000,
        }
    }
}

/// A clock that stands still until it is advanced. It reads as a [`Clock`]; a clone of it is one,
/// which shows the same time and cannot be advanced.
#[derive(Debug)]
pub struct ManualClock {
    clock: Clock,
    elapsed_ms: Arc<AtomicI64>,
}

impl ManualClock {
    /// Another handle that can advance it.
    pub fn share(&self) -> Self {
        Self { clock: self.clock.clone(), elapsed_ms: Arc::clone(&self.elapsed_ms) }
    }

    /// Moves it, and all clocks that it handed out.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let clock = Clock::manual("2026-11-20T10:00:00Z".parse().unwrap());
        assert_eq!(clock.now().to_string(), "2026-11-20T10:00:00Z");
        clock.advance_ms(61_000);
        assert_eq!(clock.now().to_string(), "2026-11-20T10:01:01Z");
        assert_eq!(clock.monotonic_ms(), 61_000);
    }

    #[test]
    fn a_jump_moves_wall_time_and_not_the_monotonic() {
        let clock = Clock::starting_at("2026-08-03T03:45:00Z".parse().unwrap());
        let (before_ms, mono_ms) = (clock.now_ms(), clock.monotonic_ms());
        clock.jump_ms(-3_600_000);
        assert!((-3_600_000..-3_540_000).contains(&(clock.now_ms() - before_ms)));
        assert!((0..60_000).contains(&(clock.monotonic_ms() - mono_ms)));
    }

    #[test]
    fn a_clock_started_elsewhere_runs_on() {
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
