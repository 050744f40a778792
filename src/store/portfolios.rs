//! Portfolios: holdings, positions, times of sync, and points of the trend.

use std::collections::HashMap;

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::candle::PRICE_DIGITS;
use crate::base::{
    Account, ActionSign, BaseRatio, ClosingPrice, Cost, Holding, Mark, MarketDay, Position,
    SoldHolding, Symbol, Synced,
};
use crate::portfolio::{self, Accounts, DayPoint, Derived, MadeOf, Repriced, Stood, SyncOutcome};
use crate::store::account_id::AccountId;
use crate::store::arg::{Arg, args};
use crate::store::cells::Cells;
use crate::store::columns::{at, columns, record, values};
use crate::store::errors::{Result, StoreError};
use crate::store::open::Store;
use crate::store::tx::{Failure, Tx, statements};
use crate::store::write::{GLANCE_DEADLINE_MS, READ_DEADLINE_MS, Turn, Write};
use crate::views::holdings::DeletedRows;

/// Most holdings, and most positions, in one sync of one broker. The largest retail accounts have
/// some hundreds.
pub(crate) const ROWS_MAX: usize = 5_000;

columns! {
    const SYNC = [broker, synced_ms, simulated, broker_user];
    const HOLDING = [
        broker, exchange, tradingsymbol, isin, settled_quantity, t1_quantity, pledged_quantity,
        mtf_quantity, disputed_quantity, average_price, cost, costed_quantity, last_price,
        close_price, as_of_ms, broker_pnl, discrepancy, unresolved, mark, marked_on, change_pct,
        marked_ratio, used_quantity,
    ];
    /// What else is written of a holding.
    const WRITTEN_HOLDING = [..HOLDING, user_id, ordinal, symbol];
    const SOLD_HOLDING = [broker, exchange, tradingsymbol, isin, used_quantity];
    const WRITTEN_SOLD_HOLDING = [..SOLD_HOLDING, user_id, ordinal];
    const POSITION = [
        broker, kind, exchange, tradingsymbol, product, quantity, multiplier, average_price,
        last_price, close_price, pnl, realised, unrealised, unresolved,
    ];
    const WRITTEN_POSITION = [..POSITION, user_id, ordinal];
    const POINT = [
        date, total_invested, total_current_value, total_pnl, value_without_cost, source, left_out,
        carried, suspect, brokers, holdings, discrepancies,
    ];
    const CLOSE = [price, previous_close, as_of_ms, official, base_ratio];
}

statements! {
    const USER_EXISTS = "SELECT 1 FROM users WHERE id = ?1";
    const SYNCS = ["SELECT ", SYNC.sql, " FROM syncs WHERE user_id = ?1 ORDER BY broker"];
    const HOLDINGS =
        ["SELECT ", HOLDING.sql, " FROM holdings WHERE user_id = ?1 ORDER BY broker, ordinal"];
    const POSITIONS =
        ["SELECT ", POSITION.sql, " FROM positions WHERE user_id = ?1 ORDER BY broker, ordinal"];
    const SOLD_HOLDINGS = ["\
SELECT ", SOLD_HOLDING.sql, " FROM sold_holdings WHERE user_id = ?1 ORDER BY broker, ordinal"];
    const DROP_HOLDINGS = "DELETE FROM holdings WHERE user_id = ?1 AND broker = ?2";
    const DROP_SOLD_HOLDINGS = "DELETE FROM sold_holdings WHERE user_id = ?1 AND broker = ?2";
    const DROP_POSITIONS = "DELETE FROM positions WHERE user_id = ?1 AND broker = ?2";
    const ADD_HOLDING = ["\
INSERT INTO holdings (", WRITTEN_HOLDING.sql, ")
VALUES (", WRITTEN_HOLDING.parameters(1), ")"];
    const ADD_SOLD_HOLDING = ["\
INSERT INTO sold_holdings (", WRITTEN_SOLD_HOLDING.sql, ")
VALUES (", WRITTEN_SOLD_HOLDING.parameters(1), ")"];
    const ADD_POSITION = ["\
INSERT INTO positions (", WRITTEN_POSITION.sql, ")
VALUES (", WRITTEN_POSITION.parameters(1), ")"];
    const REPRICE_HOLDING = "\
UPDATE holdings SET last_price = ?4, close_price = ?5, as_of_ms = ?6, mark = ?7, marked_on = ?8,
    change_pct = ?9, marked_ratio = ?10
WHERE user_id = ?1 AND broker = ?2 AND ordinal = ?3";
    const KEEP_SYNC = "\
INSERT INTO syncs (user_id, broker, synced_ms, simulated, broker_user) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (user_id, broker)
DO UPDATE SET synced_ms = excluded.synced_ms, simulated = excluded.simulated,
    broker_user = coalesce(excluded.broker_user, syncs.broker_user)";
    const KEEP_POINT = ["\
INSERT INTO points (user_id, ", POINT.sql, ") VALUES (?1, ", POINT.parameters(2), ")
ON CONFLICT (user_id, date) DO UPDATE SET (", POINT.sql, ") = (", POINT.parameters(2), ")"];
    const ADD_POINT = ["\
INSERT INTO points (user_id, ", POINT.sql, ") VALUES (?1, ", POINT.parameters(2), ")
ON CONFLICT (user_id, date) DO NOTHING"];
    const OPEN_CLOSED_PORTFOLIO = "DELETE FROM closed_portfolios WHERE user_id = ?1";
    const POINTS =
        ["SELECT ", POINT.sql, " FROM points WHERE user_id = ?1 AND date >= ?2 ORDER BY date"];
    const DELETE_HOLDINGS = "DELETE FROM holdings WHERE user_id = ?1";
    const DELETE_SOLD_HOLDINGS = "DELETE FROM sold_holdings WHERE user_id = ?1";
    const DELETE_POSITIONS = "DELETE FROM positions WHERE user_id = ?1";
    const DELETE_POINTS = "DELETE FROM points WHERE user_id = ?1";
    const DELETE_SYNCS = "DELETE FROM syncs WHERE user_id = ?1";
    const CLOSE_OF = ["SELECT ", CLOSE.sql, " FROM closes WHERE date = ?1 AND symbol = ?2"];
    const CANDLE_CLOSES = "\
SELECT date, close_e4 FROM candles WHERE symbol = ?1 AND date <= ?2 ORDER BY date DESC LIMIT 2";
    const PORTFOLIO_VERSION = "SELECT portfolio_version FROM users WHERE id = ?1";
    const COUNT_PORTFOLIO_WRITE =
        "UPDATE users SET portfolio_version = portfolio_version + 1 WHERE id = ?1";
}

/// The last sync of a broker for a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncState {
    pub account: Account,
    pub synced_ms: i64,
    pub simulated: bool,
    /// The broker's id of the person; `None` if it was not stored or the broker did not send it.
    pub broker_user: Option<String>,
}

/// Everything stored from a user's syncs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Portfolio {
    /// Broker A's holdings first; each broker's in the order it sent them.
    pub holdings: Vec<Holding>,
    /// Shares of which nothing is left, by what was sold on the day of the last sync.
    pub sold_holdings: Vec<SoldHolding>,
    pub positions: Vec<Position>,
    /// One for each broker that was synced and not deleted since.
    pub syncs: Vec<SyncState>,
}

/// The stored state when a sync begins to write.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// The user's portfolio with both brokers.
    pub portfolio: Portfolio,
    /// Stored closing prices of the date asked for, of all symbols that the user holds or that the
    /// sync brings.
    pub closes: HashMap<Symbol, ClosingPrice>,
    /// The same of the date before it. Where none is stored, the candle's close.
    pub closes_before: HashMap<Symbol, ClosingPrice>,
}

/// Derives the rows that a sync writes and its outcome for the user, from the stored state and the
/// broker's response. Runs within the sync's transaction on the store's writer. It must be quick
/// and pure, since it may run twice.
pub type Derive = Box<dyn Fn(&Before, &Synced) -> Derived + Send>;

/// What a sync of this account on this day derives from its rows and those before.
pub fn deriving(account: Account, day: MarketDay) -> Derive {
    Box::new(move |before, synced| {
        let portfolio = &before.portfolio;
        let stood = Stood {
            accounts: portfolio.syncs.iter().map(|sync| sync.account).collect(),
            holdings: &portfolio.holdings,
            positions: &portfolio.positions,
            closes: &before.closes,
            closes_before: &before.closes_before,
        };
        portfolio::derive(account, &day, stood, synced)
    })
}

/// A session that is over.
#[derive(Clone, Copy, Debug)]
pub struct SessionBefore {
    pub date: Date,
    /// When its close became final, which is the time of closes that candles alone tell.
    pub closed_ms: i64,
}

/// The result of one sync of one broker, to be stored.
pub struct NewPortfolio {
    pub account: Account,
    pub synced_ms: i64,
    pub synced: Synced,
    /// The date of the closing prices passed to `derive`.
    pub closes_of: Option<Date>,
    /// The session of those before, which tell what a previous close is.
    pub closes_before_of: Option<SessionBefore>,
    pub derive: Derive,
    /// Whether the rows may belong to another person at the broker than the stored rows.
    pub replaces_broker_user: bool,
    /// Whether the rows may be no holdings, where there are some.
    pub replaces_with_none: bool,
}

#[cfg(test)]
impl NewPortfolio {
    /// Derived without closing prices. The rows are of the person of before, and may be none.
    pub(crate) fn of(account: Account, synced_ms: i64, synced: Synced, derive: Derive) -> Self {
        Self {
            account,
            synced_ms,
            synced,
            closes_of: None,
            closes_before_of: None,
            derive,
            replaces_broker_user: false,
            replaces_with_none: true,
        }
    }
}

impl Store {
    /// Replaces the stored rows of one broker for a user and writes the day's point, as derived, in
    /// one transaction. Returns the derived outcome.
    pub fn replace_portfolio(&self, turn: &Turn, new: NewPortfolio) -> Result<SyncOutcome> {
        let id = turn.user;
        self.write(Write::in_turn(turn), move |tx| replace(tx, id, &new))
    }

    /// All of a user's holdings, positions and times of sync.
    pub fn portfolio(&self, id: AccountId) -> Result<Portfolio> {
        self.read(READ_DEADLINE_MS, move |tx| of(tx, id))
    }

    /// A number that changes with each write of the user's portfolio. Short deadline: the caller
    /// has a finished response that waits only for this.
    pub(crate) fn portfolio_version(&self, id: AccountId) -> Result<i64> {
        self.glance(GLANCE_DEADLINE_MS, move |tx| {
            let found = tx.first(PORTFOLIO_VERSION, &args![id], |row| row.get(0))?;
            found.ok_or_else(|| StoreError::NoSuchUser.into())
        })
    }

    /// Points from `since` on, oldest first.
    pub fn points(&self, id: AccountId, since: Date) -> Result<Vec<DayPoint>> {
        self.read(READ_DEADLINE_MS, move |tx| tx.all(POINTS, &args![id, since], point))
    }

    /// Adds points of dates that have none. A demo's portfolio gets its past by this.
    pub(crate) fn add_points(&self, turn: &Turn, points: Vec<DayPoint>) -> Result<()> {
        let id = turn.user;
        self.write(Write::in_turn(turn), move |tx| {
            expect_user(tx, id)?;
            let rows = points.iter().map(|point| point_args(id, point));
            tx.run_each(ADD_POINT, rows)?;
            count_write(tx, id)
        })
    }

    /// Deletes holdings, positions and points. The journal stays.
    pub fn delete_portfolio(&self, turn: &Turn) -> Result<DeletedRows> {
        let id = turn.user;
        let is_some = |deleted: &DeletedRows| *deleted != DeletedRows::default();
        self.erase(Write::in_turn(turn), move |tx| delete(tx, id), is_some)
    }
}

fn replace(tx: &dyn Tx, id: AccountId, new: &NewPortfolio) -> Result<SyncOutcome, Failure> {
    let NewPortfolio {
        account,
        synced_ms,
        synced,
        closes_of,
        derive,
        ..
    } = new;
    let account = *account;
    let synced_ms = *synced_ms;
    for (what, count) in [
        ("holdings", synced.holdings.len() + synced.sold_holdings.len()),
        ("positions", synced.positions.len()),
    ] {
        if count > ROWS_MAX {
            return Err(StoreError::TooMany {
                what,
                limit: ROWS_MAX,
            }
            .into());
        }
    }
    expect_user(tx, id)?;
    let portfolio = of(tx, id)?;
    expect_same_person(&portfolio, new)?;
    expect_some_holdings(&portfolio, new)?;
    let rows = portfolio.holdings.iter().chain(&synced.holdings);
    let closes = match closes_of {
        Some(date) => closing_prices(tx, *date, rows.filter_map(Holding::symbol))?,
        None => HashMap::new(),
    };
    let brought = synced.holdings.iter().filter_map(Holding::symbol);
    if closes_of.is_some() && brought.into_iter().any(|held| !closes.contains_key(&held)) {
        // A symbol has no closing price yet: the revaluation takes this user again.
        tx.run(OPEN_CLOSED_PORTFOLIO, &args![id])?;
    }
    let synced_symbols = synced.holdings.iter().filter_map(Holding::symbol);
    let closes_before = match new.closes_before_of {
        Some(session) => closes_or_candles(tx, session, synced_symbols)?,
        None => HashMap::new(),
    };
    let before = Before {
        portfolio,
        closes,
        closes_before,
    };
    let derived = derive(&before, synced);
    let whose = args![id, account];
    tx.run(DROP_HOLDINGS, &whose)?;
    tx.run(DROP_SOLD_HOLDINGS, &whose)?;
    tx.run(DROP_POSITIONS, &whose)?;
    let holdings = (0i64..).zip(&derived.holdings);
    tx.run_each(ADD_HOLDING, holdings.map(|(at, row)| holding_args(id, account, at, row)))?;
    let sold = (0i64..).zip(&synced.sold_holdings);
    let sold = sold.map(|(at, row)| sold_holding_args(id, account, at, row));
    tx.run_each(ADD_SOLD_HOLDING, sold)?;
    let positions = (0i64..).zip(&synced.positions);
    tx.run_each(ADD_POSITION, positions.map(|(at, row)| position_args(id, account, at, row)))?;
    reprice(tx, id, &derived.repriced)?;
    let broker_user = synced.broker_user.as_ref();
    tx.run(KEEP_SYNC, &args![id, account, synced_ms, synced.simulated, broker_user])?;
    keep_point(tx, id, &derived.point)?;
    count_write(tx, id)?;
    Ok(derived.outcome)
}

/// Fails if the user does not exist.
pub(super) fn expect_user(tx: &dyn Tx, id: AccountId) -> Result<(), Failure> {
    let found = tx.first(USER_EXISTS, &args![id], |_| Ok(()))?;
    found.ok_or_else(|| StoreError::NoSuchUser.into())
}

/// Refuses rows of another person at the broker than in the last sync, unless
/// `replaces_broker_user` is set.
fn expect_same_person(stood: &Portfolio, new: &NewPortfolio) -> Result<(), Failure> {
    let sync = stood.syncs.iter().find(|sync| sync.account == new.account);
    let Some(kept) = sync.and_then(|sync| sync.broker_user.as_ref()) else {
        return Ok(());
    };
    let is_another = new
        .synced
        .broker_user
        .as_ref()
        .is_some_and(|user| user != kept);
    match is_another && !new.replaces_broker_user {
        true => Err(StoreError::OtherBrokerUser { kept: kept.clone() }.into()),
        false => Ok(()),
    }
}

/// Refuses to replace a broker's holdings by none, unless it is confirmed: a broker may send an
/// empty list where it means an error. Who confirmed another person has confirmed what that has.
fn expect_some_holdings(stood: &Portfolio, new: &NewPortfolio) -> Result<(), Failure> {
    let holdings = stood
        .holdings
        .iter()
        .filter(|row| row.account == new.account)
        .count();
    let confirmed = new.replaces_with_none || new.replaces_broker_user;
    match holdings > 0 && new.synced.holdings.is_empty() && !confirmed {
        true => Err(StoreError::NoHoldings { holdings }.into()),
        false => Ok(()),
    }
}

/// Part of every write to rows that responses show.
pub(super) fn count_write(tx: &dyn Tx, id: AccountId) -> Result<(), Failure> {
    tx.run(COUNT_PORTFOLIO_WRITE, &args![id]).map(drop)
}

/// Everything stored from a user's syncs.
pub(super) fn of(tx: &dyn Tx, id: AccountId) -> Result<Portfolio, Failure> {
    Ok(Portfolio {
        holdings: tx.all(HOLDINGS, &args![id], holding)?,
        sold_holdings: tx.all(SOLD_HOLDINGS, &args![id], sold_holding)?,
        positions: tx.all(POSITIONS, &args![id], position)?,
        syncs: tx.all(SYNCS, &args![id], |row| {
            Ok(record!(row of SYNC, SyncState [synced_ms, simulated, broker_user]
                account: row.get(at!(SYNC.broker))?))
        })?,
    })
}

fn holding(row: &dyn Cells) -> Result<Holding, Failure> {
    Ok(record!(row of HOLDING, Holding [
        exchange, tradingsymbol, isin, settled_quantity, t1_quantity, pledged_quantity,
        mtf_quantity, disputed_quantity, last_price, close_price, as_of_ms, broker_pnl,
        discrepancy, unresolved, change_pct, used_quantity,
    ]
        account: row.get(at!(HOLDING.broker))?,
        cost: cost(row)?,
        mark: mark(row)?,
    ))
}

fn sold_holding(row: &dyn Cells) -> Result<SoldHolding, Failure> {
    Ok(
        record!(row of SOLD_HOLDING, SoldHolding [exchange, tradingsymbol, isin, used_quantity]
        account: row.get(at!(SOLD_HOLDING.broker))?),
    )
}

fn mark(row: &dyn Cells) -> Result<Option<Mark>, Failure> {
    let sign: Option<ActionSign> = row.get(at!(HOLDING.mark))?;
    let on = row.get(at!(HOLDING.marked_on))?;
    let ratio = row
        .get::<Option<Decimal>>(at!(HOLDING.marked_ratio))?
        .map(BaseRatio);
    Ok(sign.zip(on).map(|(sign, on)| Mark { on, sign, ratio }))
}

fn cost(row: &dyn Cells) -> Result<Option<Cost>, Failure> {
    let average: Option<Decimal> = row.get(at!(HOLDING.average_price))?;
    let cost = row.get(at!(HOLDING.cost))?;
    let costed = row.get(at!(HOLDING.costed_quantity))?;
    Ok(match (cost, costed) {
        (Some(cost), Some(quantity)) => Some(Cost::Part { quantity, cost }),
        (Some(cost), None) => Some(Cost::Total(cost)),
        (None, _) => average.map(Cost::PerShare),
    })
}

/// A row of an older version may have a profit without a price.
fn position(row: &dyn Cells) -> Result<Position, Failure> {
    let position = record!(row of POSITION, Position [
        kind, exchange, tradingsymbol, product, quantity, multiplier, average_price,
        last_price, close_price, pnl, realised, unrealised, unresolved,
    ] account: row.get(at!(POSITION.broker))?);
    Ok(position.with_known_profit())
}

fn point(row: &dyn Cells) -> Result<DayPoint, Failure> {
    let made_of = match row.get::<Option<Accounts>>(at!(POINT.brokers))? {
        Some(accounts) => Some(record!(row of POINT, MadeOf [holdings, discrepancies] accounts)),
        None => None,
    };
    Ok(record!(row of POINT, DayPoint [
        date, total_invested, total_current_value, total_pnl, value_without_cost, source, left_out,
        carried, suspect,
    ] made_of))
}

fn holding_args(id: AccountId, account: Account, ordinal: i64, holding: &Holding) -> Vec<Arg<'_>> {
    let (average, cost, costed) = match holding.cost {
        Some(Cost::PerShare(average)) => (Some(average), None, None),
        Some(Cost::Total(cost)) => (None, Some(cost), None),
        Some(Cost::Part { quantity, cost }) => (None, Some(cost), Some(quantity)),
        None => (None, None, None),
    };
    values!(WRITTEN_HOLDING {
        broker: account,
        exchange: &holding.exchange,
        tradingsymbol: &holding.tradingsymbol,
        isin: holding.isin.as_ref(),
        settled_quantity: holding.settled_quantity,
        t1_quantity: holding.t1_quantity,
        pledged_quantity: holding.pledged_quantity,
        mtf_quantity: holding.mtf_quantity,
        disputed_quantity: holding.disputed_quantity,
        average_price: average,
        cost: cost,
        costed_quantity: costed,
        last_price: holding.last_price,
        close_price: holding.close_price,
        as_of_ms: holding.as_of_ms,
        broker_pnl: holding.broker_pnl,
        discrepancy: holding.discrepancy,
        unresolved: holding.unresolved,
        mark: holding.mark.map(|mark| mark.sign),
        marked_on: holding.mark.map(|mark| mark.on),
        change_pct: holding.change_pct,
        marked_ratio: marked_ratio(holding),
        used_quantity: holding.used_quantity,
        user_id: id,
        ordinal: ordinal,
        symbol: holding.symbol().map(|symbol| symbol.as_str().to_owned()),
    })
    .into()
}

fn sold_holding_args(
    id: AccountId,
    account: Account,
    ordinal: i64,
    sold: &SoldHolding,
) -> Vec<Arg<'_>> {
    values!(WRITTEN_SOLD_HOLDING {
        broker: account,
        exchange: &sold.exchange,
        tradingsymbol: &sold.tradingsymbol,
        isin: sold.isin.as_ref(),
        used_quantity: sold.used_quantity,
        user_id: id,
        ordinal: ordinal,
    })
    .into()
}

fn marked_ratio(holding: &Holding) -> Option<Decimal> {
    Some(holding.mark?.ratio?.0)
}

/// Writes prices and marks into stored rows.
pub(super) fn reprice(tx: &dyn Tx, id: AccountId, repriced: &Repriced) -> Result<(), Failure> {
    // Each broker's rows are numbered from 0 in their order.
    let mut ordinals: HashMap<Account, i64> = HashMap::new();
    let mut changed = repriced.changed.iter().copied().peekable();
    let mut rows = Vec::with_capacity(repriced.changed.len());
    for (index, row) in repriced.holdings.iter().enumerate() {
        let next = ordinals.entry(row.account).or_default();
        let ordinal = *next;
        *next += 1;
        if changed.next_if_eq(&index).is_some() {
            let args = args![
                id,
                row.account,
                ordinal,
                row.last_price,
                row.close_price,
                row.as_of_ms,
                row.mark.map(|mark| mark.sign),
                row.mark.map(|mark| mark.on),
                row.change_pct,
                marked_ratio(row),
            ];
            rows.push(args);
        }
    }
    tx.run_each(REPRICE_HOLDING, rows.into_iter()).map(drop)
}

fn position_args(
    id: AccountId,
    account: Account,
    ordinal: i64,
    position: &Position,
) -> Vec<Arg<'_>> {
    values!(WRITTEN_POSITION {
        broker: account,
        kind: position.kind,
        exchange: &position.exchange,
        tradingsymbol: &position.tradingsymbol,
        product: &position.product,
        quantity: position.quantity,
        multiplier: position.multiplier,
        average_price: position.average_price,
        last_price: position.last_price,
        close_price: position.close_price,
        pnl: position.pnl,
        realised: position.realised,
        unrealised: position.unrealised,
        unresolved: position.unresolved,
        user_id: id,
        ordinal: ordinal,
    })
    .into()
}

pub(super) fn keep_point(tx: &dyn Tx, id: AccountId, point: &DayPoint) -> Result<(), Failure> {
    tx.run(KEEP_POINT, &point_args(id, point)).map(drop)
}

fn point_args(id: AccountId, point: &DayPoint) -> Vec<Arg<'_>> {
    let made_of = point.made_of;
    let written = values!(POINT {
        date: point.date,
        total_invested: point.total_invested,
        total_current_value: point.total_current_value,
        total_pnl: point.total_pnl,
        value_without_cost: point.value_without_cost,
        source: point.source,
        left_out: point.left_out,
        carried: point.carried,
        suspect: point.suspect,
        brokers: made_of.map(|made| made.accounts),
        holdings: made_of.map(|made| made.holdings),
        discrepancies: made_of.map(|made| made.discrepancies),
    });
    [args![id].as_slice(), &written].concat()
}

/// The closing prices of the symbols of a portfolio.
fn closing_prices(
    tx: &dyn Tx,
    date: Date,
    symbols: impl Iterator<Item = Symbol>,
) -> Result<HashMap<Symbol, ClosingPrice>, Failure> {
    let symbols: Vec<Symbol> = symbols.collect();
    let mut found = HashMap::new();
    let wanted = symbols.iter().map(|symbol| args![date, symbol]);
    tx.query_each(CLOSE_OF, wanted, |at, row| {
        found.insert(symbols[at].clone(), close(row)?);
        Ok(())
    })?;
    Ok(found)
}

/// The closing prices of the symbols, or the closes of their candles. Those may be a last trade.
fn closes_or_candles(
    tx: &dyn Tx,
    SessionBefore {
        date,
        closed_ms: as_of_ms,
    }: SessionBefore,
    symbols: impl Iterator<Item = Symbol>,
) -> Result<HashMap<Symbol, ClosingPrice>, Failure> {
    let symbols: Vec<Symbol> = symbols.collect();
    let mut found = closing_prices(tx, date, symbols.iter().cloned())?;
    let others: Vec<Symbol> = symbols
        .into_iter()
        .filter(|symbol| !found.contains_key(symbol))
        .collect();
    let mut closes: HashMap<Symbol, ClosingPrice> = HashMap::new();
    let wanted = others.iter().map(|symbol| args![symbol, date]);
    tx.query_each(CANDLE_CLOSES, wanted, |at, row| {
        let of = row.get::<Date>(0)?;
        let price = Decimal::new(row.get(1)?, PRICE_DIGITS);
        if of == date {
            let close = ClosingPrice {
                price,
                previous_close: None,
                as_of_ms,
                official: false,
                base_ratio: None,
            };
            closes.insert(others[at].clone(), close);
        } else if let Some(close) = closes.get_mut(&others[at]) {
            close.previous_close = Some(price);
        }
        Ok(())
    })?;
    found.extend(closes);
    Ok(found)
}

/// Reads a closing price from a row that begins with the columns of [`CLOSE`].
pub(super) fn close(row: &dyn Cells) -> Result<ClosingPrice, Failure> {
    let base_ratio = row
        .get::<Option<Decimal>>(at!(CLOSE.base_ratio))?
        .map(BaseRatio);
    Ok(record!(row of CLOSE, ClosingPrice [price, previous_close, as_of_ms, official] base_ratio))
}

pub(super) fn delete(tx: &dyn Tx, id: AccountId) -> Result<DeletedRows, Failure> {
    let deleted = |sql| tx.run(sql, &args![id]);
    count_write(tx, id)?;
    deleted(DELETE_SYNCS)?;
    deleted(DELETE_SOLD_HOLDINGS)?;
    Ok(DeletedRows {
        holdings: deleted(DELETE_HOLDINGS)?,
        positions: deleted(DELETE_POSITIONS)?,
        pnl_snapshots: deleted(DELETE_POINTS)?,
    })
}
