//! This node's leadership, as the warmers ask it: tasks on the scheduler's thread before they send
//! a job, and jobs right before their call goes out. A job that waited in its lane while the
//! leadership ended makes no call.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::base::{Clock, Epoch, Leadership, NodeSecret, Role, Source, Symbol};
use crate::brokers::{Batch, BrokerError, MarketFeed, Readiness};
use crate::limits::throttle::SharedCounts;
use crate::rt::Lane;
use crate::store::Store;
use crate::warmers::relay::Wire;
use crate::warmers::tokens::SharedTokens;

/// What is refused to a node that does not lead any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fence {
    /// A call whose job waited while the leadership ended.
    Call,
    /// A message to the other nodes.
    Relay,
    /// A write to the store.
    Store,
    /// A write to the second cache level.
    Cache,
}

impl Fence {
    pub(crate) const ALL: [Self; 4] = [Self::Call, Self::Relay, Self::Store, Self::Cache];

    /// The name that metrics use.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Relay => "relay",
            Self::Store => "store",
            Self::Cache => "cache",
        }
    }
}

/// The leadership with the clock that it is judged by. A cheap handle.
#[derive(Clone)]
pub struct Lead {
    leadership: Arc<Leadership>,
    clock: Clock,
    /// By fence.
    fenced: Arc<[AtomicU64; Fence::ALL.len()]>,
}

impl Lead {
    /// Of this node.
    pub fn new(leadership: &Arc<Leadership>, clock: &Clock) -> Self {
        let (leadership, clock) = (Arc::clone(leadership), clock.clone());
        Self { leadership, clock, fenced: Arc::default() }
    }

    /// The epoch in which this node leads now; `None` where it follows.
    pub(crate) fn epoch(&self) -> Option<Epoch> {
        self.leadership.epoch(self.clock.monotonic_ms())
    }

    /// Whether shared upstreams may be asked now.
    pub(crate) fn may_ask(&self) -> bool {
        self.leadership.may_ask(self.clock.monotonic_ms())
    }

    /// What this node is now.
    pub(crate) fn role(&self) -> Role {
        self.leadership.role(self.clock.monotonic_ms())
    }

    /// Counts what was refused because this node does not lead any more.
    pub(crate) fn fenced(&self, fence: Fence) {
        self.fenced[fence as usize].fetch_add(1, Relaxed);
    }

    /// How often that was.
    pub(crate) fn fenced_total(&self, fence: Fence) -> u64 {
        self.fenced[fence as usize].load(Relaxed)
    }

    /// Somebody else leads, as what refused us knows.
    pub(crate) fn refused(&self) {
        self.leadership.refused();
    }

    /// Makes one call to `source` for all nodes, if this node may at this very moment.
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

/// A feed that the leader alone asks.
pub(crate) struct LedFeed {
    feed: Arc<dyn MarketFeed>,
    lead: Lead,
}

impl LedFeed {
    /// `feed`, as long as this node leads.
    pub(super) fn new(feed: Arc<dyn MarketFeed>, lead: Lead) -> Self {
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
        // What the operator did not set up is off on any node.
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

// ---- Cluster
//
// What a node has that is one of several.

/// Asks the database which one it is.
type Identify = Arc<dyn Fn(&Store) + Send + Sync>;

/// The other nodes, as the scheduler knows them.
pub struct Cluster {
    /// What this node is called.
    pub node: String,
    pub wire: Arc<dyn Wire>,
    /// What nodes tell each other about brokers' tokens; `None` where there is no way to.
    pub tokens: Option<SharedTokens>,
    /// Counts attempts of all nodes; `None` where each counts its own.
    pub limits: Option<Arc<dyn SharedCounts>>,
    /// What all nodes have in common.
    pub secret: Arc<NodeSecret>,
    /// Whether the second cache level is all nodes', so that the leader alone writes it.
    pub shares_cache: bool,
    /// Messages to the other nodes go out here.
    pub lane: Arc<Lane>,
    /// Asks the database which one it is, for the names of what stands on the shared server. Blocks
    /// as the store does.
    pub identify: Identify,
    /// Told the epoch before anything is stored for all nodes.
    pub begin_term: Box<dyn Fn(Epoch) + Send + Sync>,
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::base::Term;
    use crate::brokers::BrokerErrorKind;
    use crate::rt::{Lane, LaneSpec};
    use crate::warmers::mailbox::Outcomes;

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
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(Batch::default())
        }
    }

    #[test]
    fn a_job_that_waited_while_the_leadership_ended_makes_no_call() {
        let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
        let leadership = Arc::new(Leadership::follower());
        let asked = Arc::new(Asked::default());
        let led = Arc::new(LedFeed::new(asked.clone(), Lead::new(&leadership, &clock)));
        assert_eq!(led.readiness(), Readiness::Follows, "nobody has granted anything");
        let term = Term { epoch: Epoch(3), asks_from_mono_ms: 100, until_mono_ms: 4_000 };
        leadership.grant(term);
        assert_eq!(led.readiness(), Readiness::Follows, "the leader before may still ask");
        clock.advance_ms(100);
        assert_eq!(led.readiness(), Readiness::Ready);

        let spec = LaneSpec { name: "test", threads: 1, queue_max: 4 };
        let lane = Lane::start(&spec, &clock).unwrap();
        let (send, told) = crossbeam_channel::unbounded();
        let outcomes = Outcomes::new(move |outcome| send.send(outcome).unwrap());
        let (release, released) = crossbeam_channel::unbounded::<()>();
        let submit = |before: Option<crossbeam_channel::Receiver<()>>| {
            let led = Arc::clone(&led);
            outcomes.submit(&lane, 60_000, move || {
                if let Some(released) = before {
                    released.recv().unwrap();
                }
                led.quotes(&[]).map(drop)
            })
        };
        submit(Some(released)).unwrap();
        submit(None).unwrap();
        clock.advance_ms(3_900);
        release.send(()).unwrap();
        for _ in 0..2 {
            let error = told.recv().unwrap().unwrap().unwrap_err();
            assert_eq!(error.kind, BrokerErrorKind::NotReady(Readiness::Follows));
        }
        assert_eq!(asked.0.load(Ordering::SeqCst), 0);
        leadership.grant(Term { until_mono_ms: 9_000, ..term });
        submit(None).unwrap();
        assert_eq!(told.recv().unwrap(), Some(Ok(())));
        assert_eq!(asked.0.load(Ordering::SeqCst), 1);
    }
}
