//! The snapshot: built of what the first level shows of the indices, and published. On the
//! scheduler's thread.

use super::scheduler::Scheduler;
use crate::base::ist;
use crate::cache::Peek;
use crate::market::{Age, Index, Priced, Prices, Snapshot, SnapshotInputs};

impl Scheduler {
    /// Makes the snapshot anew and publishes it where it has changed.
    pub fn publish(&mut self, now_mono_ms: u64) {
        if let Some(next) = self.next_snapshot(now_mono_ms)
            && self.snapshot.as_ref() != Some(&next)
        {
            let before = self.snapshot.as_ref().map(|held| held.market.age);
            log_change(before, next.market.age);
            self.parts.snapshot.publish(next.to_json(), self.parts.clock.now_ms());
            self.snapshot = Some(next);
        }
        self.tally.snapshot(self.snapshot.as_ref().is_some_and(|held| !held.market.age.stale));
    }

    /// Notes until when it stands as it is, if no feed brings anything: when a price becomes stale
    /// the snapshot says so at once, as the quote of the same price does.
    fn next_snapshot(&mut self, now_mono_ms: u64) -> Option<Snapshot> {
        self.stands_until_mono_ms = u64::MAX;
        let indices = std::sync::Arc::clone(&self.parts.indices);
        let prices: Prices =
            indices.all().filter_map(|index| self.price_of(index, now_mono_ms)).collect();
        let status = &self.status;
        let inputs = SnapshotInputs { indices: &indices, prices: &prices, status };
        let mut next = Snapshot::build(&inputs)?;
        next.signals = self.signals.shown_signals();
        Some(next)
    }

    fn price_of(
        &mut self,
        index: &Index,
        now_mono_ms: u64,
    ) -> Option<(crate::base::Symbol, Priced)> {
        let peek = self.parts.l1.peek(index.symbol.as_str(), now_mono_ms);
        let Peek::Known { quote, stale, fresh_until_mono_ms, .. } = peek else { return None };
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
