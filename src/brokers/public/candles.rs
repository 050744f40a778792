//! The public provider's daily candles: the long form of its chart. Pure parsing here; the call
//! itself is the client's and runs on an upstream lane.
//!
//! Prices are adjusted for splits and bonuses as the provider does it, and carry binary noise.

use jiff::Timestamp;
use jiff::civil::Date;
use serde::Deserialize;
use sonic_rs::LazyValue;

use super::wire::NAME;
use super::wire::{self, Chart};
use crate::base::{decimal, ist};
use crate::brokers::call::transport::Reply;
use crate::brokers::history::{self, DailyCandles, Days};
use crate::brokers::{BrokerError, BrokerErrorKind};

const DAY_S: i64 = 86_400;

/// Query of a call. Years of a range are a few sessions short of what is wanted, so the days are
/// named; the end is exclusive.
pub(super) fn query(days: Days, now_ms: i64) -> String {
    let midnight = |date: Date| ist::instant(date.at(0, 0, 0, 0)).as_second();
    let (from, to) = (midnight(days.from), midnight(days.to) + DAY_S);
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

/// Values stay undecoded: any may be null, or text in place of a number.
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

/// The candles of `days`, others dropped; `None` for a symbol that is unknown or retired.
///
/// # Errors [`BrokerError`] by status and body, and [`BrokerErrorKind::Malformed`] where the
/// columns are of uneven length or the time of a bar cannot be read.
pub(super) fn parse(reply: &Reply, days: Days) -> Result<Option<DailyCandles>, BrokerError> {
    let mut read = DailyCandles { simulated: reply.simulated, ..DailyCandles::default() };
    let first = match wire::history(reply)? {
        Chart::Unknown => return Ok(None),
        Chart::NoData => return Ok(Some(read)),
        Chart::Result(first) => first,
    };
    if !wire::is_priced_in_rupees(&first)? {
        return Ok(None);
    }
    let Ok(Wire { timestamp, indicators }) = sonic_rs::from_str(first.as_raw_str()) else {
        return Err(malformed("a chart without columns"));
    };
    // With no bar at all, times and columns may both be absent.
    let times = timestamp.unwrap_or_default();
    let columns = indicators.quote.into_iter().next().unwrap_or_default();
    let Columns { open, high, low, close, volume } = &columns;
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
        // The price of now may be appended behind the day's own bar.
        let appended = at == last && read.candles.last().is_some_and(|candle| candle.date == day);
        if appended || !days.contains(day) {
            continue;
        }
        match history::candle(day, values, decimal::rounded) {
            Some(candle) => read.candles.push(candle),
            None => read.unreadable.push(day),
        }
    }
    Ok(Some(read))
}

/// The day in IST of Unix seconds: bars are stamped when the session opens, a running one when its
/// last price was made.
fn day(seconds: &str) -> Option<Date> {
    let at = Timestamp::from_second(seconds.parse().ok()?).ok()?;
    Some(ist::zoned(at).date())
}

fn malformed(detail: &str) -> BrokerError {
    BrokerError::new(NAME, BrokerErrorKind::Malformed, detail)
}

#[cfg(test)]
#[path = "candles_tests.rs"]
mod tests;
