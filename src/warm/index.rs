//! The snapshot: which feed's quotes it is built from, whether it is stale, and its publication. On
//! the scheduler's thread.

use std::cmp::Reverse;

use jiff::Timestamp;

use super::feeds::FeedSlot;
use super::policy::Policy;
use super::scheduler::Scheduler;
use crate::market::{IndexList, MarketStatus, QuoteMap, Snapshot, SnapshotInputs};

/// Builds the snapshot from the feeds, preferred first: the first that speaks and need not prove
/// itself, then one that speaks, else the one heard last, marked stale. `None` before any feed has
/// all three indices.
fn build(
    slots: &[&FeedSlot],
    indices: &IndexList,
    status: &MarketStatus,
    policy: &Policy,
    now: Timestamp,
    now_mono_ms: u64,
) -> Option<Snapshot> {
    let speaks = |slot: &FeedSlot| slot.speaks(policy.pace(slot.feed.source()), now, now_mono_ms);
    let mut ordered: Vec<(bool, &FeedSlot)> =
        slots.iter().map(|slot| (speaks(slot), *slot)).collect();
    // Stable: among equals the preference stands.
    ordered.sort_by_key(|(speaks, slot)| match speaks {
        true => (false, slot.on_probation(), None),
        false => (true, false, Some(Reverse(slot.heard_mono_ms()))),
    });
    let quotes: Vec<&QuoteMap> = ordered.iter().map(|(_, slot)| &slot.index_quotes).collect();
    let mut snapshot =
        Snapshot::build(&SnapshotInputs { indices, quotes: &quotes, status, stale: false })?;
    let source = snapshot.market.source;
    let speaker = ordered.iter().find(|(_, slot)| slot.feed.source() == source);
    snapshot.market.stale |= !speaker.is_some_and(|(speaks, _)| *speaks);
    Some(snapshot)
}

impl Scheduler {
    /// Makes the snapshot anew and publishes it where it has changed.
    pub fn publish(&mut self, now_mono_ms: u64) {
        if let Some(next) = self.next_snapshot(now_mono_ms)
            && self.snapshot.as_ref() != Some(&next)
        {
            self.parts.snapshot.publish(next.to_json(), self.parts.clock.now_ms());
            self.unstored.snapshot(&next);
            self.snapshot = Some(next);
        }
        self.tally.snapshot(self.snapshot.as_ref().is_some_and(|held| !held.market.stale));
    }

    /// Of what the feeds said; before they did, of what was restored.
    fn next_snapshot(&mut self, now_mono_ms: u64) -> Option<Snapshot> {
        let now = self.parts.clock.now();
        let slots: Vec<&FeedSlot> = self.slots().collect();
        let indices = &self.parts.indices;
        let built = build(&slots, indices, self.status(), &self.policy, now, now_mono_ms);
        let mut next = match (built, &self.snapshot) {
            (Some(snapshot), _) => {
                self.restored = false;
                snapshot
            }
            (None, Some(held)) if self.restored => {
                let mut held = held.clone();
                held.remark(self.status(), true);
                held
            }
            (None, _) => return None,
        };
        next.signals = self.signals.top();
        Some(next)
    }
}
