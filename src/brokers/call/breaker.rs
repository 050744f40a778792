//! A circuit breaker: stops calls to an upstream after failures in a row, then tries it with one
//! probe.
//!
//! Runs on any thread that calls the feed. Its lock is held for a few instructions and never over
//! I/O; it never sleeps.

use std::time::Duration;

use parking_lot::Mutex;

use crate::base::{Clock, rng, words};
use crate::brokers::settings::UpstreamSettings;

words! {
    /// State of a circuit breaker.
    pub(crate) enum CircuitState {
        Closed = "closed",
        Open = "open",
        /// One call is made as a probe.
        HalfOpen = "half_open",
    }
}

/// Wait that is reported while another call's probe is under way.
pub(crate) const PROBE_WAIT: Duration = Duration::from_millis(100);

/// The circuit of one upstream.
pub(crate) struct Breaker {
    name: &'static str,
    clock: Clock,
    failures_max: u32,
    open_first_ms: u64,
    open_max_ms: u64,
    state: Mutex<State>,
}

pub(super) struct State {
    phase: Phase,
    /// Number of phase changes. The result of a call that began in an earlier phase is ignored.
    epoch: u64,
    /// Openings since the last success, for the doubling.
    openings: u32,
}

#[derive(Clone, Copy)]
enum Phase {
    Closed { failures_in_row: u32 },
    Open { until_ms: u64 },
    HalfOpen { probing: bool },
}

/// Permission for one call. Dropped without a result it does not count.
pub(crate) struct Pass<'a> {
    breaker: &'a Breaker,
    epoch: u64,
    judged: bool,
}

impl Breaker {
    /// A closed circuit; `name` is for the log.
    pub(crate) fn new(name: &'static str, clock: Clock, settings: &UpstreamSettings) -> Self {
        Self {
            name,
            clock,
            failures_max: settings.breaker_failures.max(1),
            open_first_ms: settings.breaker_open_ms.max(1),
            open_max_ms: settings
                .breaker_open_max_ms
                .max(settings.breaker_open_ms)
                .max(1),
            state: Mutex::new(State {
                phase: Phase::Closed { failures_in_row: 0 },
                epoch: 0,
                openings: 0,
            }),
        }
    }

    /// `None` if a call could be made now, else the time for which the circuit stays open. While a
    /// probe is under way this is [`PROBE_WAIT`]: its end is not known.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.wait_in(self.state.lock().phase)
    }

    fn wait_in(&self, phase: Phase) -> Option<Duration> {
        match phase {
            Phase::Closed { .. } | Phase::HalfOpen { probing: false } => None,
            Phase::HalfOpen { probing: true } => Some(PROBE_WAIT),
            Phase::Open { until_ms } => {
                let left_ms = until_ms.saturating_sub(self.clock.monotonic_ms());
                (left_ms > 0).then(|| Duration::from_millis(left_ms))
            }
        }
    }

    pub(crate) fn state(&self) -> CircuitState {
        match self.state.lock().phase {
            Phase::Closed { .. } => CircuitState::Closed,
            Phase::Open { .. } => CircuitState::Open,
            Phase::HalfOpen { .. } => CircuitState::HalfOpen,
        }
    }

    /// Permits one call.
    ///
    /// # Errors
    /// As [`Breaker::wait`].
    pub(crate) fn pass(&self) -> Result<Pass<'_>, Duration> {
        let mut state = self.state.lock();
        if let Some(wait) = self.wait_in(state.phase) {
            return Err(wait);
        }
        if !matches!(state.phase, Phase::Closed { .. }) {
            state.enter(Phase::HalfOpen { probing: true });
        }
        Ok(Pass {
            breaker: self,
            epoch: state.epoch,
            judged: false,
        })
    }

    fn fail(&self, epoch: u64) {
        let mut state = self.state.lock();
        if state.epoch != epoch {
            return;
        }
        if let Phase::Closed { failures_in_row } = state.phase {
            let failures_in_row = failures_in_row + 1;
            if failures_in_row < self.failures_max {
                state.phase = Phase::Closed { failures_in_row };
                return;
            }
        }
        let level_ms = self
            .open_first_ms
            .saturating_mul(1 << state.openings.min(20))
            .min(self.open_max_ms);
        let open_ms = rng::jittered_ms(level_ms).clamp(1, self.open_max_ms);
        state.openings = state.openings.saturating_add(1);
        state.enter(Phase::Open {
            until_ms: self.clock.monotonic_ms() + open_ms,
        });
        tracing::warn!(
            upstream = self.name,
            open_ms,
            "upstream failed several times in a row; it is left alone for a while"
        );
    }

    fn succeed(&self, epoch: u64) {
        let mut state = self.state.lock();
        if state.epoch != epoch {
            return;
        }
        if let Phase::HalfOpen { .. } = state.phase {
            tracing::info!(upstream = self.name, "upstream answers again");
            state.enter(Phase::Closed { failures_in_row: 0 });
        } else {
            state.phase = Phase::Closed { failures_in_row: 0 };
        }
        state.openings = 0;
    }

    fn release(&self, epoch: u64) {
        let mut state = self.state.lock();
        if state.epoch == epoch && matches!(state.phase, Phase::HalfOpen { .. }) {
            state.enter(Phase::HalfOpen { probing: false });
        }
    }
}

impl State {
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.epoch += 1;
    }
}

impl Pass<'_> {
    /// The upstream works.
    pub(crate) fn success(mut self) {
        self.judged = true;
        self.breaker.succeed(self.epoch);
    }

    /// The upstream does not work.
    pub(crate) fn failure(mut self) {
        self.judged = true;
        self.breaker.fail(self.epoch);
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if !self.judged {
            self.breaker.release(self.epoch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ManualClock;
    use proptest::prelude::{Just, Strategy, prop_oneof};

    fn breaker() -> (ManualClock, Breaker) {
        let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
        let breaker = Breaker::new("test", clock.clone(), &UpstreamSettings::default());
        (clock, breaker)
    }

    fn fail(breaker: &Breaker, times: u32) {
        for _ in 0..times {
            breaker.pass().ok().unwrap().failure();
        }
    }

    #[test]
    fn opens_after_failures_in_a_row_only() {
        let (_clock, breaker) = breaker();
        fail(&breaker, 2);
        breaker.pass().ok().unwrap().success();
        fail(&breaker, 2);
        assert_eq!(breaker.wait(), None);
        fail(&breaker, 1);
        assert!(breaker.wait().is_some());
        assert!(breaker.pass().is_err());
    }

    #[test]
    fn one_probe_in_half_open_whose_success_closes() {
        let (clock, breaker) = breaker();
        fail(&breaker, 3);
        clock.advance_ms(breaker.wait().unwrap().as_millis() as i64);
        let probe = breaker.pass().ok().unwrap();
        assert!(breaker.pass().is_err(), "a second probe");
        probe.success();
        fail(&breaker, 2);
        assert_eq!(breaker.wait(), None, "closed again, with the count at zero");
    }

    #[test]
    fn a_probe_without_verdict_leaves_the_place_to_the_next() {
        let (clock, breaker) = breaker();
        fail(&breaker, 3);
        clock.advance_ms(60_000);
        drop(breaker.pass().ok().unwrap());
        assert_eq!(breaker.wait(), None);
        breaker.pass().ok().unwrap().success();
        fail(&breaker, 2);
        assert_eq!(breaker.wait(), None);
    }

    #[test]
    fn open_time_doubles_to_the_maximum() {
        let (clock, breaker) = breaker();
        fail(&breaker, 3);
        for level_ms in [2_000_u64, 4_000, 8_000, 10_000, 10_000] {
            let open_ms = breaker.wait().unwrap().as_millis() as u64;
            assert!((level_ms * 4 / 5..=level_ms * 6 / 5).contains(&open_ms), "{open_ms}");
            assert!(open_ms <= 10_000);
            clock.advance_ms(open_ms as i64);
            breaker.pass().ok().unwrap().failure();
        }
    }

    #[test]
    fn a_late_verdict_of_an_earlier_phase_is_ignored() {
        let (clock, breaker) = breaker();
        let late_success = breaker.pass().ok().unwrap();
        let late_failure = breaker.pass().ok().unwrap();
        fail(&breaker, 3);
        late_success.success();
        assert!(breaker.wait().is_some(), "still open");
        clock.advance_ms(60_000);
        breaker.pass().ok().unwrap().success();
        fail(&breaker, 2);
        late_failure.failure();
        assert_eq!(breaker.wait(), None, "the old failure was not the third");
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Success,
        Failure,
        NoVerdict,
        Advance(i64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            1 => Just(Step::Success),
            3 => Just(Step::Failure),
            1 => Just(Step::NoVerdict),
            1 => (1_i64..70_000).prop_map(Step::Advance),
        ]
    }

    proptest::proptest! {
        /// Compares with a model of two values: failures in a row, and when it opened.
        #[test]
        fn agrees_with_the_model(steps in proptest::collection::vec(step(), 1..200)) {
            let (clock, breaker) = breaker();
            let mut in_row = 0_u32;
            let mut opened_at = None;
            for step in steps {
                if let Step::Advance(by) = step {
                    clock.advance_ms(by);
                    continue;
                }
                let now = clock.monotonic_ms();
                let pass = breaker.pass();
                match opened_at {
                    None => proptest::prop_assert!(pass.is_ok()),
                    // The shortest opening is 2 s less a fifth, the longest the maximum.
                    Some(at) if now < at + 1_600 => proptest::prop_assert!(pass.is_err()),
                    Some(at) if now >= at + 60_000 => proptest::prop_assert!(pass.is_ok()),
                    Some(_) => {}
                }
                let Ok(pass) = pass else { continue };
                match step {
                    Step::Success => {
                        pass.success();
                        (in_row, opened_at) = (0, None);
                    }
                    Step::Failure => {
                        pass.failure();
                        in_row += 1;
                        if in_row >= 3 {
                            opened_at = Some(now);
                        }
                    }
                    _ => drop(pass),
                }
            }
        }
    }
}
