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
use crate::brokers::feed::FeedError;
use crate::brokers::feed::Readiness;
use crate::brokers::settings::UpstreamSettings;

/// Limits, circuit and counters of one endpoint class.
pub(crate) struct Gate {
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
    /// [`FeedError::NotReady`], or what `ask` gave; the `retry_after` of a
    /// [`FeedError::RateLimited`] is then the whole penalty.
    pub(crate) fn call<T>(
        &self,
        ask: impl FnOnce() -> Result<T, FeedError>,
    ) -> Result<T, FeedError> {
        if let Some(wait) = self.breaker.wait() {
            return Err(self.hold(Readiness::Open(wait)));
        }
        // The slot first: a probe's place must not be taken by a call that the pace then stops.
        self.pace.take().map_err(|wait| self.hold(Readiness::Paced(wait)))?;
        let pass = self.breaker.pass().map_err(|wait| self.hold(Readiness::Open(wait)))?;
        let mut result = ask();
        self.pace.ended();
        self.counters.called(&result);
        match &mut result {
            Err(FeedError::RateLimited { retry_after, .. }) => {
                *retry_after = self.pace.refused(*retry_after);
            }
            Err(error) if verdict(error) == Verdict::Fails => pass.failure(),
            Ok(_) | Err(_) => {
                self.pace.accepted();
                pass.success();
            }
        }
        result
    }

    /// A call that something before the gate stopped.
    pub(crate) fn hold(&self, readiness: Readiness) -> FeedError {
        self.counters.held_back();
        FeedError::NotReady(readiness)
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

fn verdict(error: &FeedError) -> Verdict {
    match error {
        FeedError::Unreachable { .. }
        | FeedError::TimedOut { .. }
        | FeedError::Upstream { .. }
        | FeedError::Malformed { .. }
        | FeedError::Redirected { .. } => Verdict::Fails,
        FeedError::RateLimited { .. } => Verdict::Throttles,
        FeedError::NotReady(_)
        | FeedError::TokenDead { .. }
        | FeedError::NoPermission { .. }
        | FeedError::AccountTrouble { .. }
        | FeedError::Refused { .. } => Verdict::Works,
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

    fn fault(kind: &str) -> FeedError {
        let source_name = "test";
        let detail = String::new();
        match kind {
            "unreachable" => FeedError::Unreachable { source_name, detail },
            "timed out" => FeedError::TimedOut { source_name, limit_ms: 1 },
            "upstream" => FeedError::Upstream { source_name, status: 503, detail },
            "malformed" => FeedError::Malformed { source_name, detail },
            "token" => FeedError::TokenDead { source_name },
            "permission" => FeedError::NoPermission { source_name },
            "refused" => FeedError::Refused { source_name, detail },
            other => panic!("{other}"),
        }
    }

    #[test]
    fn only_failures_of_the_upstream_open_the_circuit() {
        for (kind, opens) in [
            ("unreachable", true),
            ("timed out", true),
            ("upstream", true),
            ("malformed", true),
            ("token", false),
            ("permission", false),
            ("refused", false),
        ] {
            let (clock, gate) = gate();
            for _ in 0..3 {
                gate.call::<()>(|| Err(fault(kind))).unwrap_err();
                clock.advance_ms(1_000);
            }
            assert_eq!(matches!(gate.readiness(), Readiness::Open(_)), opens, "{kind}");
            assert_eq!(gate.counts().calls, 3);
        }
    }

    #[test]
    fn too_many_requests_is_a_penalty_and_not_a_failure() {
        let (clock, gate) = gate();
        for _ in 0..4 {
            let source_name = "test";
            let error = gate
                .call::<()>(|| {
                    Err(FeedError::RateLimited { source_name, retry_after: Duration::ZERO })
                })
                .unwrap_err();
            let FeedError::RateLimited { retry_after, .. } = error else { panic!("{error}") };
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
        assert!(matches!(error, FeedError::NotReady(Readiness::Paced(_))));
        assert_eq!((gate.counts().calls, gate.counts().held_back), (1, 1));
    }
}
