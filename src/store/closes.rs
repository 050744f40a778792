//! The revaluation at the close of a trading day: closing prices, progress of the run, pages of
//! users. A user of whom nothing is waited for is marked, and a sync that brings a symbol without a
//! closing price takes the mark away: then the finished run goes on for that user. Only the leader
//! writes, with its epoch: the store answers `Deposed` if another node has led since.

use jiff::civil::Date;

use crate::base::{ClosingPrice, Symbol};
use crate::portfolio::{DayPoint, Repriced};
use crate::store::account_id::AccountId;
use crate::store::arg::args;
use crate::store::columns::{at, columns};
use crate::store::errors::Result;
use crate::store::open::Store;
use crate::store::portfolios::{self, CLOSE, Portfolio};
use crate::store::tx::{Failure, Tx, statements};
use crate::store::write::{Epoch, PAGE_DEADLINE_MS, Write};

/// Most holdings in one page of users, since a larger page would delay other writes. A single
/// user's holdings are read whatever their number.
const PAGE_ROWS_MAX: usize = 20_000;

columns! {
    const CLOSE_OF_SYMBOL = [..CLOSE, symbol];
}

statements! {
    const CLOSE_RUN = "SELECT 1 FROM close_runs WHERE date = ?1";
    const FINISH_CLOSE_RUN = "\
INSERT INTO close_runs (date, finished_ms) VALUES (?1, ?2)
ON CONFLICT (date) DO UPDATE SET finished_ms = excluded.finished_ms";
    const NEXT_HELD_SYMBOL = "\
SELECT symbol FROM holdings WHERE symbol IS NOT NULL AND symbol > ?1 ORDER BY symbol LIMIT 1";
    const FORGET_CLOSES = "DELETE FROM closes WHERE date < ?1";
    const HOLDERS_AFTER = "\
SELECT id FROM users
WHERE id > ?1 AND EXISTS (SELECT 1 FROM holdings WHERE user_id = users.id)
    AND NOT EXISTS (SELECT 1 FROM closed_portfolios WHERE user_id = users.id AND date >= ?2)
ORDER BY id LIMIT ?3";
    const LAST_SYNCED = "SELECT max(synced_ms) FROM syncs WHERE user_id = ?1";
    const KEEP_LATER_POINTS = "\
UPDATE points SET total_invested = ?3, total_current_value = ?4, total_pnl = ?5,
    value_without_cost = ?6, left_out = ?7, carried = CASE WHEN date < ?8 THEN ?9 ELSE ?10 END,
    suspect = suspect OR ?11, brokers = ?12, holdings = ?13, discrepancies = ?14
WHERE user_id = ?1 AND date > ?2";
    const KEEP_CLOSED_PORTFOLIO = "\
INSERT INTO closed_portfolios (user_id, date) VALUES (?1, ?2)
ON CONFLICT (user_id) DO UPDATE SET date = excluded.date";
    const SILENT_SYMBOLS =
        "SELECT symbol FROM silent_symbols WHERE symbol > ?1 ORDER BY symbol LIMIT ?2";
    const KEEP_SILENT_SYMBOL = "\
INSERT INTO silent_symbols (symbol, date) VALUES (?1, ?2)
ON CONFLICT (symbol) DO UPDATE SET date = excluded.date";
    const FORGET_SILENT_SYMBOLS = "DELETE FROM silent_symbols WHERE date < ?1";
    const KEEP_CLOSE = "\
INSERT INTO closes (date, symbol, price, previous_close, as_of_ms, official, base_ratio)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (date, symbol) DO UPDATE SET price = excluded.price,
    previous_close = excluded.previous_close, as_of_ms = excluded.as_of_ms,
    official = excluded.official, base_ratio = excluded.base_ratio";
    const CLOSES =
        ["SELECT ", CLOSE_OF_SYMBOL.sql, " FROM closes WHERE date = ?1 ORDER BY symbol"];
}

/// A user's portfolio, valued at a close. It is written only if the portfolio has not changed
/// since: a sync or a deletion may have come in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Valued {
    pub id: AccountId,
    /// The latest `synced_ms` of the portfolio that was valued.
    pub synced_ms: i64,
    pub point: DayPoint,
    /// Whether the point of the close's date is written. It is not if the portfolio came on a later
    /// date, after the close was finished.
    pub writes_point: bool,
    pub repriced: Repriced,
    /// Points of later dates, if any, get the same totals. In those from this date on, every
    /// holding with a price counts as carried.
    pub next_session: Date,
    /// Number of holdings with a price.
    pub priced: u32,
    /// Whether no more closing prices are expected, so that the value is final.
    pub is_complete: bool,
}

/// A symbol with its closing price.
pub(crate) type PriceOfClose = (Symbol, ClosingPrice);

/// A page of the users whose portfolios are not yet completely valued at a close.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClosePage {
    pub portfolios: Vec<(AccountId, Portfolio)>,
    /// Whether more users follow.
    pub more: bool,
}

impl Store {
    /// Whether the revaluation at the close of `date` is finished.
    pub fn is_closed(&self, date: Date) -> Result<bool> {
        self.read(PAGE_DEADLINE_MS, move |tx| {
            Ok(tx.first(CLOSE_RUN, &args![date], |_| Ok(()))?.is_some())
        })
    }

    /// Distinct symbols of stored holdings, after `after`, in order, at most `limit`. Needs one
    /// index step per symbol, however many users hold it.
    pub(crate) fn held_symbols(&self, after: Option<&Symbol>, limit: usize) -> Result<Vec<Symbol>> {
        let after = after.cloned();
        self.read(PAGE_DEADLINE_MS, move |tx| {
            let mut found: Vec<Symbol> = Vec::new();
            while found.len() < limit {
                let last = found.last().or(after.as_ref()).map_or("", Symbol::as_str);
                let next = tx.first(NEXT_HELD_SYMBOL, &args![last], |row| row.get(0))?;
                let Some(next) = next else { break };
                found.push(next);
            }
            Ok(found)
        })
    }

    /// Symbols without a closing price on the last date that was closed, after `after`, in order,
    /// at most `limit`.
    pub(crate) fn silent_symbols(
        &self,
        after: Option<&Symbol>,
        limit: usize,
    ) -> Result<Vec<Symbol>> {
        let after = after.map_or("", Symbol::as_str).to_owned();
        self.read(PAGE_DEADLINE_MS, move |tx| {
            tx.all(SILENT_SYMBOLS, &args![&after, limit], |row| row.get(0))
        })
    }

    /// Stores closing prices of a date.
    pub(crate) fn keep_closes(
        &self,
        epoch: Epoch,
        date: Date,
        prices: &[PriceOfClose],
    ) -> Result<()> {
        let prices = prices.to_vec();
        self.write(Write::leading(epoch), move |tx| {
            let rows = prices.iter().map(|(symbol, close)| {
                let ClosingPrice {
                    price,
                    previous_close,
                    as_of_ms,
                    official,
                    base_ratio,
                } = *close;
                let ratio = base_ratio.map(|ratio| ratio.0);
                args![
                    date,
                    symbol,
                    price,
                    previous_close,
                    as_of_ms,
                    official,
                    ratio
                ]
            });
            tx.run_each(KEEP_CLOSE, rows).map(drop)
        })
    }

    /// All stored closing prices of a date.
    pub fn closes(&self, date: Date) -> Result<Vec<PriceOfClose>> {
        self.read(PAGE_DEADLINE_MS, move |tx| {
            tx.all(CLOSES, &args![date], |row| {
                Ok((row.get(at!(CLOSE_OF_SYMBOL.symbol))?, portfolios::close(row)?))
            })
        })
    }

    /// Portfolios of the next users after `after` with holdings that are not completely valued at
    /// the close of `date`, in order of id, at most `limit`.
    pub fn portfolios_to_close(
        &self,
        date: Date,
        after: AccountId,
        limit: usize,
    ) -> Result<ClosePage> {
        self.read(PAGE_DEADLINE_MS, move |tx| {
            let holders = tx.all(HOLDERS_AFTER, &args![after, date, limit], |row| row.get(0))?;
            let mut page = ClosePage {
                more: holders.len() >= limit,
                portfolios: Vec::new(),
            };
            let mut rows = 0;
            for id in holders {
                if rows >= PAGE_ROWS_MAX {
                    page.more = true;
                    break;
                }
                let portfolio = portfolios::of(tx, id)?;
                rows += portfolio.holdings.len();
                page.portfolios.push((id, portfolio));
            }
            Ok(page)
        })
    }

    /// Writes closing prices into the rows of these portfolios, and the points of `date`, in one
    /// transaction. A later point of a date replaces an earlier one. Writes nothing for a user who
    /// was deleted, or whose portfolio was deleted or synced meanwhile.
    pub(crate) fn keep_points(&self, epoch: Epoch, date: Date, points: Vec<Valued>) -> Result<()> {
        let users = points.iter().map(|valued| valued.id);
        self.write(Write::leading(epoch).of(users), move |tx| {
            for valued in &points {
                let last = tx
                    .first(LAST_SYNCED, &args![valued.id], |row| row.get(0))?
                    .flatten();
                if last != Some(valued.synced_ms) {
                    continue;
                }
                portfolios::reprice(tx, valued.id, &valued.repriced)?;
                if valued.writes_point {
                    portfolios::keep_point(tx, valued.id, &valued.point)?;
                }
                keep_later_points(tx, valued)?;
                portfolios::count_write(tx, valued.id)?;
                if valued.is_complete {
                    tx.run(KEEP_CLOSED_PORTFOLIO, &args![valued.id, date])?;
                }
            }
            Ok(())
        })
    }

    /// Finishes the revaluation of `date`. The symbols in `silent` had no closing price.
    pub(crate) fn finish_close(
        &self,
        epoch: Epoch,
        date: Date,
        finished_ms: i64,
        silent: Vec<Symbol>,
    ) -> Result<()> {
        self.write(Write::leading(epoch), move |tx| {
            tx.run_each(KEEP_SILENT_SYMBOL, silent.iter().map(|symbol| args![symbol, date]))?;
            tx.run(FORGET_SILENT_SYMBOLS, &args![date])?;
            tx.run(FORGET_CLOSES, &args![date])?;
            tx.run(FINISH_CLOSE_RUN, &args![date, finished_ms])
                .map(drop)
        })
    }
}

/// Points of later dates without trading of their own are based on this close too.
fn keep_later_points(tx: &dyn Tx, valued: &Valued) -> Result<(), Failure> {
    let Valued {
        id,
        point,
        next_session,
        priced,
        ..
    } = valued;
    let row = &args![
        *id,
        point.date,
        point.total_invested,
        point.total_current_value,
        point.total_pnl,
        point.value_without_cost,
        point.left_out,
        *next_session,
        point.carried,
        *priced,
        point.suspect,
        point.made_of.map(|made| made.accounts),
        point.made_of.map(|made| made.holdings),
        point.made_of.map(|made| made.discrepancies),
    ];
    tx.run(KEEP_LATER_POINTS, row).map(drop)
}
