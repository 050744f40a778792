//! Broker A's candles. Connection threads run this.

use jiff::civil::{Date, DateTime};
use serde_json::Value;

use crate::sim::broker_a::responses::{error, success};
use crate::sim::exchange::day::Bar;
use crate::sim::server::message::{Answer, map, price};
use crate::sim::world::Call;

/// Most days that one call may span.
const SPAN_DAYS_MAX: i32 = 2_000;

/// Answers `/instruments/historical/{token}/day`; `rest` is `{token}/day`. The service asks for no
/// other of the broker's intervals.
pub(super) fn history_answer(call: &Call<'_>, rest: &str) -> Answer {
    let bad = |text: &str| error(400, "InputException", text);
    let Some(token) = rest.strip_suffix("/day") else {
        return bad("Invalid `interval`.");
    };
    let instrument = token
        .parse()
        .ok()
        .and_then(|token| call.world.universe.by_token(token));
    let Some(instrument) = instrument else {
        return bad("Invalid `instrument_token`.");
    };
    let bound = |name| {
        call.request
            .query_value(name)
            .and_then(|text| parsed(&text))
    };
    let (Some(from), Some(to)) = (bound("from"), bound("to")) else {
        return bad("Invalid `from` or `to`.");
    };
    if from > to {
        return bad("`from` is after `to`.");
    }
    if (to.date() - from.date()).get_days() > SPAN_DAYS_MAX {
        return bad(&format!("interval exceeds max limit: {SPAN_DAYS_MAX} days"));
    }
    let mut candles = Vec::new();
    let mut date = from.date();
    let last = call.tick(instrument);
    let end = to.date().min(last.date);
    while date <= end {
        // A day's candle begins at midnight.
        let is_asked = (from..=to).contains(&date.at(0, 0, 0, 0));
        if is_asked && call.world.day.sessions.trades_on(date) {
            let bar = match date == last.date {
                true => {
                    (last.open > 0).then(|| last.bar(call.world.day.sessions.regular_hours(date).0))
                }
                false => Some(call.world.day.day_bar(instrument, date)),
            };
            candles.extend(bar.map(|bar| candle(date, &bar)));
        }
        let Ok(next) = date.tomorrow() else { break };
        date = next;
    }
    success(map([("candles", Value::Array(candles))]))
}

/// `yyyy-mm-dd hh:mm:ss`, or a date alone.
fn parsed(text: &str) -> Option<DateTime> {
    let whole = DateTime::strptime("%Y-%m-%d %H:%M:%S", text);
    whole
        .or_else(|_| Date::strptime("%Y-%m-%d", text).map(|date| date.at(0, 0, 0, 0)))
        .ok()
}

fn candle(date: Date, bar: &Bar) -> Value {
    // The offset has no colon.
    let mut candle: Vec<Value> = vec![format!("{date}T00:00:00+0530").into()];
    candle.extend([bar.open, bar.high, bar.low, bar.close].map(price));
    candle.push(bar.volume.into());
    Value::Array(candle)
}
