//! The gate in front of one endpoint class: pace, circuit, and the verdict on every answer.
//!
//! The only place that decides which errors are the upstream's failure. Runs on upstream lanes;
//! blocks only as long as the call it lets through.

use std::time::Duration;

use super::breaker::Breaker;
use super::pace::{Pace, Penalty};
use super::stats::{CallCounts, ClassReading, Counters};
use crate::base::Clock;
use crate::brokers::feed::Batch;
use crate::brokers::feed::Readiness;
use crate::brokers::settings::UpstreamSettings;
use crate::brokers::{BrokerError, BrokerErrorKind};

/// Limits, circuit and counters of one endpoint class.
pub(crate) struct Gate {
    name: &'static str,
    pace: Pace,
    breaker: Breaker,
    counters: Counters,
}

/// What an error says about the health of the upstream.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It answered, though not what was hoped for.
    Works,
    /// It asks to be left alone, which is the pace's affair.
    Throttles,
    Fails,
}

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
            counters: Counters::default(),
        }
    }

    /// Whether a call would be let out now.
    pub(crate) fn readiness(&self) -> Readiness {
        if let Some(wait) = self.breaker.wait() {
            return Readiness::Open(wait);
        }
        match self.pace.wait() {
            Duration::ZERO => Readiness::Ready,
            wait => Readiness::Paced(wait),
        }
    }

    /// Lets `ask` out if the class allows it, and learns from its result.
    ///
    /// # Errors
    /// [`BrokerErrorKind::NotReady`], or what `ask` gave; the wait of a
    /// [`BrokerErrorKind::RateLimited`] is then the whole penalty.
    pub(crate) fn call<T>(
        &self,
        ask: impl FnOnce() -> Result<T, BrokerError>,
    ) -> Result<T, BrokerError> {
        if let Some(wait) = self.breaker.wait() {
            return Err(self.hold(Readiness::Open(wait)));
        }
        // The slot first: a probe's place must not be taken by a call that the pace then stops.
        self.pace.take().map_err(|wait| self.hold(Readiness::Paced(wait)))?;
        let pass = self.breaker.pass().map_err(|wait| self.hold(Readiness::Open(wait)))?;
        let result = ask();
        self.pace.ended();
        self.counters.called(&result);
        match result {
            Err(error) if verdict(error.kind) == Verdict::Throttles => {
                let penalty = self.pace.refused(error.retry_after().unwrap_or_default());
                return Err(error.after(penalty));
            }
            Err(ref error) if verdict(error.kind) == Verdict::Fails => pass.failure(),
            Ok(_) | Err(_) => {
                self.pace.accepted();
                pass.success();
            }
        }
        result
    }

    /// A call that something before the gate stopped.
    pub(crate) fn hold(&self, readiness: Readiness) -> BrokerError {
        self.counters.held_back();
        BrokerError::not_ready(self.name, readiness)
    }

    pub(crate) fn brought(&self, batch: &Batch) {
        self.counters.brought(batch);
    }

    pub(crate) fn counts(&self) -> CallCounts {
        self.counters.read()
    }

    pub(crate) fn reading(&self, class: &'static str) -> ClassReading {
        ClassReading::of_calls(class, self.breaker.state(), &self.counts())
    }
}

fn verdict(kind: BrokerErrorKind) -> Verdict {
    match kind {
        BrokerErrorKind::Unreachable
        | BrokerErrorKind::TimedOut
        | BrokerErrorKind::Failed { .. }
        | BrokerErrorKind::Malformed
        | BrokerErrorKind::Redirected => Verdict::Fails,
        BrokerErrorKind::RateLimited => Verdict::Throttles,
        BrokerErrorKind::NotReady(_)
        | BrokerErrorKind::KeySpent
        | BrokerErrorKind::TokenDead
        | BrokerErrorKind::CodeRefused
        | BrokerErrorKind::KeyRefused
        | BrokerErrorKind::NotPermitted
        | BrokerErrorKind::AccountProblem
        | BrokerErrorKind::SecondFactorProblem
        | BrokerErrorKind::AddressRefused
        | BrokerErrorKind::Refused => Verdict::Works,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ManualClock;

    const PENALTY: Penalty =
        Penalty { first: Duration::from_secs(2), max: Duration::from_secs(30) };

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
                gate.call::<()>(|| Err(BrokerError::new("test", kind, ""))).unwrap_err();
                clock.advance_ms(1_000);
            }
            assert_eq!(matches!(gate.readiness(), Readiness::Open(_)), opens, "{kind:?}");
            assert_eq!(gate.counts().calls, 3);
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
        assert_eq!(gate.counts().rate_limited, 4);
    }

    #[test]
    fn a_held_call_is_not_made() {
        let (_clock, gate) = gate();
        gate.call(|| Ok(())).unwrap();
        let error = gate.call::<()>(|| panic!("made")).unwrap_err();
        assert!(matches!(error.kind, BrokerErrorKind::NotReady(Readiness::Paced(_))));
        assert_eq!((gate.counts().calls, gate.counts().held_back), (1, 1));
    }
}
