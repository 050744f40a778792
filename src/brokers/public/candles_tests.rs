//! Tests of daily charts and their traps.

use super::*;
use crate::base::Candle;
use crate::brokers::BrokerErrorKind;

const META: &str = r#"{"currency":"INR","symbol":"BEL.NS","exchangeName":"NSI"}"#;
/// 09:15 IST of 18 to 20 November 2026.
const OPENS: [i64; 3] = [1_794_973_500, 1_795_059_900, 1_795_146_300];

fn reply(status: u16, body: &str) -> Reply {
    let body = body.as_bytes().to_vec();
    Reply {
        status,
        retry_after: None,
        content_type: None,
        simulated: true,
        body,
    }
}

fn days() -> Days {
    Days {
        from: "2026-11-17".parse().unwrap(),
        to: "2026-11-20".parse().unwrap(),
    }
}

fn of(status: u16, body: &str) -> Result<Option<DailyCandles>, BrokerError> {
    parse(&reply(status, body), days())
}

fn chart(meta: &str, times: &str, close: &str, volume: &str) -> String {
    format!(
        r#"{{"chart":{{"result":[{{"meta":{meta},"timestamp":[{times}],"indicators":{{
        "quote":[{{"open":[{close}],"high":[{close}],"low":[{close}],"close":[{close}],
        "volume":[{volume}]}}],"adjclose":[{{"adjclose":[{close}]}}]}}}}],"error":null}}}}"#
    )
}

fn series(times: &[i64], close: &str, volume: &str) -> Result<Option<DailyCandles>, BrokerError> {
    let times: Vec<String> = times.iter().map(i64::to_string).collect();
    of(200, &chart(META, &times.join(","), close, volume))
}

fn fault(code: &str, description: &str) -> String {
    let error = format!(r#"{{"code":"{code}","description":"{description}"}}"#);
    format!(r#"{{"chart":{{"result":null,"error":{error}}}}}"#)
}

fn closes(read: &DailyCandles) -> Vec<(String, i64)> {
    read.candles
        .iter()
        .map(|candle| (candle.date.to_string(), candle.close_e4))
        .collect()
}

#[test]
fn bars_are_dated_in_ist_and_rounded() {
    let read = series(&OPENS, "2436.199951171875,10,10.006", "5,0,7")
        .unwrap()
        .unwrap();
    let expected = [
        ("2026-11-18", 24_362_000),
        ("2026-11-19", 100_000),
        ("2026-11-20", 100_100),
    ];
    assert_eq!(closes(&read), expected.map(|(date, close)| (date.to_owned(), close)));
    assert!(read.simulated && read.unreadable.is_empty());
    assert_eq!(read.candles[1].volume, 0, "holiday rows are for the check to judge");
    assert_eq!(read.covers(), Some((read.candles[0].date, read.candles[2].date)));
}

#[test]
fn null_bars_and_text_cost_their_day() {
    for bad in ["null", r#""NaN""#] {
        let read = series(&OPENS, &format!("1,{bad},3"), "1,2,3")
            .unwrap()
            .unwrap();
        assert_eq!(read.candles.len(), 2);
        assert_eq!(read.unreadable, [jiff::civil::date(2026, 11, 19)]);
        let read = series(&OPENS, "1,2,3", &format!("1,{bad},3"))
            .unwrap()
            .unwrap();
        assert_eq!(read.candles.len(), 2, "a bar without volume is no bar");
    }
}

#[test]
fn the_price_of_now_appended_behind_the_days_bar_is_dropped() {
    let [_, thursday, friday] = OPENS;
    let read = series(&[thursday, friday, friday + 9_000], "1,2,9", "1,2,0")
        .unwrap()
        .unwrap();
    assert_eq!(closes(&read).last().unwrap(), &("2026-11-20".to_owned(), 20_000));
    // A running day has no other bar.
    let read = series(&[thursday, friday + 9_000], "1,9", "1,5")
        .unwrap()
        .unwrap();
    assert_eq!(closes(&read).last().unwrap(), &("2026-11-20".to_owned(), 90_000));
    // One past the requested end.
    let read = series(&[thursday, friday + DAY_S], "1,9", "1,5")
        .unwrap()
        .unwrap();
    assert_eq!(read.candles.len(), 1);
    // A repeated day elsewhere is left to the later check.
    let read = series(&[thursday, thursday + 60, friday], "1,2,3", "1,2,3")
        .unwrap()
        .unwrap();
    assert_eq!(read.candles.len(), 3);
}

#[test]
fn unknown_retired_and_empty_are_told_apart() {
    let unknown = fault("Not Found", "No data found, symbol may be delisted");
    assert_eq!(of(404, &unknown).unwrap(), None);
    for meta in [
        r#"{"currency":null,"exchangeName":"YHD","instrumentType":"MUTUALFUND"}"#,
        r#"{"currency":"INR","exchangeName":"YHD"}"#,
        r#"{"exchangeName":"NSI"}"#,
        r#"{"exchangeName":"NYQ","currency":"USD"}"#,
    ] {
        assert_eq!(of(200, &chart(meta, "", "", "")).unwrap(), None, "{meta}");
    }
    let window = fault("Bad Request", "Data doesn't exist for startDate = 1, endDate = 2");
    let nothing = DailyCandles {
        simulated: true,
        ..DailyCandles::default()
    };
    assert_eq!(of(400, &window).unwrap(), Some(nothing.clone()));
    let result = format!(r#"{{"meta":{META},"indicators":{{"quote":[{{}}]}}}}"#);
    let bare = format!(r#"{{"chart":{{"result":[{result}],"error":null}}}}"#);
    assert_eq!(of(200, &bare).unwrap(), Some(nothing));
}

#[test]
fn what_is_no_history_is_refused() {
    let malformed = |result: Result<Option<DailyCandles>, BrokerError>| {
        let error = result.unwrap_err();
        assert_eq!(error.kind, BrokerErrorKind::Malformed, "{error}");
    };
    malformed(series(&OPENS, "1,2", "1,2,3"));
    malformed(series(&OPENS, "1,2,3", "1,2"));
    malformed(series(&OPENS, "1,NaN,3", "1,2,3"));
    malformed(of(200, &chart(META, "1,null,3", "1,2,3", "1,2,3")));
    malformed(of(200, r#"{"chart":{"result":[{}],"error":null}}"#));
    malformed(of(200, r#"{"chart":{"result":[],"error":null}}"#));
    malformed(of(200, r#"{"spark":{"result":[],"error":null}}"#));
    let bad = fault("Bad Request", "Invalid input");
    assert_eq!(of(400, &bad).unwrap_err().kind, BrokerErrorKind::Refused);
    let throttled = of(429, "Edge: Too Many Requests").unwrap_err();
    assert_eq!(throttled.kind, BrokerErrorKind::RateLimited);
}

#[test]
fn the_query_names_whole_days() {
    let from = 1_794_853_800;
    let to = 1_795_199_400;
    let expected = format!("period1={from}&period2={to}&interval=1d&_=5");
    assert_eq!(query(days(), 5), expected);
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        body: Vec<u8>,
        times in proptest::collection::vec(proptest::num::i64::ANY, 0..4),
        text: String,
    ) {
        let of_bytes = Reply { body, ..reply(200, "") };
        let _ = parse(&of_bytes, days());
        let _ = series(&times, &text, "1,2,3");
        let same = vec!["1"; times.len()].join(",");
        if let Ok(Some(read)) = series(&times, &same, &same) {
            let inside = |candle: &Candle| days().contains(candle.date);
            proptest::prop_assert!(read.candles.iter().all(inside));
        }
    }
}
