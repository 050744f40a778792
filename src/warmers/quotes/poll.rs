//! Polls the feeds: decides which feed is polled when, sends the calls, and takes in their answers.
//!
//! Runs on the scheduler's thread, except for the calls, which are jobs of the feeds' lanes.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::{BySource, Quote, Source, Symbol};
use crate::brokers::{Batch, BrokerErrorKind};
use crate::cache::Peek;
use crate::cache::pending::{CallCapacity, Taken};
use crate::market::{Index, Phase};
use crate::rt::lanes::Outcomes;
use crate::warmers::context::WarmerContext;
use crate::warmers::quotes::apply::{QuoteSinks, apply};
use crate::warmers::quotes::evidence::Evidence;
use crate::warmers::quotes::feed_state::{Answer, Ended, FeedState};
use crate::warmers::quotes::feeds::{Feeds, PriceOrigin};

/// The public provider is not polled for this long after the start if broker A can be polled but
/// has not answered yet.
const FIRST_ANSWER_MS: u64 = 1_500;

/// A standby feed whose last poll failed is polled again this rarely, so that an operator sees
/// whether broker A has a working replacement.
const STANDBY_RETRY_MS: u64 = 10_000;

/// Owner of the feeds.
pub(crate) struct QuotesTask {
    pub feeds: Feeds,
    /// What makes prices far from their previous close believed.
    pub evidence: Evidence,
    /// By source.
    outcomes: BySource<Outcomes<Box<Answer>>>,
    /// Since when this node polls. Broker A gets its `FIRST_ANSWER_MS` from then on.
    pub started_mono_ms: u64,
}

impl QuotesTask {
    pub(crate) fn new(
        context: &WarmerContext,
        outcomes: BySource<Outcomes<Box<Answer>>>,
        now_mono_ms: u64,
    ) -> Self {
        Self {
            feeds: Feeds::new(context),
            evidence: Evidence::new(),
            outcomes,
            started_mono_ms: now_mono_ms,
        }
    }

    /// Whether requests wait for a feed: symbols are pending, even if the clients have left (they
    /// come back), or no feed has answered in this run.
    pub(crate) fn is_urgent(&self, context: &WarmerContext) -> bool {
        context.pending.is_waited_for() || !self.feeds.have_answered()
    }

    /// Polls the feeds that are due, except those `taken`, whose next call another task makes.
    pub(crate) fn poll(
        &mut self,
        context: &WarmerContext,
        taken: impl Fn(Source) -> bool,
        standing: PriceOrigin,
        now_mono_ms: u64,
    ) {
        self.reclaim_timed_out(now_mono_ms);
        if standing == PriceOrigin::Relayed {
            // The leader's next poll carries the symbols that requests here wait for.
            context.answer_in_ms.store(0, Ordering::Relaxed);
            return;
        }
        // Several nodes by themselves are many clients of the public provider, so each keeps its
        // pace even if requests wait.
        let waits = context.pending.is_waited_for() && standing == PriceOrigin::Asks;
        // Broker A allows a call every second. The public provider gets no extra call for symbols
        // that are only held.
        let wanted = !context.pending.is_empty();
        if !taken(Source::BrokerA) && self.feeds.broker_a.is_due(now_mono_ms, wanted) {
            self.ask(Source::BrokerA, context, now_mono_ms);
        }
        let has_questions = self.evidence.has_questions();
        let is_due = |public: &FeedState| {
            (!self.broker_a_serves(context, now_mono_ms)
                || has_questions
                || public.failed_before(STANDBY_RETRY_MS, now_mono_ms))
                && !taken(Source::Public)
                && public.is_due(now_mono_ms, waits)
        };
        if self.feeds.public.as_ref().is_some_and(is_due) {
            self.ask(Source::Public, context, now_mono_ms);
        }
        let answer_in_ms = self
            .feeds
            .answer_in_ms(context.cache_settings.miss_wait_ms, now_mono_ms);
        context.answer_in_ms.store(answer_in_ms, Ordering::Relaxed);
        if answer_in_ms > 0 {
            context.pending.dismiss();
        }
    }

    /// Whether the public provider need not be polled. It is polled while broker A's data is still
    /// fresh but in doubt, so that its answer is there when the data becomes stale; sooner if
    /// requests wait or no feed has answered in this run.
    fn broker_a_serves(&self, context: &WarmerContext, now_mono_ms: u64) -> bool {
        let broker_a = &self.feeds.broker_a;
        let first_chance = now_mono_ms.saturating_sub(self.started_mono_ms) < FIRST_ANSWER_MS
            && broker_a.askable_within(FIRST_ANSWER_MS);
        (broker_a.is_healthy(context.l1.freshness(), now_mono_ms) || first_chance)
            && !broker_a.is_degraded(now_mono_ms, self.is_urgent(context))
    }

    /// Sends a poll to the feed's lane.
    fn ask(&mut self, source: Source, context: &WarmerContext, now_mono_ms: u64) {
        let Some(feed) = self.feeds.of_mut(source) else {
            return;
        };
        let questions = match source {
            Source::Public => self.evidence.take_questions(now_mono_ms),
            Source::BrokerA => Vec::new(),
        };
        let (symbols, taken) = compose(feed, context, &questions, now_mono_ms);
        feed.began(taken, now_mono_ms);
        let call = Arc::clone(&feed.feed);
        let outcomes = &self.outcomes[source];
        let deadline_ms = context.call_deadline_ms();
        let submitted =
            outcomes.submit(&feed.lane, deadline_ms, move || Box::new(call.quotes(&symbols)));
        if let Err(refused) = submitted {
            tracing::warn!(
                %refused,
                source = source.as_str(),
                "source was not asked for prices; trying again"
            );
        }
    }

    /// Takes the result of a poll; `None` if its call was lost.
    pub(crate) fn answered(
        &mut self,
        source: Source,
        answer: Option<Box<Answer>>,
        sinks: &mut QuoteSinks<'_>,
        now_mono_ms: u64,
    ) -> Ended {
        let Some(feed) = self.feeds.of_mut(source) else {
            return Ended::NotAsked;
        };
        let (taken, reclaimed) = feed.release();
        let ended = match answer.map(|answer| *answer) {
            Some(Ok(mut batch)) => {
                self.evidence
                    .weigh(source, &mut batch, &shown(sinks, now_mono_ms), now_mono_ms);
                let (brought, doubt) = apply(feed, batch, sinks, now_mono_ms);
                if source == Source::BrokerA {
                    let lacking = lacking(feed, &brought, sinks.context, now_mono_ms);
                    lacking
                        .iter()
                        .for_each(|symbol| self.evidence.ask(symbol, now_mono_ms));
                }
                if reclaimed || doubt.is_some() {
                    sinks.context.pending.settle(&brought);
                }
                match doubt {
                    // Dropping `taken` settles it: requests that waited find their quotes in L1.
                    None => {
                        drop(taken);
                        Ended::Succeeded
                    }
                    Some(doubt) => {
                        taken.into_iter().for_each(Taken::put_back);
                        Ended::Failed(doubt)
                    }
                }
            }
            failed => {
                // The other feed may answer, or this one next time.
                taken.into_iter().for_each(Taken::put_back);
                match failed {
                    Some(Err(error)) => match error.kind {
                        BrokerErrorKind::NotReady(_) => Ended::NotAsked,
                        BrokerErrorKind::Refused => Ended::Refused(error.to_string()),
                        BrokerErrorKind::RateLimited => Ended::RateLimited(error.to_string()),
                        _ => Ended::Failed(error.to_string()),
                    },
                    _ => Ended::Failed(
                        "the call was lost: its lane is full or it panicked".to_owned(),
                    ),
                }
            }
        };
        feed.ended(&ended);
        ended
    }

    /// Takes in a pushed batch. It ends no poll, and symbols that it leaves out are not unknown.
    pub(crate) fn pushed(
        &mut self,
        source: Source,
        mut batch: Batch,
        sinks: &mut QuoteSinks<'_>,
        now_mono_ms: u64,
    ) {
        let Some(feed) = self.feeds.of_mut(source) else {
            return;
        };
        self.evidence
            .weigh(source, &mut batch, &shown(sinks, now_mono_ms), now_mono_ms);
        let (brought, _) = apply(feed, batch, sinks, now_mono_ms);
        // Requests that wait for one of these symbols find it in L1.
        sinks.context.pending.settle(&brought);
    }

    /// Makes the symbols of a timed-out call pending again, for the other feed.
    fn reclaim_timed_out(&mut self, now_mono_ms: u64) {
        let reclaimed = self
            .feeds
            .iter_mut()
            .filter_map(|feed| feed.reclaim(now_mono_ms));
        reclaimed.for_each(Taken::put_back);
    }
}

/// What a healthy broker A does not give: an index that it left out, and symbols whose prices stand
/// although the market trades.
fn lacking(
    feed: &FeedState,
    brought: &[Symbol],
    context: &WarmerContext,
    now_mono_ms: u64,
) -> Vec<Symbol> {
    let is_trading = context.calendar.status(context.clock.now()).phase == Phase::Open;
    if !is_trading || !feed.is_healthy(context.l1.freshness(), now_mono_ms) {
        return Vec::new();
    }
    let stands = |symbol: &&Symbol| {
        matches!(context.l1.peek(symbol.as_str(), now_mono_ms), Peek::Known { stale: true, .. })
    };
    feed.absent
        .iter()
        .chain(brought.iter().filter(stands))
        .cloned()
        .collect()
}

/// The quote that requests read now.
fn shown<'a>(sinks: &QuoteSinks<'a>, now_mono_ms: u64) -> impl Fn(&Symbol) -> Option<Quote> + 'a {
    let l1 = &sinks.context.l1;
    move |symbol| l1.held(symbol, now_mono_ms)
}

// ---- Poll batch
//
// Chooses the symbols of one poll of a feed.
//
// First the indices, then symbols that requests wait for, then some of the held symbols without a
// price, then in turn the sectors and the symbols that clients asked for lately, up to the feed's
// batch size. One budget serves everybody. The number of calls of such a round decides how old a
// price may be.

/// Maximum unlisted symbols in one call, chosen fairly among clients: a small share of either
/// feed's budget.
const UNLISTED: BySource<usize> = BySource([20, 2]);

/// Maximum symbols of users' holdings in one call, after those that requests wait for. A user who
/// holds five hundred shares takes at most a quarter of the public provider's calls.
const HELD: BySource<usize> = BySource([200, 5]);

/// A batch carries all sectors if they are at most this part of it.
const SECTORS_PART: usize = 10;

/// Maximum calls in a row that carry only the indices and symbols that requests wait for. The next
/// one carries the symbols in turn, so that clients who ask for ever new symbols do not make the
/// others' prices old.
const CROWDED_MAX: u8 = 3;

/// Longest round, in calls, for which a price counts as fresh. If clients ask for more symbols than
/// so many calls carry, their quotes are stale in between.
const ROUND_CALLS_MAX: usize = 8;

/// The symbols of the next poll, and those of them that requests wait for.
pub(crate) fn compose(
    feed: &mut FeedState,
    context: &WarmerContext,
    questions: &[Symbol],
    now_mono_ms: u64,
) -> (Vec<Symbol>, Option<Taken>) {
    let max = feed.feed.batch_max();
    let source = feed.source();
    let has_symbol = |index: &&Index| source == Source::BrokerA || index.public.is_some();
    let mut leads: Vec<&Index> = context
        .indices
        .leads()
        .into_iter()
        .filter(has_symbol)
        .collect();
    // The lead with the oldest answer comes first. Matters only to a feed whose calls carry fewer.
    leads.sort_by_key(|lead| feed.heard_mono_ms(&lead.symbol));
    let mut symbols: Vec<Symbol> = leads.into_iter().map(|lead| lead.symbol.clone()).collect();
    symbols.truncate(max);
    let mut sectors: Vec<&Index> = context.indices.sectors.iter().filter(has_symbol).collect();
    sectors.sort_by_key(|sector| feed.heard_mono_ms(&sector.symbol));
    let sectors: Vec<Symbol> = sectors
        .into_iter()
        .map(|sector| sector.symbol.clone())
        .collect();
    if feed.indices_only {
        push_new(&mut symbols, &sectors, max);
        return (symbols, None);
    }
    push_new(&mut symbols, questions, max);
    let places = max - symbols.len();
    let period_s = u32::try_from(context.interval_ms[source].div_ceil(1_000)).unwrap_or(u32::MAX);
    let mut wanted = context
        .l1
        .wanted(now_mono_ms, period_s, max * (ROUND_CALLS_MAX + 1));
    wanted.retain(|symbol| !context.indices.contains(symbol));
    let in_turn = sectors.len() + wanted.len();
    let round = (in_turn + context.pending.len()).div_ceil(places.max(1));
    let round = round.clamp(1, ROUND_CALLS_MAX);
    let share = match sectors.len() <= max / SECTORS_PART {
        true => sectors.len(),
        false => sectors.len().div_ceil(round),
    };
    let kept = if feed.crowded < CROWDED_MAX {
        0
    } else {
        in_turn.min(places)
    };
    let unlisted = UNLISTED[source];
    let held = HELD[source];
    let taken = context.pending.take(CallCapacity {
        symbols: places - kept,
        unlisted,
        held,
    });
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
mod poll_batch_tests {
    use super::*;

    #[test]
    fn a_batch_takes_each_symbol_once_and_no_more_than_fit() {
        let of = |names: &[&str]| -> Vec<Symbol> {
            names
                .iter()
                .filter_map(|name| Symbol::parse(name))
                .collect()
        };
        let mut symbols = of(&["NSE:A"]);
        push_new(&mut symbols, &of(&["NSE:A", "NSE:B", "NSE:B", "NSE:C", "NSE:D"]), 3);
        assert_eq!(symbols, of(&["NSE:A", "NSE:B", "NSE:C"]));
    }
}
