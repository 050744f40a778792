//! Broker A's candles. Connection threads run this.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};

use super::envelope::{error, success};
use crate::base::ist;
use crate::sim::exchange::day::Bar;
use crate::sim::exchange::hours::regular_hours;
use crate::sim::exchange::noise::rupees;
use crate::sim::server::answer::Answer;
use crate::sim::server::json::{Json, map};
use crate::sim::world::Call;

/// Intervals, their minutes (`None` is a day) and the most days one call may span.
const INTERVALS: [(&str, Option<i64>, i64); 8] = [
    ("minute", Some(1), 60),
    ("3minute", Some(3), 100),
    ("5minute", Some(5), 100),
    ("10minute", Some(10), 100),
    ("15minute", Some(15), 200),
    ("30minute", Some(30), 200),
    ("60minute", Some(60), 400),
    ("day", None, 2_000),
];

/// Answers `/instruments/historical/{token}/{interval}`; `rest` is `{token}/{interval}`.
pub(crate) fn answer(call: &Call<'_>, rest: &str) -> Answer {
    let bad = |text: &str| error(400, "InputException", text);
    let Some((token, interval)) = rest.split_once('/') else {
        return bad("Invalid path.");
    };
    let known = INTERVALS.iter().find(|(name, ..)| *name == interval);
    let Some(&(_, minutes, span_days_max)) = known else {
        return bad("Invalid `interval`.");
    };
    let instrument = token.parse().ok().and_then(|token| call.world.universe.by_token(token));
    let Some(instrument) = instrument else {
        return bad("Invalid `instrument_token`.");
    };
    let bound = |name| call.request.query_value(name).and_then(|text| parsed(&text));
    let (Some(from), Some(to)) = (bound("from"), bound("to")) else {
        return bad("Invalid `from` or `to`.");
    };
    if from > to {
        return bad("`from` is after `to`.");
    }
    let days = (to.date() - from.date()).get_days();
    if i64::from(days) > span_days_max {
        return bad(&format!("interval exceeds max limit: {span_days_max} days"));
    }
    let oi = call.request.query_value("oi").as_deref() == Some("1");
    let (from, to) = (ist::instant(from), ist::instant(to));
    let mut candles = Vec::new();
    let mut date: Date = ist::zoned(from).date();
    let last = call.tick(instrument);
    let end = ist::zoned(to).date().min(last.date);
    while date <= end {
        if call.world.day.sessions().trades_on(date) {
            let bars = match minutes {
                Some(minutes) => call.world.day.bars(instrument, date, minutes, call.prices_at),
                None if date == last.date && last.open == 0 => Vec::new(),
                None if date == last.date => vec![Bar {
                    start: regular_hours(date).0,
                    open: last.open,
                    high: last.high,
                    low: last.low,
                    close: last.last,
                    volume: last.volume,
                }],
                None => vec![call.world.day.day_bar(instrument, date)],
            };
            // A day's candle counts by its date, the others by their start.
            let shown = bars.iter().map(|bar| (stamp(bar, minutes), bar));
            candles.extend(
                shown
                    .filter(|(start, _)| (from..=to).contains(start))
                    .map(|(start, bar)| candle(start, bar, oi)),
            );
        }
        let Ok(next) = date.tomorrow() else { break };
        date = next;
    }
    success(map([("candles", Json::List(candles))]))
}

/// `yyyy-mm-dd hh:mm:ss`, or a date alone.
fn parsed(text: &str) -> Option<DateTime> {
    let whole = DateTime::strptime("%Y-%m-%d %H:%M:%S", text);
    whole.or_else(|_| Date::strptime("%Y-%m-%d", text).map(|date| date.at(0, 0, 0, 0))).ok()
}

/// A candle's start; a day's is midnight.
fn stamp(bar: &Bar, minutes: Option<i64>) -> Timestamp {
    if minutes.is_some() {
        return bar.start;
    }
    ist::instant(ist::zoned(bar.start).date().at(0, 0, 0, 0))
}

fn candle(start: Timestamp, bar: &Bar, oi: bool) -> Json {
    // The offset has no colon.
    let start = ist::zoned(start).strftime("%Y-%m-%dT%H:%M:%S+0530").to_string();
    let mut candle: Vec<Json> = vec![start.into()];
    candle.extend([bar.open, bar.high, bar.low, bar.close].map(|price| rupees(price).into()));
    candle.push(bar.volume.into());
    if oi {
        candle.push(0.into());
    }
    Json::List(candle)
}
