//! Candles of the universe, and the ledger of published signals. Runs on the store's threads,
//! within a transaction.
//!
//! The ledger is append-only: triggers of the schema refuse to change or delete an entry.

use jiff::civil::Date;
use rusqlite::{Connection, Row, params};

use super::columns::{all, date, date_if_any, first, named, run, symbol};
use super::condition::Failure;
use super::ledger_columns::{basis, direction, outcome_if_any};
use super::provisional_signals;
use super::store::{PAGE_DEADLINE_MS, READ_DEADLINE_MS, SqliteStore};
use crate::base::{Candle, Source, Symbol};
use crate::store::traits::SignalStore;
use crate::store::{
    CandleHistory, LedgerEntry, NewHistory, ProvisionalEntry, ProvisionalSignal, PublishedSignal,
    SignalOutcome, SplitSuspicion, StoreError, StoredCandles,
};

const CANDLES: &str = include_str!("../../../sql/store/candles.sql");
const KEEP_CANDLE: &str = include_str!("../../../sql/store/keep_candle.sql");
const FORGET_CANDLES: &str = include_str!("../../../sql/store/forget_candles.sql");
const HISTORY: &str = include_str!("../../../sql/store/candle_history.sql");
const HISTORIES: &str = include_str!("../../../sql/store/candle_histories.sql");
const KEEP_HISTORY: &str = include_str!("../../../sql/store/keep_candle_history.sql");
const REFETCH: &str = include_str!("../../../sql/store/refetch_candles.sql");
const SUSPICIONS: &str = include_str!("../../../sql/store/split_suspicions.sql");
const KEEP_SUSPICION: &str = include_str!("../../../sql/store/keep_split_suspicion.sql");
const FORGET_SUSPICIONS: &str = include_str!("../../../sql/store/forget_split_suspicions.sql");
const PUBLISH_DATE: &str = include_str!("../../../sql/store/publish_signal_date.sql");
const PUBLISH_SIGNAL: &str = include_str!("../../../sql/store/publish_signal.sql");
const LAST_DATE: &str = include_str!("../../../sql/store/last_signal_date.sql");
const FIRST_DATE: &str = include_str!("../../../sql/store/first_signal_date.sql");
const DATES: &str = include_str!("../../../sql/store/published_signal_dates.sql");
const OF_DATE: &str = include_str!("../../../sql/store/signals_of_date.sql");
const LEDGER: &str = include_str!("../../../sql/store/signal_ledger.sql");
const KEEP_OUTCOME: &str = include_str!("../../../sql/store/keep_signal_outcome.sql");

/// Rows of `candle_histories` read at a time.
const HISTORIES_PAGE: usize = 1_000;
/// Sorts after every possible date.
const AFTER_ALL: &str = "9999-12-31~";

impl SignalStore for SqliteStore {
    fn candle_histories(&self) -> Result<Vec<CandleHistory>, StoreError> {
        self.read(PAGE_DEADLINE_MS, histories)
    }

    fn candle_history(
        &self,
        symbol: &Symbol,
        max: usize,
    ) -> Result<Option<StoredCandles>, StoreError> {
        let symbol = symbol.clone();
        self.read(READ_DEADLINE_MS, move |file| newest_candles(file, &symbol, max))
    }

    fn candles(&self, symbol: &Symbol) -> Result<Vec<Candle>, StoreError> {
        let symbol = symbol.clone();
        self.read(PAGE_DEADLINE_MS, move |file| candles(file, &symbol))
    }

    fn replace_candles(&self, history: NewHistory) -> Result<(), StoreError> {
        self.write(PAGE_DEADLINE_MS, move |file| replace(file, &history))
    }

    fn append_candles(
        &self,
        symbol: &Symbol,
        candles: Vec<Candle>,
        keep_from: Date,
    ) -> Result<(), StoreError> {
        let symbol = symbol.clone();
        self.write(PAGE_DEADLINE_MS, move |file| {
            keep(file, &symbol, &candles)?;
            run(file, FORGET_CANDLES, params![symbol.as_str(), keep_from.to_string()]).map(drop)
        })
    }

    fn want_refetch(&self, symbol: &Symbol, suspected: Option<Date>) -> Result<(), StoreError> {
        let symbol = symbol.clone();
        self.write(PAGE_DEADLINE_MS, move |file| {
            if let Some(date) = suspected {
                let row = params![symbol.as_str(), date.to_string(), false];
                run(file, KEEP_SUSPICION, row)?;
            }
            run(file, REFETCH, [symbol.as_str()]).map(drop)
        })
    }

    fn publish_signals(
        &self,
        on: Date,
        published_ms: i64,
        symbols: usize,
        signals: Vec<PublishedSignal>,
    ) -> Result<bool, StoreError> {
        self.write(PAGE_DEADLINE_MS, move |file| {
            let row = params![on.to_string(), published_ms, symbols as i64];
            if run(file, PUBLISH_DATE, row)? == 0 {
                return Ok(false);
            }
            signals.iter().try_for_each(|signal| publish(file, on, signal))?;
            Ok(true)
        })
    }

    fn signal_dates(&self) -> Result<Option<(Date, Date)>, StoreError> {
        self.read(PAGE_DEADLINE_MS, |file| {
            let earliest = first(file, FIRST_DATE, [], |row| date(row, 0))?;
            Ok(earliest.zip(first(file, LAST_DATE, [], |row| date(row, 0))?))
        })
    }

    fn published_dates(&self) -> Result<Vec<Date>, StoreError> {
        self.read(PAGE_DEADLINE_MS, |file| all(file, DATES, [], |row| date(row, 0)))
    }

    fn signals_of(&self, on: Date) -> Result<Vec<PublishedSignal>, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |file| {
            let mut found = all(file, OF_DATE, [on.to_string()], published)?;
            found.sort_by_key(|signal| signal.rank);
            Ok(found)
        })
    }

    fn ledger(&self, after: i64, limit: usize) -> Result<Vec<LedgerEntry>, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |file| {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            all(file, LEDGER, [after, limit], |row| {
                let (signal, outcome) = (published(row)?, outcome_if_any(row)?);
                let has_candle = row.get(21)?;
                Ok(LedgerEntry { id: row.get(0)?, on: date(row, 1)?, signal, outcome, has_candle })
            })
        })
    }

    fn keep_outcomes(&self, outcomes: Vec<(i64, SignalOutcome)>) -> Result<(), StoreError> {
        self.write(PAGE_DEADLINE_MS, move |file| {
            let keep = |(id, outcome): &_| keep_outcome(file, KEEP_OUTCOME, *id, outcome);
            outcomes.iter().try_for_each(keep)
        })
    }

    fn keep_provisional(
        &self,
        on: Date,
        seen_ms: i64,
        signals: Vec<ProvisionalSignal>,
    ) -> Result<usize, StoreError> {
        self.write(PAGE_DEADLINE_MS, move |file| {
            provisional_signals::keep(file, on, seen_ms, &signals)
        })
    }

    fn provisional_ledger(
        &self,
        after: i64,
        limit: usize,
    ) -> Result<Vec<ProvisionalEntry>, StoreError> {
        self.read(PAGE_DEADLINE_MS, move |file| provisional_signals::page(file, after, limit))
    }

    fn keep_provisional_outcomes(
        &self,
        outcomes: Vec<(i64, SignalOutcome)>,
    ) -> Result<(), StoreError> {
        self.write(PAGE_DEADLINE_MS, move |file| {
            outcomes.iter().try_for_each(|(id, outcome)| {
                keep_outcome(file, provisional_signals::KEEP_OUTCOME, *id, outcome)
            })
        })
    }
}

fn histories(file: &Connection) -> Result<Vec<CandleHistory>, Failure> {
    let mut found: Vec<CandleHistory> = Vec::new();
    loop {
        let after = found.last().map_or(String::new(), |last| last.symbol.as_str().to_owned());
        let page = all(file, HISTORIES, params![after, HISTORIES_PAGE as i64], |row| {
            let symbol = symbol(row, 0)?;
            let last = row.get::<_, Option<String>>(4)?.is_some().then(|| date(row, 4));
            Ok(CandleHistory {
                source: named(row, 1, source, "a source")?,
                simulated: row.get(2)?,
                refetch: row.get(3)?,
                last: last.transpose()?,
                suspicions: suspicions(file, &symbol)?,
                symbol,
            })
        })?;
        let is_last = page.len() < HISTORIES_PAGE;
        found.extend(page);
        if is_last {
            return Ok(found);
        }
    }
}

fn suspicions(file: &Connection, symbol: &Symbol) -> Result<Vec<SplitSuspicion>, Failure> {
    all(file, SUSPICIONS, [symbol.as_str()], |row| {
        Ok(SplitSuspicion { date: date(row, 0)?, confirmed: row.get(1)? })
    })
}

fn candles(file: &Connection, symbol: &Symbol) -> Result<Vec<Candle>, Failure> {
    all(file, CANDLES, [symbol.as_str()], |row| candle(row, date(row, 0)?, 1))
}

/// The candle of `date` whose prices begin in the column `at`.
fn candle(row: &Row<'_>, date: Date, at: usize) -> Result<Candle, Failure> {
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
fn newest_candles(
    file: &Connection,
    symbol: &Symbol,
    max: usize,
) -> Result<Option<StoredCandles>, Failure> {
    let limit = i64::try_from(max).unwrap_or(i64::MAX);
    let mut rows = all(file, HISTORY, params![symbol.as_str(), limit], |row| {
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

fn keep(file: &Connection, symbol: &Symbol, candles: &[Candle]) -> Result<(), Failure> {
    for candle in candles {
        let Candle { date, open_e4, high_e4, low_e4, close_e4, volume } = candle;
        let date = date.to_string();
        let row = params![symbol.as_str(), date, open_e4, high_e4, low_e4, close_e4, volume];
        run(file, KEEP_CANDLE, row)?;
    }
    Ok(())
}

fn replace(file: &Connection, history: &NewHistory) -> Result<(), Failure> {
    let symbol = history.symbol.as_str();
    run(file, FORGET_CANDLES, params![symbol, AFTER_ALL])?;
    keep(file, &history.symbol, &history.candles)?;
    run(file, KEEP_HISTORY, params![symbol, history.source.as_str(), history.simulated])?;
    run(file, FORGET_SUSPICIONS, [symbol])?;
    for suspicion in &history.suspicions {
        let row = params![symbol, suspicion.date.to_string(), suspicion.confirmed];
        run(file, KEEP_SUSPICION, row)?;
    }
    Ok(())
}

fn publish(file: &Connection, on: Date, signal: &PublishedSignal) -> Result<(), Failure> {
    let row = params![
        on.to_string(),
        signal.symbol.as_str(),
        signal.pattern,
        direction(signal.bullish),
        signal.confidence,
        signal.basis.dates,
        signal.basis.date_hit_rate,
        signal.basis.base_rate,
        signal.close_e4,
        signal.rank,
        signal.simulated,
        signal.basis.prior_dates,
        signal.basis.signals_and_hits.map(|(signals, _)| signals),
        signal.basis.signals_and_hits.map(|(_, hits)| hits),
    ];
    run(file, PUBLISH_SIGNAL, row).map(drop)
}

fn published(row: &Row<'_>) -> Result<PublishedSignal, Failure> {
    Ok(PublishedSignal {
        symbol: symbol(row, 2)?,
        pattern: row.get(3)?,
        bullish: row.get::<_, String>(4)? == "bullish",
        confidence: row.get(5)?,
        basis: basis(row)?,
        close_e4: row.get(9)?,
        rank: row.get(10)?,
        simulated: row.get(11)?,
    })
}

fn keep_outcome(
    file: &Connection,
    sql: &str,
    id: i64,
    outcome: &SignalOutcome,
) -> Result<(), Failure> {
    let SignalOutcome { judged_on, from_close_e4, to_close_e4, hit, universe } = outcome;
    let (symbols, moved) = universe.unzip();
    let row = params![id, judged_on.to_string(), from_close_e4, to_close_e4, hit, symbols, moved];
    run(file, sql, row).map(drop)
}

fn source(word: &str) -> Option<Source> {
    [Source::BrokerA, Source::Public].into_iter().find(|source| source.as_str() == word)
}
