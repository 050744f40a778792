//! Counts each warmer's runs and failures, with the time of the last success.
//!
//! Belongs to the scheduler's thread. Only counts.

use crate::base::Clock;
use crate::brokers::{BrokerError, BrokerErrorKind};
use crate::views::states::{CacheBackend, Warmer};
use crate::warmers::context::WarmerContext;
use crate::warmers::mailbox::Event;
use crate::warmers::quotes::feed_state::Ended;

/// One warmer's runs since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    pub runs: u64,
    /// Runs that failed.
    pub failures: u64,
    /// End of the last successful run, in Unix milliseconds of the machine's clock, even if the
    /// service runs on another; `None` before the first.
    pub succeeded_ms: Option<i64>,
}

/// All warmers' runs.
pub(crate) struct WarmerStats {
    machine: Clock,
    /// In the order of [`Warmer::ALL`].
    runs: [Runs; Warmer::ALL.len()],
    /// A poll has ended since the last snapshot was made.
    poll_ended: bool,
}

impl WarmerStats {
    pub(crate) fn new(machine: Clock) -> Self {
        Self {
            machine,
            runs: Default::default(),
            poll_ended: false,
        }
    }

    pub(crate) fn of(&self, warmer: Warmer) -> Runs {
        self.runs[warmer as usize]
    }

    /// Counts the run whose end an event reports. Polls are counted after they were judged: see
    /// [`polled`](Self::polled).
    pub(super) fn hear(&mut self, event: &Event, context: &WarmerContext) {
        let (warmer, succeeded) = match event {
            Event::Instruments(fetched) => (Warmer::Instruments, Some(is_ok(fetched.as_deref()))),
            Event::Persisted(done) => {
                let is_there = context.l2.stats().backend != CacheBackend::None;
                (Warmer::Persist, is_there.then_some(is_ok(done.as_ref())))
            }
            Event::ClosePrices(_, answer) => (Warmer::Close, called(answer.as_deref())),
            Event::Close(outcome) => (Warmer::Close, Some(is_ok(outcome.as_deref()))),
            Event::Candles(_, answer) => (Warmer::Signals, called(answer.as_deref())),
            Event::Signals(outcome) => (Warmer::Signals, Some(is_ok(outcome.as_deref()))),
            Event::Polled(..)
            | Event::Kick(_)
            | Event::Pushed(..)
            | Event::Heard(_)
            | Event::Published(_)
            | Event::WantPublished
            | Event::List(_)
            | Event::StoreChecked
            | Event::Files(_)
            | Event::Stop => return,
        };
        if let Some(succeeded) = succeeded {
            self.ended(warmer, succeeded);
        }
    }

    /// Counts a poll by its judged result.
    pub(crate) fn polled(&mut self, ended: &Ended) {
        match ended {
            Ended::NotAsked => return,
            Ended::Succeeded => self.ended(Warmer::Quotes, true),
            Ended::Failed(_) | Ended::RateLimited(_) | Ended::Refused(_) => {
                self.ended(Warmer::Quotes, false);
            }
        }
        self.poll_ended = true;
    }

    /// Counts a run of the index warmer if a poll has ended since the last snapshot. `fresh`: there
    /// is a snapshot, and it is not stale.
    pub(crate) fn snapshot(&mut self, fresh: bool) {
        if std::mem::take(&mut self.poll_ended) {
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

fn is_ok<T, E>(outcome: Option<&Result<T, E>>) -> bool {
    outcome.is_some_and(Result::is_ok)
}

/// Whether a call succeeded; `None` if it was not made.
fn called<T>(outcome: Option<&Result<T, BrokerError>>) -> Option<bool> {
    match outcome {
        Some(Err(BrokerError {
            kind: BrokerErrorKind::NotReady(_),
            ..
        })) => None,
        Some(Ok(_)) => Some(true),
        Some(Err(_)) | None => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ManualClock;
    use crate::brokers::Readiness;

    fn stats() -> (ManualClock, WarmerStats) {
        let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
        let stats = WarmerStats::new(clock.clone());
        (clock, stats)
    }

    #[test]
    fn a_failure_leaves_the_time_of_the_last_success() {
        let (clock, mut stats) = stats();
        assert_eq!(stats.of(Warmer::Quotes), Runs::default());
        stats.polled(&Ended::Failed("gone".into()));
        assert_eq!(stats.of(Warmer::Quotes).succeeded_ms, None);
        stats.polled(&Ended::Succeeded);
        let succeeded_ms = Some(clock.now_ms());
        clock.advance_ms(60_000);
        stats.polled(&Ended::Refused("no such symbol".into()));
        stats.polled(&Ended::NotAsked);
        assert_eq!(
            stats.of(Warmer::Quotes),
            Runs {
                runs: 3,
                failures: 2,
                succeeded_ms
            }
        );
    }

    #[test]
    fn the_snapshot_counts_once_after_polls_and_by_itself_never() {
        let (_, mut stats) = stats();
        stats.snapshot(true);
        stats.polled(&Ended::NotAsked);
        stats.snapshot(true);
        assert_eq!(stats.of(Warmer::Index).runs, 0);
        stats.polled(&Ended::Failed("gone".into()));
        stats.polled(&Ended::Succeeded);
        stats.snapshot(false);
        stats.snapshot(false);
        stats.polled(&Ended::Failed("gone".into()));
        stats.snapshot(true);
        let Runs {
            runs,
            failures,
            succeeded_ms,
        } = stats.of(Warmer::Index);
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
