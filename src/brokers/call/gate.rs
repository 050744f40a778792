//! The gate in front of one endpoint class: pace, circuit, and what both learn from every answer.
//!
//! `BrokerErrorKind::judged` is the table of what an error means for the upstream's health. Runs on
//! upstream lanes; blocks only for the duration of a call that it lets through.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use crate::base::Clock;
use crate::brokers::call::breaker::{Breaker, CircuitState};
use crate::brokers::call::pace::{Pace, Penalty};
use crate::brokers::error::{Health, Outcome};
use crate::brokers::readiness::Readiness;
use crate::brokers::settings::UpstreamSettings;
use crate::brokers::{BrokerError, BrokerErrorKind};
use crate::ops::counter::Counts;

/// Limits, circuit and counters of one endpoint class.
pub(crate) struct Gate {
    name: &'static str,
    pace: Pace,
    breaker: Breaker,
    /// Calls that pace, penalty, circuit or token stopped.
    held_back: AtomicU64,
    outcomes: Counts<Outcome>,
    /// Refusals in a row after which each one counts as the upstream's failure. `None`: none does.
    refusals_max: Option<u32>,
    refusals_in_row: AtomicU32,
}

/// A quote call that is refused is repeated with fewer symbols. An upstream that refuses so many
/// in a row refuses all of them, whatever they carry.
pub(crate) const REFUSALS_MAX: u32 = 10;

impl Gate {
    /// `name` is for the log.
    pub(crate) fn new(
        name: &'static str,
        clock: &Clock,
        upstream: &UpstreamSettings,
        interval_ms: u64,
        penalty: Penalty,
    ) -> Self {
        Self {
            name,
            pace: Pace::new(clock.clone(), interval_ms, penalty),
            breaker: Breaker::new(name, clock.clone(), upstream),
            held_back: AtomicU64::default(),
            outcomes: Counts::default(),
            refusals_max: None,
            refusals_in_row: AtomicU32::default(),
        }
    }

    /// Counts refusals as failures once there were [`REFUSALS_MAX`] in a row.
    pub(crate) fn doubting_refusals(mut self) -> Self {
        self.refusals_max = Some(REFUSALS_MAX);
        self
    }

    /// Whether so many calls in a row were refused that the upstream fails.
    fn keeps_refusing(&self, error: Option<&BrokerError>) -> bool {
        let refused = error.is_some_and(|error| error.kind == BrokerErrorKind::Refused);
        let in_row = match refused {
            true => self.refusals_in_row.fetch_add(1, Relaxed).saturating_add(1),
            false => {
                self.refusals_in_row.store(0, Relaxed);
                0
            }
        };
        self.refusals_max.is_some_and(|most| in_row >= most)
    }

    /// Whether a call could be made now.
    pub(crate) fn readiness(&self) -> Readiness {
        if let Some(wait) = self.breaker.wait() {
            return Readiness::Open(wait);
        }
        match self.pace.wait() {
            Duration::ZERO => Readiness::Ready,
            wait => Readiness::Paced(wait),
        }
    }

    /// Calls `ask` if the class allows it, and learns from its result.
    ///
    /// # Errors
    /// `NotReady`, or the error of `ask`. The wait of a `RateLimited` is the whole penalty.
    pub(crate) fn call<T>(
        &self,
        ask: impl FnOnce() -> Result<T, BrokerError>,
    ) -> Result<T, BrokerError> {
        if let Some(wait) = self.breaker.wait() {
            return Err(self.hold(Readiness::Open(wait)));
        }
        // The pace comes first, so that a call that it stops does not use up the circuit's probe.
        let taken_mono_ms = self
            .pace
            .take()
            .map_err(|wait| self.hold(Readiness::Paced(wait)))?;
        let pass = self
            .breaker
            .pass()
            .map_err(|wait| self.hold(Readiness::Open(wait)))?;
        let result = ask();
        self.pace.ended(taken_mono_ms);
        let judged = result.as_ref().err().map(|error| error.kind.judged());
        match judged.map_or(Some(Outcome::Ok), |judged| judged.outcome) {
            Some(outcome) => self.outcomes.increment(outcome),
            None => drop(self.held_back.fetch_add(1, Relaxed)),
        }
        let keeps_refusing = self.keeps_refusing(result.as_ref().err());
        match judged.map_or(Health::Works, |judged| judged.health) {
            Health::Works if keeps_refusing => pass.failure(),
            Health::Throttles => {
                return result.map_err(|error| {
                    let penalty = self.pace.refused(error.retry_after().unwrap_or_default());
                    error.after(penalty)
                });
            }
            Health::Fails | Health::Strange => pass.failure(),
            Health::Works => {
                self.pace.accepted();
                pass.success();
            }
        }
        result
    }

    /// Counts a call that was not made, and returns its error.
    pub(crate) fn hold(&self, readiness: Readiness) -> BrokerError {
        self.held_back.fetch_add(1, Relaxed);
        BrokerError::not_ready(self.name, readiness)
    }

    pub(crate) fn reading(&self, class: &'static str) -> ClassReading {
        ClassReading {
            class,
            circuit: self.breaker.state(),
            held_back: self.held_back.load(Relaxed),
            outcomes: self.outcomes.by_word(),
        }
    }
}

/// One class of calls to an upstream, for metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassReading {
    /// `quotes`, `candles`, `syncs`, `other`.
    pub class: &'static str,
    pub(crate) circuit: CircuitState,
    /// Calls that pace, penalty, circuit, token or the key's limit stopped.
    pub held_back: u64,
    /// Calls that were made, by outcome.
    pub outcomes: Vec<(&'static str, u64)>,
}

#[cfg(test)]
impl ClassReading {
    /// Calls that were made.
    pub(crate) fn calls(&self) -> u64 {
        self.outcomes.iter().map(|(_, count)| count).sum()
    }

    /// Calls with this outcome.
    pub(crate) fn of(&self, outcome: &str) -> u64 {
        self.outcomes
            .iter()
            .find(|(name, _)| *name == outcome)
            .unwrap()
            .1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ManualClock;
    use crate::brokers::BrokerErrorKind;

    const PENALTY: Penalty = Penalty {
        first: Duration::from_secs(2),
        max: Duration::from_secs(30),
    };

    fn gate() -> (ManualClock, Gate) {
        let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
        let gate = Gate::new("test", &clock, &UpstreamSettings::default(), 1_000, PENALTY);
        (clock, gate)
    }

    #[test]
    fn only_failures_of_the_upstream_open_the_circuit() {
        for (kind, opens) in [
            (BrokerErrorKind::Unreachable, true),
            (BrokerErrorKind::TimedOut, true),
            (BrokerErrorKind::Failed { status: 503 }, true),
            (BrokerErrorKind::Malformed, true),
            (BrokerErrorKind::Redirected, true),
            (BrokerErrorKind::TokenDead, false),
            (BrokerErrorKind::NotPermitted, false),
            (BrokerErrorKind::Refused, false),
        ] {
            let (clock, gate) = gate();
            for _ in 0..3 {
                gate.call::<()>(|| Err(BrokerError::new("test", kind, "")))
                    .unwrap_err();
                clock.advance_ms(1_000);
            }
            assert_eq!(matches!(gate.readiness(), Readiness::Open(_)), opens, "{kind:?}");
            assert_eq!(gate.reading("quotes").calls(), 3);
        }
    }

    #[test]
    fn too_many_requests_is_a_penalty_and_not_a_failure() {
        let (clock, gate) = gate();
        for _ in 0..4 {
            let limited = || BrokerError::new("test", BrokerErrorKind::RateLimited, "");
            let error = gate.call::<()>(|| Err(limited())).unwrap_err();
            assert_eq!(error.kind, BrokerErrorKind::RateLimited);
            let retry_after = error.retry_after().unwrap();
            assert!(retry_after >= Duration::from_secs(2));
            assert_eq!(gate.readiness(), Readiness::Paced(retry_after));
            clock.advance_ms(retry_after.as_millis() as i64);
        }
        assert_eq!(gate.readiness(), Readiness::Ready);
        assert_eq!(gate.reading("quotes").of("rate_limited"), 4);
    }

    /// Of a call that connects slowly the request may arrive long after it began.
    #[test]
    fn beside_a_call_that_is_under_way_the_next_one_waits_longer() {
        let (clock, gate) = gate();
        let paced = |ms| Readiness::Paced(Duration::from_millis(ms));
        gate.call(|| {
            assert_eq!(gate.readiness(), paced(1_300));
            clock.advance_ms(1_299);
            assert_eq!(gate.readiness(), paced(1));
            let error = gate.call::<()>(|| panic!("made")).unwrap_err();
            assert_eq!(error.kind, BrokerErrorKind::NotReady(paced(1)));
            clock.advance_ms(1);
            gate.call(|| {
                clock.advance_ms(100);
                Ok(())
            })?;
            // From the end of the second, without the room for jitter.
            assert_eq!(gate.readiness(), paced(953));
            Ok(())
        })
        .unwrap();
        clock.advance_ms(953);
        assert_eq!(gate.readiness(), Readiness::Ready, "none is under way");
        // A call that began earlier and ends later leaves the later one its time.
        gate.call(|| {
            clock.advance_ms(1_300);
            gate.call(|| Ok(()))
        })
        .unwrap();
        clock.advance_ms(1_000);
        assert_eq!(gate.readiness(), Readiness::Ready);
    }

    #[test]
    fn a_held_call_is_not_made() {
        let (_clock, gate) = gate();
        gate.call(|| Ok(())).unwrap();
        let error = gate.call::<()>(|| panic!("made")).unwrap_err();
        assert!(matches!(error.kind, BrokerErrorKind::NotReady(Readiness::Paced(_))));
        let reading = gate.reading("quotes");
        assert_eq!((reading.calls(), reading.held_back), (1, 1));
    }
}

#[cfg(test)]
mod refusal_tests {
    use super::*;
    use crate::base::ManualClock;

    /// The outcome of calls in order, a second apart: refused, failed, answered, or held back.
    fn played(gate: &Gate, clock: &ManualClock, calls: &[BrokerErrorKind]) -> bool {
        for kind in calls {
            clock.advance_ms(1_000);
            let _ = gate.call(|| Err::<(), _>(BrokerError::new("test", *kind, "said")));
        }
        gate.breaker.state() == CircuitState::Open
    }

    #[test]
    fn an_upstream_that_refuses_every_call_opens_its_circuit() {
        use BrokerErrorKind::{Refused, TimedOut};
        let refused = |times: u32| vec![Refused; times as usize];
        let opens_after = REFUSALS_MAX + 2;
        for (calls, doubts, opens) in [
            (refused(1), true, false),
            (refused(REFUSALS_MAX - 1), true, false),
            (refused(REFUSALS_MAX), true, false),
            (refused(opens_after - 1), true, false),
            (refused(opens_after), true, true),
            // Where refusals are those of a request, as in syncs, they open nothing.
            (refused(opens_after), false, false),
            (refused(100), false, false),
            // Other failures open it as ever.
            (vec![TimedOut; 3], true, true),
            (vec![TimedOut; 2], true, false),
            ([refused(2), vec![TimedOut; 3]].concat(), true, true),
            // Another failure ends the row.
            ([refused(9), vec![TimedOut], refused(9)].concat(), true, false),
        ] {
            let clock = Clock::manual("2026-11-20T11:00:00+05:30".parse().unwrap());
            let penalty = Penalty {
                first: Duration::from_secs(2),
                max: Duration::from_secs(30),
            };
            let gate = Gate::new("test", &clock, &UpstreamSettings::default(), 1, penalty);
            let gate = if doubts {
                gate.doubting_refusals()
            } else {
                gate
            };
            assert_eq!(played(&gate, &clock, &calls), opens, "{calls:?} {doubts}");
        }
    }
}
