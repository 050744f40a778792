//! Which symbols one poll of a feed carries.
//!
//! The indices and sectors, then what requests wait for, then some of what users hold and nobody
//! has a price of, then what clients asked for lately, up to the feed's batch size: one budget
//! serves everybody.

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

/// Polls in which every sector comes once: a price may miss one poll before it is stale. The rest
/// of each batch is for what clients ask for.
const SECTORS_POLLS: usize = 2;

/// The symbols of the next poll, and what of them requests wait for.
pub fn compose(
    feed: &FeedState,
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
    let share = sectors
        .len()
        .div_ceil(SECTORS_POLLS)
        .max(sectors.len().min(max / SECTORS_PART))
        .min(max - symbols.len());
    let room = max - symbols.len() - share;
    let (unlisted, held) = match source {
        Source::BrokerA => (UNLISTED_BROKER_A, HELD_BROKER_A),
        Source::Public => (UNLISTED_PUBLIC, HELD_PUBLIC),
    };
    let taken = context.pending.take(Room { symbols: room, unlisted, held });
    // As many as are already in the call may come again, so ask for that many more.
    let wanted = context.l1.wanted(now_mono_ms, max * 2);
    push_new(&mut symbols, taken.symbols(), max);
    let with_share = symbols.len() + share;
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
