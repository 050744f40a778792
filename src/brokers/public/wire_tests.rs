//! Tests of the public provider's shapes and traps.

use super::*;

macro_rules! sample {
    ($name:literal) => {
        include_bytes!(concat!("../../../tests/fixtures/public/", $name))
    };
}

fn reply(status: u16, body: &[u8]) -> Reply {
    Reply {
        status,
        retry_after: None,
        content_type: None,
        simulated: false,
        body: body.to_vec(),
    }
}

fn rows(body: &[u8]) -> HashMap<String, Said> {
    match spark(&reply(200, body)).unwrap() {
        Spark::Rows(rows) => rows,
        other => panic!("{other:?}"),
    }
}

fn price(said: &Said) -> (String, Option<String>, i64) {
    let Said::Price(price) = said else {
        panic!("{said:?}")
    };
    let close = price.previous_close.map(|close| close.to_string());
    (price.last_price.to_string(), close, price.as_of.unwrap().as_second())
}

/// Low and high.
fn range(said: &Said) -> [String; 2] {
    let Said::Price(price) = said else {
        panic!("{said:?}")
    };
    [price.low, price.high].map(|end| end.map_or_else(|| "none".to_owned(), |end| end.to_string()))
}

/// One symbol's meta as a chart answer.
fn of_meta(meta: &str) -> Option<Said> {
    let body = format!(r#"{{"chart":{{"result":[{{"meta":{meta}}}],"error":null}}}}"#);
    chart(&reply(200, body.as_bytes())).unwrap()
}

#[test]
fn reads_the_nested_spark() {
    let rows = rows(sample!("spark_v7.json"));
    assert_eq!(price(&rows["BEL.NS"]), ("442.3".into(), Some("439.75".into()), 1_775_815_200));
    assert_eq!(price(&rows["^NSEI"]).0, "24050.60");
    assert_eq!(range(&rows["BEL.NS"]), ["none", "none"], "the sample was cut");
    assert_eq!(rows["TATAMOTORS.NS"], Said::Ghost);
    assert_eq!(rows.len(), 3);
}

#[test]
fn reads_the_flat_spark() {
    let rows = rows(sample!("spark_v8.json"));
    assert_eq!(
        price(&rows["^NSEI"]),
        ("22421.95".into(), Some("22900.0".into()), 1_790_848_800),
        "fullday price, last time that has a close"
    );
    assert_eq!(
        price(&rows["INFY.NS"]),
        ("1412.95".into(), Some("1389.65".into()), 1_790_848_500)
    );
    assert_eq!(range(&rows["INFY.NS"]), ["none", "none"]);
    assert_eq!(rows["EMPTY.NS"], Said::Nonsense, "a price without a time");
}

#[test]
fn reads_the_chart() {
    let said = chart(&reply(200, sample!("chart_v8.json")))
        .unwrap()
        .unwrap();
    assert_eq!(price(&said), ("442.3".into(), Some("439.75".into()), 1_775_815_200));
    assert_eq!(range(&said), ["440.45", "447.45"]);
}

#[test]
fn the_range_in_meta_loses_its_noise_and_spoils_nothing() {
    let base = r#""currency":"INR","regularMarketPrice":442.3,"regularMarketTime":1775815200"#;
    for (ends, expected) in [
        (
            r#""regularMarketDayLow":440.4500122,"regularMarketDayHigh":447.45001"#,
            ["440.45", "447.45"],
        ),
        (r#""regularMarketDayLow":0,"regularMarketDayHigh":"447""#, ["none", "none"]),
        (
            r#""regularMarketDayLow":null,"regularMarketDayHigh":{"raw":447}"#,
            ["none", "none"],
        ),
        (r#""regularMarketDayLow":-1,"regularMarketDayHigh":9e99"#, ["none", "none"]),
    ] {
        let said = of_meta(&format!("{{{base},{ends}}}")).unwrap();
        assert_eq!(range(&said), expected, "{ends}");
        assert_eq!(price(&said).0, "442.3");
    }
}

#[test]
fn the_traps_of_meta() {
    let base = r#""regularMarketPrice":2436.199951171875,"regularMarketTime":1775815200"#;
    for (meta, expected) in [
        (format!(r#"{{"currency":"INR",{base}}}"#), "2436.20 None"),
        (format!(r#"{{"currency":"INR","previousClose":2400,{base}}}"#), "2436.20 2400"),
        (
            format!(
                r#"{{"currency":"INR","previousClose":null,"chartPreviousClose":2400,{base}}}"#
            ),
            "2436.20 2400",
        ),
        (
            format!(r#"{{"currency":"INR","range":"1mo","chartPreviousClose":2400,{base}}}"#),
            "2436.20 None",
        ),
        (
            format!(r#"{{"currency":"INR","range":"1d","chartPreviousClose":2400,{base}}}"#),
            "2436.20 2400",
        ),
        (format!(r#"{{"currency":"INR","previousClose":0,{base}}}"#), "2436.20 None"),
        (format!(r#"{{"currency":null,{base}}}"#), "ghost"),
        (format!("{{{base}}}"), "ghost"),
        (format!(r#"{{"currency":"INR","exchangeName":"YHD",{base}}}"#), "ghost"),
        (format!(r#"{{"currency":"USD",{base}}}"#), "nonsense"),
        (r#"{"currency":"INR","regularMarketTime":1775815200}"#.into(), "nonsense"),
        (
            r#"{"currency":"INR","regularMarketPrice":0,"regularMarketTime":1}"#.into(),
            "nonsense",
        ),
        (r#"{"currency":"INR","regularMarketPrice":5}"#.into(), "nonsense"),
        (
            r#"{"currency":"INR","regularMarketPrice":5,"regularMarketTime":9e18}"#.into(),
            "nonsense",
        ),
        (r#"{"currency":"INR","regularMarketPrice":{"raw":5}}"#.into(), "nonsense"),
        ("[]".into(), "nonsense"),
    ] {
        let got = match of_meta(&meta).unwrap() {
            Said::Ghost => "ghost".to_owned(),
            Said::Nonsense => "nonsense".to_owned(),
            Said::Price(price) => format!(
                "{} {}",
                price.last_price,
                price
                    .previous_close
                    .map_or("None".into(), |close| close.to_string())
            ),
        };
        assert_eq!(got, expected, "{meta}");
    }
}

fn kind(error: &BrokerError) -> &'static str {
    match error.kind {
        BrokerErrorKind::RateLimited => "limited",
        BrokerErrorKind::Refused => "refused",
        BrokerErrorKind::Failed { .. } => "upstream",
        BrokerErrorKind::Malformed => "malformed",
        _ => "other",
    }
}

const NOT_FOUND: &str = r#"{"chart":{"result":null,"error":{"code":"Not Found",
    "description":"No data found, symbol may be delisted"}}}"#;
const TOO_MANY: &str = r#"{"spark":{"result":null,"error":{"code":"Bad Request",
    "description":"Number of symbols needs to be less than or equal to 20"}}}"#;
const CRUMB: &str = r#"{"finance":{"result":null,"error":{"code":"Unauthorized",
    "description":"Invalid Crumb"}}}"#;

#[test]
fn every_documented_error_of_spark() {
    for (status, body, expected) in [
        (429, "Edge: Too Many Requests", "limited"),
        (429, "<html>Too Many Requests</html>", "limited"),
        (200, "Too Many Requests", "limited"),
        (999, "Request denied", "limited"),
        (400, TOO_MANY, "refused"),
        (401, CRUMB, "refused"),
        (422, r#"{"spark":{"result":null,"error":{"code":"x"}}}"#, "refused"),
        (404, "<html>not here</html>", "upstream"),
        (404, r#"{"message":"no such route"}"#, "refused"),
        (403, "<html>denied</html>", "upstream"),
        (502, "<html></html>", "upstream"),
        (503, r#"{"spark":{"result":[]}}"#, "upstream"),
        (504, "", "upstream"),
        (200, "<html>Will be right back...</html>", "upstream"),
        (200, "<html>consent</html>", "malformed"),
        (200, "", "malformed"),
        (200, r#"{"spark":7}"#, "malformed"),
        (200, r#"{"message":"hello"}"#, "malformed"),
        (200, r#"{"spark":{"result":[]"#, "malformed"),
        (200, CRUMB, "refused"),
        (302, "", "malformed"),
    ] {
        let error = spark(&reply(status, body.as_bytes())).unwrap_err();
        assert_eq!(kind(&error), expected, "{status} {body}");
    }
}

#[test]
fn nothing_known_and_nothing_said() {
    let none = r#"{"spark":{"result":null,"error":null}}"#;
    assert_eq!(spark(&reply(404, none.as_bytes())).unwrap(), Spark::NoneKnown);
    for empty in [
        none,
        r#"{"spark":{"result":[]}}"#,
        r#"{"spark":{"result":[{}]}}"#,
        "{}",
    ] {
        assert_eq!(spark(&reply(200, empty.as_bytes())).unwrap(), Spark::Empty, "{empty}");
    }
}

#[test]
fn chart_errors() {
    assert_eq!(chart(&reply(404, NOT_FOUND.as_bytes())).unwrap(), None);
    assert_eq!(chart(&reply(200, NOT_FOUND.as_bytes())).unwrap(), None);
    for (status, body, expected) in [
        (200, r#"{"chart":{"result":null,"error":null}}"#, "malformed"),
        (200, r#"{"chart":{"result":[],"error":null}}"#, "malformed"),
        (400, r#"{"chart":{"result":null,"error":{"code":"Bad Request"}}}"#, "refused"),
        (429, "Too Many Requests", "limited"),
        (200, "{}", "refused"),
        (503, "<html></html>", "upstream"),
    ] {
        let error = chart(&reply(status, body.as_bytes())).unwrap_err();
        assert_eq!(kind(&error), expected, "{status} {body}");
    }
    let ghost = r#"{"chart":{"result":[{}],"error":null}}"#;
    assert_eq!(chart(&reply(200, ghost.as_bytes())).unwrap(), Some(Said::Nonsense));
}

#[test]
fn flat_rows_with_holes() {
    for (row, expected) in [
        (r#""timestamp":[100,200,300],"close":[5,null,null]"#, Some(("5", 100))),
        (r#""timestamp":[100,null],"close":[5,6]"#, Some(("5", 100))),
        (r#""timestamp":[100],"close":[5,6]"#, None),
        (r#""timestamp":[],"close":null,"fulldayPrice":5"#, None),
        (r#""close":[5]"#, None),
    ] {
        let body = format!(r#"{{"A.NS":{{"symbol":"A.NS",{row}}}}}"#);
        let got = match &rows(body.as_bytes())["A.NS"] {
            Said::Price(price) => {
                Some((price.last_price.to_string(), price.as_of.unwrap().as_second()))
            }
            _ => None,
        };
        assert_eq!(got, expected.map(|(price, time)| (price.to_owned(), time)), "{row}");
    }
}

const SAMPLES: [&[u8]; 3] = [
    sample!("spark_v7.json"),
    sample!("spark_v8.json"),
    sample!("chart_v8.json"),
];

proptest::proptest! {
    #[test]
    fn a_damaged_answer_is_refused_or_has_prices_that_can_be(at in 0_usize..2_000, byte: u8) {
        for sample in SAMPLES {
            let mut body = sample.to_vec();
            let last = body.len() - 1;
            body[at.min(last)] = byte;
            let rows = match spark(&reply(200, &body)) {
                Ok(Spark::Rows(rows)) => rows.into_values().collect(),
                _ => Vec::new(),
            };
            for said in rows.into_iter().chain(chart(&reply(200, &body)).ok().flatten()) {
                let Said::Price(claim) = said else { continue };
                let prices = [Some(claim.last_price), claim.previous_close, claim.low, claim.high];
                let all_can_be = prices.into_iter().flatten().all(|price| price > Decimal::ZERO);
                proptest::prop_assert!(all_can_be, "{claim:?}");
            }
        }
    }

    #[test]
    fn a_cut_answer_is_refused(cut in 0_usize..2_000) {
        for sample in SAMPLES {
            let body = &sample[..cut.min(sample.trim_ascii_end().len() - 1)];
            proptest::prop_assert!(spark(&reply(200, body)).is_err());
            proptest::prop_assert!(chart(&reply(200, body)).is_err());
        }
    }
}
