//! `GET /api/portfolio/pnl`: the total value, and its history with one point a date.

use jiff::ToSpan;
use jiff::civil::Date;

use crate::api::call::{Call, Handled};
use crate::api::portfolio::answer::{Syncs, answer, totals};
use crate::api::query::{parameter, whole};
use crate::api::state::State;
use crate::base::{Account, MarketDay};
use crate::cache::View;
use crate::http::{Problem, Response};
use crate::portfolio::{DayPoint, Overflow, summary, valued};
use crate::store::{Portfolio, Store};
use crate::views::holdings::{Pnl, TrendPoint, Week};
use crate::views::values;
use crate::views::values::{Day, Money};

const DAYS_DEFAULT: u16 = 30;
pub(crate) const DAYS_MAX: u16 = 365;
/// The change over a week is of two points that are this far apart.
const WEEK_DAYS: i64 = 7;
/// How much farther they may be, since markets close for some days.
const CLOSED_DAYS_MAX: i64 = 7;

/// Parks if the response is not cached. The span ends today, in IST.
pub(crate) fn pnl(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let expected = "This is a whole number from 1 to 365.";
    let days = parameter(call.query(), "days", expected, whole(1..=DAYS_MAX))?;
    let days = days.unwrap_or(DAYS_DEFAULT);
    let MarketDay { today, day, .. } = state.market_day(state.clock.now());
    let since = today.saturating_sub((i64::from(days) - 1).days());
    let read_since = since.min(today.saturating_sub((2 * WEEK_DAYS + CLOSED_DAYS_MAX).days()));
    let read = |store: &Store, id| Ok((store.points(id, read_since)?, store.portfolio(id)?));
    let write = move |(points, portfolio): &(Vec<DayPoint>, Portfolio)| {
        let week = week(points)?;
        let shown = &points[points.partition_point(|point| point.date < since)..];
        pnl_written(shown, week, portfolio, days, day)
    };
    answer(state, call, response, View::Pnl { days, today, day }, read, write)
}

/// The newest point compared with that of a week before.
fn week(points: &[DayPoint]) -> Result<Option<Week>, Overflow> {
    let Some(last) = points.last() else {
        return Ok(None);
    };
    let before = |days: i64| last.date.saturating_sub(days.days());
    let near = before(WEEK_DAYS);
    let far = before(WEEK_DAYS + CLOSED_DAYS_MAX);
    let first = points.iter().rfind(|point| point.date <= near);
    let Some(first) = first.filter(|point| point.date >= far) else {
        return Ok(None);
    };
    let held = |point: &DayPoint| {
        (point.made_of.map(|made| (made.accounts, made.holdings)), point.total_invested)
    };
    let pnl_change = last
        .total_pnl
        .checked_sub(first.total_pnl)
        .ok_or(Overflow)?;
    Ok(Some(Week {
        from: Day(first.date),
        to: Day(last.date),
        pnl_change: Money(pnl_change),
        changed: held(first) != held(last),
    }))
}

fn pnl_written(
    points: &[DayPoint],
    week: Option<Week>,
    portfolio: &Portfolio,
    days: u16,
    day: Option<Date>,
) -> Result<Vec<u8>, Problem> {
    let summary = summary(&valued(&portfolio.holdings)?, day)?;
    let syncs = Syncs::of(portfolio, |_| true);
    let view = Pnl {
        days,
        summary: totals(&summary, day, &syncs),
        week,
        trend: points.iter().map(trend_point).collect(),
    };
    let mut out = Vec::with_capacity(256 * (points.len() + 4));
    values::write(&mut out, &view);
    Ok(out)
}

fn trend_point(point: &DayPoint) -> TrendPoint {
    TrendPoint {
        date: Day(point.date),
        total_invested: Money(point.total_invested),
        total_current_value: Money(point.total_current_value),
        total_pnl: Money(point.total_pnl),
        value_without_cost: point.value_without_cost.map(Money),
        source: point.source,
        left_out: point.left_out,
        carried: point.carried,
        brokers: point
            .made_of
            .map(|made| made.accounts.iter().map(Account::broker).collect()),
        holdings: point.made_of.map(|made| made.holdings),
        suspect: point.suspect,
        discrepancies: point.made_of.map(|made| made.discrepancies),
    }
}
