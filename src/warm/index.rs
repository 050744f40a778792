//! The snapshot: which feed's quotes it is built from, and whether it is stale.

use jiff::Timestamp;

use super::feeds::FeedSlot;
use super::policy::{Pace, Policy};
use crate::market::{IndexList, MarketStatus, QuoteMap, Snapshot, SnapshotInputs};

/// A feed that can carry the snapshot: it has all three indices.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    slot: &'a FeedSlot,
    fresh: bool,
}

/// Builds the snapshot from the feeds, preferred first: the first fresh one, else the one that
/// answered last, marked stale. `None` before any feed has all three indices.
pub fn build(
    slots: &[&FeedSlot],
    indices: &IndexList,
    status: &MarketStatus,
    policy: &Policy,
    now: Timestamp,
    now_mono_ms: u64,
) -> Option<Snapshot> {
    let candidate = |slot: &&'_ FeedSlot| {
        let pace = policy.pace(slot.feed.source());
        speaks(slot, indices, pace, now, now_mono_ms)
    };
    let mut ordered: Vec<Candidate<'_>> =
        slots.iter().map(|slot| Candidate { slot, fresh: candidate(slot) }).collect();
    ordered.sort_by_key(|candidate| {
        let answered = candidate.slot.indexed_mono_ms;
        // Stable: among fresh feeds the preference stands.
        (!candidate.fresh, if candidate.fresh { None } else { Some(std::cmp::Reverse(answered)) })
    });
    let quotes: Vec<&QuoteMap> =
        ordered.iter().map(|candidate| &candidate.slot.index_quotes).collect();
    let mut snapshot =
        Snapshot::build(&SnapshotInputs { indices, quotes: &quotes, status, stale: false })?;
    let speaker = ordered.iter().find(|c| c.slot.feed.source() == snapshot.market.source);
    snapshot.market.stale |= !speaker.is_some_and(|speaker| speaker.fresh);
    Some(snapshot)
}

/// Whether a feed has answered lately with an index price that is recent by its own time.
pub fn speaks(
    slot: &FeedSlot,
    indices: &IndexList,
    pace: Pace,
    now: Timestamp,
    now_mono_ms: u64,
) -> bool {
    let primary = slot.index_quotes.get(&indices.primary.symbol);
    slot.is_fresh(now_mono_ms, pace)
        && primary.is_some_and(|quote| !is_mute(quote.as_of, pace, now))
}

/// Whether a price's own time lies further back than an honest source would leave it.
pub fn is_mute(as_of: Timestamp, pace: Pace, now: Timestamp) -> bool {
    let age_ms = now.as_millisecond() - as_of.as_millisecond();
    pace.mute_after_ms.is_some_and(|limit_ms| age_ms > limit_ms)
}
