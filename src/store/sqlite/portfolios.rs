//! Holdings, positions, times of sync and points of the trend. Runs on the store's threads, within
//! a transaction.

use std::collections::HashMap;

use jiff::civil::Date;
use rusqlite::{Connection, Row, params};

use super::accounts::expect_user;
use super::columns::{
    all, broker, damaged, date, date_if_any, decimal, decimal_if_any, digits, digits_if_any, named,
    run,
};
use super::condition::Failure;
use super::{cleaning, closing_prices};
use crate::base::{
    ActionSign, Broker, Cost, Holding, Mark, Position, PositionKind, Symbol, Synced,
};
use crate::portfolio::{DayPoint, PointSource, Repriced, SyncOutcome};
use crate::store::limits::ROWS_MAX;
use crate::store::traits::Derive;
use crate::store::{AccountId, Before, Deleted, Portfolio, StoreError, SyncState};

const SYNCS: &str = include_str!("../../../sql/store/syncs.sql");
const HOLDINGS: &str = include_str!("../../../sql/store/holdings.sql");
const POSITIONS: &str = include_str!("../../../sql/store/positions.sql");
const DROP_HOLDINGS: &str = include_str!("../../../sql/store/drop_holdings.sql");
const DROP_POSITIONS: &str = include_str!("../../../sql/store/drop_positions.sql");
const ADD_HOLDING: &str = include_str!("../../../sql/store/add_holding.sql");
const ADD_POSITION: &str = include_str!("../../../sql/store/add_position.sql");
const REPRICE_HOLDING: &str = include_str!("../../../sql/store/reprice_holding.sql");
const KEEP_SYNC: &str = include_str!("../../../sql/store/keep_sync.sql");
const KEEP_POINT: &str = include_str!("../../../sql/store/keep_point.sql");
const POINTS: &str = include_str!("../../../sql/store/points.sql");
const DELETE_HOLDINGS: &str = include_str!("../../../sql/store/delete_holdings.sql");
const DELETE_POSITIONS: &str = include_str!("../../../sql/store/delete_positions.sql");
const DELETE_POINTS: &str = include_str!("../../../sql/store/delete_points.sql");
const DELETE_SYNCS: &str = include_str!("../../../sql/store/delete_syncs.sql");

pub(crate) fn replace(
    connection: &Connection,
    id: AccountId,
    broker: Broker,
    synced_ms: i64,
    synced: &Synced,
    closes_of: Option<Date>,
    derive: &Derive,
) -> Result<SyncOutcome, Failure> {
    for (what, count) in
        [("holdings", synced.holdings.len()), ("positions", synced.positions.len())]
    {
        if count > ROWS_MAX {
            return Err(StoreError::TooMany { what, limit: ROWS_MAX }.into());
        }
    }
    expect_user(connection, id)?;
    let portfolio = of(connection, id)?;
    let rows = portfolio.holdings.iter().chain(&synced.holdings);
    let closes = match closes_of {
        Some(date) => {
            closing_prices::of_symbols(connection, date, rows.filter_map(Holding::symbol))?
        }
        None => HashMap::new(),
    };
    let before = Before { portfolio, closes };
    let derived = derive(&before, synced);
    let whose = params![id.0, broker.as_str()];
    run(connection, DROP_HOLDINGS, whose)?;
    run(connection, DROP_POSITIONS, whose)?;
    for (ordinal, holding) in (0i64..).zip(&derived.holdings) {
        add_holding(connection, id, broker, ordinal, holding)?;
    }
    for (ordinal, position) in (0i64..).zip(&synced.positions) {
        add_position(connection, id, broker, ordinal, position)?;
    }
    reprice(connection, id, &derived.repriced)?;
    run(connection, KEEP_SYNC, params![id.0, broker.as_str(), synced_ms, synced.simulated])?;
    keep_point(connection, id, &derived.point)?;
    Ok(derived.outcome)
}

/// Everything stored from a user's syncs.
pub(crate) fn of(connection: &Connection, id: AccountId) -> Result<Portfolio, Failure> {
    Ok(Portfolio {
        holdings: all(connection, HOLDINGS, [id.0], holding)?,
        positions: all(connection, POSITIONS, [id.0], position)?,
        syncs: all(connection, SYNCS, [id.0], |row| {
            Ok(SyncState {
                broker: broker(row, 0)?,
                synced_ms: row.get(1)?,
                simulated: row.get(2)?,
            })
        })?,
    })
}

fn holding(row: &Row<'_>) -> Result<Holding, Failure> {
    Ok(Holding {
        broker: broker(row, 0)?,
        exchange: row.get(1)?,
        tradingsymbol: row.get(2)?,
        isin: row.get(3)?,
        settled_quantity: decimal(row, 4)?,
        t1_quantity: decimal(row, 5)?,
        pledged_quantity: decimal(row, 6)?,
        mtf_quantity: decimal(row, 7)?,
        disputed_quantity: decimal(row, 8)?,
        cost: cost(row)?,
        last_price: decimal_if_any(row, 12)?,
        close_price: decimal_if_any(row, 13)?,
        as_of_ms: row.get(14)?,
        broker_pnl: decimal_if_any(row, 15)?,
        discrepancy: row.get(16)?,
        unresolved: row.get(17)?,
        mark: mark(row)?,
    })
}

fn cost(row: &Row<'_>) -> Result<Option<Cost>, Failure> {
    let (average, cost) = (decimal_if_any(row, 9)?, decimal_if_any(row, 10)?);
    Ok(match (cost, decimal_if_any(row, 11)?) {
        (Some(cost), Some(quantity)) => Some(Cost::Part { quantity, cost }),
        (Some(cost), None) => Some(Cost::Total(cost)),
        (None, _) => average.map(Cost::PerShare),
    })
}

fn mark(row: &Row<'_>) -> Result<Option<Mark>, Failure> {
    let Some(word) = row.get_ref(18)?.as_str_or_null().map_err(rusqlite::Error::from)? else {
        return Ok(None);
    };
    let sign = ActionSign::parse(word).ok_or_else(|| damaged("a mark"))?;
    Ok(date_if_any(row, 19)?.map(|on| Mark { on, sign }))
}

fn position(row: &Row<'_>) -> Result<Position, Failure> {
    Ok(Position {
        broker: broker(row, 0)?,
        kind: named(row, 1, PositionKind::parse, "a kind of position")?,
        exchange: row.get(2)?,
        tradingsymbol: row.get(3)?,
        product: row.get(4)?,
        quantity: decimal(row, 5)?,
        multiplier: decimal(row, 6)?,
        average_price: decimal_if_any(row, 7)?,
        last_price: decimal_if_any(row, 8)?,
        close_price: decimal_if_any(row, 9)?,
        pnl: decimal_if_any(row, 10)?,
        realised: decimal_if_any(row, 11)?,
        unrealised: decimal_if_any(row, 12)?,
        unresolved: row.get(13)?,
    })
}

fn add_holding(
    connection: &Connection,
    id: AccountId,
    broker: Broker,
    ordinal: i64,
    holding: &Holding,
) -> Result<(), Failure> {
    let symbol = holding.symbol();
    let (average, cost, costed) = match holding.cost {
        Some(Cost::PerShare(average)) => (Some(average), None, None),
        Some(Cost::Total(cost)) => (None, Some(cost), None),
        Some(Cost::Part { quantity, cost }) => (None, Some(cost), Some(quantity)),
        None => (None, None, None),
    };
    let row = params![
        id.0,
        broker.as_str(),
        ordinal,
        holding.exchange,
        holding.tradingsymbol,
        symbol.as_ref().map(Symbol::as_str),
        holding.isin,
        digits(holding.settled_quantity),
        digits(holding.t1_quantity),
        digits(holding.pledged_quantity),
        digits(holding.mtf_quantity),
        digits(holding.disputed_quantity),
        digits_if_any(average),
        digits_if_any(cost),
        digits_if_any(costed),
        digits_if_any(holding.last_price),
        digits_if_any(holding.close_price),
        holding.as_of_ms,
        digits_if_any(holding.broker_pnl),
        holding.discrepancy,
        holding.unresolved,
        holding.mark.map(|mark| mark.sign.as_str()),
        holding.mark.map(|mark| mark.on.to_string()),
    ];
    run(connection, ADD_HOLDING, row).map(drop)
}

/// Writes prices and marks into stored rows.
pub(crate) fn reprice(
    connection: &Connection,
    id: AccountId,
    repriced: &Repriced,
) -> Result<(), Failure> {
    // Each broker's rows are numbered from 0 in their order.
    let mut ordinals: HashMap<Broker, i64> = HashMap::new();
    let mut changed = repriced.changed.iter().copied().peekable();
    for (index, row) in repriced.holdings.iter().enumerate() {
        let next = ordinals.entry(row.broker).or_default();
        let ordinal = *next;
        *next += 1;
        if changed.next_if_eq(&index).is_some() {
            let row = params![
                id.0,
                row.broker.as_str(),
                ordinal,
                digits_if_any(row.last_price),
                digits_if_any(row.close_price),
                row.as_of_ms,
                row.mark.map(|mark| mark.sign.as_str()),
                row.mark.map(|mark| mark.on.to_string()),
            ];
            run(connection, REPRICE_HOLDING, row)?;
        }
    }
    Ok(())
}

fn add_position(
    connection: &Connection,
    id: AccountId,
    broker: Broker,
    ordinal: i64,
    position: &Position,
) -> Result<(), Failure> {
    let row = params![
        id.0,
        broker.as_str(),
        ordinal,
        position.kind.as_str(),
        position.exchange,
        position.tradingsymbol,
        position.product,
        digits(position.quantity),
        digits(position.multiplier),
        digits_if_any(position.average_price),
        digits_if_any(position.last_price),
        digits_if_any(position.close_price),
        digits_if_any(position.pnl),
        digits_if_any(position.realised),
        digits_if_any(position.unrealised),
        position.unresolved,
    ];
    run(connection, ADD_POSITION, row).map(drop)
}

pub(crate) fn keep_point(
    connection: &Connection,
    id: AccountId,
    point: &DayPoint,
) -> Result<(), Failure> {
    let row = params![
        id.0,
        point.date.to_string(),
        digits(point.total_invested),
        digits(point.total_current_value),
        digits(point.total_pnl),
        digits_if_any(point.value_without_cost),
        point.source.as_str(),
        point.left_out,
        point.carried,
        point.suspect,
    ];
    run(connection, KEEP_POINT, row).map(drop)
}

pub(crate) fn points(
    connection: &Connection,
    id: AccountId,
    since: Date,
) -> Result<Vec<DayPoint>, Failure> {
    all(connection, POINTS, params![id.0, since.to_string()], |row| {
        Ok(DayPoint {
            date: date(row, 0)?,
            total_invested: decimal(row, 1)?,
            total_current_value: decimal(row, 2)?,
            total_pnl: decimal(row, 3)?,
            value_without_cost: decimal_if_any(row, 4)?,
            source: named(row, 5, PointSource::parse, "a point's source")?,
            left_out: row.get(6)?,
            carried: row.get(7)?,
            suspect: row.get(8)?,
        })
    })
}

pub(crate) fn delete(connection: &Connection, id: AccountId) -> Result<Deleted, Failure> {
    let deleted = |sql| run(connection, sql, [id.0]).map(|rows| rows as u64);
    deleted(DELETE_SYNCS)?;
    let all = Deleted {
        holdings: deleted(DELETE_HOLDINGS)?,
        positions: deleted(DELETE_POSITIONS)?,
        pnl_snapshots: deleted(DELETE_POINTS)?,
    };
    if all != Deleted::default() {
        cleaning::count(connection)?;
    }
    Ok(all)
}
