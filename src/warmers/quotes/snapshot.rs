//! The snapshot: built of what the first level shows of the indices, and published. On the
//! scheduler's thread.

use crate::warmers::scheduler::Scheduler;
use std::sync::Arc;

use crate::base::{Quote, Symbol, ist};
use crate::cache::{Peek, Vouched};
use crate::http::Made;
use crate::market::{Age, Index, Priced, Prices, Snapshot, SnapshotInputs};
use crate::views::signals::ShownSignals;
use crate::views::snapshot as views;

/// A snapshot that nobody is shown yet.
pub struct Unshown {
    snapshot: Snapshot,
    signals: ShownSignals,
    made: Made,
}

impl Scheduler {
    /// Makes the snapshot anew and publishes it where it has changed.
    pub fn publish(&mut self, now_mono_ms: u64) {
        if let Some(unshown) = self.make_snapshot(&[], now_mono_ms) {
            self.show(unshown);
        }
        self.tally.snapshot(self.snapshot.as_ref().is_some_and(|held| !held.market.age.stale));
    }

    /// The snapshot as it is once the first level has taken in what is `coming`; `None` where it
    /// does not change.
    pub fn make_snapshot(
        &mut self,
        coming: &[(Quote, Vouched)],
        now_mono_ms: u64,
    ) -> Option<Unshown> {
        let snapshot = self.next_snapshot(coming, now_mono_ms)?;
        let signals = self.signals.shown_signals();
        if self.snapshot.as_ref() == Some(&snapshot) && self.shown_signals == signals {
            return None;
        }
        let json = views::Snapshot::of(&snapshot, &signals).to_json();
        let made = Made::of(&json);
        Some(Unshown { snapshot, signals, made })
    }

    /// Publishes it.
    pub fn show(&mut self, unshown: Unshown) {
        let Unshown { snapshot, signals, made } = unshown;
        self.shown_signals = signals;
        self.parts.snapshot.show(made);
        let before = self.snapshot.as_ref().map(|held| held.market.age);
        log_change(before, snapshot.market.age);
        self.snapshot = Some(snapshot);
    }

    /// Notes until when it stands as it is, if no feed brings anything: when a price becomes stale
    /// the snapshot says so at once, as the quote of the same price does.
    fn next_snapshot(&mut self, coming: &[(Quote, Vouched)], now_mono_ms: u64) -> Option<Snapshot> {
        self.stands_until_mono_ms = u64::MAX;
        let indices = Arc::clone(&self.parts.indices);
        let prices: Prices =
            indices.all().filter_map(|index| self.price_of(index, coming, now_mono_ms)).collect();
        let status = &self.status;
        let inputs = SnapshotInputs { indices: &indices, prices: &prices, status };
        Snapshot::build(&inputs)
    }

    fn price_of(
        &mut self,
        index: &Index,
        coming: &[(Quote, Vouched)],
        now_mono_ms: u64,
    ) -> Option<(Symbol, Priced)> {
        let l1 = &self.parts.l1;
        let coming = coming.iter().find(|(quote, vouched)| {
            quote.symbol == index.symbol && l1.takes(quote, *vouched, now_mono_ms)
        });
        let (quote, stale, fresh_until_mono_ms) = if let Some((quote, vouched)) = coming {
            let (freshness, source) = (l1.freshness(), quote.source);
            let stale = freshness.is_stale(source, *vouched, now_mono_ms);
            (quote.clone(), stale, freshness.until_mono_ms(source, *vouched))
        } else {
            let peek = l1.peek(index.symbol.as_str(), now_mono_ms);
            let Peek::Known { quote, stale, fresh_until_mono_ms, .. } = peek else { return None };
            (quote, stale, fresh_until_mono_ms)
        };
        if !stale {
            let until_mono_ms = u64::try_from(fresh_until_mono_ms).unwrap_or(now_mono_ms);
            self.stands_until_mono_ms = self.stands_until_mono_ms.min(until_mono_ms);
        }
        Some((index.symbol.clone(), Priced { quote, stale }))
    }
}

/// Another source, or old where it was fresh, is news to an operator; a new price is not.
fn log_change(before: Option<Age>, age: Age) {
    let Age { as_of, delay_s, stale, source } = age;
    if before.is_some_and(|before| (before.source, before.stale) == (source, stale)) {
        return;
    }
    let (source, as_of) = (source.as_str(), ist::iso(as_of));
    match delay_s {
        Some(delay_s) => tracing::info!(source, as_of, delay_s, stale, "index prices"),
        None => tracing::info!(source, as_of, stale, "index prices"),
    }
}
