//! What a sync writes: the new rows marked and dated, the other broker's rows at the last close,
//! and the day's point; and what its user is told.
//!
//! Pure: the same input gives the same result, so a store that has to repeat its transaction may
//! call it twice.

use std::collections::HashMap;

use jiff::civil::Date;
use rust_decimal::Decimal;

use super::close::{date_back, date_back_unmoved, reprice};
use super::corporate_actions::mark;
use super::day_point::{Brokers, DayPoint, MadeOf, PointSource, count, point};
use super::diff::diff;
use super::matching::paired;
use super::outcome::SyncOutcome;
use crate::base::{Broker, ClosingPrice, Holding, MarketDay, Position, Symbol, Synced, ist};

/// Rows that got other prices or marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repriced {
    /// All rows of the brokers in it, in their stored order.
    pub holdings: Vec<Holding>,
    /// Which of them changed, in order.
    pub changed: Vec<usize>,
}

/// What stands in the store of both brokers when a sync begins to write.
#[derive(Clone, Copy, Debug)]
pub struct Stood<'a> {
    /// Those that were synced before.
    pub brokers: Brokers,
    pub holdings: &'a [Holding],
    pub positions: &'a [Position],
    /// The closing prices that are kept of the last close.
    pub closes: &'a HashMap<Symbol, ClosingPrice>,
}

/// What a sync writes, and what its user is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived {
    pub point: DayPoint,
    /// The broker's new rows.
    pub holdings: Vec<Holding>,
    /// Rows of the other broker.
    pub repriced: Repriced,
    pub outcome: SyncOutcome,
}

/// Marks the new rows of `broker`, puts both brokers' rows at the last close while it stands,
/// values the whole portfolio of the date, and compares the new rows with those they replace.
pub fn derive(broker: Broker, day: &MarketDay, stood: Stood<'_>, synced: &Synced) -> Derived {
    let (own, others): (Vec<&Holding>, Vec<&Holding>) =
        stood.holdings.iter().partition(|row| row.broker == broker);
    let mut holdings = synced.holdings.clone();
    let pairs = paired(&own, &holdings);
    mark(&own, &mut holdings, &pairs, day.today);
    let mut repriced =
        Repriced { holdings: others.into_iter().cloned().collect(), changed: Vec::new() };
    let close_of = |symbol: &Symbol| stood.closes.get(symbol).copied();
    if let Some(close) = day.last_close {
        let date = ist::zoned(close).date();
        date_back(&mut holdings, close, day.session);
        reprice(&mut holdings, date, close_of);
        repriced.changed = reprice(&mut repriced.holdings, date, close_of);
    } else if let Some(close) = day.close_before_open {
        date_back_unmoved(&mut holdings, close, close_of);
    }
    let positions_before: Vec<&Position> =
        stood.positions.iter().filter(|row| row.broker == broker).collect();
    let diff = diff(&own, &holdings, &pairs);
    let mut outcome = SyncOutcome::new(&diff, &holdings, &positions_before, &synced.positions);
    let rows = repriced.holdings.iter().chain(&holdings);
    let has_close = |row: &Holding| row.symbol().is_some_and(|held| close_of(&held).is_some());
    let source = if is_at_close(day, rows.clone(), has_close) {
        PointSource::Close
    } else {
        PointSource::Sync
    };
    let brokers = stood.brokers.iter().chain([broker]).collect();
    let point = point(day, source, brokers, rows.clone(), has_close).unwrap_or_else(|overflow| {
        // What a sync brings was checked, so only a damaged row of the other broker can do this.
        outcome.unvalued = Some(overflow);
        unvalued(day.today, brokers, rows)
    });
    Derived { point, holdings, repriced, outcome }
}

/// Whether every price is the closing price of today: what the revaluation writes, an evening's
/// sync writes then as well.
fn is_at_close<'a>(
    day: &MarketDay,
    holdings: impl Iterator<Item = &'a Holding>,
    has_close: impl Fn(&Holding) -> bool,
) -> bool {
    let is_evening = day.last_close.is_some_and(|close| ist::zoned(close).date() == day.today);
    let mut priced = holdings.filter(|row| row.last_price.is_some()).peekable();
    is_evening && priced.peek().is_some() && priced.all(has_close)
}

fn unvalued<'a>(
    date: Date,
    brokers: Brokers,
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
        made_of: Some(MadeOf { brokers, holdings, discrepancies }),
    }
}

#[cfg(test)]
#[path = "sync_tests.rs"]
mod tests;
