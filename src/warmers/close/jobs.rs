//! Store jobs of the revaluation, on the lane `close`. They block.
//!
//! One job reads, values and writes a page of users. Nothing of it outlives the job.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::civil::Date;

use crate::base::{ClosingPrice, Holding, Symbol, clock};
use crate::cache::Responses;
use crate::portfolio::{Accounts, DayPoint, PointSource, Repriced, point, reprice, unvalued};
use crate::store::{AccountId, Epoch, Portfolio, Store, StoreError, Valued};
use crate::warmers::close::due::Due;

/// Symbols read from the store in one query.
const SYMBOLS_PAGE: usize = 1_000;

/// Closing prices of one date.
pub(crate) type Closes = HashMap<Symbol, ClosingPrice>;

pub(crate) type Outcome = Result<Done, StoreError>;

pub(crate) enum Done {
    Looked(Looked),
    Kept,
    Paged(Paged),
    Finished,
}

/// The store's progress of a date's run.
#[derive(Default)]
pub(crate) struct Looked {
    /// Nothing is left to do.
    pub finished: bool,
    /// The close was finished before, and some portfolio came since.
    pub is_late: bool,
    pub closes: Closes,
    /// Stored closing prices of the trading date before.
    pub closes_before: Closes,
    /// Held symbols without a stored closing price.
    pub missing: Vec<Symbol>,
    /// Symbols without a closing price on the previous date either, held or not.
    pub silent: HashSet<Symbol>,
    /// More symbols are held than the run takes on.
    pub cut_off: bool,
}

/// The portfolios that a walk over the users values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// Portfolios whose expected prices have all arrived.
    Complete,
    /// All portfolios. A user who lacks a price that may still come is valued again when it
    /// arrives.
    Everybody,
    /// All portfolios, for the last time.
    Last,
}

/// Result of a written page.
#[derive(Debug)]
pub(crate) struct Paged {
    pub done_to: AccountId,
    /// Users who have their final point now, unless their portfolio changed meanwhile.
    pub users: usize,
    /// Their holdings without a closing price.
    pub carried: u64,
    /// No users follow this page.
    pub is_last: bool,
}

/// Input of a page job.
pub(crate) struct PageOrder {
    /// Epoch of the leader that writes the page.
    pub epoch: Epoch,
    pub due: Due,
    pub after: AccountId,
    pub users_max: usize,
    pub reach: Reach,
    pub closes: Arc<Closes>,
    /// Symbols whose prices are waited for no more, and whether the run takes on no other symbols
    /// because there are too many.
    pub given_up: Arc<HashSet<Symbol>>,
    pub cut_off: bool,
    /// Whether the close was finished before and this is for what came since.
    pub is_late: bool,
    /// Cached responses, which a new point invalidates.
    pub responses: Arc<Responses>,
}

/// Reads the progress of the run of `date`. Takes at most `symbols_max` symbols.
pub(crate) fn read_progress(
    store: &Store,
    date: Date,
    before: Option<Date>,
    symbols_max: usize,
) -> Result<Looked, StoreError> {
    let is_late = store.is_closed(date)?;
    if is_late
        && store
            .portfolios_to_close(date, AccountId(0), 1)?
            .portfolios
            .is_empty()
    {
        return Ok(Looked {
            finished: true,
            ..Looked::default()
        });
    }
    let closes: Closes = store.closes(date)?.into_iter().collect();
    let before = before.map(|before| store.closes(before)).transpose()?;
    let closes_before = before.into_iter().flatten().collect();
    let (held, cut_off) = paged(symbols_max, |after, limit| store.held_symbols(after, limit))?;
    let (silent, _) = paged(symbols_max, |after, limit| store.silent_symbols(after, limit))?;
    let missing = held
        .into_iter()
        .filter(|held| !closes.contains_key(held))
        .collect();
    let silent = silent.into_iter().collect();
    Ok(Looked {
        finished: false,
        is_late,
        closes,
        closes_before,
        missing,
        silent,
        cut_off,
    })
}

/// Reads at most `most` symbols page by page. True: there are more.
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
pub(crate) fn page(store: &Store, order: &PageOrder) -> Result<Paged, StoreError> {
    let page = store.portfolios_to_close(order.due.date, order.after, order.users_max)?;
    let done_to = page.portfolios.last().map_or(order.after, |(id, _)| *id);
    let points: Vec<Valued> = page
        .portfolios
        .into_iter()
        .filter_map(|(id, held)| valued(id, held, order))
        .collect();
    let written: Vec<AccountId> = points.iter().map(|valued| valued.id).collect();
    let complete = points.iter().filter(|valued| valued.is_complete);
    let users = complete.clone().count();
    let carried = complete.map(|valued| u64::from(valued.point.carried)).sum();
    if !points.is_empty() {
        store.keep_points(order.epoch, order.due.date, points)?;
    }
    written
        .iter()
        .for_each(|user| order.responses.invalidate(user.0));
    Ok(Paged {
        done_to,
        users,
        carried,
        is_last: !page.more,
    })
}

/// `None` for users who were never synced, or are not in reach.
fn valued(id: AccountId, portfolio: Portfolio, order: &PageOrder) -> Option<Valued> {
    let synced_ms = portfolio.syncs.iter().map(|sync| sync.synced_ms).max()?;
    let accounts = portfolio.syncs.iter().map(|sync| sync.account).collect();
    let holdings = portfolio.holdings;
    // A symbol that the run does not know came with a sync since it began: a late run asks for it.
    let awaits = |row: &Holding| {
        let is_settled = |held: &Symbol| {
            order.closes.contains_key(held) || order.given_up.contains(held) || order.cut_off
        };
        row.symbol().is_some_and(|held| !is_settled(&held))
    };
    let is_complete = !holdings.iter().any(awaits);
    if !is_complete && order.reach == Reach::Complete {
        return None;
    }
    let (point, repriced) = at_close(id, holdings, accounts, order);
    let priced = repriced
        .holdings
        .iter()
        .filter(|row| row.last_price.is_some())
        .count();
    let synced_on = clock::date_of_ms(synced_ms);
    Some(Valued {
        id,
        synced_ms,
        point,
        writes_point: !order.is_late || synced_on.is_none_or(|on| on <= order.due.date),
        repriced,
        next_session: order.due.next_session,
        priced: u32::try_from(priced).unwrap_or(u32::MAX),
        is_complete,
    })
}

fn at_close(
    id: AccountId,
    mut holdings: Vec<Holding>,
    accounts: Accounts,
    order: &PageOrder,
) -> (DayPoint, Repriced) {
    let close_of = |symbol: &Symbol| order.closes.get(symbol).copied();
    let changed = reprice(&mut holdings, order.due.date, close_of);
    let has_close = |row: &Holding| row.symbol().is_some_and(|held| close_of(&held).is_some());
    let day = order.due.market_day();
    let point = point(&day, PointSource::Close, accounts, &holdings, has_close);
    let point = point.unwrap_or_else(|overflow| {
        // Syncs refuse such amounts. One damaged row must not stop the run.
        tracing::warn!(user = id.0, %overflow, "user not valued at the close");
        unvalued(day.today, accounts, holdings.iter())
    });
    (point, Repriced { holdings, changed })
}
