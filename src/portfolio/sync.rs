//! Derives from a sync the rows to write (the new ones marked and dated, the other broker's at the
//! last close), the day's point, and the outcome for the user.
//!
//! Pure: the same input gives the same result, so a store that has to repeat its transaction may
//! call it twice.

use std::collections::HashMap;

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::{Account, ClosingPrice, Holding, MarketDay, Position, Symbol, Synced, clock};
use crate::portfolio::close::{StoredCloses, date_prices, reprice};
use crate::portfolio::corporate_actions::mark;
use crate::portfolio::day_point::{Accounts, DayPoint, MadeOf, PointSource, count, point};
use crate::portfolio::matching::paired;
use crate::portfolio::outcome::{SyncOutcome, diff};

/// Rows that got other prices or marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repriced {
    /// All rows of the repriced brokers, in their stored order.
    pub holdings: Vec<Holding>,
    /// Indices of the changed rows, ascending.
    pub changed: Vec<usize>,
}

/// The stored rows of both brokers when a sync begins to write.
#[derive(Clone, Copy, Debug)]
pub struct Stood<'a> {
    /// The brokers that were synced before.
    pub accounts: Accounts,
    pub holdings: &'a [Holding],
    pub positions: &'a [Position],
    /// The stored closing prices of the last close.
    pub closes: &'a HashMap<Symbol, ClosingPrice>,
    /// Those of the trading date before that of which prices are now.
    pub closes_before: &'a HashMap<Symbol, ClosingPrice>,
}

/// The rows that a sync writes, and its outcome for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived {
    pub point: DayPoint,
    /// The broker's new rows.
    pub holdings: Vec<Holding>,
    /// The other broker's rows.
    pub repriced: Repriced,
    pub outcome: SyncOutcome,
}

/// Marks the new rows of `broker`, puts both brokers' rows at the last close while it stands,
/// values the whole portfolio on that date, and compares the new rows with those they replace.
pub fn derive(account: Account, day: &MarketDay, stood: Stood<'_>, synced: &Synced) -> Derived {
    let (own, others): (Vec<&Holding>, Vec<&Holding>) = stood
        .holdings
        .iter()
        .partition(|row| row.account == account);
    let mut holdings = synced.holdings.clone();
    let pairs = paired(&own, &holdings);
    let closes = StoredCloses {
        of_date: stood.closes,
        before: stood.closes_before,
    };
    let bases = date_prices(&mut holdings, day, closes);
    mark(&own, &mut holdings, &pairs, &bases, day);
    let mut repriced = Repriced {
        holdings: others.into_iter().cloned().collect(),
        changed: Vec::new(),
    };
    let close_of = |symbol: &Symbol| stood.closes.get(symbol).copied();
    if let Some(close) = day.last_close {
        let date = clock::zoned(close).date();
        reprice(&mut holdings, date, close_of);
        repriced.changed = reprice(&mut repriced.holdings, date, close_of);
    }
    let positions_before: Vec<&Position> = stood
        .positions
        .iter()
        .filter(|row| row.account == account)
        .collect();
    let diff = diff(&own, &holdings, &pairs);
    let mut outcome = SyncOutcome::new(&diff, &holdings, &positions_before, &synced.positions);
    let rows = repriced.holdings.iter().chain(&holdings);
    let has_close = |row: &Holding| row.symbol().is_some_and(|held| close_of(&held).is_some());
    let source = if is_at_close(day, rows.clone(), has_close) {
        PointSource::Close
    } else {
        PointSource::Sync
    };
    let accounts = stood.accounts.iter().chain([account]).collect();
    let point = point(day, source, accounts, rows.clone(), has_close).unwrap_or_else(|overflow| {
        // The sync's own amounts were checked, so only a damaged row of the other broker can
        // overflow.
        outcome.unvalued = Some(overflow);
        unvalued(day.today, accounts, rows)
    });
    Derived {
        point,
        holdings,
        repriced,
        outcome,
    }
}

/// Whether every price is today's closing price. Then the sync writes the point that the
/// revaluation would.
fn is_at_close<'a>(
    day: &MarketDay,
    holdings: impl Iterator<Item = &'a Holding>,
    has_close: impl Fn(&Holding) -> bool,
) -> bool {
    let is_evening = day
        .last_close
        .is_some_and(|close| clock::zoned(close).date() == day.today);
    let mut priced = holdings.filter(|row| row.last_price.is_some()).peekable();
    is_evening && priced.peek().is_some() && priced.all(has_close)
}

/// The point of a portfolio that cannot be valued.
pub(crate) fn unvalued<'a>(
    date: Date,
    accounts: Accounts,
    holdings: impl Iterator<Item = &'a Holding> + Clone,
) -> DayPoint {
    let discrepancies = count(holdings.clone().filter(|row| row.discrepancy).count());
    let holdings = count(holdings.count());
    DayPoint {
        date,
        total_invested: Decimal::ZERO,
        total_current_value: Decimal::ZERO,
        total_pnl: Decimal::ZERO,
        value_without_cost: Some(Decimal::ZERO),
        source: PointSource::Sync,
        left_out: holdings,
        carried: 0,
        suspect: true,
        made_of: Some(MadeOf {
            accounts,
            holdings,
            discrepancies,
        }),
    }
}

#[cfg(test)]
#[path = "sync_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "base_price_tests.rs"]
mod base_price_tests;
