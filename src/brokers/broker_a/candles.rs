//! Broker A's daily candles: one instrument's, by its token. Pure parsing here; the call itself is
//! the client's and runs on an upstream lane.

use jiff::Timestamp;
use jiff::civil::Date;
use serde::Deserialize;
use sonic_rs::LazyValue;

use super::wire;
use super::wire::NAME;
use crate::base::ist;
use crate::brokers::call::transport::Reply;
use crate::brokers::history::{self, DailyCandles, Days};
use crate::brokers::{BrokerError, BrokerErrorKind};

/// Least time between two calls for candles: the broker allows three a second, and a call that is
/// slow to connect must not meet the one before it.
pub(super) const INTERVAL_MS: u64 = 350;

/// Bytes of a timestamp, which is text in quotes; a longer one is none.
const STAMP_BYTES_MAX: usize = 40;

/// Path and query of a call: whole days, the last one included.
pub(super) fn target(instrument_token: u32, days: Days) -> String {
    let Days { from, to } = days;
    format!("/instruments/historical/{instrument_token}/day?from={from}+00:00:00&to={to}+23:59:59")
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    candles: Vec<LazyValue<'a>>,
}

/// The candles of `days`; others are dropped.
///
/// # Errors As [`wire::data`], and [`BrokerErrorKind::Malformed`] without a list of candles or
/// where the day of one cannot be read.
pub(super) fn parse(reply: &Reply, days: Days) -> Result<DailyCandles, BrokerError> {
    let data = wire::data(reply)?;
    let Ok(Wire { candles }) = sonic_rs::from_str(data.as_raw_str()) else {
        return Err(malformed("candles that are no list"));
    };
    let mut read = DailyCandles { simulated: reply.simulated, ..DailyCandles::default() };
    for candle in &candles {
        let row: Vec<LazyValue<'_>> = sonic_rs::from_str(candle.as_raw_str()).unwrap_or_default();
        let day = row.first().and_then(|stamp| day(stamp.as_raw_str()));
        let Some(day) = day else { return Err(malformed("a candle without its day")) };
        if !days.contains(day) {
            continue;
        }
        // A seventh value, open interest, comes only where it is asked for.
        let values: Option<[&str; 5]> = row.get(1..6).and_then(|values| {
            let texts: Vec<&str> = values.iter().map(LazyValue::as_raw_str).collect();
            texts.try_into().ok()
        });
        match values.and_then(|values| history::candle(day, values, |price| price)) {
            Some(candle) => read.candles.push(candle),
            None => read.unreadable.push(day),
        }
    }
    Ok(read)
}

/// The day of `"2017-12-15T00:00:00+0530"` in IST. The offset has no colon, which RFC 3339 asks
/// for; one with a colon is read too.
fn day(quoted: &str) -> Option<Date> {
    let text = quoted.strip_prefix('"')?.strip_suffix('"')?;
    if text.len() > STAMP_BYTES_MAX {
        return None;
    }
    let without_colon = Timestamp::strptime("%Y-%m-%dT%H:%M:%S%z", text);
    let at = without_colon.or_else(|_| text.parse::<Timestamp>()).ok()?;
    Some(ist::zoned(at).date())
}

fn malformed(detail: &str) -> BrokerError {
    BrokerError::new(NAME, BrokerErrorKind::Malformed, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTES: &[u8] =
        include_bytes!("../../../tests/fixtures/broker_a/historical_minute.json");

    fn days(from: &str, to: &str) -> Days {
        Days { from: from.parse().unwrap(), to: to.parse().unwrap() }
    }

    fn reply(body: &[u8]) -> Reply {
        Reply {
            status: 200,
            retry_after: None,
            content_type: Some("application/json".into()),
            simulated: false,
            body: body.to_vec(),
        }
    }

    fn rows(rows: &str) -> Result<DailyCandles, BrokerError> {
        let body = format!(r#"{{"status":"success","data":{{"candles":[{rows}]}}}}"#);
        parse(&reply(body.as_bytes()), days("2026-11-01", "2026-11-20"))
    }

    #[test]
    fn reads_the_official_sample() {
        let read = parse(&reply(MINUTES), days("2017-12-15", "2017-12-15")).unwrap();
        assert_eq!((read.candles.len(), read.unreadable.len()), (6, 0));
        let first = read.candles[0];
        let prices = (first.open_e4, first.high_e4, first.low_e4, first.close_e4);
        assert_eq!(prices, (17_045_000, 17_050_000, 16_992_500, 17_028_000));
        assert_eq!((first.date.to_string().as_str(), first.volume), ("2017-12-15", 2_499));
        let elsewhere = parse(&reply(MINUTES), days("2017-12-16", "2017-12-31")).unwrap();
        assert_eq!(elsewhere, DailyCandles::default(), "other days are dropped");
    }

    #[test]
    fn the_day_is_read_in_ist_with_and_without_a_colon() {
        for (stamp, expected) in [
            ("2026-11-20T00:00:00+0530", Some("2026-11-20")),
            ("2026-11-20T00:00:00+05:30", Some("2026-11-20")),
            ("2026-11-19T18:30:00+0000", Some("2026-11-20")),
            ("2026-11-19T18:30:00Z", Some("2026-11-20")),
            ("2026-11-20", None),
            ("2026-11-31T00:00:00+0530", None),
            ("", None),
        ] {
            let day = day(&format!("\"{stamp}\"")).map(|day| day.to_string());
            assert_eq!(day.as_deref(), expected, "{stamp}");
        }
        assert_eq!(day("20261120"), None);
    }

    #[test]
    fn no_data_is_no_candle() {
        assert_eq!(rows("").unwrap(), DailyCandles::default());
        assert_eq!(rows("").unwrap().covers(), None);
    }

    #[test]
    fn a_bad_row_costs_its_day_and_no_other() {
        let good = r#"["2026-11-20T00:00:00+0530",10,11.5,9,10,7]"#;
        for bad in [
            r#"["2026-11-19T00:00:00+0530",10,"NaN",9,10,7]"#,
            r#"["2026-11-19T00:00:00+0530",10,null,9,10,7]"#,
            r#"["2026-11-19T00:00:00+0530",10,11]"#,
            r#"["2026-11-19T00:00:00+0530",10,11,9,10,1e40]"#,
        ] {
            let read = rows(&format!("{bad},{good}")).unwrap();
            assert_eq!(read.candles.len(), 1, "{bad}");
            assert_eq!(read.unreadable, [jiff::civil::date(2026, 11, 19)], "{bad}");
            assert_eq!(read.covers().unwrap().0, read.candles[0].date);
        }
        let oi = rows(r#"["2026-11-20T00:00:00+0530",10,11.5,9,10,7,0]"#).unwrap();
        assert_eq!(oi, rows(good).unwrap(), "open interest is not ours");
    }

    #[test]
    fn what_is_no_history_is_refused() {
        for bad in [r#"["x",1,2,3,4,5]"#, "7", "[]", "{}", r#"[NaN,1,1,1,1,1]"#] {
            let error = rows(bad).unwrap_err();
            assert_eq!(error.kind, BrokerErrorKind::Malformed, "{bad}: {error}");
        }
        // A bare NaN is no JSON, so nothing of the answer can be trusted.
        rows(r#"["2026-11-19T00:00:00+0530",10,NaN,9,10,7]"#).unwrap_err();
        for body in [r#"{"status":"success","data":{}}"#, r#"{"status":"success"}"#, "<html>"] {
            parse(&reply(body.as_bytes()), days("2026-11-01", "2026-11-20")).unwrap_err();
        }
    }
}
