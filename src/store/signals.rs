//! The ledger of published signals, and their outcomes.
//!
//! The ledger is append-only: triggers of the schema refuse to change or delete an entry. Only
//! the leader writes, with its epoch: the store answers `Deposed` if another node has led since.

use jiff::civil::Date;

use crate::signals::ListedSignal;
use crate::store::Epoch;
use crate::store::arg::{Arg, args};
use crate::store::cells::Cells;
use crate::store::columns::{at, columns, record, values};
use crate::store::errors::Result;
use crate::store::open::Store;
use crate::store::tx::{Failure, statements};
use crate::store::write::{PAGE_DEADLINE_MS, Write};

columns! {
    /// What the ledger has of a signal.
    const SIGNAL = [
        "published_on" as on, symbol, pattern, direction, confidence, "dates" as samples,
        date_hit_rate, base_rate, simulated, prior_dates, past_signals, past_hits,
    ];
    const RANKED = [..SIGNAL, rank];
    /// An entry of the ledger `s`, with its outcome `o` if there is one.
    const ENTRY = [
        ..SIGNAL, id, "close_e4" as price_e4, judged_on, from_close_e4, to_close_e4, hit,
        universe_symbols, universe_moved,
        "o.hit IS NOT NULL OR EXISTS (
            SELECT 1 FROM candles c WHERE c.symbol = s.symbol AND c.date = s.published_on
        )" as has_candle,
    ];
}

statements! {
    const PUBLISH_DATE = "\
INSERT INTO signal_dates (date, published_ms, symbols) VALUES (?1, ?2, ?3)
ON CONFLICT (date) DO NOTHING";
    const PUBLISH_SIGNAL = ["\
INSERT INTO signal_ledger (close_e4, rank, ", SIGNAL.sql, ")
VALUES (?1, ?2, ", SIGNAL.parameters(3), ")"];
    const LAST_DATE = "SELECT date FROM signal_dates WHERE date > '' ORDER BY date DESC LIMIT 1";
    const FIRST_DATE = "SELECT date FROM signal_dates WHERE date > '' ORDER BY date LIMIT 1";
    const DATES = "SELECT date FROM signal_dates WHERE date > '' ORDER BY date";
    const OF_DATE = ["SELECT ", RANKED.sql, " FROM signal_ledger WHERE published_on = ?1"];
    const LEDGER = ["SELECT ", ENTRY.sql, "
FROM signal_ledger s LEFT JOIN signal_outcomes o ON o.ledger_id = s.id
WHERE s.id > ?1 ORDER BY s.id LIMIT ?2"];
    const KEEP_OUTCOME = "\
INSERT INTO signal_outcomes (ledger_id, judged_on, from_close_e4, to_close_e4, hit,
    universe_symbols, universe_moved)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (ledger_id) DO NOTHING";
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
    /// Close of its date, in ten-thousandths of a rupee.
    pub price_e4: i64,
    pub outcome: Option<SignalOutcome>,
    /// Whether the signal can be judged: it has an outcome, or its candle is stored.
    pub has_candle: bool,
}

/// A signal, and the close of its date, in ten-thousandths of a rupee.
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
            let rows = ranked.map(|(rank, signal)| signal_args(on, signal, rank));
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
            let rank = |row: &dyn Cells| row.get::<u32>(at!(RANKED.rank));
            let ranked = |row: &dyn Cells| Ok((rank(row)?, signal(row)?));
            let mut found = tx.all(OF_DATE, &args![on], ranked)?;
            found.sort_by_key(|(rank, _)| *rank);
            Ok(found.into_iter().map(|(_, signal)| signal).collect())
        })
    }

    /// A page of the ledger after the entry `after`.
    pub fn ledger(&self, after: i64, limit: usize) -> Result<Vec<LedgerEntry>> {
        self.read(PAGE_DEADLINE_MS, move |tx| tx.all(LEDGER, &args![after, limit], entry))
    }

    /// Records the outcomes of signals. An outcome that exists is not overwritten.
    pub(crate) fn keep_outcomes(
        &self,
        epoch: Epoch,
        outcomes: Vec<(i64, SignalOutcome)>,
    ) -> Result<()> {
        self.write(Write::leading(epoch), move |tx| {
            let rows = outcomes.iter().map(|(id, outcome)| {
                let SignalOutcome {
                    judged_on,
                    from_close_e4,
                    to_close_e4,
                    hit,
                    universe,
                } = *outcome;
                let (symbols, moved) = universe.unzip();
                args![
                    *id,
                    judged_on,
                    from_close_e4,
                    to_close_e4,
                    hit,
                    symbols,
                    moved
                ]
            });
            tx.run_each(KEEP_OUTCOME, rows).map(drop)
        })
    }
}

/// The arguments of an entry: the price, the rank, the signal.
fn signal_args<'a>(on: Date, (signal, price_e4): &'a PricedSignal, rank: u32) -> Vec<Arg<'a>> {
    let (signals, hits) = signal.past.unzip();
    let written = values!(SIGNAL {
        on: on,
        symbol: &signal.symbol,
        pattern: &signal.pattern,
        direction: signal.direction,
        confidence: signal.confidence,
        samples: signal.samples,
        date_hit_rate: signal.date_hit_rate,
        base_rate: signal.base_rate,
        simulated: signal.simulated,
        prior_dates: signal.prior_dates,
        past_signals: signals,
        past_hits: hits,
    });
    [Arg::from(*price_e4), Arg::from(rank)]
        .into_iter()
        .chain(written)
        .collect()
}

fn signal(row: &dyn Cells) -> Result<ListedSignal, Failure> {
    let signals = row.get::<Option<u32>>(at!(SIGNAL.past_signals))?;
    let hits = row.get(at!(SIGNAL.past_hits))?;
    Ok(record!(row of SIGNAL, ListedSignal [
        symbol, pattern, direction, confidence, samples, date_hit_rate, base_rate, simulated,
        prior_dates,
    ]
        past: signals.zip(hits),
    ))
}

fn entry(row: &dyn Cells) -> Result<LedgerEntry, Failure> {
    let signal = signal(row)?;
    let outcome = outcome_if_any(row)?;
    Ok(record!(row of ENTRY, LedgerEntry [id, on, price_e4, has_candle] signal, outcome))
}

/// Reads the outcome, if there is one.
fn outcome_if_any(row: &dyn Cells) -> Result<Option<SignalOutcome>, Failure> {
    let Some(hit) = row.get::<Option<bool>>(at!(ENTRY.hit))? else {
        return Ok(None);
    };
    let symbols = row.get::<Option<u32>>(at!(ENTRY.universe_symbols))?;
    let moved = row.get(at!(ENTRY.universe_moved))?;
    Ok(Some(
        record!(row of ENTRY, SignalOutcome [judged_on, from_close_e4, to_close_e4]
            universe: symbols.zip(moved),
            hit,
        ),
    ))
}
