//! What the evening's revaluation does with the store: jobs of the lane `close`, which block.
//!
//! One page of users is read, valued and written in one job; nothing of it outlives the job.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::civil::Date;

use super::due::Due;
use crate::base::{ClosingPrice, Epoch, Holding, Symbol};
use crate::cache::Responses;
use crate::portfolio::{Brokers, DayPoint, Overflow, PointSource, Repriced, point, reprice};
use crate::store::{AccountId, Portfolio, Store, StoreError, Valued};

/// Symbols read from the store at a time.
const SYMBOLS_PAGE: usize = 1_000;

/// Closing prices of one date.
pub type Closes = HashMap<Symbol, ClosingPrice>;

/// How a job ended.
pub type Outcome = Result<Done, StoreError>;

/// How a job ended well.
pub enum Done {
    Looked(Looked),
    Kept,
    Paged(Paged),
    Finished,
}

/// What the store has of a date's run.
#[derive(Default)]
pub struct Looked {
    pub finished: bool,
    pub closes: Closes,
    /// Held, and without a kept close.
    pub missing: Vec<Symbol>,
    /// Symbols that had none on the date before either, held or not.
    pub silent: HashSet<Symbol>,
    /// There are more than the run takes on.
    pub cut_off: bool,
}

/// Whose portfolios a walk over the users values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Those for which every price that may come is there.
    Complete,
    /// Everybody's; who lacks a price that may still come is valued again when it has.
    Everybody,
    /// Everybody's, for the last time.
    Last,
}

/// One page, written.
#[derive(Debug)]
pub struct Paged {
    pub done_to: AccountId,
    /// Users that have their final point now, unless their portfolio changed meanwhile.
    pub users: usize,
    /// Holdings in these that had no closing price.
    pub carried: u64,
    /// There are no users after these.
    pub is_last: bool,
}

/// What one page is made of.
pub struct PageOrder {
    /// Of the leader that writes it.
    pub epoch: Epoch,
    pub due: Due,
    pub after: AccountId,
    pub users_max: usize,
    pub reach: Reach,
    pub closes: Arc<Closes>,
    /// Symbols whose prices may still come.
    pub awaited: Arc<HashSet<Symbol>>,
    /// Holds responses that a new point makes old.
    pub responses: Arc<Responses>,
}

/// Reads what is there of the run of `date`, and what it lacks: at most `symbols_max` symbols in
/// all.
pub fn look(store: &dyn Store, date: Date, symbols_max: usize) -> Result<Looked, StoreError> {
    if store.is_closed(date)? {
        return Ok(Looked { finished: true, ..Looked::default() });
    }
    let closes: Closes = store.closes(date)?.into_iter().collect();
    let (held, cut_off) = paged(symbols_max, |after, limit| store.held_symbols(after, limit))?;
    let (silent, _) = paged(symbols_max, |after, limit| store.silent_symbols(after, limit))?;
    let missing = held.into_iter().filter(|held| !closes.contains_key(held)).collect();
    let silent = silent.into_iter().collect();
    Ok(Looked { finished: false, closes, missing, silent, cut_off })
}

/// At most `most` symbols, page by page, and whether there are more.
fn paged(
    most: usize,
    read: impl Fn(Option<&Symbol>, usize) -> Result<Vec<Symbol>, StoreError>,
) -> Result<(Vec<Symbol>, bool), StoreError> {
    let mut found: Vec<Symbol> = Vec::new();
    loop {
        let page = read(found.last(), SYMBOLS_PAGE)?;
        let is_last = page.len() < SYMBOLS_PAGE;
        let room = most - found.len();
        let cut_off = page.len() > room;
        found.extend(page.into_iter().take(room));
        if is_last || cut_off {
            return Ok((found, cut_off));
        }
    }
}

/// Values the next users and writes their rows and points.
pub fn page(store: &dyn Store, order: &PageOrder) -> Result<Paged, StoreError> {
    let page = store.portfolios_to_close(order.due.date, order.after, order.users_max)?;
    let done_to = page.portfolios.last().map_or(order.after, |(id, _)| *id);
    let points: Vec<Valued> =
        page.portfolios.into_iter().filter_map(|(id, held)| valued(id, held, order)).collect();
    let written: Vec<AccountId> = points.iter().map(|valued| valued.id).collect();
    let complete = points.iter().filter(|valued| valued.is_complete);
    let users = complete.clone().count();
    let carried = complete.map(|valued| u64::from(valued.point.carried)).sum();
    if !points.is_empty() {
        store.keep_points(order.epoch, order.due.date, points)?;
    }
    written.iter().for_each(|user| order.responses.invalidate(user.0));
    Ok(Paged { done_to, users, carried, is_last: !page.more })
}

/// `None` for users who were never synced, or are not in reach.
fn valued(id: AccountId, portfolio: Portfolio, order: &PageOrder) -> Option<Valued> {
    let synced_ms = portfolio.syncs.iter().map(|sync| sync.synced_ms).max()?;
    let brokers = portfolio.syncs.iter().map(|sync| sync.broker).collect();
    let holdings = portfolio.holdings;
    let awaits = |row: &Holding| row.symbol().is_some_and(|held| order.awaited.contains(&held));
    let is_complete = !holdings.iter().any(awaits);
    if !is_complete && order.reach == Reach::Complete {
        return None;
    }
    let (point, repriced) = at_close(holdings, brokers, order)
        // Syncs refuse such amounts, so this run must not stand still for one user.
        .inspect_err(|error| tracing::warn!(user = id.0, %error, "no point at the close"))
        .ok()?;
    let priced = repriced.holdings.iter().filter(|row| row.last_price.is_some()).count();
    Some(Valued {
        id,
        synced_ms,
        point,
        repriced,
        next_session: order.due.next_session,
        priced: u32::try_from(priced).unwrap_or(u32::MAX),
        is_complete: is_complete || order.reach == Reach::Last,
    })
}

fn at_close(
    mut holdings: Vec<Holding>,
    brokers: Brokers,
    order: &PageOrder,
) -> Result<(DayPoint, Repriced), Overflow> {
    let close_of = |symbol: &Symbol| order.closes.get(symbol).copied();
    let changed = reprice(&mut holdings, order.due.date, close_of);
    let has_close = |row: &Holding| row.symbol().is_some_and(|held| close_of(&held).is_some());
    let day = order.due.market_day();
    let point = point(&day, PointSource::Close, brokers, &holdings, has_close)?;
    Ok((point, Repriced { holdings, changed }))
}
