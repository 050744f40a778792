//! Tests of broker A's shapes, errors and traps.

use rust_decimal::Decimal;

use super::*;

fn reply(status: u16, body: &[u8]) -> Reply {
    Reply {
        status,
        retry_after: None,
        content_type: Some("application/json".into()),
        simulated: false,
        body: body.to_vec(),
    }
}

macro_rules! sample {
    ($name:literal) => {
        include_bytes!(concat!("../../../tests/fixtures/broker_a/", $name))
    };
}

fn only(body: &[u8]) -> QuoteRow {
    let mut rows = quotes(&reply(200, body)).unwrap();
    assert_eq!(rows.len(), 1);
    rows.remove("NSE:INFY").unwrap().unwrap()
}

#[test]
fn reads_the_official_quote() {
    let row = only(sample!("quote.json"));
    assert_eq!(row.instrument_token, 408_065);
    assert_eq!(row.claim.last_price.to_string(), "1412.95");
    assert_eq!(row.claim.previous_close.unwrap().to_string(), "1389.65");
    assert_eq!(range(&row), ["1395.55", "1421.75"]);
    assert_eq!(clock::iso(row.claim.as_of.unwrap()), "2021-06-08T15:45:56+05:30");
    assert!(!row.is_index());
}

#[test]
fn reads_the_official_ohlc_and_ltp() {
    let row = only(sample!("ohlc.json"));
    assert_eq!(row.claim.last_price.to_string(), "1075");
    assert_eq!(row.claim.previous_close.unwrap().to_string(), "1075.8");
    assert_eq!(range(&row), ["1070.9", "1085.9"]);
    assert_eq!(row.claim.as_of, None);
    let row = only(sample!("ltp.json"));
    assert_eq!(
        (row.claim.last_price.to_string().as_str(), row.claim.previous_close),
        ("1074.35", None)
    );
    assert_eq!(range(&row), ["none", "none"]);
}

/// Low and high.
fn range(row: &QuoteRow) -> [String; 2] {
    [row.claim.low, row.claim.high]
        .map(|end| end.map_or_else(|| "none".to_owned(), |end| end.to_string()))
}

#[test]
fn a_range_that_is_no_range_spoils_nothing_else() {
    for (ends, expected) in [
        (r#""low":"1395.55","high":1421.75"#, ["none", "1421.75"]),
        (r#""low":null,"high":[1421.75]"#, ["none", "none"]),
        (r#""low":{"x":1},"high":true"#, ["none", "none"]),
        (r#""low":0,"high":0"#, ["0", "0"]),
        (r#""open":1396"#, ["none", "none"]),
    ] {
        let body = format!(
            r#"{{"status":"success","data":{{"NSE:INFY":{{"instrument_token":408065,
            "last_price":1412.95,"ohlc":{{{ends},"close":1389.65}}}}}}}}"#
        );
        let row = only(body.as_bytes());
        assert_eq!(range(&row), expected, "{ends}");
        assert_eq!(row.claim.last_price.to_string(), "1412.95");
        assert_eq!(row.claim.previous_close.unwrap().to_string(), "1389.65");
    }
}

#[test]
fn reads_the_official_session() {
    use secrecy::ExposeSecret;
    let login = login(&reply(200, sample!("generate_session.json"))).unwrap();
    assert_eq!(login.access_token.expose_secret(), "XXXXXX");
    assert_eq!(clock::iso(login.login_at.unwrap()), "2021-01-01T16:15:14+05:30");
}

#[test]
fn digits_survive_and_an_index_needs_no_depth() {
    let body = br#"{"status":"success","data":{"NSE:NIFTY 50":{"instrument_token":256265,
        "last_price":24999.100000000002,"ohlc":{"close":2.5e4}}}}"#;
    let rows = quotes(&reply(200, body)).unwrap();
    let row = rows["NSE:NIFTY 50"].as_ref().unwrap();
    assert_eq!(row.claim.last_price.to_string(), "24999.100000000002");
    assert_eq!(row.claim.previous_close.unwrap(), Decimal::from(25_000));
    assert!(row.is_index());
}

#[test]
fn a_bad_row_spoils_only_itself() {
    let body = br#"{"status":"success","data":{
        "NSE:A":{"instrument_token":1,"last_price":"abc"},
        "NSE:B":{"instrument_token":1},
        "NSE:C":[1],
        "NSE:D":null,
        "NSE:E":{"instrument_token":1,"last_price":5,"timestamp":"soon","ohlc":null},
        "NSE:F":{"instrument_token":1,"last_price":null}}}"#;
    let rows = quotes(&reply(200, body)).unwrap();
    assert!(
        ["NSE:A", "NSE:B", "NSE:C", "NSE:F"]
            .iter()
            .all(|key| rows[*key].is_none())
    );
    assert!(!rows.contains_key("NSE:D"));
    let row = rows["NSE:E"].as_ref().unwrap();
    assert_eq!((row.claim.as_of, row.claim.previous_close), (None, None));
}

fn kind(error: &BrokerError) -> &'static str {
    match error.kind {
        Kind::TokenDead => "dead",
        Kind::NotPermitted => "permission",
        Kind::RateLimited => "limited",
        Kind::AccountProblem => "account",
        Kind::SecondFactorProblem => "factor",
        Kind::Refused => "refused",
        Kind::Failed { .. } => "upstream",
        Kind::Malformed => "malformed",
        _ => "other",
    }
}

#[test]
fn every_documented_error() {
    for (status, error_type, expected) in [
        (403, "TokenException", "dead"),
        (200, "TokenException", "dead"),
        (429, "TokenException", "dead"),
        (403, "PermissionException", "permission"),
        (403, "PermissionError", "permission"),
        (403, "UserException", "account"),
        (403, "TwoFAException", "factor"),
        (400, "InputException", "refused"),
        (500, "OrderException", "refused"),
        (400, "MarginException", "refused"),
        (400, "HoldingException", "refused"),
        (503, "NetworkException", "upstream"),
        (429, "NetworkException", "limited"),
        (429, "GeneralException", "limited"),
        (502, "DataException", "upstream"),
        (504, "DataException", "upstream"),
        (500, "GeneralException", "upstream"),
        (200, "GeneralException", "upstream"),
        (403, "BrandNewException", "upstream"),
    ] {
        let body = format!(
            r#"{{"status":"error","message":"m","data":null,"error_type":"{error_type}"}}"#
        );
        let error = quotes(&reply(status, body.as_bytes())).unwrap_err();
        assert_eq!(kind(&error), expected, "{status} {error_type}");
    }
}

#[test]
fn errors_by_body_and_status() {
    let limited = r#"{"status":"error","message":"Too many requests",
        "error_type":"NetworkException"}"#;
    for (status, body, expected) in [
        (200, limited, "limited"),
        (200, r#"{"error_type":"InputException"}"#, "refused"),
        (400, r#"{"status":"error","message":"x"}"#, "refused"),
        (429, r#"{"status":"error","message":"x"}"#, "limited"),
        (500, r#"{"status":"error","message":"x"}"#, "upstream"),
        (500, r#"{"status":"success","data":{}}"#, "upstream"),
        (200, r#"{"status":"success"}"#, "malformed"),
        (200, r#"{"status":"success","data":null}"#, "malformed"),
        (200, r#"{"status":"success","data":[]}"#, "malformed"),
        (200, r#"{"status":7,"data":{}}"#, "malformed"),
        (200, r#"{"status":"success","data":{}} x"#, "malformed"),
        (200, "<html>maintenance</html>", "malformed"),
        (200, "", "malformed"),
        (502, "<html>Bad Gateway</html>", "upstream"),
        (503, "", "upstream"),
        (403, "<html>blocked</html>", "upstream"),
        (429, "slow down", "limited"),
        (302, "", "malformed"),
    ] {
        let error = quotes(&reply(status, body.as_bytes())).unwrap_err();
        assert_eq!(kind(&error), expected, "{status} {body}");
    }
}

#[test]
fn nothing_known_is_an_empty_map() {
    let body = br#"{"status":"success","data":{}}"#;
    assert!(quotes(&reply(200, body)).unwrap().is_empty());
}

#[test]
fn deep_nesting_is_refused_without_a_crash() {
    let body = [
        br#"{"status":"success","data":"#.to_vec(),
        vec![b'['; 1_000_000],
    ]
    .concat();
    quotes(&reply(200, &body)).unwrap_err();
    let row = [br#"{"data":{"NSE:A":"#.to_vec(), vec![b'{'; 1_000_000]].concat();
    quotes(&reply(200, &row)).unwrap_err();
}

#[test]
fn a_message_in_an_error_is_cut() {
    let body = format!(r#"{{"status":"error","message":"{}"}}"#, "é".repeat(10_000));
    let text = quotes(&reply(400, body.as_bytes()))
        .unwrap_err()
        .to_string();
    assert!(text.chars().count() < 300, "{text}");
}

/// JSON numbers, most of them far too large.
const NUMBER: &str = r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,12})?";

proptest::proptest! {
    #[test]
    fn a_damaged_answer_is_refused_or_has_one_row(at in 0_usize..1_300, byte: u8) {
        let mut body = sample!("quote.json").to_vec();
        let last = body.len() - 1;
        body[at.min(last)] = byte;
        if let Ok(rows) = quotes(&reply(200, &body)) {
            proptest::prop_assert!(rows.len() <= 1, "{rows:?}");
            proptest::prop_assert!(rows.is_empty() || rows.values().any(Option::is_some));
        }
    }

    #[test]
    fn a_cut_answer_is_refused(cut in 0_usize..1_300) {
        let body = sample!("quote.json").trim_ascii_end();
        let body = &body[..cut.min(body.len() - 1)];
        proptest::prop_assert!(quotes(&reply(200, body)).is_err());
    }

    #[test]
    fn a_number_is_read_as_it_is_or_refused(number in NUMBER) {
        let body = format!(
            r#"{{"data":{{"NSE:A":{{"instrument_token":1,"last_price":{number}}}}}}}"#
        );
        if let Ok(mut rows) = quotes(&reply(200, body.as_bytes())) {
            let row = rows.remove("NSE:A").flatten().expect("the only row can be read");
            let read = row.claim.last_price.to_string().parse::<f64>().unwrap();
            let sent = number.parse::<f64>().unwrap();
            let is_near = (read - sent).abs() <= sent.abs() * 1e-9 + 1e-27;
            proptest::prop_assert!(is_near, "{number} was read as {read}");
        }
    }
}
