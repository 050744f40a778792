//! This node's leadership. The warmers check it: tasks on the scheduler's thread before they send a
//! job, and jobs right before their call is sent. A job that waited in its lane while the
//! leadership ended makes no call.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use crate::base::{Clock, Source, Symbol, words};
use crate::brokers::{Batch, BrokerError, MarketFeed, Readiness};
use crate::ops::counter::Counts;
use crate::store::Epoch;
use crate::views::states::Role;

words! {
    /// Actions that are refused to a node that does not lead any more.
    pub(crate) enum Fence {
        /// A call whose job waited while the leadership ended.
        Call = "call",
        /// A message to the other nodes.
        Relay = "relay",
        /// A write to the store.
        Store = "store",
        /// A write to the second cache level.
        Cache = "cache",
    }
}

/// A leadership, with times of this node's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    pub epoch: Epoch,
    /// First moment at which upstreams may be called. The leader before may have called them up to
    /// its own end.
    pub asks_from_mono_ms: u64,
    /// First moment at which the term is over.
    pub until_mono_ms: u64,
}

/// This node's leadership, with the clock that it is judged by. A cheap handle.
///
/// It is a value that is read without a lock. One thread writes it, and code that is about to act
/// reads it with the current time. It ends by itself: past its deadline a node does not lead,
/// whatever it has or has not received since. A node that is alone leads for ever, with epoch 0.
#[derive(Clone)]
pub struct Lead {
    state: Arc<State>,
    clock: Clock,
}

struct State {
    is_alone: bool,
    /// Epoch of the running term, or of the last one.
    epoch: AtomicU64,
    asks_from_mono_ms: AtomicU64,
    until_mono_ms: AtomicU64,
    /// The epoch in which this node was refused as a leader of the past; 0 for none.
    refused: AtomicU64,
    /// Refusals by fence.
    fenced: Counts<Fence>,
}

impl Lead {
    /// The leadership of a single node: nothing ends it.
    pub(crate) fn alone(clock: &Clock) -> Self {
        Self::with(true, u64::MAX, clock)
    }

    /// The leadership of one node of several, which does not lead yet.
    pub fn follower(clock: &Clock) -> Self {
        Self::with(false, 0, clock)
    }

    fn with(is_alone: bool, until_mono_ms: u64, clock: &Clock) -> Self {
        let state = State {
            is_alone,
            epoch: AtomicU64::new(Epoch::ALONE.0),
            asks_from_mono_ms: AtomicU64::new(0),
            until_mono_ms: AtomicU64::new(until_mono_ms),
            refused: AtomicU64::new(0),
            fenced: Counts::default(),
        };
        Self {
            state: Arc::new(state),
            clock: clock.clone(),
        }
    }

    /// Starts or extends a term. The thread `lease` calls this.
    pub fn grant(&self, term: Term) {
        if self.state.epoch.load(SeqCst) != term.epoch.0 {
            // No reader may see the new epoch with the old deadline.
            self.end();
            self.state.epoch.store(term.epoch.0, SeqCst);
        }
        self.state
            .asks_from_mono_ms
            .store(term.asks_from_mono_ms, SeqCst);
        self.state.until_mono_ms.store(term.until_mono_ms, SeqCst);
    }

    /// Ends the term.
    pub fn end(&self) {
        self.state.until_mono_ms.store(0, SeqCst);
    }

    /// Notes that this node was refused because of a later leader. Code that was refused calls
    /// this; the thread `lease` reads it with [`take_refused`](Self::take_refused).
    pub(crate) fn refused(&self) {
        if !self.state.is_alone {
            self.state
                .refused
                .store(self.state.epoch.load(SeqCst), SeqCst);
            self.end();
        }
    }

    /// The epoch in which this node was refused since the last call of this.
    pub(crate) fn take_refused(&self) -> Option<Epoch> {
        match self.state.refused.swap(0, SeqCst) {
            0 => None,
            epoch => Some(Epoch(epoch)),
        }
    }

    /// The clock of the leadership's times.
    pub(crate) fn now_mono_ms(&self) -> u64 {
        self.clock.monotonic_ms()
    }

    /// The epoch in which this node leads now; `None` where it follows.
    pub(crate) fn epoch(&self) -> Option<Epoch> {
        self.epoch_at(self.now_mono_ms())
    }

    fn epoch_at(&self, now_mono_ms: u64) -> Option<Epoch> {
        let epoch = self.state.epoch.load(SeqCst);
        let leads = now_mono_ms < self.state.until_mono_ms.load(SeqCst);
        // The deadline may be another term's.
        (leads && epoch == self.state.epoch.load(SeqCst)).then_some(Epoch(epoch))
    }

    /// Whether shared upstreams may be called now.
    pub(crate) fn may_ask(&self) -> bool {
        let now_mono_ms = self.now_mono_ms();
        let leads = self.epoch_at(now_mono_ms).is_some();
        leads && now_mono_ms >= self.state.asks_from_mono_ms.load(SeqCst)
    }

    /// The role of this node now.
    pub(crate) fn role(&self) -> Role {
        match self.epoch() {
            Some(_) if self.state.is_alone => Role::Alone,
            Some(_) => Role::Leader,
            None => Role::Follower,
        }
    }

    /// Counts a refusal because this node does not lead any more.
    pub(crate) fn fenced(&self, fence: Fence) {
        self.state.fenced.increment(fence);
    }

    /// The number of refusals at this fence.
    pub(crate) fn fenced_total(&self, fence: Fence) -> u64 {
        self.state.fenced.of(fence)
    }

    /// Makes one call to `source` for all nodes, if this node may do so now.
    pub(crate) fn call<T>(
        &self,
        source: Source,
        call: impl FnOnce() -> Result<T, BrokerError>,
    ) -> Result<T, BrokerError> {
        if !self.may_ask() {
            self.fenced(Fence::Call);
            return Err(BrokerError::not_ready(source.as_str(), Readiness::Follows));
        }
        call()
    }
}

/// A feed that only the leader calls.
pub(crate) struct LedFeed {
    feed: Arc<dyn MarketFeed>,
    lead: Lead,
}

impl LedFeed {
    /// Wraps `feed`, which is called as long as this node leads.
    pub(crate) fn new(feed: Arc<dyn MarketFeed>, lead: Lead) -> Self {
        Self { feed, lead }
    }
}

impl MarketFeed for LedFeed {
    fn source(&self) -> Source {
        self.feed.source()
    }

    fn batch_max(&self) -> usize {
        self.feed.batch_max()
    }

    fn readiness(&self) -> Readiness {
        // A feed that the operator did not set up is off on any node.
        match self.feed.readiness() {
            Readiness::Off => Readiness::Off,
            readiness if self.lead.may_ask() => readiness,
            _ => Readiness::Follows,
        }
    }

    fn quotes(&self, symbols: &[Symbol]) -> Result<Batch, BrokerError> {
        self.lead.call(self.source(), || self.feed.quotes(symbols))
    }
}

#[cfg(test)]
mod leadership_tests {
    use super::*;
    use crate::base::ManualClock;

    fn clock() -> ManualClock {
        Clock::manual("2026-11-20T05:00:00Z".parse().unwrap())
    }

    #[test]
    fn a_node_that_is_alone_leads_for_ever() {
        let clock = clock();
        let alone = Lead::alone(&clock);
        for by_ms in [0, 1, i64::MAX - 1] {
            clock.advance_ms(by_ms);
            assert_eq!((alone.epoch(), alone.role()), (Some(Epoch::ALONE), Role::Alone));
            assert!(alone.may_ask());
        }
    }

    #[test]
    fn a_term_begins_with_a_wait_and_ends_by_itself() {
        let clock = clock();
        let node = Lead::follower(&clock);
        assert_eq!((node.epoch(), node.role()), (None, Role::Follower));
        let term = Term {
            epoch: Epoch(7),
            asks_from_mono_ms: 150,
            until_mono_ms: 500,
        };
        node.grant(term);
        clock.advance_ms(149);
        assert_eq!((node.epoch(), node.may_ask()), (Some(Epoch(7)), false));
        clock.advance_ms(1);
        assert!(node.may_ask());
        clock.advance_ms(349);
        assert_eq!((node.may_ask(), node.role()), (true, Role::Leader));
        clock.advance_ms(1);
        assert_eq!((node.epoch(), node.may_ask()), (None, false));
        node.grant(Term {
            until_mono_ms: 900,
            ..term
        });
        clock.advance_ms(399);
        assert!(node.may_ask());
        node.end();
        assert_eq!(node.epoch(), None);
    }

    #[test]
    fn no_reader_sees_one_terms_epoch_with_anothers_deadline() {
        // Each term ends at a time that only its epoch explains.
        const TERMS: u64 = 20_000;
        let until_of = |epoch: u64| epoch * 10;
        let node = Lead::follower(&clock());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for epoch in 1..=TERMS {
                    let until_mono_ms = until_of(epoch);
                    node.grant(Term {
                        epoch: Epoch(epoch),
                        asks_from_mono_ms: 0,
                        until_mono_ms,
                    });
                }
            });
            let mut seen = 0;
            while seen < TERMS {
                let now_mono_ms = until_of(seen + 1) - 1;
                if let Some(Epoch(epoch)) = node.epoch_at(now_mono_ms) {
                    assert!(now_mono_ms < until_of(epoch), "epoch {epoch} at {now_mono_ms}");
                    seen = epoch;
                }
                std::hint::spin_loop();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::brokers::BrokerErrorKind;
    use crate::rt::{Lane, LaneSpec};

    #[derive(Default)]
    struct Asked(AtomicU64);

    impl MarketFeed for Asked {
        fn source(&self) -> Source {
            Source::BrokerA
        }

        fn batch_max(&self) -> usize {
            500
        }

        fn readiness(&self) -> Readiness {
            Readiness::Ready
        }

        fn quotes(&self, _symbols: &[Symbol]) -> Result<Batch, BrokerError> {
            self.0.fetch_add(1, SeqCst);
            Ok(Batch::default())
        }
    }

    #[test]
    fn a_job_that_waited_while_the_leadership_ended_makes_no_call() {
        let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
        let lead = Lead::follower(&clock);
        let asked = Arc::new(Asked::default());
        let led = Arc::new(LedFeed::new(asked.clone(), lead.clone()));
        assert_eq!(led.readiness(), Readiness::Follows, "nobody has granted anything");
        let term = Term {
            epoch: Epoch(3),
            asks_from_mono_ms: 100,
            until_mono_ms: 4_000,
        };
        lead.grant(term);
        assert_eq!(led.readiness(), Readiness::Follows, "the leader before may still ask");
        clock.advance_ms(100);
        assert_eq!(led.readiness(), Readiness::Ready);

        let spec = LaneSpec {
            name: "test",
            threads: 1,
            queue_max: 4,
        };
        let lane = Lane::start(&spec, &clock).unwrap();
        let (send, told) = crossbeam_channel::unbounded();
        let (release, released) = crossbeam_channel::unbounded::<()>();
        let submit = |before: Option<crossbeam_channel::Receiver<()>>| {
            let led = Arc::clone(&led);
            let send = send.clone();
            lane.submit(60_000, move || {
                if let Some(released) = before {
                    released.recv().unwrap();
                }
                send.send(led.quotes(&[]).map(drop)).unwrap();
            })
        };
        submit(Some(released)).unwrap();
        submit(None).unwrap();
        clock.advance_ms(3_900);
        release.send(()).unwrap();
        for _ in 0..2 {
            let error = told.recv().unwrap().unwrap_err();
            assert_eq!(error.kind, BrokerErrorKind::NotReady(Readiness::Follows));
        }
        assert_eq!(asked.0.load(SeqCst), 0);
        lead.grant(Term {
            until_mono_ms: 9_000,
            ..term
        });
        submit(None).unwrap();
        assert_eq!(told.recv().unwrap(), Ok(()));
        assert_eq!(asked.0.load(SeqCst), 1);
    }
}
