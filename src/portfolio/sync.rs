//! What a sync writes: the new rows marked and dated, the other broker's rows at the last close,
//! and the day's point. Pure: of the same input it makes the same, so that a store may ask twice.

use std::collections::HashMap;

use jiff::civil::Date;
use rust_decimal::Decimal;

use super::close::{date_back, reprice};
use super::corporate_actions::mark;
use super::day_point::{DayPoint, PointSource, point};
use crate::base::{
    Broker, ClosingPrice, Holding, MarketDay, Position, PositionKind, Symbol, Synced, ist,
};

/// Rows that got other prices or marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repriced {
    /// All rows of the brokers in it, in their stored order.
    pub holdings: Vec<Holding>,
    /// Which of them changed, in order.
    pub changed: Vec<usize>,
}

/// Rows written by a sync: holdings, and positions that are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub holdings: usize,
    pub net_positions: usize,
    pub day_positions: usize,
}

/// What a sync writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived {
    pub point: DayPoint,
    /// The broker's new rows.
    pub holdings: Vec<Holding>,
    /// Rows of the other broker.
    pub repriced: Repriced,
    pub counts: Counts,
}

/// Marks the new rows of `broker`, puts both brokers' rows at the last close while it stands, and
/// values the whole portfolio of the date. `stood` are the rows of both brokers before the sync,
/// `closes` the closing prices that are kept.
pub fn derive(
    broker: Broker,
    day: &MarketDay,
    stood: &[Holding],
    closes: &HashMap<Symbol, ClosingPrice>,
    synced: &Synced,
) -> Derived {
    let (own, others): (Vec<&Holding>, Vec<&Holding>) =
        stood.iter().partition(|row| row.broker == broker);
    let mut holdings = synced.holdings.clone();
    mark(&own, &mut holdings, day.today);
    let mut repriced =
        Repriced { holdings: others.into_iter().cloned().collect(), changed: Vec::new() };
    let close_of = |symbol: &Symbol| closes.get(symbol).copied();
    if let Some(close) = day.last_close {
        let date = ist::zoned(close).date();
        date_back(&mut holdings, close, day.session);
        reprice(&mut holdings, date, close_of);
        repriced.changed = reprice(&mut repriced.holdings, date, close_of);
    }
    let rows = repriced.holdings.iter().chain(&holdings);
    let has_close = |row: &Holding| row.symbol().is_some_and(|held| close_of(&held).is_some());
    let point = point(day, PointSource::Sync, rows.clone(), has_close).unwrap_or_else(|overflow| {
        // What a sync brings was checked, so only a damaged row of the other broker can do this.
        tracing::error!(%overflow, "a portfolio could not be valued");
        unvalued(day.today, rows.count())
    });
    let counts = Counts {
        holdings: holdings.len(),
        net_positions: open_positions(&synced.positions, PositionKind::Net),
        day_positions: open_positions(&synced.positions, PositionKind::Day),
    };
    Derived { point, holdings, repriced, counts }
}

/// Open positions of one list.
pub fn open_positions<'a>(
    positions: impl IntoIterator<Item = &'a Position>,
    kind: PositionKind,
) -> usize {
    let open = |row: &&Position| row.kind == kind && !row.quantity.is_zero();
    positions.into_iter().filter(open).count()
}

fn unvalued(date: Date, holdings: usize) -> DayPoint {
    DayPoint {
        date,
        total_invested: Decimal::ZERO,
        total_current_value: Decimal::ZERO,
        total_pnl: Decimal::ZERO,
        value_without_cost: Some(Decimal::ZERO),
        source: PointSource::Sync,
        left_out: u32::try_from(holdings).unwrap_or(u32::MAX),
        carried: 0,
        suspect: true,
    }
}
