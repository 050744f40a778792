//! Daily candles of the universe, and the state of each history.

use jiff::civil::Date;

use crate::base::{Candle, Source, Symbol};
use crate::store::Epoch;
use crate::store::arg::args;
use crate::store::cells::Cells;
use crate::store::columns::{at, columns, record};
use crate::store::errors::Result;
use crate::store::open::Store;
use crate::store::tx::{Failure, Tx, statements};
use crate::store::write::{PAGE_DEADLINE_MS, READ_DEADLINE_MS, Write};

/// Rows of `candle_histories` read at a time.
const HISTORIES_PAGE: usize = 1_000;
/// Sorts after every possible date.
const AFTER_ALL: &str = "9999-12-31~";

columns! {
    const CANDLE = [date, open_e4, high_e4, low_e4, close_e4, volume];
    /// A history with a candle, or with none.
    const HISTORY_ROW = [
        ..CANDLE,
        source,
        simulated,
        "refetch OR EXISTS (
            SELECT 1 FROM split_suspicions s WHERE s.symbol = h.symbol AND NOT s.confirmed
        )" as suspect,
    ];
    const HISTORY_STATE = [
        symbol, source, simulated, refetch,
        "(SELECT max(c.date) FROM candles c WHERE c.symbol = h.symbol)" as last,
    ];
    const SUSPICION = [date, confirmed, base_e4];
}

statements! {
    const CANDLES = ["SELECT ", CANDLE.sql, " FROM candles WHERE symbol = ?1 ORDER BY date"];
    const NEWEST_CANDLES =
        ["SELECT ", CANDLE.sql, " FROM candles WHERE symbol = ?1 ORDER BY date DESC LIMIT ?2"];
    const KEEP_CANDLE = "\
INSERT INTO candles (symbol, date, open_e4, high_e4, low_e4, close_e4, volume)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    const FORGET_CANDLES = "DELETE FROM candles WHERE symbol = ?1 AND date < ?2";
    const HISTORY = ["SELECT ", HISTORY_ROW.sql, "
FROM candle_histories h LEFT JOIN candles c ON c.symbol = h.symbol
WHERE h.symbol = ?1 ORDER BY c.date DESC LIMIT ?2"];
    const HISTORIES = ["SELECT ", HISTORY_STATE.sql, "
FROM candle_histories h WHERE symbol > ?1 ORDER BY symbol LIMIT ?2"];
    const KEEP_HISTORY = "\
INSERT INTO candle_histories (symbol, source, simulated, refetch) VALUES (?1, ?2, ?3, FALSE)
ON CONFLICT (symbol) DO UPDATE
SET source = excluded.source, simulated = excluded.simulated, refetch = FALSE";
    const REFETCH = "UPDATE candle_histories SET refetch = TRUE WHERE symbol = ?1";
    const SUSPICIONS =
        ["SELECT ", SUSPICION.sql, " FROM split_suspicions WHERE symbol = ?1 ORDER BY date"];
    const KEEP_SUSPICION = "\
INSERT INTO split_suspicions (symbol, date, confirmed, base_e4) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (symbol, date)
DO UPDATE SET confirmed = split_suspicions.confirmed OR excluded.confirmed,
    base_e4 = coalesce(excluded.base_e4, split_suspicions.base_e4)";
    const FORGET_SUSPICIONS = "DELETE FROM split_suspicions WHERE symbol = ?1";
}

/// A symbol's stored history, without the candles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandleHistory {
    pub symbol: Symbol,
    /// The source of all candles.
    pub source: Source,
    pub simulated: bool,
    /// Whether the candles cannot be trusted until all are fetched again.
    pub refetch: bool,
    /// Date of the newest candle.
    pub last: Option<Date>,
    pub suspicions: Vec<SplitSuspicion>,
}

/// A symbol's newest candles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredCandles {
    /// The source of all candles.
    pub source: Source,
    pub simulated: bool,
    /// Whether the candles cannot be trusted: all are to be fetched again, or a day among them
    /// looks like one before which they are not adjusted.
    pub suspect: bool,
    /// Oldest first.
    pub candles: Vec<Candle>,
}

/// A date before which the candles look as if they were not adjusted for a corporate action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitSuspicion {
    pub date: Date,
    /// Whether so many sessions have passed since that no pattern looks back over it.
    pub confirmed: bool,
    /// The exchange's base price of the date, in ten-thousandths, if it is known.
    pub base_e4: Option<i64>,
}

/// A whole history that replaces the stored one.
#[derive(Clone, Debug)]
pub struct NewHistory {
    pub symbol: Symbol,
    pub source: Source,
    pub simulated: bool,
    /// Ascending.
    pub candles: Vec<Candle>,
    pub suspicions: Vec<SplitSuspicion>,
}

impl Store {
    /// The stored history of every symbol, without candles, in order of symbol.
    pub fn candle_histories(&self) -> Result<Vec<CandleHistory>> {
        self.read(PAGE_DEADLINE_MS, |tx| {
            let mut found: Vec<CandleHistory> = Vec::new();
            loop {
                let last = found.last().map_or("", |last| last.symbol.as_str());
                let mut page = tx.all(HISTORIES, &args![last, HISTORIES_PAGE], history)?;
                let of_page: Vec<Symbol> = page.iter().map(|found| found.symbol.clone()).collect();
                let symbols = of_page.iter().map(|symbol| args![symbol]);
                tx.query_each(SUSPICIONS, symbols, |at, row| {
                    let suspicion = record!(row of SUSPICION, SplitSuspicion [
                        date, confirmed, base_e4,
                    ]);
                    page[at].suspicions.push(suspicion);
                    Ok(())
                })?;
                let is_last = page.len() < HISTORIES_PAGE;
                found.append(&mut page);
                if is_last {
                    return Ok(found);
                }
            }
        })
    }

    /// A symbol's newest candles, at most `max`, with the state of the whole history; `None` if
    /// nothing is stored.
    pub(crate) fn candle_history(
        &self,
        symbol: &Symbol,
        max: usize,
    ) -> Result<Option<StoredCandles>> {
        let symbol = symbol.clone();
        self.read(READ_DEADLINE_MS, move |tx| {
            // One statement, so that the candles and the history's state belong together.
            let mut rows = tx.all(HISTORY, &args![&symbol, max], |row| {
                let candles = Vec::new();
                let about = record!(row of HISTORY_ROW, StoredCandles [
                    source, simulated, suspect,
                ] candles);
                // A history may have no candles yet.
                let date: Option<Date> = row.get(at!(HISTORY_ROW.date))?;
                Ok((about, date.map(|date| candle_of(date, row)).transpose()?))
            })?;
            rows.reverse();
            let Some((about, _)) = rows.first().cloned() else {
                return Ok(None);
            };
            let candles = rows.into_iter().filter_map(|(_, candle)| candle).collect();
            Ok(Some(StoredCandles { candles, ..about }))
        })
    }

    /// A symbol's candles, oldest first.
    pub fn candles(&self, symbol: &Symbol) -> Result<Vec<Candle>> {
        let symbol = symbol.clone();
        self.read(PAGE_DEADLINE_MS, move |tx| tx.all(CANDLES, &args![&symbol], candle))
    }

    /// The newest candles of these symbols, at most `max` each, oldest first.
    pub(crate) fn newest_candles(
        &self,
        symbols: Vec<Symbol>,
        max: usize,
    ) -> Result<Vec<(Symbol, Vec<Candle>)>> {
        self.read(PAGE_DEADLINE_MS, move |tx| {
            let mut found: Vec<(Symbol, Vec<Candle>)> = symbols
                .iter()
                .map(|symbol| (symbol.clone(), Vec::new()))
                .collect();
            let wanted = symbols.iter().map(|symbol| args![symbol, max]);
            tx.query_each(NEWEST_CANDLES, wanted, |at, row| {
                found[at].1.push(candle(row)?);
                Ok(())
            })?;
            found.iter_mut().for_each(|(_, candles)| candles.reverse());
            Ok(found)
        })
    }

    /// Replaces the stored history of a symbol.
    pub fn replace_candles(&self, epoch: Epoch, history: NewHistory) -> Result<()> {
        self.write(Write::leading(epoch), move |tx| {
            let NewHistory {
                symbol,
                source,
                simulated,
                candles,
                suspicions,
            } = &history;
            tx.run(FORGET_CANDLES, &args![symbol, AFTER_ALL])?;
            keep(tx, symbol, candles)?;
            tx.run(KEEP_HISTORY, &args![symbol, *source, *simulated])?;
            tx.run(FORGET_SUSPICIONS, &args![symbol])?;
            let suspicions = suspicions
                .iter()
                .map(|found| args![symbol, found.date, found.confirmed, found.base_e4]);
            tx.run_each(KEEP_SUSPICION, suspicions).map(drop)
        })
    }

    /// Appends sessions after the last stored one, and drops candles before `keep_from`.
    pub(crate) fn append_candles(
        &self,
        epoch: Epoch,
        symbol: &Symbol,
        candles: Vec<Candle>,
        keep_from: Date,
    ) -> Result<()> {
        let symbol = symbol.clone();
        self.write(Write::leading(epoch), move |tx| {
            keep(tx, &symbol, &candles)?;
            tx.run(FORGET_CANDLES, &args![&symbol, keep_from]).map(drop)
        })
    }

    /// Marks a symbol's candles as unusable until all are fetched again.
    pub fn want_refetch(
        &self,
        epoch: Epoch,
        symbol: &Symbol,
        suspected: Option<SplitSuspicion>,
    ) -> Result<()> {
        let symbol = symbol.clone();
        self.write(Write::leading(epoch), move |tx| {
            if let Some(SplitSuspicion {
                date,
                confirmed,
                base_e4,
            }) = suspected
            {
                tx.run(KEEP_SUSPICION, &args![&symbol, date, confirmed, base_e4])?;
            }
            tx.run(REFETCH, &args![&symbol]).map(drop)
        })
    }
}

/// Reads a history without its suspicions.
fn history(row: &dyn Cells) -> Result<CandleHistory, Failure> {
    let suspicions = Vec::new();
    Ok(record!(row of HISTORY_STATE, CandleHistory [
        symbol, source, simulated, refetch, last,
    ] suspicions))
}

fn candle(row: &dyn Cells) -> Result<Candle, Failure> {
    candle_of(row.get(at!(CANDLE.date))?, row)
}

/// The candle of `date` in a row that begins with the columns of [`CANDLE`].
fn candle_of(date: Date, row: &dyn Cells) -> Result<Candle, Failure> {
    Ok(record!(row of CANDLE, Candle [open_e4, high_e4, low_e4, close_e4, volume] date))
}

fn keep(tx: &dyn Tx, symbol: &Symbol, candles: &[Candle]) -> Result<(), Failure> {
    let rows = candles.iter().map(|candle| {
        let Candle {
            date,
            open_e4,
            high_e4,
            low_e4,
            close_e4,
            volume,
        } = *candle;
        args![symbol, date, open_e4, high_e4, low_e4, close_e4, volume]
    });
    tx.run_each(KEEP_CANDLE, rows).map(drop)
}
