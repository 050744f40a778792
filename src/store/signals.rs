//! The ledgers of published and of provisional signals, and their outcomes.
//!
//! The ledgers are append-only: triggers of the schema refuse to change or delete an entry. Only
//! the leader writes, with its epoch: the store answers `Deposed` if another node has led since.

use jiff::civil::Date;

use crate::signals::ListedSignal;
use crate::store::Epoch;
use crate::store::arg::{Arg, args, record};
use crate::store::cells::Cells;
use crate::store::errors::Result;
use crate::store::open::Store;
use crate::store::tx::{Failure, statements};
use crate::store::write::{PAGE_DEADLINE_MS, Write};

statements! {
    const PUBLISH_DATE = "\
INSERT INTO signal_dates (date, published_ms, symbols) VALUES (?1, ?2, ?3)
ON CONFLICT (date) DO NOTHING";
    const PUBLISH_SIGNAL = "\
INSERT INTO signal_ledger (published_on, symbol, pattern, direction, confidence, dates,
    date_hit_rate, base_rate, close_e4, rank, simulated, prior_dates, past_signals, past_hits)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
    const LAST_DATE = "SELECT date FROM signal_dates WHERE date > '' ORDER BY date DESC LIMIT 1";
    const FIRST_DATE = "SELECT date FROM signal_dates WHERE date > '' ORDER BY date LIMIT 1";
    const DATES = "SELECT date FROM signal_dates WHERE date > '' ORDER BY date";
    const OF_DATE = "\
SELECT id, published_on, symbol, pattern, direction, confidence, dates, date_hit_rate, base_rate,
    close_e4, rank, simulated, prior_dates, past_signals, past_hits
FROM signal_ledger WHERE published_on = ?1";
    const LEDGER = "\
SELECT l.id, l.published_on, l.symbol, l.pattern, l.direction, l.confidence, l.dates,
    l.date_hit_rate, l.base_rate, l.close_e4, l.rank, l.simulated,
    l.prior_dates, l.past_signals, l.past_hits,
    o.judged_on, o.from_close_e4, o.to_close_e4, o.hit, o.universe_symbols, o.universe_moved,
    o.hit IS NOT NULL OR EXISTS (
        SELECT 1 FROM candles c WHERE c.symbol = l.symbol AND c.date = l.published_on)
FROM signal_ledger l LEFT JOIN signal_outcomes o ON o.ledger_id = l.id
WHERE l.id > ?1 ORDER BY l.id LIMIT ?2";
    const KEEP_OUTCOME = "\
INSERT INTO signal_outcomes (ledger_id, judged_on, from_close_e4, to_close_e4, hit,
    universe_symbols, universe_moved)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (ledger_id) DO NOTHING";
    const KEEP_PROVISIONAL = "\
INSERT INTO provisional_signals (published_on, symbol, pattern, direction, confidence, dates,
    date_hit_rate, base_rate, price_e4, first_seen_ms, simulated, prior_dates, past_signals,
    past_hits)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
ON CONFLICT (published_on, symbol, pattern) DO NOTHING";
    const PROVISIONAL_LEDGER = "\
SELECT p.id, p.published_on, p.symbol, p.pattern, p.direction, p.confidence, p.dates,
    p.date_hit_rate, p.base_rate, p.price_e4, p.first_seen_ms, p.simulated,
    p.prior_dates, p.past_signals, p.past_hits,
    o.judged_on, o.from_close_e4, o.to_close_e4, o.hit, o.universe_symbols, o.universe_moved,
    o.hit IS NOT NULL OR EXISTS (
        SELECT 1 FROM candles c WHERE c.symbol = p.symbol AND c.date = p.published_on),
    d.date IS NOT NULL, l.id IS NOT NULL
FROM provisional_signals p
LEFT JOIN provisional_outcomes o ON o.provisional_id = p.id
LEFT JOIN signal_dates d ON d.date = p.published_on
LEFT JOIN signal_ledger l
    ON l.published_on = p.published_on AND l.symbol = p.symbol AND l.pattern = p.pattern
WHERE p.id > ?1 ORDER BY p.id LIMIT ?2";
    const KEEP_PROVISIONAL_OUTCOME = "\
INSERT INTO provisional_outcomes (provisional_id, judged_on, from_close_e4, to_close_e4, hit,
    universe_symbols, universe_moved)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (provisional_id) DO NOTHING";
}

/// The outcome of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalOutcome {
    /// The session on which the outcome was known.
    pub judged_on: Date,
    /// Closes of both sessions as the history had them at that time. A later split changes them in
    /// the history.
    pub from_close_e4: i64,
    pub to_close_e4: i64,
    pub hit: bool,
    /// Symbols of the universe that traded on both dates, and how many of them moved in the
    /// signal's direction; `None` in outcomes older than this count.
    pub universe: Option<(u32, u32)>,
}

/// An entry of the ledger of published signals.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerEntry {
    /// Ascending in the order of publication.
    pub id: i64,
    pub on: Date,
    pub signal: ListedSignal,
    /// Close of its date, in ten-thousandths of a rupee. Of a provisional signal, the last price of
    /// the candle when it was first found.
    pub price_e4: i64,
    pub outcome: Option<SignalOutcome>,
    /// Whether the signal can be judged: it has an outcome, or its candle is stored.
    pub has_candle: bool,
}

/// Whether the finished candle has the pattern too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The date's complete list has not been published.
    Unknown,
    Confirmed,
    Vanished,
}

/// An entry of the ledger of provisional signals (of unfinished candles), each as it was when it
/// was first found.
#[derive(Clone, Debug, PartialEq)]
pub struct ProvisionalEntry {
    pub entry: LedgerEntry,
    pub first_seen_ms: i64,
    pub completion: Completion,
}

/// A signal, and the price at which it was found, in ten-thousandths of a rupee.
pub(crate) type PricedSignal = (ListedSignal, i64);

impl Store {
    /// Publishes the signals of a date in their ranked order. They were found among the given
    /// number of symbols. Returns false, and writes nothing, if the date was published before.
    pub(crate) fn publish_signals(
        &self,
        epoch: Epoch,
        on: Date,
        published_ms: i64,
        symbols: usize,
        signals: Vec<PricedSignal>,
    ) -> Result<bool> {
        self.write(Write::leading(epoch), move |tx| {
            if tx.run(PUBLISH_DATE, &args![on, published_ms, symbols])? == 0 {
                return Ok(false);
            }
            let ranked = (1_u32..).zip(&signals);
            let rows = ranked.map(|(rank, signal)| signal_args(on, signal, rank.into()));
            tx.run_each(PUBLISH_SIGNAL, rows)?;
            Ok(true)
        })
    }

    /// First and last date that was published.
    pub fn signal_dates(&self) -> Result<Option<(Date, Date)>> {
        self.read(PAGE_DEADLINE_MS, |tx| {
            let earliest = tx.first(FIRST_DATE, &[], |row| row.get(0))?;
            Ok(earliest.zip(tx.first(LAST_DATE, &[], |row| row.get(0))?))
        })
    }

    /// Every date that was published, oldest first.
    pub(crate) fn published_dates(&self) -> Result<Vec<Date>> {
        self.read(PAGE_DEADLINE_MS, |tx| tx.all(DATES, &[], |row| row.get(0)))
    }

    /// A date's signals in their published order.
    pub(crate) fn signals_of(&self, on: Date) -> Result<Vec<ListedSignal>> {
        self.read(PAGE_DEADLINE_MS, move |tx| {
            let ranked = |row: &dyn Cells| Ok((row.get::<u32>(10)?, signal(row, false)?));
            let mut found = tx.all(OF_DATE, &args![on], ranked)?;
            found.sort_by_key(|(rank, _)| *rank);
            Ok(found.into_iter().map(|(_, signal)| signal).collect())
        })
    }

    /// A page of the ledger after the entry `after`.
    pub fn ledger(&self, after: i64, limit: usize) -> Result<Vec<LedgerEntry>> {
        self.read(PAGE_DEADLINE_MS, move |tx| {
            tx.all(LEDGER, &args![after, limit], |row| entry(row, false))
        })
    }

    /// Records provisional signals of the running date before they are shown, each once. Returns
    /// how many were new.
    pub(crate) fn keep_provisional(
        &self,
        epoch: Epoch,
        on: Date,
        seen_ms: i64,
        signals: Vec<PricedSignal>,
    ) -> Result<usize> {
        self.write(Write::leading(epoch), move |tx| {
            let rows = signals.iter().map(|signal| signal_args(on, signal, seen_ms.into()));
            Ok(tx.run_each(KEEP_PROVISIONAL, rows)? as usize)
        })
    }

    /// A page of the ledger of provisional signals after the entry `after`.
    pub fn provisional_ledger(&self, after: i64, limit: usize) -> Result<Vec<ProvisionalEntry>> {
        self.read(PAGE_DEADLINE_MS, move |tx| {
            tx.all(PROVISIONAL_LEDGER, &args![after, limit], provisional)
        })
    }

    /// Records the outcomes of signals, or of provisional ones. An outcome that exists is not
    /// overwritten.
    pub(crate) fn keep_outcomes(
        &self,
        epoch: Epoch,
        provisional: bool,
        outcomes: Vec<(i64, SignalOutcome)>,
    ) -> Result<()> {
        let keep = if provisional { KEEP_PROVISIONAL_OUTCOME } else { KEEP_OUTCOME };
        self.write(Write::leading(epoch), move |tx| {
            let rows = outcomes.iter().map(|(id, outcome)| {
                let SignalOutcome { judged_on, from_close_e4, to_close_e4, hit, universe } =
                    *outcome;
                let (symbols, moved) = universe.unzip();
                args![*id, judged_on, from_close_e4, to_close_e4, hit, symbols, moved]
            });
            tx.run_each(keep, rows).map(drop)
        })
    }
}

/// The columns of both ledgers, which differ in the tenth: the rank, or the time of the first look.
fn signal_args<'a>(
    on: Date,
    (signal, price_e4): &'a PricedSignal,
    tenth: Arg<'a>,
) -> [Arg<'a>; 14] {
    let (signals, hits) = signal.past.unzip();
    args![
        on,
        &signal.symbol,
        &signal.pattern,
        signal.direction,
        signal.confidence,
        signal.samples,
        signal.date_hit_rate,
        signal.base_rate,
        *price_e4,
        tenth,
        signal.simulated,
        signal.prior_dates,
        signals,
        hits,
    ]
}

fn signal(row: &dyn Cells, provisional: bool) -> Result<ListedSignal, Failure> {
    let signals = row.get::<Option<u32>>(13)?;
    let hits = row.get(14)?;
    Ok(record!(row, 2, ListedSignal [
        symbol, pattern, direction, confidence, samples, date_hit_rate, base_rate,
    ]
        simulated: row.get(11)?,
        prior_dates: row.get(12)?,
        past: signals.zip(hits),
        provisional,
    ))
}

fn entry(row: &dyn Cells, provisional: bool) -> Result<LedgerEntry, Failure> {
    Ok(LedgerEntry {
        id: row.get(0)?,
        on: row.get(1)?,
        signal: signal(row, provisional)?,
        price_e4: row.get(9)?,
        outcome: outcome_if_any(row)?,
        has_candle: row.get(21)?,
    })
}

fn provisional(row: &dyn Cells) -> Result<ProvisionalEntry, Failure> {
    let completion = match (row.get(22)?, row.get(23)?) {
        (false, _) => Completion::Unknown,
        (true, false) => Completion::Vanished,
        (true, true) => Completion::Confirmed,
    };
    Ok(ProvisionalEntry { entry: entry(row, true)?, first_seen_ms: row.get(10)?, completion })
}

/// Reads the outcome, if there is one.
fn outcome_if_any(row: &dyn Cells) -> Result<Option<SignalOutcome>, Failure> {
    let Some(hit) = row.get::<Option<bool>>(18)? else { return Ok(None) };
    Ok(Some(SignalOutcome {
        judged_on: row.get(15)?,
        from_close_e4: row.get(16)?,
        to_close_e4: row.get(17)?,
        universe: row.get::<Option<u32>>(19)?.zip(row.get(20)?),
        hit,
    }))
}
