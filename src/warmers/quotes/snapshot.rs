//! The snapshot: built from the indices in the first level, and published. On the scheduler's
//! thread.

use crate::base::{Quote, Symbol, clock};
use crate::cache::{L1, Peek, Vouched};
use crate::http::Made;
use crate::market::{Age, Index, MarketStatus, Priced, Prices, Snapshot, SnapshotInputs};
use crate::views::signals::ShownSignals;
use crate::views::snapshot as views;
use crate::warmers::context::{Serving, WarmerContext};

/// A snapshot that is not published yet.
pub(crate) struct Unshown {
    snapshot: Snapshot,
    signals: ShownSignals,
    made: Made,
}

/// The snapshot's content apart from prices.
#[derive(Clone, Copy)]
pub(crate) struct SnapshotContext<'a> {
    pub status: &'a MarketStatus,
    pub signals: &'a ShownSignals,
}

/// Owner of the published snapshot.
pub(crate) struct SnapshotTask {
    published: Option<Snapshot>,
    /// The signals published in it.
    signals: ShownSignals,
    /// Monotonic time until which it stays valid without new prices.
    stands_until_mono_ms: u64,
}

impl SnapshotTask {
    pub(crate) fn new() -> Self {
        Self {
            published: None,
            signals: ShownSignals::none(),
            stands_until_mono_ms: u64::MAX,
        }
    }

    /// Builds the snapshot and publishes it if it has changed. True: there is one, and it is not
    /// stale.
    pub(crate) fn publish(
        &mut self,
        context: &WarmerContext,
        beside: SnapshotContext<'_>,
        now_mono_ms: u64,
    ) -> bool {
        match self.make(context, beside, &[], now_mono_ms) {
            Some(unshown) => self.show(context, unshown),
            None => context.snapshot.set_stands_until(self.stands_until_mono_ms),
        }
        self.age().is_some_and(|age| !age.stale)
    }

    /// Builds the snapshot as it will be once the first level has taken in `coming`; `None` if it
    /// does not change.
    pub(crate) fn make(
        &mut self,
        context: &WarmerContext,
        beside: SnapshotContext<'_>,
        coming: &[(Quote, Vouched)],
        now_mono_ms: u64,
    ) -> Option<Unshown> {
        let snapshot = self.next(context, beside.status, coming, now_mono_ms)?;
        if self.published.as_ref() == Some(&snapshot) && self.signals == *beside.signals {
            return None;
        }
        let signals = beside.signals.clone();
        let json = views::Snapshot::of(&snapshot, &signals).to_json();
        let made = context.snapshot.make(&json);
        Some(Unshown {
            snapshot,
            signals,
            made,
        })
    }

    pub(crate) fn show(&mut self, context: &WarmerContext, unshown: Unshown) {
        let Unshown {
            snapshot,
            signals,
            made,
        } = unshown;
        self.signals = signals;
        context.snapshot.show(made);
        context.snapshot.set_stands_until(self.stands_until_mono_ms);
        log_change(self.age(), snapshot.market.age);
        self.published = Some(snapshot);
    }

    /// Age of the published snapshot; `None` before the first.
    pub(crate) fn age(&self) -> Option<Age> {
        self.published
            .as_ref()
            .map(|published| published.market.age)
    }

    /// Whether the published snapshot comes from the simulator.
    pub(crate) fn is_simulated(&self) -> bool {
        self.published
            .as_ref()
            .is_some_and(|published| published.market.simulated)
    }

    /// Summary for the heartbeat; `None` before there is a snapshot.
    pub(crate) fn serving(&self) -> Option<Serving> {
        self.published.as_ref().map(Serving::of)
    }

    /// Milliseconds until a price becomes stale. The snapshot must then show it at once.
    pub(crate) fn wait_ms(&self, now_mono_ms: u64) -> u64 {
        self.stands_until_mono_ms
            .saturating_sub(now_mono_ms)
            .saturating_add(1)
    }

    /// Builds the next snapshot, and notes until when it stays valid: the snapshot shows a stale
    /// price at the same moment as the quote does.
    fn next(
        &mut self,
        context: &WarmerContext,
        status: &MarketStatus,
        coming: &[(Quote, Vouched)],
        now_mono_ms: u64,
    ) -> Option<Snapshot> {
        self.stands_until_mono_ms = u64::MAX;
        let indices = &context.indices;
        let prices: Prices = indices
            .all()
            .filter_map(|index| self.price_of(index, &context.l1, coming, now_mono_ms))
            .collect();
        Snapshot::build(&SnapshotInputs {
            indices,
            prices: &prices,
            status,
        })
    }

    fn price_of(
        &mut self,
        index: &Index,
        l1: &L1,
        coming: &[(Quote, Vouched)],
        now_mono_ms: u64,
    ) -> Option<(Symbol, Priced)> {
        // The first level keeps the latest of several prices of one index.
        let taken = coming.iter().filter(|(quote, vouched)| {
            quote.symbol == index.symbol && l1.takes(quote, *vouched, now_mono_ms)
        });
        let coming = taken.max_by_key(|(quote, _)| quote.as_of);
        let (quote, stale, fresh_until_mono_ms) = if let Some((quote, vouched)) = coming {
            let freshness = l1.freshness();
            let source = quote.source;
            let stale = freshness.is_stale(source, *vouched, now_mono_ms);
            (quote.clone(), stale, freshness.until_mono_ms(source, *vouched))
        } else {
            let peek = l1.peek(index.symbol.as_str(), now_mono_ms);
            let Peek::Known {
                quote,
                stale,
                fresh_until_mono_ms,
                ..
            } = peek
            else {
                return None;
            };
            (quote, stale, fresh_until_mono_ms)
        };
        if !stale {
            let until_mono_ms = u64::try_from(fresh_until_mono_ms).unwrap_or(now_mono_ms);
            self.stands_until_mono_ms = self.stands_until_mono_ms.min(until_mono_ms);
        }
        Some((index.symbol.clone(), Priced { quote, stale }))
    }
}

/// Logs a change of source or staleness. A new price alone is not logged.
fn log_change(before: Option<Age>, age: Age) {
    let Age {
        as_of,
        delay_s,
        stale,
        source,
    } = age;
    if before.is_some_and(|before| (before.source, before.stale) == (source, stale)) {
        return;
    }
    let source = source.as_str();
    let as_of = clock::iso(as_of);
    match delay_s {
        Some(delay_s) => tracing::info!(source, as_of, delay_s, stale, "index prices"),
        None => tracing::info!(source, as_of, stale, "index prices"),
    }
}
