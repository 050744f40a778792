//! Parses the public provider's answers: bytes to typed values. Pure.
//!
//! Two shapes of spark are read (nested as v7 gives it, flat as v8 gives it), and the chart. Prices
//! have binary noise on the wire and are rounded to two places. A price without its time is
//! refused: the feed is delayed, and only the time shows how old a price is.

use std::collections::HashMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::Deserialize;
use sonic_rs::{LazyValue, RawNumber};

use crate::base::json;
use crate::brokers::call::transport::Reply;
use crate::brokers::quote_checks::Claim;
use crate::brokers::{BrokerError, BrokerErrorKind};

/// The name in errors and logs.
pub(in crate::brokers) const NAME: &str = "public provider";

/// The range of every call. Only with it `chartPreviousClose` is yesterday's.
pub(crate) const RANGE: &str = "1d";

/// The only accepted currency, for indices too.
const CURRENCY: &str = "INR";

/// The exchange that retired symbols are filed under.
const RETIRED: &str = "YHD";

/// The provider's message for a symbol without a bar in the requested days.
const NO_DATA: &str = "Data doesn't exist";

/// Bytes at the start of a text answer that are searched for known phrases.
const PHRASE_BYTES_MAX: usize = 4_096;

/// Characters of the provider's own message that go into the log.
const DETAIL_CHARS_MAX: usize = 120;

/// The provider's answer about one symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// A price and its time. The flat shape has no range.
    Price(Claim),
    /// A retired symbol. Its row has no currency, or an exchange of the provider's own.
    Ghost,
    /// A price that is missing, in another currency, or without a time.
    Nonsense,
}

/// A batch answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Spark {
    /// Rows by the provider's symbol. Unknown symbols are left out.
    Rows(HashMap<String, Said>),
    /// The provider reports that it knows none of the symbols.
    NoneKnown,
    /// A success without rows or a message.
    Empty,
}

#[derive(Deserialize)]
struct Fault {
    code: Option<String>,
    description: Option<String>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    result: Option<Vec<LazyValue<'a>>>,
    error: Option<Fault>,
}

#[derive(Deserialize)]
struct Top<'a> {
    #[serde(borrow)]
    spark: Option<Answer<'a>>,
    #[serde(borrow)]
    chart: Option<Answer<'a>>,
    #[serde(borrow)]
    finance: Option<Answer<'a>>,
}

#[derive(Deserialize)]
struct Named {
    symbol: Option<String>,
}

#[derive(Deserialize)]
struct Charts<'a> {
    #[serde(borrow)]
    response: Vec<LazyValue<'a>>,
}

#[derive(Deserialize)]
struct WithMeta<'a> {
    #[serde(borrow)]
    meta: Meta<'a>,
}

/// A chart answer, read for its bars.
pub(super) enum Chart<'a> {
    Result(LazyValue<'a>),
    /// There is no such symbol.
    Unknown,
    /// The symbol exists, without a bar in the requested days.
    NoData,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    currency: Option<String>,
    exchange_name: Option<String>,
    regular_market_price: Option<RawNumber>,
    regular_market_time: Option<RawNumber>,
    previous_close: Option<RawNumber>,
    chart_previous_close: Option<RawNumber>,
    /// One that is no number spoils nothing else.
    #[serde(borrow)]
    regular_market_day_low: Option<LazyValue<'a>>,
    #[serde(borrow)]
    regular_market_day_high: Option<LazyValue<'a>>,
    range: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Flat {
    /// Required, to distinguish the flat shape from any other map.
    #[serde(rename = "symbol")]
    _symbol: String,
    timestamp: Option<Vec<Option<i64>>>,
    close: Option<Vec<Option<RawNumber>>>,
    previous_close: Option<RawNumber>,
    chart_previous_close: Option<RawNumber>,
    fullday_price: Option<RawNumber>,
}

/// Reads a spark answer of either shape.
///
/// # Errors
/// [`BrokerError`] by status and body.
pub(crate) fn spark(reply: &Reply) -> Result<Spark, BrokerError> {
    let mut top = top(reply)?;
    if let Some(answer) = top.spark.take() {
        let Some(results) = results(reply, answer)? else {
            return Ok(Spark::NoneKnown);
        };
        let rows: HashMap<_, _> = results.iter().filter_map(nested).collect();
        return Ok(if rows.is_empty() {
            Spark::Empty
        } else {
            Spark::Rows(rows)
        });
    }
    let is_flat = top.chart.is_none() && top.finance.is_none() && reply.status == 200;
    if is_flat {
        flat(reply)
    } else {
        Err(top.unexpected(reply))
    }
}

/// Reads a chart answer for its last price; `None` for an unknown symbol.
///
/// # Errors
/// [`BrokerError`] by status and body.
pub(crate) fn chart(reply: &Reply) -> Result<Option<Said>, BrokerError> {
    match history(reply)? {
        Chart::Result(first) => Ok(Some(said(&first))),
        Chart::Unknown => Ok(None),
        Chart::NoData => Err(refused(reply, None)),
    }
}

/// Reads a chart answer for its bars.
///
/// # Errors
/// [`BrokerError`] by status and body.
pub(super) fn history(reply: &Reply) -> Result<Chart<'_>, BrokerError> {
    let mut top = top(reply)?;
    let Some(answer) = top.chart.take() else {
        return Err(top.unexpected(reply));
    };
    let description = answer
        .error
        .as_ref()
        .and_then(|fault| fault.description.as_deref());
    if description.is_some_and(|text| text.starts_with(NO_DATA)) {
        return Ok(Chart::NoData);
    }
    let Some(results) = results(reply, answer)? else {
        return Ok(Chart::Unknown);
    };
    let first = results.into_iter().next().map(Chart::Result);
    first.ok_or_else(|| malformed("chart without result"))
}

impl Top<'_> {
    /// The error of an answer that does not belong to the request.
    fn unexpected(self, reply: &Reply) -> BrokerError {
        let Some(answer) = self.finance.or(self.chart).or(self.spark) else {
            return refused(reply, None);
        };
        results(reply, answer)
            .err()
            .unwrap_or_else(|| malformed("another answer"))
    }
}

/// Whether a chart belongs to a live symbol; `false` for a retired one, and for one in another
/// currency, which is a different share.
///
/// # Errors
/// [`BrokerErrorKind::Malformed`] without `meta`.
pub(super) fn is_priced_in_rupees(chart: &LazyValue<'_>) -> Result<bool, BrokerError> {
    let Ok(WithMeta { meta }) = sonic_rs::from_str(chart.as_raw_str()) else {
        return Err(malformed("chart without meta"));
    };
    let retired = meta.exchange_name.as_deref() == Some(RETIRED);
    Ok(!retired && meta.currency.as_deref() == Some(CURRENCY))
}

/// Checks the status, then parses the JSON.
fn top(reply: &Reply) -> Result<Top<'_>, BrokerError> {
    let status = reply.status;
    let body = reply.body.trim_ascii();
    let head = String::from_utf8_lossy(&body[..body.len().min(PHRASE_BYTES_MAX)]);
    let is_json = body.starts_with(b"{");
    // Old hosts send 999 instead of 429.
    if matches!(status, 429 | 999) || (!is_json && head.contains("Too Many Requests")) {
        let retry_after = reply.retry_after.unwrap_or_default();
        return Err(BrokerError::new(NAME, BrokerErrorKind::RateLimited, "").after(retry_after));
    }
    if status >= 500 || (!is_json && (status >= 400 || head.contains("Will be right back"))) {
        let detail = format!("{} bytes", body.len());
        return Err(BrokerError::new(NAME, BrokerErrorKind::Failed { status }, detail));
    }
    if !is_json {
        return Err(malformed("not JSON"));
    }
    json::parse(&reply.body).ok_or_else(|| malformed("JSON of another shape"))
}

/// The results; `None` if the provider reports that it does not know the name.
fn results<'a>(
    reply: &Reply,
    answer: Answer<'a>,
) -> Result<Option<Vec<LazyValue<'a>>>, BrokerError> {
    if let Some(fault) = &answer.error {
        return match fault.code.as_deref() {
            Some("Not Found") => Ok(None),
            _ => Err(refused(reply, Some(fault))),
        };
    }
    match reply.status {
        200 => Ok(Some(answer.result.unwrap_or_default())),
        404 if answer.result.is_none() => Ok(None),
        _ => Err(refused(reply, None)),
    }
}

fn nested(result: &LazyValue<'_>) -> Option<(String, Said)> {
    let text = result.as_raw_str();
    let symbol = sonic_rs::from_str::<Named>(text).ok()?.symbol?;
    let charts: Option<Charts<'_>> = sonic_rs::from_str(text).ok();
    let first = charts.and_then(|charts| charts.response.into_iter().next());
    Some((symbol, first.map_or(Said::Nonsense, |first| said(&first))))
}

fn said(chart: &LazyValue<'_>) -> Said {
    let Ok(WithMeta { meta }) = sonic_rs::from_str(chart.as_raw_str()) else {
        return Said::Nonsense;
    };
    if meta.exchange_name.as_deref() == Some(RETIRED) {
        return Said::Ghost;
    }
    match meta.currency.as_deref() {
        None => return Said::Ghost,
        Some(CURRENCY) => {}
        Some(_) => return Said::Nonsense,
    }
    let of_yesterday = meta.range.as_deref().is_none_or(|range| range == RANGE);
    let previous_close = positive(meta.previous_close.as_ref())
        .or_else(|| positive(meta.chart_previous_close.as_ref()).filter(|_| of_yesterday));
    let as_of = meta.regular_market_time.as_ref().and_then(|time| {
        Timestamp::from_second(json::parse_decimal(time.as_str())?.to_i64()?).ok()
    });
    let end = |value: Option<&LazyValue<'_>>| positive_text(value?.as_raw_str());
    let low = end(meta.regular_market_day_low.as_ref());
    let high = end(meta.regular_market_day_high.as_ref());
    match positive(meta.regular_market_price.as_ref()) {
        Some(last_price) if as_of.is_some() => {
            let open = None;
            let limits = None;
            Said::Price(Claim {
                last_price,
                previous_close,
                open,
                low,
                high,
                limits,
                as_of,
            })
        }
        _ => Said::Nonsense,
    }
}

fn flat(reply: &Reply) -> Result<Spark, BrokerError> {
    let rows: HashMap<String, Flat> =
        json::parse(&reply.body).ok_or_else(|| malformed("JSON of another shape"))?;
    if rows.is_empty() {
        return Ok(Spark::Empty);
    }
    Ok(Spark::Rows(
        rows.into_iter()
            .map(|(symbol, row)| (symbol, said_flat(&row)))
            .collect(),
    ))
}

/// The flat shape has no currency, so the suffix of the requested symbol stands for it.
fn said_flat(row: &Flat) -> Said {
    let (Some(times), Some(closes)) = (&row.timestamp, &row.close) else {
        return Said::Nonsense;
    };
    if times.len() != closes.len() {
        return Said::Nonsense;
    }
    let bars = times.iter().zip(closes).rev();
    let last = bars
        .filter_map(|(time, close)| Some(((*time)?, positive(close.as_ref())?)))
        .find_map(|(time, close)| Some((Timestamp::from_second(time).ok()?, close)));
    let Some((as_of, close)) = last else {
        return Said::Nonsense;
    };
    Said::Price(Claim {
        last_price: positive(row.fullday_price.as_ref()).unwrap_or(close),
        previous_close: positive(row.previous_close.as_ref())
            .or_else(|| positive(row.chart_previous_close.as_ref())),
        open: None,
        low: None,
        high: None,
        limits: None,
        as_of: Some(as_of),
    })
}

/// A positive number without its binary noise.
fn positive(number: Option<&RawNumber>) -> Option<Decimal> {
    positive_text(number?.as_str())
}

fn positive_text(text: &str) -> Option<Decimal> {
    let value = json::rounded(json::parse_decimal(text)?);
    (value > Decimal::ZERO).then_some(value)
}

pub(super) fn malformed(detail: &str) -> BrokerError {
    BrokerError::new(NAME, BrokerErrorKind::Malformed, detail)
}

fn refused(reply: &Reply, fault: Option<&Fault>) -> BrokerError {
    let word = |text: Option<&String>| -> String {
        text.map(|text| text.chars().take(DETAIL_CHARS_MAX).collect())
            .unwrap_or_default()
    };
    let code = word(fault.and_then(|fault| fault.code.as_ref()));
    let description = word(fault.and_then(|fault| fault.description.as_ref()));
    let detail = format!("HTTP {} {code}: {description}", reply.status);
    BrokerError::new(NAME, BrokerErrorKind::Refused, detail)
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
