//! The public provider's daily candles, from the long form of its chart. Pure parsing; the client
//! makes the call on an upstream lane.
//!
//! The provider adjusts prices for splits and bonuses. They have binary noise.

use jiff::Timestamp;
use jiff::civil::Date;
use serde::Deserialize;
use sonic_rs::LazyValue;

use crate::base::{clock, json};
use crate::brokers::call::transport::Reply;
use crate::brokers::portfolio::{DailyCandles, Days};
use crate::brokers::public::wire;
use crate::brokers::public::wire::{Chart, malformed};
use crate::brokers::{BrokerError, portfolio};

const DAY_S: i64 = 86_400;

/// Query of a call. It names the days, because a range in years lacks a few sessions. The end is
/// exclusive.
pub(super) fn query(days: Days, now_ms: i64) -> String {
    let midnight = |date: Date| clock::instant(date.at(0, 0, 0, 0)).as_second();
    let from = midnight(days.from);
    let to = midnight(days.to) + DAY_S;
    format!("period1={from}&period2={to}&interval=1d&_={now_ms}")
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    timestamp: Option<Vec<LazyValue<'a>>>,
    #[serde(borrow)]
    indicators: Indicators<'a>,
}

#[derive(Deserialize)]
struct Indicators<'a> {
    #[serde(borrow)]
    quote: Vec<Columns<'a>>,
}

/// Values stay undecoded, because any may be null or text instead of a number.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Columns<'a> {
    #[serde(borrow)]
    open: Vec<LazyValue<'a>>,
    #[serde(borrow)]
    high: Vec<LazyValue<'a>>,
    #[serde(borrow)]
    low: Vec<LazyValue<'a>>,
    #[serde(borrow)]
    close: Vec<LazyValue<'a>>,
    #[serde(borrow)]
    volume: Vec<LazyValue<'a>>,
}

/// The candles of `days`; others are dropped. `None` for an unknown or retired symbol.
///
/// # Errors
/// [`BrokerError`] by status and body, and `BrokerErrorKind::Malformed` if the columns have
/// different lengths or the time of a bar cannot be read.
pub(super) fn parse(reply: &Reply, days: Days) -> Result<Option<DailyCandles>, BrokerError> {
    let mut read = DailyCandles {
        simulated: reply.simulated,
        ..DailyCandles::default()
    };
    let first = match wire::history(reply)? {
        Chart::Unknown => return Ok(None),
        Chart::NoData => return Ok(Some(read)),
        Chart::Result(first) => first,
    };
    if !wire::is_priced_in_rupees(&first)? {
        return Ok(None);
    }
    let Ok(Wire {
        timestamp,
        indicators,
    }) = sonic_rs::from_str(first.as_raw_str())
    else {
        return Err(malformed("a chart without columns"));
    };
    // Without any bar, times and columns may both be absent.
    let times = timestamp.unwrap_or_default();
    let columns = indicators.quote.into_iter().next().unwrap_or_default();
    let Columns {
        open,
        high,
        low,
        close,
        volume,
    } = &columns;
    let columns = [open, high, low, close, volume];
    if columns.iter().any(|column| column.len() != times.len()) {
        return Err(malformed("columns of uneven length"));
    }
    let last = times.len().saturating_sub(1);
    for (at, time) in times.iter().enumerate() {
        let Some(day) = day(time.as_raw_str()) else {
            return Err(malformed("a bar without its time"));
        };
        let values = columns.map(|column| column[at].as_raw_str());
        // The current price may be appended behind the day's own bar.
        let appended = at == last && read.candles.last().is_some_and(|candle| candle.date == day);
        if appended || !days.contains(day) {
            continue;
        }
        match portfolio::candle(day, values, json::rounded) {
            Some(candle) => read.candles.push(candle),
            None => read.unreadable.push(day),
        }
    }
    Ok(Some(read))
}

/// The day in IST of Unix seconds. A bar has the time at which the session opens, a running one
/// that of its last price.
fn day(seconds: &str) -> Option<Date> {
    let at = Timestamp::from_second(seconds.parse().ok()?).ok()?;
    Some(clock::zoned(at).date())
}

#[cfg(test)]
#[path = "candles_tests.rs"]
mod tests;
