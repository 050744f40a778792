//! What the evening's revaluation does with the store: jobs of the lane `close`, which block.
//!
//! One page of users is read, valued and written in one job; nothing of it outlives the job.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::civil::Date;
use rust_decimal::Decimal;

use super::due::Due;
use crate::base::Symbol;
use crate::cache::Answers;
use crate::portfolio::{Point, point_at_close};
use crate::store::{
    AccountId, CloseRun, DayPoint, PointSource, Portfolio, Store, StoreError, Valued,
};

/// Symbols read from the store at a time.
const SYMBOLS_PAGE: usize = 1_000;

/// Closing prices of one date.
pub type Closes = HashMap<Symbol, Decimal>;

/// How a job ended well.
pub enum Done {
    Looked(Looked),
    Kept,
    Paged(Paged),
}

/// What the store has of a date's run.
pub struct Looked {
    pub run: CloseRun,
    pub closes: Closes,
    /// Held, and without a kept close.
    pub missing: Vec<Symbol>,
    /// There are more than the run takes on.
    pub cut_off: bool,
}

/// One page, written.
#[derive(Debug)]
pub struct Paged {
    pub done_to: AccountId,
    /// Users that have a point now, unless their portfolio changed meanwhile.
    pub users: usize,
    /// Holdings in it that had no closing price.
    pub carried: u64,
    /// It was the last one, and the run is finished.
    pub is_last: bool,
}

/// What one page is made of.
pub struct PageOrder {
    pub due: Due,
    pub after: AccountId,
    pub users_max: usize,
    pub closes: Arc<Closes>,
    pub now_ms: i64,
    /// Told whose points are new.
    pub answers: Arc<Answers>,
}

/// Reads how far the run of `date` has come, and what it lacks: at most `symbols_max` symbols in
/// all.
pub fn look(store: &dyn Store, date: Date, symbols_max: usize) -> Result<Looked, StoreError> {
    let run = store.close_run(date)?;
    let mut looked = Looked { run, closes: Closes::new(), missing: Vec::new(), cut_off: false };
    if run == CloseRun::Finished {
        return Ok(looked);
    }
    looked.closes = store.closes(date)?.into_iter().collect();
    let mut seen = 0;
    let mut after: Option<Symbol> = None;
    loop {
        let page = store.held_symbols(after.as_ref(), SYMBOLS_PAGE)?;
        let is_last = page.len() < SYMBOLS_PAGE;
        after = page.last().cloned();
        let room = symbols_max - seen;
        looked.cut_off = page.len() > room;
        seen += page.len().min(room);
        let lacking = page.into_iter().take(room);
        looked.missing.extend(lacking.filter(|symbol| !looked.closes.contains_key(symbol)));
        if is_last || looked.cut_off {
            return Ok(looked);
        }
    }
}

/// Values the next users and writes their points with the run's progress.
pub fn page(store: &dyn Store, order: &PageOrder) -> Result<Paged, StoreError> {
    let portfolios = store.portfolios_after(order.after, order.users_max)?;
    let is_last = portfolios.len() < order.users_max;
    let done_to = portfolios.last().map_or(order.after, |(id, _)| *id);
    let points: Vec<Valued> =
        portfolios.into_iter().filter_map(|(id, held)| valued(id, held, order)).collect();
    let users: Vec<AccountId> = points.iter().map(|valued| valued.id).collect();
    let carried = points.iter().map(|valued| u64::from(valued.point.carried)).sum();
    let finished_ms = is_last.then_some(order.now_ms);
    store.keep_points(order.due.date, points, done_to, finished_ms)?;
    users.iter().for_each(|user| order.answers.invalidate(user.0));
    Ok(Paged { done_to, users: users.len(), carried, is_last })
}

/// `None` for users who were never synced, or have nothing.
fn valued(id: AccountId, portfolio: Portfolio, order: &PageOrder) -> Option<Valued> {
    let synced_ms = portfolio.syncs.iter().map(|sync| sync.synced_ms).max()?;
    if portfolio.holdings.is_empty() {
        return None;
    }
    let close_of = |symbol: &Symbol| order.closes.get(symbol).copied();
    match point_at_close(portfolio.holdings, order.due.close, close_of) {
        Ok(point) => {
            let source = PointSource::Close;
            let Point { total_invested, total_current_value, total_pnl, .. } = point;
            let Point { date, left_out, carried, suspect, .. } = point;
            let totals = DayPoint {
                date,
                total_invested,
                total_current_value,
                total_pnl,
                source,
                left_out,
                carried,
                suspect,
            };
            Some(Valued { id, synced_ms, point: totals })
        }
        Err(error) => {
            // Syncs refuse such amounts, so this run must not stand still for one user.
            tracing::warn!(user = id.0, %error, "no point at the close");
            None
        }
    }
}
