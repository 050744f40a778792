//! Which symbols one poll of a feed carries.
//!
//! The indices, then what requests wait for, then some of what users hold and nobody has a price
//! of, then in turn the sectors and what clients asked for lately, up to the feed's batch size: one
//! budget serves everybody. How many calls such a turn takes is what a price's age is judged by.

use std::collections::HashSet;

use super::feed_state::FeedState;
use crate::base::{Source, Symbol};
use crate::cache::pending::{Room, Taken};
use crate::market::Index;
use crate::warmers::context::WarmerContext;

/// Unlisted symbols tried in one call, chosen fairly among clients: a small share of either feed's
/// budget.
const UNLISTED_BROKER_A: usize = 20;
const UNLISTED_PUBLIC: usize = 2;

/// Symbols of users' holdings in one call, of what is left after all requests that wait: whoever
/// holds five hundred shares takes at most a quarter of the public provider's calls.
const HELD_BROKER_A: usize = 200;
const HELD_PUBLIC: usize = 5;

/// A batch of which the sectors are no more than this part carries all of them.
const SECTORS_PART: usize = 10;

/// Calls in a row that carry nothing but the indices and what requests wait for. The next one
/// carries what comes in turn, so that clients who ask for ever new symbols do not make the others'
/// prices old.
const CROWDED_MAX: u8 = 3;

/// Longest turn for which a price counts as fresh. If clients ask for more symbols than a source
/// carries in so many calls, its quotes are stale in between.
const ROUND_CALLS_MAX: usize = 8;

/// The symbols of the next poll, and what of them requests wait for.
pub fn compose(
    feed: &mut FeedState,
    context: &WarmerContext,
    now_mono_ms: u64,
) -> (Vec<Symbol>, Option<Taken>) {
    let (max, source) = (feed.feed().batch_max(), feed.source());
    let has_symbol = |index: &&Index| source == Source::BrokerA || index.public.is_some();
    let mut leads: Vec<&Index> = context.indices.leads().into_iter().filter(has_symbol).collect();
    // Only matters to a feed whose calls carry fewer: the longest unheard first.
    leads.sort_by_key(|lead| feed.heard_mono_ms(&lead.symbol));
    let mut symbols: Vec<Symbol> = leads.into_iter().map(|lead| lead.symbol.clone()).collect();
    symbols.truncate(max);
    let mut sectors: Vec<&Index> = context.indices.sectors.iter().filter(has_symbol).collect();
    sectors.sort_by_key(|sector| feed.heard_mono_ms(&sector.symbol));
    let sectors: Vec<Symbol> = sectors.into_iter().map(|sector| sector.symbol.clone()).collect();
    if feed.is_indices_only() {
        push_new(&mut symbols, &sectors, max);
        return (symbols, None);
    }
    let places = max - symbols.len();
    let period_s = u32::try_from(context.interval_ms(source).div_ceil(1_000)).unwrap_or(u32::MAX);
    let mut wanted = context.l1.wanted(now_mono_ms, period_s, max * (ROUND_CALLS_MAX + 1));
    wanted.retain(|symbol| !context.indices.contains(symbol));
    let in_turn = sectors.len() + wanted.len();
    let round = (in_turn + context.pending.len()).div_ceil(places.max(1));
    let round = round.clamp(1, ROUND_CALLS_MAX);
    let share = match sectors.len() <= max / SECTORS_PART {
        true => sectors.len(),
        false => sectors.len().div_ceil(round),
    };
    let kept = if feed.crowded() < CROWDED_MAX { 0 } else { in_turn.min(places) };
    let (unlisted, held) = match source {
        Source::BrokerA => (UNLISTED_BROKER_A, HELD_BROKER_A),
        Source::Public => (UNLISTED_PUBLIC, HELD_PUBLIC),
    };
    let taken = context.pending.take(Room { symbols: places - kept, unlisted, held });
    push_new(&mut symbols, taken.symbols(), max);
    feed.note_demand(u8::try_from(round).unwrap_or(u8::MAX), symbols.len() + share > max);
    let with_share = (symbols.len() + share).min(max);
    push_new(&mut symbols, &sectors, with_share);
    push_new(&mut symbols, &wanted, max);
    push_new(&mut symbols, &sectors, max);
    (symbols, Some(taken))
}

fn push_new<'a>(symbols: &mut Vec<Symbol>, more: impl IntoIterator<Item = &'a Symbol>, max: usize) {
    let mut held: HashSet<Symbol> = symbols.iter().cloned().collect();
    for symbol in more {
        if symbols.len() >= max {
            return;
        }
        if held.insert(symbol.clone()) {
            symbols.push(symbol.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_takes_each_symbol_once_and_no_more_than_fit() {
        let of = |names: &[&str]| -> Vec<Symbol> {
            names.iter().filter_map(|name| Symbol::parse(name)).collect()
        };
        let mut symbols = of(&["NSE:A"]);
        push_new(&mut symbols, &of(&["NSE:A", "NSE:B", "NSE:B", "NSE:C", "NSE:D"]), 3);
        assert_eq!(symbols, of(&["NSE:A", "NSE:B", "NSE:C"]));
    }
}
