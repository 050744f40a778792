//! The snapshot: which feed's quotes it is built from, and whether it is stale.

use std::cmp::Reverse;

use jiff::Timestamp;

use super::feeds::FeedSlot;
use super::policy::Policy;
use crate::market::{IndexList, MarketStatus, QuoteMap, Snapshot, SnapshotInputs};

/// Builds the snapshot from the feeds, preferred first: the first that speaks and need not prove
/// itself, then one that speaks, else the one heard last, marked stale. `None` before any feed has
/// all three indices.
pub fn build(
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
