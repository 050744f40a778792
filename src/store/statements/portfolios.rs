//! Holdings, positions, times of sync and points of the trend. Runs on the store's threads, within
//! a transaction.

use std::collections::HashMap;

use jiff::civil::Date;

use super::accounts::expect_user;
use super::columns::{broker, date, date_if_any, decimal, decimal_if_any, named};
use crate::base::{ActionSign, Broker, Cost, Holding, Mark, Position, PositionKind};
use crate::portfolio::{Brokers, DayPoint, MadeOf, PointSource, Repriced, SyncOutcome};
use crate::store::records::ROWS_MAX;
use crate::store::statements::eod;
use crate::store::tx::{Arg, Cells, Failure, Sql, Tx, args, damaged, sql};
use crate::store::{AccountId, Before, Deleted, NewPortfolio, Portfolio, StoreError, SyncState};

const SYNCS: Sql = sql!("sql/store/syncs.sql");
const HOLDINGS: Sql = sql!("sql/store/holdings.sql");
const POSITIONS: Sql = sql!("sql/store/positions.sql");
const DROP_HOLDINGS: Sql = sql!("sql/store/drop_holdings.sql");
const DROP_POSITIONS: Sql = sql!("sql/store/drop_positions.sql");
const ADD_HOLDING: Sql = sql!("sql/store/add_holding.sql");
const ADD_POSITION: Sql = sql!("sql/store/add_position.sql");
const REPRICE_HOLDING: Sql = sql!("sql/store/reprice_holding.sql");
const KEEP_SYNC: Sql = sql!("sql/store/keep_sync.sql");
const KEEP_POINT: Sql = sql!("sql/store/keep_point.sql");
const POINTS: Sql = sql!("sql/store/points.sql");
const DELETE_HOLDINGS: Sql = sql!("sql/store/delete_holdings.sql");
const DELETE_POSITIONS: Sql = sql!("sql/store/delete_positions.sql");
const DELETE_POINTS: Sql = sql!("sql/store/delete_points.sql");
const DELETE_SYNCS: Sql = sql!("sql/store/delete_syncs.sql");
const PORTFOLIO_VERSION: Sql = sql!("sql/store/portfolio_version.sql");
const COUNT_PORTFOLIO_WRITE: Sql = sql!("sql/store/count_portfolio_write.sql");

pub(crate) fn replace(
    tx: &dyn Tx,
    id: AccountId,
    new: &NewPortfolio,
) -> Result<SyncOutcome, Failure> {
    let NewPortfolio { broker, synced_ms, synced, closes_of, derive, .. } = new;
    let (broker, synced_ms) = (*broker, *synced_ms);
    for (what, count) in
        [("holdings", synced.holdings.len()), ("positions", synced.positions.len())]
    {
        if count > ROWS_MAX {
            return Err(StoreError::TooMany { what, limit: ROWS_MAX }.into());
        }
    }
    expect_user(tx, id)?;
    let portfolio = of(tx, id)?;
    expect_same_person(&portfolio, new)?;
    let rows = portfolio.holdings.iter().chain(&synced.holdings);
    let closes = match closes_of {
        Some(date) => eod::of_symbols(tx, *date, rows.filter_map(Holding::symbol))?,
        None => HashMap::new(),
    };
    let before = Before { portfolio, closes };
    let derived = derive(&before, synced);
    let whose = args![id, broker];
    tx.run(DROP_HOLDINGS, &whose)?;
    tx.run(DROP_POSITIONS, &whose)?;
    let holdings = (0i64..).zip(&derived.holdings);
    let holdings = holdings.map(|(ordinal, row)| holding_args(id, broker, ordinal, row));
    tx.run_many(ADD_HOLDING, &holdings.collect::<Vec<_>>())?;
    let positions = (0i64..).zip(&synced.positions);
    let positions = positions.map(|(ordinal, row)| position_args(id, broker, ordinal, row));
    tx.run_many(ADD_POSITION, &positions.collect::<Vec<_>>())?;
    reprice(tx, id, &derived.repriced)?;
    let broker_user = synced.broker_user.as_ref();
    tx.run(KEEP_SYNC, &args![id, broker, synced_ms, synced.simulated, broker_user])?;
    keep_point(tx, id, &derived.point)?;
    count_write(tx, id)?;
    Ok(derived.outcome)
}

/// Refuses the rows of a person at the broker who is not the one of the sync before, unless that is
/// meant.
fn expect_same_person(stood: &Portfolio, new: &NewPortfolio) -> Result<(), Failure> {
    let sync = stood.syncs.iter().find(|sync| sync.broker == new.broker);
    let Some(kept) = sync.and_then(|sync| sync.broker_user.as_ref()) else { return Ok(()) };
    let is_another = new.synced.broker_user.as_ref().is_some_and(|user| user != kept);
    match is_another && !new.replaces_broker_user {
        true => Err(StoreError::OtherBrokerUser { kept: kept.clone() }.into()),
        false => Ok(()),
    }
}

/// Counts up with each write.
pub(crate) fn version(tx: &dyn Tx, id: AccountId) -> Result<i64, Failure> {
    let found = tx.first(PORTFOLIO_VERSION, &args![id], |row| row.get(0))?;
    found.ok_or_else(|| StoreError::NoSuchUser.into())
}

/// Part of every write of what responses show.
pub(crate) fn count_write(tx: &dyn Tx, id: AccountId) -> Result<(), Failure> {
    tx.run(COUNT_PORTFOLIO_WRITE, &args![id]).map(drop)
}

/// Everything stored from a user's syncs.
pub(crate) fn of(tx: &dyn Tx, id: AccountId) -> Result<Portfolio, Failure> {
    Ok(Portfolio {
        holdings: tx.all(HOLDINGS, &args![id], holding)?,
        positions: tx.all(POSITIONS, &args![id], position)?,
        syncs: tx.all(SYNCS, &args![id], |row| {
            Ok(SyncState {
                broker: broker(row, 0)?,
                synced_ms: row.get(1)?,
                simulated: row.get(2)?,
                broker_user: row.get(3)?,
            })
        })?,
    })
}

fn holding(row: &dyn Cells) -> Result<Holding, Failure> {
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
        change_pct: decimal_if_any(row, 20)?,
    })
}

fn cost(row: &dyn Cells) -> Result<Option<Cost>, Failure> {
    let (average, cost) = (decimal_if_any(row, 9)?, decimal_if_any(row, 10)?);
    Ok(match (cost, decimal_if_any(row, 11)?) {
        (Some(cost), Some(quantity)) => Some(Cost::Part { quantity, cost }),
        (Some(cost), None) => Some(Cost::Total(cost)),
        (None, _) => average.map(Cost::PerShare),
    })
}

fn mark(row: &dyn Cells) -> Result<Option<Mark>, Failure> {
    let Some(word) = row.text(18)? else { return Ok(None) };
    let sign = ActionSign::parse(word).ok_or_else(|| damaged("a mark"))?;
    Ok(date_if_any(row, 19)?.map(|on| Mark { on, sign }))
}

fn position(row: &dyn Cells) -> Result<Position, Failure> {
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

fn holding_args(id: AccountId, broker: Broker, ordinal: i64, holding: &Holding) -> Vec<Arg<'_>> {
    let (average, cost, costed) = match holding.cost {
        Some(Cost::PerShare(average)) => (Some(average), None, None),
        Some(Cost::Total(cost)) => (None, Some(cost), None),
        Some(Cost::Part { quantity, cost }) => (None, Some(cost), Some(quantity)),
        None => (None, None, None),
    };
    args![
        id,
        broker,
        ordinal,
        &holding.exchange,
        &holding.tradingsymbol,
        holding.symbol().map(|symbol| symbol.as_str().to_owned()),
        holding.isin.as_ref(),
        holding.settled_quantity,
        holding.t1_quantity,
        holding.pledged_quantity,
        holding.mtf_quantity,
        holding.disputed_quantity,
        average,
        cost,
        costed,
        holding.last_price,
        holding.close_price,
        holding.as_of_ms,
        holding.broker_pnl,
        holding.discrepancy,
        holding.unresolved,
        holding.mark.map(|mark| mark.sign.as_str()),
        holding.mark.map(|mark| mark.on),
        holding.change_pct,
    ]
    .into()
}

/// Writes prices and marks into stored rows.
pub(crate) fn reprice(tx: &dyn Tx, id: AccountId, repriced: &Repriced) -> Result<(), Failure> {
    // Each broker's rows are numbered from 0 in their order.
    let mut ordinals: HashMap<Broker, i64> = HashMap::new();
    let mut changed = repriced.changed.iter().copied().peekable();
    let mut rows = Vec::with_capacity(repriced.changed.len());
    for (index, row) in repriced.holdings.iter().enumerate() {
        let next = ordinals.entry(row.broker).or_default();
        let ordinal = *next;
        *next += 1;
        if changed.next_if_eq(&index).is_some() {
            let args = args![
                id,
                row.broker,
                ordinal,
                row.last_price,
                row.close_price,
                row.as_of_ms,
                row.mark.map(|mark| mark.sign.as_str()),
                row.mark.map(|mark| mark.on),
                row.change_pct,
            ];
            rows.push(args.into());
        }
    }
    tx.run_many(REPRICE_HOLDING, &rows).map(drop)
}

fn position_args(id: AccountId, broker: Broker, ordinal: i64, position: &Position) -> Vec<Arg<'_>> {
    args![
        id,
        broker,
        ordinal,
        position.kind.as_str(),
        &position.exchange,
        &position.tradingsymbol,
        &position.product,
        position.quantity,
        position.multiplier,
        position.average_price,
        position.last_price,
        position.close_price,
        position.pnl,
        position.realised,
        position.unrealised,
        position.unresolved,
    ]
    .into()
}

pub(crate) fn keep_point(tx: &dyn Tx, id: AccountId, point: &DayPoint) -> Result<(), Failure> {
    let row = args![
        id,
        point.date,
        point.total_invested,
        point.total_current_value,
        point.total_pnl,
        point.value_without_cost,
        point.source.as_str(),
        point.left_out,
        point.carried,
        point.suspect,
        point.made_of.map(|made| made.brokers.as_str()),
        point.made_of.map(|made| made.holdings),
        point.made_of.map(|made| made.discrepancies),
    ];
    tx.run(KEEP_POINT, &row).map(drop)
}

pub(crate) fn points(tx: &dyn Tx, id: AccountId, since: Date) -> Result<Vec<DayPoint>, Failure> {
    tx.all(POINTS, &args![id, since], |row| {
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
            made_of: made_of(row)?,
        })
    })
}

fn made_of(row: &dyn Cells) -> Result<Option<MadeOf>, Failure> {
    let Some(letters) = row.text(9)? else { return Ok(None) };
    let brokers = Brokers::parse(letters).ok_or_else(|| damaged("a point's brokers"))?;
    Ok(Some(MadeOf { brokers, holdings: row.get(10)?, discrepancies: row.get(11)? }))
}

pub(crate) fn delete(tx: &dyn Tx, id: AccountId) -> Result<Deleted, Failure> {
    let deleted = |sql| tx.run(sql, &args![id]);
    count_write(tx, id)?;
    deleted(DELETE_SYNCS)?;
    Ok(Deleted {
        holdings: deleted(DELETE_HOLDINGS)?,
        positions: deleted(DELETE_POSITIONS)?,
        pnl_snapshots: deleted(DELETE_POINTS)?,
    })
}
