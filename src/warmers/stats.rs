//! What came of the warmers' work: how often each tried, how often in vain, when it last succeeded.
//!
//! State of the scheduler's thread, which alone counts; others read the copy that is made once a
//! second with the health report. Decides nothing.

use super::context::WarmerContext;
use super::event::Event;
use super::quotes::feed_state::Ended;
use crate::base::Clock;
use crate::brokers::{BrokerError, BrokerErrorKind};
use crate::health::readings::Runs;

/// A warmer, as health names it.
///
/// A run is one attempt, counted when the scheduler hears of its end:
///
/// | warmer | a run is | and succeeds when |
/// |---|---|---|
/// | index | making the snapshot after a round has ended | there is one, and it is not stale |
/// | quotes | a round, of either feed | it brought every index asked for |
/// | instruments | a download of broker A's lists | both were read |
/// | persist | a write to the second level | it was stored |
/// | close | a call for closing prices, or a step on the store | it was answered, or done |
/// | signals | a call for candles, or a step on the store | it was answered, or done |
///
/// A round or call that pace, circuit or token held back is none, nor is a write where there is no
/// second level. A job that was lost is a failure. What is done at start, before the scheduler
/// runs, is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warmer {
    Index,
    Quotes,
    Instruments,
    Persist,
    Close,
    Signals,
}

impl Warmer {
    /// Every one, in the order of health.
    pub const ALL: [Self; 6] =
        [Self::Index, Self::Quotes, Self::Instruments, Self::Persist, Self::Close, Self::Signals];

    /// The name that health and metrics use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Quotes => "quotes",
            Self::Instruments => "instruments",
            Self::Persist => "persist",
            Self::Close => "close",
            Self::Signals => "signals",
        }
    }
}

/// All warmers' runs.
pub struct WarmerStats {
    machine: Clock,
    /// In the order of [`Warmer::ALL`].
    runs: [Runs; Warmer::ALL.len()],
    /// A round ended since the snapshot was last made.
    round_ended: bool,
}

impl WarmerStats {
    /// Nothing counted yet.
    pub fn new(machine: Clock) -> Self {
        Self { machine, runs: Default::default(), round_ended: false }
    }

    /// What is counted of one warmer.
    pub fn of(&self, warmer: Warmer) -> Runs {
        self.runs[warmer as usize]
    }

    /// Counts the run whose end an event tells. Of rounds it does not tell enough: see
    /// [`round`](Self::round).
    pub fn hear(&mut self, event: &Event, parts: &WarmerContext) {
        let (warmer, succeeded) = match event {
            Event::Instruments(fetched) => (Warmer::Instruments, Some(fetched.is_ok())),
            Event::Persisted(done) => {
                let is_there = parts.l2.stats().backend != "none";
                (Warmer::Persist, is_there.then_some(done.is_ok()))
            }
            Event::ClosePrices(round) => (Warmer::Close, called(round.outcome.as_ref())),
            Event::Close(outcome) => (Warmer::Close, Some(matches!(**outcome, Some(Ok(_))))),
            Event::Candles(fetched) => (Warmer::Signals, called(fetched.outcome.as_ref())),
            Event::Signals(outcome) => (Warmer::Signals, Some(matches!(**outcome, Some(Ok(_))))),
            Event::Round(_)
            | Event::Kick(_)
            | Event::StoreProbed
            | Event::Files(_)
            | Event::Stop => return,
        };
        if let Some(succeeded) = succeeded {
            self.ended(warmer, succeeded);
        }
    }

    /// Counts a round as it was judged.
    pub fn round(&mut self, ended: &Ended) {
        match ended {
            Ended::NotAsked => return,
            Ended::Spoke => self.ended(Warmer::Quotes, true),
            Ended::Failed(_) | Ended::Refused(_) => self.ended(Warmer::Quotes, false),
        }
        self.round_ended = true;
    }

    /// The snapshot was made anew, as in each tick; `fresh`: there is one that is not stale.
    pub fn snapshot(&mut self, fresh: bool) {
        if std::mem::take(&mut self.round_ended) {
            self.ended(Warmer::Index, fresh);
        }
    }

    fn ended(&mut self, warmer: Warmer, succeeded: bool) {
        let runs = &mut self.runs[warmer as usize];
        runs.runs += 1;
        if succeeded {
            runs.succeeded_ms = Some(self.machine.now_ms());
        } else {
            runs.failures += 1;
        }
    }
}

/// Whether a call succeeded; `None` where it did not go out.
fn called<T>(outcome: Option<&Result<T, BrokerError>>) -> Option<bool> {
    match outcome {
        Some(Err(BrokerError { kind: BrokerErrorKind::NotReady(_), .. })) => None,
        Some(Ok(_)) => Some(true),
        Some(Err(_)) | None => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::brokers::Readiness;

    fn tally() -> (Clock, WarmerStats) {
        let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
        (clock.clone(), WarmerStats::new(clock))
    }

    #[test]
    fn places_are_those_of_the_list() {
        for (at, warmer) in Warmer::ALL.into_iter().enumerate() {
            assert_eq!(warmer as usize, at);
        }
    }

    #[test]
    fn a_failure_leaves_the_time_of_the_last_success() {
        let (clock, mut tally) = tally();
        assert_eq!(tally.of(Warmer::Quotes), Runs::default());
        tally.round(&Ended::Failed("gone".into()));
        assert_eq!(tally.of(Warmer::Quotes).succeeded_ms, None);
        tally.round(&Ended::Spoke);
        let succeeded_ms = Some(clock.now_ms());
        clock.advance_ms(60_000);
        tally.round(&Ended::Refused("no such symbol".into()));
        tally.round(&Ended::NotAsked);
        assert_eq!(tally.of(Warmer::Quotes), Runs { runs: 3, failures: 2, succeeded_ms });
    }

    #[test]
    fn the_snapshot_counts_once_after_rounds_and_by_itself_never() {
        let (_, mut tally) = tally();
        tally.snapshot(true);
        tally.round(&Ended::NotAsked);
        tally.snapshot(true);
        assert_eq!(tally.of(Warmer::Index).runs, 0);
        tally.round(&Ended::Failed("gone".into()));
        tally.round(&Ended::Spoke);
        tally.snapshot(false);
        tally.snapshot(false);
        tally.round(&Ended::Failed("gone".into()));
        tally.snapshot(true);
        let Runs { runs, failures, succeeded_ms } = tally.of(Warmer::Index);
        assert_eq!((runs, failures, succeeded_ms.is_some()), (2, 1, true));
    }

    #[test]
    fn a_call_that_was_held_back_is_no_run() {
        let held = Err::<(), _>(BrokerError::not_ready("broker_a", Readiness::NoToken));
        assert_eq!(called(Some(&held)), None);
        assert_eq!(called(Some(&Ok(()))), Some(true));
        let refused = Err::<(), _>(BrokerError::new("broker_a", BrokerErrorKind::TokenDead, ""));
        assert_eq!(called(Some(&refused)), Some(false));
        assert_eq!(called::<()>(None), Some(false), "lost");
    }
}
