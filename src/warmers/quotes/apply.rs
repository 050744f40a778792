//! Takes in a batch of quotes: judges it, publishes the snapshot, and puts the quotes where
//! requests read them.
//!
//! It does not matter how the batch arrived. A poll's answer comes through here, and so does
//! whatever is pushed to the service without being asked for.

use crate::base::{Quote, Source, Symbol, clock};
use crate::brokers::Batch;
use crate::cache::{Kept, L1, Peek, Vouched};
use crate::http::Made;
use crate::market::{Age, Index, MarketStatus, Priced, Prices, Snapshot, SnapshotInputs};
use crate::views::signals::ShownSignals;
use crate::views::snapshot as views;
use crate::warmers::context::{Serving, WarmerContext};
use crate::warmers::persist::PersistTask;
use crate::warmers::quotes::feed_state::{FeedState, Judge};
use crate::warmers::tell::TellTask;

/// How long a symbol of the instrument list that only the public provider was asked for is
/// remembered as unknown: broker A, which has it, may be back in a moment.
const PUBLIC_NEGATIVE_MS: u64 = 60_000;

/// What a batch of quotes changes, beside the state of its feed.
pub(crate) struct QuoteSinks<'a> {
    pub context: &'a WarmerContext,
    pub snapshot: &'a mut SnapshotTask,
    pub persist: &'a mut PersistTask,
    /// What the other nodes are to hear.
    pub tell: &'a mut TellTask,
    /// What the snapshot shows beside prices.
    pub beside: Beside<'a>,
}

/// What became of a batch.
pub(crate) struct Applied {
    /// Symbols whose quotes were believed.
    pub brought: Vec<Symbol>,
    /// Why the batch does not count as a healthy feed's. Its quotes are taken all the same, but
    /// what it left out is not taken for unknown.
    pub doubt: Option<String>,
}

/// Takes in what `feed` said.
pub(crate) fn apply(
    feed: &mut FeedState,
    mut batch: Batch,
    sinks: &mut QuoteSinks<'_>,
    now_mono_ms: u64,
) -> Applied {
    let context = sinks.context;
    let source = feed.source();
    let judge = Judge { calendar: &context.calendar, indices: &context.indices };
    context.l1.count_ahead(batch.ahead_count);
    let mut read = feed.read(&mut batch, judge);
    let has_lead = read.iter().any(|(quote, _)| feed.leads_with(&quote.symbol));
    let doubt = doubt(feed, &batch, has_lead);
    // Of a lead that was refused: one share with an absurd time says nothing of our clock. A push
    // without any lead says nothing of it either.
    if has_lead || doubt.is_some() {
        let ahead = doubt.as_ref().and(batch.ahead);
        let now_ms = context.clock.now().as_millisecond();
        feed.set_ahead_of_us_ms(ahead.map(|ahead| ahead.as_millisecond() - now_ms));
    }
    if let Some(witness) = feed.heard_witness() {
        context.l1.freshness().note_vouched(source, witness.vouched);
    }
    for (quote, _) in &mut read {
        let held = context.l1.peek(quote.symbol.as_str(), now_mono_ms);
        let held = if let Peek::Known { quote, .. } = &held { Some(quote) } else { None };
        quote.previous_close = context.calendar.own_previous_close(quote, held);
    }
    let brought = read.iter().map(|(quote, _)| quote.symbol.clone()).collect();
    take_in(read, sinks, now_mono_ms);
    if !batch.implausible.is_empty() {
        let symbols = &batch.implausible;
        tracing::debug!(source = source.as_str(), ?symbols, "implausible quotes dropped");
    }
    if doubt.is_none() {
        keep_unknown(source, batch.unknown, sinks, now_mono_ms);
    }
    Applied { brought, doubt }
}

/// Publishes the snapshot of judged quotes, and puts the quotes where requests read them.
///
/// The order is fixed, and this is the only way into L1 but for the restore before the first
/// request: the snapshot, then the indices, then the shares. So at no moment is the snapshot behind
/// a quote of its index, or a share newer than its index. The snapshot is rendered and compressed
/// before any of it is visible.
pub(crate) fn take_in(
    mut read: Vec<(Quote, Vouched)>,
    sinks: &mut QuoteSinks<'_>,
    now_mono_ms: u64,
) {
    let QuoteSinks { context, snapshot, beside, .. } = sinks;
    let now = context.clock.now();
    read.retain(|(quote, _)| !context.l1.refuses_ahead(quote, now));
    let (coming, shares): (Vec<_>, Vec<_>) =
        read.into_iter().partition(|(quote, _)| context.indices.contains(&quote.symbol));
    let unshown = snapshot.make(context, *beside, &coming, now_mono_ms);
    // Streams are told of all of it at the end, so that they show it together.
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
                self.tell.add_quote(&quote.symbol);
            }
        }
    }

    /// Remembers for `ttl_ms` that no source knows `symbol`.
    pub(crate) fn keep_unknown(&mut self, symbol: Symbol, ttl_ms: u64, now_mono_ms: u64) {
        let until_mono_ms = now_mono_ms + ttl_ms;
        if self.context.l1.insert_unknown(symbol.clone(), now_mono_ms, until_mono_ms) {
            self.tell.add_unknown(symbol);
        }
    }
}

fn keep_unknown(
    source: Source,
    unknown: Vec<Symbol>,
    sinks: &mut QuoteSinks<'_>,
    now_mono_ms: u64,
) {
    let context = sinks.context;
    let list = context.instruments.load_full();
    for symbol in unknown {
        // One answer without an index does not make it unknown.
        if context.indices.contains(&symbol) {
            continue;
        }
        let mut ttl_ms = context.cache_settings.negative_ttl_ms;
        if source == Source::Public && list.contains(symbol.as_str()) {
            ttl_ms = ttl_ms.min(PUBLIC_NEGATIVE_MS);
        }
        sinks.keep_unknown(symbol, ttl_ms, now_mono_ms);
    }
}

/// Why an answer does not count as one: the indices always have a price, so a source without them
/// is broken, however politely it answers. What is pushed has those that moved.
fn doubt(feed: &FeedState, batch: &Batch, has_lead: bool) -> Option<String> {
    let is_lead = |symbol: &&Symbol| feed.leads_with(symbol);
    let name = feed.source().as_str();
    if let Some(symbol) = batch.implausible.iter().find(is_lead) {
        return Some(format!("{name} gives no believable price for {symbol}"));
    }
    if let Some(symbol) = batch.unknown.iter().find(is_lead) {
        return Some(format!("{name} leaves {symbol} out of its answer"));
    }
    (!has_lead && !batch.pushed).then(|| format!("{name} answers without an index"))
}

// ---- Snapshot
//
// The snapshot: built of what the first level shows of the indices, and published. On the
// scheduler's thread.

/// A snapshot that nobody is shown yet.
pub(crate) struct Unshown {
    snapshot: Snapshot,
    signals: ShownSignals,
    made: Made,
}

/// What the snapshot shows beside prices.
#[derive(Clone, Copy)]
pub(crate) struct Beside<'a> {
    pub status: &'a MarketStatus,
    pub signals: &'a ShownSignals,
}

/// Owner of the published snapshot.
pub(crate) struct SnapshotTask {
    published: Option<Snapshot>,
    /// The signals published in it.
    signals: ShownSignals,
    /// Until when it stands as it is, if no feed brings anything.
    stands_until_mono_ms: u64,
}

impl SnapshotTask {
    /// Nothing is published.
    pub(crate) fn new() -> Self {
        Self { published: None, signals: ShownSignals::none(), stands_until_mono_ms: u64::MAX }
    }

    /// Makes the snapshot anew and publishes it where it has changed. True: there is one, and it
    /// is not stale.
    pub(crate) fn publish(
        &mut self,
        context: &WarmerContext,
        beside: Beside<'_>,
        now_mono_ms: u64,
    ) -> bool {
        if let Some(unshown) = self.make(context, beside, &[], now_mono_ms) {
            self.show(context, unshown);
        }
        self.age().is_some_and(|age| !age.stale)
    }

    /// The snapshot as it is once the first level has taken in what is `coming`; `None` where it
    /// does not change.
    pub(crate) fn make(
        &mut self,
        context: &WarmerContext,
        beside: Beside<'_>,
        coming: &[(Quote, Vouched)],
        now_mono_ms: u64,
    ) -> Option<Unshown> {
        let snapshot = self.next(context, beside.status, coming, now_mono_ms)?;
        if self.published.as_ref() == Some(&snapshot) && self.signals == *beside.signals {
            return None;
        }
        let signals = beside.signals.clone();
        let json = views::Snapshot::of(&snapshot, &signals).to_json();
        let made = context.snapshot.make(&json);
        Some(Unshown { snapshot, signals, made })
    }

    /// Publishes it.
    pub(crate) fn show(&mut self, context: &WarmerContext, unshown: Unshown) {
        let Unshown { snapshot, signals, made } = unshown;
        self.signals = signals;
        context.snapshot.show(made);
        log_change(self.age(), snapshot.market.age);
        self.published = Some(snapshot);
    }

    /// How old what is published is; `None` before there is a snapshot.
    pub(crate) fn age(&self) -> Option<Age> {
        self.published.as_ref().map(|published| published.market.age)
    }

    /// Whether what is published comes from the simulator.
    pub(crate) fn is_simulated(&self) -> bool {
        self.published.as_ref().is_some_and(|published| published.market.simulated)
    }

    /// For the heartbeat; `None` before there is a snapshot.
    pub(crate) fn serving(&self) -> Option<Serving> {
        self.published.as_ref().map(Serving::of)
    }

    /// Milliseconds until a price becomes stale, which the snapshot then says at once.
    pub(crate) fn wait_ms(&self, now_mono_ms: u64) -> u64 {
        self.stands_until_mono_ms.saturating_sub(now_mono_ms).saturating_add(1)
    }

    /// Notes until when it stands: when a price becomes stale the snapshot says so at once, as the
    /// quote of the same price does.
    fn next(
        &mut self,
        context: &WarmerContext,
        status: &MarketStatus,
        coming: &[(Quote, Vouched)],
        now_mono_ms: u64,
    ) -> Option<Snapshot> {
        self.stands_until_mono_ms = u64::MAX;
        let indices = &context.indices;
        let prices: Prices = indices
            .all()
            .filter_map(|index| self.price_of(index, &context.l1, coming, now_mono_ms))
            .collect();
        Snapshot::build(&SnapshotInputs { indices, prices: &prices, status })
    }

    fn price_of(
        &mut self,
        index: &Index,
        l1: &L1,
        coming: &[(Quote, Vouched)],
        now_mono_ms: u64,
    ) -> Option<(Symbol, Priced)> {
        // Of several prices of one index the first level keeps the latest.
        let taken = coming.iter().filter(|(quote, vouched)| {
            quote.symbol == index.symbol && l1.takes(quote, *vouched, now_mono_ms)
        });
        let coming = taken.max_by_key(|(quote, _)| quote.as_of);
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
    let (source, as_of) = (source.as_str(), clock::iso(as_of));
    match delay_s {
        Some(delay_s) => tracing::info!(source, as_of, delay_s, stale, "index prices"),
        None => tracing::info!(source, as_of, stale, "index prices"),
    }
}
