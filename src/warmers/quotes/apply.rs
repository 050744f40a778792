//! Takes in a batch of quotes: judges it, publishes the snapshot, and puts the quotes where
//! requests read them.
//!
//! Both the answers to polls and pushed batches come through here.

use crate::base::{Quote, Source, Symbol};
use crate::brokers::Batch;
use crate::cache::{Kept, Vouched};
use crate::market::InstrumentList;
use crate::warmers::context::WarmerContext;
use crate::warmers::persist::PersistTask;
use crate::warmers::publish::RelayPublisher;
use crate::warmers::quotes::feed_state::{FeedState, MarketView};
use crate::warmers::quotes::judged_close::{index_stands, judge};
use crate::warmers::quotes::snapshot::{SnapshotContext, SnapshotTask};

/// A symbol that neither the source nor the list of instruments knows is remembered as unknown for
/// this long. Exchanges list new symbols overnight.
const NEGATIVE_MS: u64 = 15 * 60_000;
/// A listed symbol that a source left out of its answer is remembered as unknown for this long: the
/// other source may have it, and so may the next answer.
const LISTED_NEGATIVE_MS: u64 = 60_000;

/// Everything that a batch of quotes changes, apart from its feed's state.
pub(crate) struct QuoteSinks<'a> {
    pub context: &'a WarmerContext,
    pub snapshot: &'a mut SnapshotTask,
    pub persist: &'a mut PersistTask,
    /// Collects messages for the other nodes.
    pub publisher: &'a mut RelayPublisher,
    /// The snapshot's content apart from prices.
    pub beside: SnapshotContext<'a>,
}

/// Takes in a batch of `feed`. Returns the symbols whose quotes were believed, and why the batch
/// does not count as a healthy feed's, if so. Its quotes are still used, but symbols that it left
/// out do not become unknown.
pub(crate) fn apply(
    feed: &mut FeedState,
    mut batch: Batch,
    sinks: &mut QuoteSinks<'_>,
    now_mono_ms: u64,
) -> (Vec<Symbol>, Option<String>) {
    let context = sinks.context;
    let source = feed.source();
    context.l1.count_ahead(batch.ahead_count);
    let shown = |symbol: &Symbol| context.l1.held(symbol, now_mono_ms);
    let listed = context.instruments.load_full();
    let market = MarketView {
        calendar: &context.calendar,
        indices: &context.indices,
        universe: &context.universe,
        derivatives_of: &|symbol| listed.derivatives_of(symbol),
        shown: &shown,
    };
    let mut read = feed.read(&mut batch, &market);
    let has_lead = read
        .iter()
        .any(|(quote, _)| feed.leads.contains(&quote.symbol));
    let doubt = doubt(feed, &batch, has_lead);
    if !batch.pushed && has_lead {
        let absent = batch
            .unknown
            .iter()
            .filter(|symbol| feed.leads.contains(symbol));
        feed.absent = absent.cloned().collect();
    }
    // Only a leading index tells how far our clock is off. A share with an absurd time does not,
    // nor does a push without any lead.
    if has_lead || doubt.is_some() {
        let ahead = doubt.as_ref().and(batch.ahead);
        let now_ms = context.clock.now().as_millisecond();
        feed.ahead_of_us_ms = ahead.map(|ahead| ahead.as_millisecond() - now_ms);
    }
    if let Some(witness) = feed.heard_witness() {
        context.l1.freshness().note_vouched(source, witness.vouched);
    }
    let stands = index_stands(context, read.iter().map(|(quote, _)| quote), context.clock.now());
    for (quote, _) in &mut read {
        judge(context, quote, stands, now_mono_ms);
    }
    let brought = read.iter().map(|(quote, _)| quote.symbol.clone()).collect();
    take_in(read, sinks, now_mono_ms);
    if !batch.implausible.is_empty() {
        let symbols = &batch.implausible;
        tracing::debug!(source = source.as_str(), ?symbols, "implausible quotes dropped");
    }
    if doubt.is_none() {
        keep_unknown(batch.unknown, &listed, sinks, now_mono_ms);
    }
    (brought, doubt)
}

/// Publishes the snapshot of judged quotes, and stores the quotes where requests read them.
///
/// The order is fixed: the snapshot, then the indices, then the shares. So the snapshot is never
/// behind a quote of its index, and no share is newer than its index. The snapshot is rendered and
/// compressed before any of it is visible. This is the only way into L1 apart from the restore
/// before the first request.
pub(crate) fn take_in(
    mut read: Vec<(Quote, Vouched)>,
    sinks: &mut QuoteSinks<'_>,
    now_mono_ms: u64,
) {
    let QuoteSinks {
        context,
        snapshot,
        beside,
        ..
    } = sinks;
    let now = context.clock.now();
    read.retain(|(quote, _)| !context.l1.refuses_ahead(quote, now));
    let (coming, shares): (Vec<_>, Vec<_>) = read
        .into_iter()
        .partition(|(quote, _)| context.indices.contains(&quote.symbol));
    let unshown = snapshot.make(context, *beside, &coming, now_mono_ms);
    // Streams are woken once at the end, so that they send everything together.
    let _gathering = context.snapshot.news().gather();
    if let Some(unshown) = unshown {
        snapshot.show(context, unshown);
    }
    sinks.keep(&coming, now_mono_ms);
    sinks.keep(&shares, now_mono_ms);
}

impl QuoteSinks<'_> {
    fn keep(&mut self, read: &[(Quote, Vouched)], now_mono_ms: u64) {
        for (quote, vouched) in read {
            let kept = self.context.l1.insert(quote.clone(), *vouched, now_mono_ms);
            if kept == Kept::Taken {
                self.persist.add_quote(quote);
            }
            if kept != Kept::Refused {
                self.publisher.add_quote(&quote.symbol);
            }
        }
    }

    /// Remembers for `ttl_ms` that no source knows `symbol`.
    pub(crate) fn keep_unknown(&mut self, symbol: Symbol, ttl_ms: u64, now_mono_ms: u64) {
        let until_mono_ms = now_mono_ms + ttl_ms;
        if self
            .context
            .l1
            .insert_unknown(symbol.clone(), now_mono_ms, until_mono_ms)
        {
            self.publisher.add_unknown(symbol);
        }
    }
}

fn keep_unknown(
    unknown: Vec<Symbol>,
    listed: &InstrumentList,
    sinks: &mut QuoteSinks<'_>,
    now_mono_ms: u64,
) {
    for symbol in unknown {
        // An index does not become unknown because one answer lacks it.
        if sinks.context.indices.contains(&symbol) {
            continue;
        }
        let is_listed = listed.contains(symbol.as_str());
        let ttl_ms = if is_listed {
            LISTED_NEGATIVE_MS
        } else {
            NEGATIVE_MS
        };
        sinks.keep_unknown(symbol, ttl_ms, now_mono_ms);
    }
}

/// Why an answer does not count as a healthy feed's. The indices always have a price, so a source
/// without them is broken even if it answers. Broker A may lack one of them, which the public
/// provider then gives; that one has no other behind it. A push carries only the indices that
/// moved.
fn doubt(feed: &FeedState, batch: &Batch, has_lead: bool) -> Option<String> {
    let is_lead = |symbol: &&Symbol| feed.leads.contains(symbol);
    let name = feed.source().as_str();
    if let Some(symbol) = batch.implausible.iter().find(is_lead) {
        return Some(format!("{name} gives no believable price for {symbol}"));
    }
    let may_lack = feed.source() == Source::BrokerA && has_lead;
    if let Some(symbol) = batch.unknown.iter().find(is_lead).filter(|_| !may_lack) {
        return Some(format!("{name} leaves {symbol} out of its answer"));
    }
    (!has_lead && !batch.pushed).then(|| format!("{name} answers without an index"))
}
