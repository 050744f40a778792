//! The public record, from both ledgers: what became of signals, and how often they were right.
//! Jobs of the lane `signals` run it.

use std::collections::HashMap;

use jiff::civil::Date;

use crate::base::Candle;
use crate::signals::evaluate::Judged;
use crate::signals::patterns::Key;
use crate::signals::{Direction, Fate, HORIZON_SESSIONS, Reliability};
use crate::store::{
    Completion, LedgerEntry, ProvisionalEntry, ProvisionalSignal, PublishedSignal, SignalOutcome,
    SignalStore, StoreError,
};

/// Lines of a ledger read at a time.
const LEDGER_PAGE: usize = 2_000;

/// Candles of those symbols of which something may have come to be known.
pub type Closes<'a> = HashMap<&'a str, &'a [Candle]>;

/// Reads both ledgers page by page, writes the outcomes that `candles` tell now, and counts.
pub fn walk(store: &dyn SignalStore, candles: &Closes<'_>) -> Result<Reliability, StoreError> {
    let mut record = Reliability::default();
    walk_complete(store, candles, &mut record)?;
    walk_provisional(store, candles, &mut record)?;
    Ok(record)
}

fn walk_complete(
    store: &dyn SignalStore,
    candles: &Closes<'_>,
    record: &mut Reliability,
) -> Result<(), StoreError> {
    let keep = |outcomes| store.keep_outcomes(outcomes);
    paged(
        |after| store.ledger(after, LEDGER_PAGE),
        keep,
        |entry| {
            let LedgerEntry { id, on, signal, outcome: known } = entry;
            let PublishedSignal { pattern, confidence, basis, .. } = &signal;
            let base_rate = basis.base_rate;
            let told = Told { on, pattern, confidence: *confidence, base_rate };
            let closes = candles.get(signal.symbol.as_str());
            let judge = || told.outcome(signal.bullish, closes);
            let new = if known.is_none() { judge() } else { None };
            record.count(on, signal.simulated, told.judged(known.or(new)).as_ref());
            (id, new)
        },
    )
}

fn walk_provisional(
    store: &dyn SignalStore,
    candles: &Closes<'_>,
    record: &mut Reliability,
) -> Result<(), StoreError> {
    let published = store.signal_dates()?.map(|(_, last)| last);
    let keep = |outcomes| store.keep_provisional_outcomes(outcomes);
    paged(
        |after| store.provisional_ledger(after, LEDGER_PAGE),
        keep,
        |entry| {
            let ProvisionalEntry { id, on, signal, completion, outcome: known, .. } = entry;
            let ProvisionalSignal { pattern, confidence, basis, .. } = &signal;
            let base_rate = basis.base_rate;
            let told = Told { on, pattern, confidence: *confidence, base_rate };
            let closes = candles.get(signal.symbol.as_str());
            let judge = || told.outcome(signal.bullish, closes);
            let new = if known.is_none() { judge() } else { None };
            let fate = match completion {
                Completion::Confirmed => Fate::Confirmed,
                Completion::Vanished => Fate::Vanished,
                Completion::Unknown if published > Some(on) => Fate::Unlisted,
                Completion::Unknown => Fate::Pending,
            };
            let judged = told.judged(known.or(new));
            record.provisional.count(on, signal.simulated, fate, judged.as_ref());
            (id, new)
        },
    )
}

/// Reads a ledger page by page and keeps the outcomes that `count` finds new, each page's before
/// the next is read. `count` gives an entry's id with it.
fn paged<E>(
    read: impl Fn(i64) -> Result<Vec<E>, StoreError>,
    keep: impl Fn(Vec<(i64, SignalOutcome)>) -> Result<(), StoreError>,
    mut count: impl FnMut(E) -> (i64, Option<SignalOutcome>),
) -> Result<(), StoreError> {
    let mut after = 0;
    loop {
        let page = read(after)?;
        let whole = page.len() == LEDGER_PAGE;
        let mut outcomes = Vec::new();
        for entry in page {
            let (id, new) = count(entry);
            after = id;
            outcomes.extend(new.map(|outcome| (id, outcome)));
        }
        if !outcomes.is_empty() {
            keep(outcomes)?;
        }
        if !whole {
            return Ok(());
        }
    }
}

/// What was said of a symbol on a date.
struct Told<'a> {
    on: Date,
    pattern: &'a str,
    confidence: f64,
    base_rate: f64,
}

impl Told<'_> {
    /// What became of it, once five more sessions of its symbol are there. Both closes are taken
    /// from the history as it stands: after a split those of the ledger are in other shares.
    fn outcome(&self, bullish: bool, candles: Option<&&[Candle]>) -> Option<SignalOutcome> {
        let candles = candles?;
        let at = candles.binary_search_by_key(&self.on, |candle| candle.date).ok()?;
        let (from, to) = (candles[at], candles.get(at + HORIZON_SESSIONS)?);
        let direction = if bullish { Direction::Bullish } else { Direction::Bearish };
        let hit = direction.is_hit(from.close_e4, to.close_e4);
        let (from_close_e4, to_close_e4) = (from.close_e4, to.close_e4);
        Some(SignalOutcome { judged_on: to.date, from_close_e4, to_close_e4, hit })
    }

    /// `None` while it is pending, and for a pattern that this program does not know any more.
    fn judged(&self, outcome: Option<SignalOutcome>) -> Option<Judged> {
        let Self { on, pattern, confidence, base_rate } = *self;
        let (key, hit) = (Key::from_name(pattern)?, outcome?.hit);
        Some(Judged { date: on, key, confidence, base_rate, hit })
    }
}
