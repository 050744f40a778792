//! `GET /api/portfolio/pnl`: what everything is worth, and how it came there, a point a date.

use jiff::ToSpan;
use jiff::civil::Date;

use super::{Syncs, Unmade, answer, parameter, totals};
use crate::api::json::{Object, write_object};
use crate::api::{Call, State};
use crate::base::ist;
use crate::cache::View;
use crate::http::{Problem, Reply};
use crate::portfolio::{summary, valuation};
use crate::store::{AccountId, DayPoint, Store};

const DAYS_DEFAULT: u16 = 30;
const DAYS_MAX: u16 = 365;

/// Parks where the answer is not kept. The span ends today, in IST.
pub fn pnl(state: &State, call: &Call<'_>, reply: &mut Reply<'_>) -> Result<(), Problem> {
    let expected = "This is a whole number from 1 to 365.";
    let days = parameter(call, "days", expected, days)?.unwrap_or(DAYS_DEFAULT);
    let today = ist::zoned(state.clock.now()).date();
    answer(state, call, reply, View::Pnl { days, today }, move |store, id| {
        written(store, id, days, today)
    })
}

/// Digits alone: no sign, no blank.
fn days(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|days| plain && (1..=DAYS_MAX).contains(days))
}

fn written(store: &dyn Store, id: AccountId, days: u16, today: Date) -> Result<Vec<u8>, Unmade> {
    let since = today.saturating_sub((i64::from(days) - 1).days());
    let points = store.points(id, since)?;
    let portfolio = store.portfolio(id)?;
    let mut rows = Vec::with_capacity(portfolio.holdings.len());
    for holding in &portfolio.holdings {
        rows.push(valuation(holding)?);
    }
    let summary = summary(&rows)?;
    let syncs = Syncs::of(&portfolio, |_| true);
    let mut out = Vec::with_capacity(128 * (points.len() + 4));
    write_object(&mut out, |object| {
        object.count("days", usize::from(days));
        object.object("summary", |object| totals(object, &summary, &syncs));
        object.list("trend", &points, |out, point| {
            write_object(out, |object| trend_point(object, point));
        });
    });
    Ok(out)
}

fn trend_point(object: &mut Object<'_>, point: &DayPoint) {
    object.text("date", &point.date.to_string());
    object.money("total_invested", point.total_invested);
    object.money("total_current_value", point.total_current_value);
    object.money("total_pnl", point.total_pnl).text("source", point.source.as_str());
    object.count("left_out", point.left_out as usize).count("carried", point.carried as usize);
    object.flag("suspect", point.suspect);
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
