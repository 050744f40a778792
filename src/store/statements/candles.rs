//! Daily candles of the universe, and what is known of each history. Runs on the store's threads,
//! within a transaction.

use jiff::civil::Date;

use super::columns::{date, date_if_any, named, symbol as symbol_at};
use crate::base::{Candle, Source, Symbol};
use crate::store::tx::{Arg, Cells, Failure, Sql, Tx, args, sql};
use crate::store::{CandleHistory, NewHistory, SplitSuspicion, StoredCandles};

const CANDLES: Sql = sql!("sql/store/candles.sql");
const KEEP_CANDLE: Sql = sql!("sql/store/keep_candle.sql");
const FORGET_CANDLES: Sql = sql!("sql/store/forget_candles.sql");
const HISTORY: Sql = sql!("sql/store/candle_history.sql");
const HISTORIES: Sql = sql!("sql/store/candle_histories.sql");
const KEEP_HISTORY: Sql = sql!("sql/store/keep_candle_history.sql");
const REFETCH: Sql = sql!("sql/store/refetch_candles.sql");
const SUSPICIONS: Sql = sql!("sql/store/split_suspicions.sql");
const KEEP_SUSPICION: Sql = sql!("sql/store/keep_split_suspicion.sql");
const FORGET_SUSPICIONS: Sql = sql!("sql/store/forget_split_suspicions.sql");

/// Rows of `candle_histories` read at a time.
const HISTORIES_PAGE: usize = 1_000;
/// Sorts after every possible date.
const AFTER_ALL: &str = "9999-12-31~";

/// All histories, in order of symbol.
pub(crate) fn histories(tx: &dyn Tx) -> Result<Vec<CandleHistory>, Failure> {
    let mut found: Vec<CandleHistory> = Vec::new();
    loop {
        let last = found.last().map_or("", |last| last.symbol.as_str());
        let mut page = tx.all(HISTORIES, &args![last, HISTORIES_PAGE], history)?;
        let symbols: Vec<Vec<Arg<'_>>> =
            page.iter().map(|history| args![history.symbol.as_str().to_owned()].into()).collect();
        tx.query_many(SUSPICIONS, &symbols, &mut |at, row| {
            let suspicion = SplitSuspicion { date: date(row, 0)?, confirmed: row.get(1)? };
            page[at].suspicions.push(suspicion);
            Ok(())
        })?;
        let is_last = page.len() < HISTORIES_PAGE;
        found.append(&mut page);
        if is_last {
            return Ok(found);
        }
    }
}

/// Reads a history without its suspicions.
fn history(row: &dyn Cells) -> Result<CandleHistory, Failure> {
    Ok(CandleHistory {
        symbol: symbol_at(row, 0)?,
        source: named(row, 1, source, "a source")?,
        simulated: row.get(2)?,
        refetch: row.get(3)?,
        last: date_if_any(row, 4)?,
        suspicions: Vec::new(),
    })
}

/// A symbol's candles, oldest first.
pub(crate) fn of(tx: &dyn Tx, symbol: &Symbol) -> Result<Vec<Candle>, Failure> {
    tx.all(CANDLES, &args![symbol], |row| candle(row, date(row, 0)?, 1))
}

/// The candle of `date` whose prices begin in the column `at`.
fn candle(row: &dyn Cells, date: Date, at: usize) -> Result<Candle, Failure> {
    Ok(Candle {
        date,
        open_e4: row.get(at)?,
        high_e4: row.get(at + 1)?,
        low_e4: row.get(at + 2)?,
        close_e4: row.get(at + 3)?,
        volume: row.get(at + 4)?,
    })
}

/// One statement, so that candles and what is known of them are of one state.
pub(crate) fn newest(
    tx: &dyn Tx,
    symbol: &Symbol,
    max: usize,
) -> Result<Option<StoredCandles>, Failure> {
    let mut rows = tx.all(HISTORY, &args![symbol, max], |row| {
        let about = (named(row, 0, source, "a source")?, row.get(1)?, row.get(2)?);
        // A history may have no candles yet.
        let candle = date_if_any(row, 3)?.map(|date| candle(row, date, 4)).transpose()?;
        Ok((about, candle))
    })?;
    rows.reverse();
    let Some(((source, simulated, refetch), _)) = rows.first() else { return Ok(None) };
    Ok(Some(StoredCandles {
        source: *source,
        simulated: *simulated,
        refetch: *refetch,
        candles: rows.into_iter().filter_map(|(_, candle)| candle).collect(),
    }))
}

/// Replaces the stored history of a symbol.
pub(crate) fn replace(tx: &dyn Tx, history: &NewHistory) -> Result<(), Failure> {
    let symbol = &history.symbol;
    tx.run(FORGET_CANDLES, &args![symbol, AFTER_ALL])?;
    keep(tx, symbol, &history.candles)?;
    tx.run(KEEP_HISTORY, &args![symbol, history.source.as_str(), history.simulated])?;
    tx.run(FORGET_SUSPICIONS, &args![symbol])?;
    let suspicions = history.suspicions.iter();
    let suspicions = suspicions.map(|found| args![symbol, found.date, found.confirmed].into());
    tx.run_many(KEEP_SUSPICION, &suspicions.collect::<Vec<_>>()).map(drop)
}

/// Appends sessions after the last stored one, and drops candles before `keep_from`.
pub(crate) fn append(
    tx: &dyn Tx,
    symbol: &Symbol,
    candles: &[Candle],
    keep_from: Date,
) -> Result<(), Failure> {
    keep(tx, symbol, candles)?;
    tx.run(FORGET_CANDLES, &args![symbol, keep_from]).map(drop)
}

fn keep(tx: &dyn Tx, symbol: &Symbol, candles: &[Candle]) -> Result<(), Failure> {
    let rows = candles.iter().map(|candle| {
        let Candle { date, open_e4, high_e4, low_e4, close_e4, volume } = *candle;
        args![symbol, date, open_e4, high_e4, low_e4, close_e4, volume].into()
    });
    tx.run_many(KEEP_CANDLE, &rows.collect::<Vec<_>>()).map(drop)
}

/// Marks a symbol's candles as not to be used until all are fetched again.
pub(crate) fn want_refetch(
    tx: &dyn Tx,
    symbol: &Symbol,
    suspected: Option<Date>,
) -> Result<(), Failure> {
    if let Some(date) = suspected {
        tx.run(KEEP_SUSPICION, &args![symbol, date, false])?;
    }
    tx.run(REFETCH, &args![symbol]).map(drop)
}

fn source(word: &str) -> Option<Source> {
    [Source::BrokerA, Source::Public].into_iter().find(|source| source.as_str() == word)
}
