//! `GET /api/portfolio/pnl`: what everything is worth, and how it came there, a point a date.

use jiff::ToSpan;
use jiff::civil::Date;

use super::answer::{Syncs, answer, parameter, totals};
use crate::api::call::Call;
use crate::api::state::State;
use crate::base::MarketDay;
use crate::cache::View;
use crate::http::{Problem, Response};
use crate::portfolio::{DayPoint, summary, valued};
use crate::store::{Portfolio, Store};
use crate::views::json;
use crate::views::pnl::{Pnl, TrendPoint};
use crate::views::values::{Day, Money};

const DAYS_DEFAULT: u16 = 30;
const DAYS_MAX: u16 = 365;

/// Parks where the answer is not kept. The span ends today, in IST.
pub fn pnl(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let expected = "This is a whole number from 1 to 365.";
    let days = parameter(call, "days", expected, days)?.unwrap_or(DAYS_DEFAULT);
    let MarketDay { today, day, .. } = state.market_day(state.clock.now());
    let since = today.saturating_sub((i64::from(days) - 1).days());
    let read = |store: &dyn Store, id| Ok((store.points(id, since)?, store.portfolio(id)?));
    let write = move |(points, portfolio): &(Vec<DayPoint>, Portfolio)| {
        written(points, portfolio, days, day)
    };
    answer(state, call, reply, View::Pnl { days, today, day }, read, write)
}

/// Digits alone: no sign, no blank.
fn days(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|days| plain && (1..=DAYS_MAX).contains(days))
}

fn written(
    points: &[DayPoint],
    portfolio: &Portfolio,
    days: u16,
    day: Option<Date>,
) -> Result<Vec<u8>, Problem> {
    let summary = summary(&valued(&portfolio.holdings)?, day)?;
    let syncs = Syncs::of(portfolio, |_| true);
    let view = Pnl {
        days,
        summary: totals(&summary, day, &syncs),
        trend: points.iter().map(trend_point).collect(),
    };
    let mut out = Vec::with_capacity(256 * (points.len() + 4));
    json::write(&mut out, &view);
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
        brokers: point.made_of.map(|made| made.brokers.iter().collect()),
        holdings: point.made_of.map(|made| made.holdings),
        suspect: point.suspect,
        discrepancies: point.made_of.map(|made| made.discrepancies),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_one_to_a_year() {
        for (text, expected) in
            [("1", Some(1)), ("365", Some(365)), ("030", Some(30)), ("0", None), ("366", None)]
        {
            assert_eq!(days(text), expected, "{text}");
        }
        for bad in ["", "-1", "+1", "1.0", "ten", " 7", "99999999999"] {
            assert_eq!(days(bad), None, "{bad}");
        }
    }
}
