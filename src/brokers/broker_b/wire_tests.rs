//! Tests of broker B's answers on the list of replies and on malformed input.

use super::*;
use crate::brokers::testing::documented::broker_b::REPLIES;

/// 20:00 in India, four hours before midnight.
const NOW: &str = "2026-11-20T14:30:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn reply(status: u16, body: &str) -> Reply {
    let body = body.as_bytes().to_vec();
    Reply {
        status,
        retry_after: None,
        content_type: None,
        simulated: false,
        body,
    }
}

fn demat(status: u16, body: &str) -> Result<Vec<DematRow>, Refusal> {
    rows(&reply(status, body), now())
}

#[test]
fn each_documented_reply_has_its_answer() {
    // A redirect ends in the transport.
    let read = REPLIES
        .iter()
        .filter(|reply| reply.answer != Some(Kind::Redirected));
    for documented in read {
        let reply = reply(documented.http_status, documented.body);
        let rows = match documented.call {
            "GET customerdetails" => session(&reply, now()).map(|_| 1),
            "GET dematholdings" => rows::<DematRow>(&reply, now()).map(|rows| rows.len()),
            "GET portfolioholdings" => rows::<PortfolioRow>(&reply, now()).map(|rows| rows.len()),
            "GET portfoliopositions" => rows::<PositionRow>(&reply, now()).map(|rows| rows.len()),
            other => panic!("{other}"),
        };
        let answer = rows.as_ref().map_err(|refusal| refusal.error.kind);
        let answer = answer.map(|rows| assert_eq!(*rows, 0));
        assert_eq!(answer.err(), documented.answer, "{}: {rows:?}", documented.meaning);
    }
}

#[test]
fn limits_last_a_minute_or_until_midnight() {
    let wait = |status, text: &str, after_s: Option<u64>| {
        let mut reply = reply(status, &format!(r#"{{"Status":5,"Error":"{text}"}}"#));
        reply.retry_after = after_s.map(Duration::from_secs);
        let error = rows::<DematRow>(&reply, now()).unwrap_err().error;
        assert_eq!(error.kind, Kind::KeySpent);
        error.retry_after().unwrap().as_secs()
    };
    let minute = "Limit exceed: API call per minute:Try after some time";
    assert_eq!(wait(401, minute, None), 60);
    assert_eq!(wait(503, minute, Some(5)), 60);
    assert_eq!(wait(429, minute, Some(120)), 120);
    assert_eq!(wait(401, "Limit exceed: API call per day", None), 4 * 3_600);
}

#[test]
fn only_one_answer_is_worth_a_second_try() {
    let again = |body| demat(200, body).unwrap_err().intermittent;
    assert!(again(r#"{"Status":500,"Error":"Invalid User Details"}"#));
    assert!(!again(r#"{"Status":500,"Error":"Resource not available."}"#));
}

#[test]
fn rows_have_numbers_in_either_form() {
    let body = r#"{"Success":[
        {"stock_code":"UNITEC","stock_ISIN":"INE694A01020","quantity":"1"},
        {"stock_code":"LARTOU","stock_ISIN":null,"quantity":120}],"Status":200,"Error":null}"#;
    let rows = demat(200, body).unwrap();
    assert_eq!(rows[0].quantity.0.unwrap().to_string(), "1");
    assert_eq!(rows[1].quantity.0.unwrap().to_string(), "120");
    assert_eq!(demat(401, body).unwrap().len(), 2, "rows are believed whatever HTTP says");
}

#[test]
fn rows_beside_an_error_are_not_believed() {
    let body =
        r#"{"Success":[{"stock_code":"A","quantity":"1"}],"Status":500,"Error":"No Data Found"}"#;
    let error = demat(200, body).unwrap_err().error;
    assert_eq!(error.kind, Kind::Failed { status: 200 });
}

#[test]
fn more_rows_than_anybody_has_are_refused() {
    let body = |count| {
        let rows = vec![r#"{"stock_code":"A","quantity":"1"}"#; count].join(",");
        format!(r#"{{"Success":[{rows}],"Status":200,"Error":null}}"#)
    };
    let most = portfolio::ROWS_MAX;
    assert_eq!(demat(200, &body(most)).unwrap().len(), most);
    demat(200, &body(most + 1)).unwrap_err();
}

#[test]
fn the_session_token_is_taken_as_it_is() {
    use secrecy::ExposeSecret;
    let body =
        r#"{"Success":{"session_token":"not base64 +\/=","idirect_userid":"X"},"Status":200}"#;
    let (token, user) = session(&reply(200, body), now()).unwrap();
    assert_eq!((token.expose_secret(), user.as_deref()), ("not base64 +/=", Some("X")));
}

proptest::proptest! {
    #[test]
    fn nothing_panics_and_no_error_becomes_rows(
        http in 100_u16..600,
        status in "(200|500|5|null|\"x\")",
        success in "(\\[\\]|null|\"\"|\\{\\}|[a-z\"\\\\0-9{}:,]{0,40})",
        error in "[A-Za-z :.,()]{0,40}",
    ) {
        let error = error.trim();
        let body = format!(r#"{{"Success":{success},"Status":{status},"Error":"{error}"}}"#);
        let read = demat(http, &body);
        let empty = error.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        if !error.is_empty() && !empty.contains("no data found") {
            proptest::prop_assert!(read.is_err(), "{body}");
        }
        let _ = session(&reply(http, &body), now());
    }

    #[test]
    fn nothing_panics_on_any_text(
        body in proptest::prelude::any::<String>(),
        http in 100_u16..600,
    ) {
        proptest::prop_assert!(demat(http, &body).is_err());
    }
}
