//! Rounds: what one upstream call carries, how it goes out, and what its answer changes.
//!
//! A round carries the indices and sectors, then what requests wait for, then some of what users
//! hold and nobody has a price of, then what clients asked for lately, up to the feed's batch size:
//! one budget serves everybody. Runs on the scheduler's thread, but for the call itself, which is a
//! lane's job.

use std::collections::HashSet;
use std::sync::Arc;

use crossbeam_channel::Sender;

use super::feed_state::{Ended, FeedState, Judge};
use crate::base::{Quote, Source, Symbol};
use crate::brokers::{Batch, BrokerErrorKind};
use crate::cache::pending::{Room, Taken};
use crate::cache::{Kept, Vouched};
use crate::market::Index;
use crate::warmers::context::WarmerContext;
use crate::warmers::event::Event;
use crate::warmers::event::JobReport;
use crate::warmers::event::Round;
use crate::warmers::scheduler::Scheduler;

/// Unlisted symbols tried in one call, chosen fairly among clients: a small share of either feed's
/// budget.
const UNLISTED_BROKER_A: usize = 20;
const UNLISTED_PUBLIC: usize = 2;

/// Symbols of users' holdings in one call, of what is left after everybody who waits: whoever holds
/// five hundred shares takes at most a quarter of the public provider's calls.
const HELD_BROKER_A: usize = 200;
const HELD_PUBLIC: usize = 5;

/// A batch of which the sectors are no more than this part carries all of them.
const SECTORS_PART: usize = 10;

/// Rounds in which every sector comes once: a price may miss one round before it is stale. The rest
/// of each batch is for what clients ask for.
const SECTORS_ROUNDS: usize = 2;

/// A lane job's deadline beyond the call's own: connecting to a lane takes no time unless it is
/// stuck.
pub const LANE_SLACK_MS: u64 = 5_000;

/// How long a symbol of the instrument list that only the public provider was asked for is
/// remembered as unknown: broker A, which has it, may be back in a moment.
const PUBLIC_NEGATIVE_MS: u64 = 60_000;

/// Sends one round to the feed's lane. Its outcome arrives as [`Event::Round`], whatever happens.
pub fn ask(slot: &mut FeedState, parts: &WarmerContext, now_mono_ms: u64, events: &Sender<Event>) {
    let source = slot.feed.source();
    let symbols = compose(slot, parts, now_mono_ms);
    slot.began(now_mono_ms);
    let feed = Arc::clone(&slot.feed);
    let as_event: fn(Option<_>) -> Event = match source {
        Source::BrokerA => {
            |outcome| Event::Round(Box::new(Round { source: Source::BrokerA, outcome }))
        }
        Source::Public => {
            |outcome| Event::Round(Box::new(Round { source: Source::Public, outcome }))
        }
    };
    let mut report = JobReport { events: events.clone(), outcome: None, as_event };
    let deadline_ms = parts.upstream.total_timeout_ms + LANE_SLACK_MS;
    let submitted = slot.lane.submit(deadline_ms, move || {
        report.outcome = Some(feed.quotes(&symbols));
        drop(report);
    });
    if let Err(refused) = submitted {
        tracing::warn!(%refused, source = source.as_str(), "round not sent");
    }
}

fn compose(slot: &mut FeedState, parts: &WarmerContext, now_mono_ms: u64) -> Vec<Symbol> {
    let max = slot.feed.batch_max();
    let source = slot.feed.source();
    let spelled = |index: &&Index| source == Source::BrokerA || index.public.is_some();
    let mut symbols: Vec<Symbol> = {
        let mut leads: Vec<&Index> = parts.indices.leads().into_iter().filter(spelled).collect();
        // Only matters to a feed whose calls carry fewer: the longest unheard first.
        leads.sort_by_key(|lead| slot.heard_mono_ms(&lead.symbol));
        leads.into_iter().map(|lead| lead.symbol.clone()).collect()
    };
    symbols.truncate(max);
    let mut sectors: Vec<&Index> = parts.indices.sectors.iter().filter(spelled).collect();
    sectors.sort_by_key(|sector| slot.heard_mono_ms(&sector.symbol));
    let sectors: Vec<Symbol> = sectors.into_iter().map(|sector| sector.symbol.clone()).collect();
    if slot.bare {
        push_new(&mut symbols, &sectors, max);
        return symbols;
    }
    let share = sectors
        .len()
        .div_ceil(SECTORS_ROUNDS)
        .max(sectors.len().min(max / SECTORS_PART))
        .min(max - symbols.len());
    let room = max - symbols.len() - share;
    let (unlisted, held) = match source {
        Source::BrokerA => (UNLISTED_BROKER_A, HELD_BROKER_A),
        Source::Public => (UNLISTED_PUBLIC, HELD_PUBLIC),
    };
    let taken = parts.pending.take(Room { symbols: room, unlisted, held });
    // As many as are already in the call may come again, so ask for that many more.
    let wanted = parts.l1.wanted(now_mono_ms, max * 2);
    push_new(&mut symbols, taken.symbols(), max);
    let with_share = symbols.len() + share;
    push_new(&mut symbols, &sectors, with_share);
    push_new(&mut symbols, &wanted, max);
    push_new(&mut symbols, &sectors, max);
    slot.taken = Some(taken);
    symbols
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

impl Scheduler {
    /// Takes in how a round ended.
    pub fn take_in(&mut self, round: Round) {
        let source = round.source;
        let now_mono_ms = self.parts.clock.monotonic_ms();
        let Some(slot) = self.slot_mut(source) else { return };
        let taken = std::mem::take(&mut slot.taken);
        let ended = match round.outcome {
            Some(Ok(batch)) => self.keep(source, batch, taken, now_mono_ms),
            failed => {
                // The other feed may know, or this one next time.
                taken.into_iter().for_each(Taken::put_back);
                match failed {
                    Some(Err(error)) => match error.kind {
                        BrokerErrorKind::NotReady(_) => Ended::NotAsked,
                        BrokerErrorKind::Refused => Ended::Refused(error.to_string()),
                        _ => Ended::Failed(error.to_string()),
                    },
                    _ => Ended::Failed(
                        "the call was lost: its lane is full or it panicked".to_owned(),
                    ),
                }
            }
        };
        self.tally.round(&ended);
        if let Some(slot) = self.slot_mut(source) {
            slot.ended(ended);
        }
    }

    /// Puts a batch where it is read, and wakes those who waited for it.
    fn keep(
        &mut self,
        source: Source,
        mut batch: Batch,
        taken: Option<Taken>,
        now_mono_ms: u64,
    ) -> Ended {
        let now = self.parts.clock.now();
        let (l1, calendar) = (Arc::clone(&self.parts.l1), Arc::clone(&self.parts.calendar));
        let indices = Arc::clone(&self.parts.indices);
        let judge = Judge { calendar: &calendar, indices: &indices };
        let Some(slot) = self.slot_mut(source) else { return Ended::NotAsked };
        let read = slot.read(&mut batch, judge);
        let doubt = doubt(slot, &batch, &read);
        // Of a lead that was refused: one share with an absurd time says nothing of our clock.
        slot.world_ahead_ms = doubt
            .as_ref()
            .and(batch.ahead)
            .map(|ahead| ahead.as_millisecond() - now.as_millisecond());
        let took_back = slot.took_back;
        if let Some(witness) = slot.witness().and_then(|symbol| slot.heard.get(symbol)) {
            l1.freshness().spoken(source, witness.vouched);
        }
        let brought: Vec<Symbol> = read.iter().map(|(quote, _)| quote.symbol.clone()).collect();
        let (coming, shares): (Vec<_>, Vec<_>) =
            read.into_iter().partition(|(quote, _)| indices.contains(&quote.symbol));
        // Made before and shown right behind them: whoever saw an index's quote sees no older one
        // in the snapshot. Shares come last, since none may look newer than its index.
        let unshown = self.make_snapshot(&coming, now_mono_ms);
        self.take_quotes(&coming, now_mono_ms);
        if let Some(unshown) = unshown {
            self.show(unshown);
        }
        self.take_quotes(&shares, now_mono_ms);
        if !batch.implausible.is_empty() {
            tracing::debug!(source = source.as_str(), symbols = ?batch.implausible, "not believed");
        }
        if took_back || doubt.is_some() {
            self.parts.pending.settle(&brought);
        }
        match doubt {
            None => {
                self.keep_unknown(source, batch.unknown, now_mono_ms);
                // Dropping settles: whoever waited finds its quotes in L1.
                drop(taken);
                Ended::Spoke
            }
            // Nor is what it left out known not to exist.
            Some(doubt) => {
                taken.into_iter().for_each(Taken::put_back);
                Ended::Failed(doubt)
            }
        }
    }

    fn take_quotes(&mut self, read: &[(Quote, Vouched)], now_mono_ms: u64) {
        for (quote, vouched) in read {
            if self.parts.l1.insert(quote.clone(), *vouched, now_mono_ms) == Kept::Taken {
                self.unstored.quote(quote);
            }
        }
    }

    fn keep_unknown(&mut self, source: Source, unknown: Vec<Symbol>, now_mono_ms: u64) {
        let list = self.parts.instruments.load_full();
        for symbol in unknown {
            // One answer without an index does not make it unknown.
            if self.parts.indices.contains(&symbol) {
                continue;
            }
            let mut ttl_ms = self.parts.cache_settings.negative_ttl_ms;
            if source == Source::Public && list.contains(symbol.as_str()) {
                ttl_ms = ttl_ms.min(PUBLIC_NEGATIVE_MS);
            }
            self.parts.l1.insert_unknown(symbol, now_mono_ms, now_mono_ms + ttl_ms);
        }
    }

    /// Makes what a hanging call carries pending again, for the other feed to take.
    pub fn take_back_from_hanging(&mut self, now_mono_ms: u64) {
        let paces = self.paces;
        for slot in self.slots_mut() {
            let pace = paces[slot.feed.source() as usize];
            if !slot.took_back && slot.hangs(pace, now_mono_ms) {
                slot.took_back = true;
                std::mem::take(&mut slot.taken).into_iter().for_each(Taken::put_back);
            }
        }
    }
}

/// Why an answer does not count as one: the indices always have a price, so a source without them
/// is broken, however politely it answers.
fn doubt(slot: &FeedState, batch: &Batch, read: &[(Quote, Vouched)]) -> Option<String> {
    let is_lead = |symbol: &&Symbol| slot.leads_with(symbol);
    let name = slot.feed.source().as_str();
    if let Some(symbol) = batch.implausible.iter().find(is_lead) {
        return Some(format!("{name} gives no believable price for {symbol}"));
    }
    if let Some(symbol) = batch.unknown.iter().find(is_lead) {
        return Some(format!("{name} leaves {symbol} out of its answer"));
    }
    let brought = read.iter().any(|(quote, _)| slot.leads_with(&quote.symbol));
    (!brought).then(|| format!("{name} answers without an index"))
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
