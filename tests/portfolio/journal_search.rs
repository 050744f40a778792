//! `GET /api/journal/search`: filters, pages, and the profit of closed pairs.

use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use crate::support::{Scene, Service, bearer};

fn write(service: &Service, token: &str, entry: &str) {
    service
        .post("/api/journal", &bearer(token), entry)
        .with_status(201);
}

fn entry(day: &str, symbol: &str, side: &str, amounts: (&str, &str, &str), more: &str) -> String {
    let (quantity, price, fees) = amounts;
    format!(
        r#"{{"traded_on":"{day}","symbol":"{symbol}","side":"{side}","quantity":{quantity},
        "price":{price},"fees":{fees}{more}}}"#
    )
}

fn found(service: &Service, token: &str, query: &str) -> Value {
    let target = format!("/api/journal/search{query}");
    let answer = service.client().request("GET", &target, &bearer(token));
    assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    answer.json()
}

fn symbols(json: &Value) -> Vec<String> {
    let entries = json["entries"].as_array().unwrap();
    entries
        .iter()
        .map(|entry| entry["symbol"].as_str().unwrap().to_owned())
        .collect()
}

fn started() -> (Scene, Service, String) {
    let (scene, service) = Scene::trading();
    let token = service.register("asha@mail.example", "correct horse");
    let dip = r#","strategy":"Buy the dip","tags":["swing","it"]"#;
    for text in [
        entry("2026-10-30", "NSE:INFY", "buy", ("10", "1500", "10"), dip),
        entry("2026-11-02", "NSE:TCS", "buy", ("4", "3500.50", "0"), ""),
        entry("2026-11-05", "NSE:INFY", "sell", ("6", "1550", "6"), ""),
        entry("2026-11-06", "NSE:TCS", "sell", ("4", "3400", "2.5"), r#","tags":["IT"]"#),
        entry("2026-11-20", "NIFTY 26NOV 25000 CE", "buy", ("75", "120.55", "0"), ""),
    ] {
        write(&service, &token, &text);
    }
    (scene, service, token)
}

#[test]
fn filters_keep_what_fits_and_pairs_are_summed_to_the_paisa() {
    let (_scene, service, token) = started();
    let all = found(&service, &token, "");
    assert_eq!(all["count"].as_u64(), Some(5));
    assert!(all["next_cursor"].is_null());
    assert_eq!(symbols(&all)[0], "NIFTY 26NOV 25000 CE");
    let sum = &all["summary"];
    assert_eq!((sum["closed_pairs"].as_u64(), sum["wins"].as_u64()), (Some(2), Some(1)));
    assert_eq!(sum["win_rate"].as_f64(), Some(0.5));
    // 6 × 50 − 6 − 6 of INFY, 4 × −100.50 − 2.50 of TCS.
    assert_eq!(sum["realised"].as_f64(), Some(-116.5));
    assert_eq!(sum["fees"].as_f64(), Some(18.5));

    for (query, expected) in [
        ("?symbol=infy", vec!["NSE:INFY", "NSE:INFY"]),
        ("?symbol=nifty%2026", vec!["NIFTY 26NOV 25000 CE"]),
        ("?strategy=buy%20the%20DIP", vec!["NSE:INFY"]),
        ("?strategy=buy", vec![]),
        ("?tag=it", vec!["NSE:TCS", "NSE:INFY"]),
        ("?from=2026-11-05&to=2026-11-06", vec!["NSE:TCS", "NSE:INFY"]),
        ("?from=2026-11-05&symbol=INFY", vec!["NSE:INFY"]),
        (
            "?symbol=&tag=",
            vec![
                "NIFTY 26NOV 25000 CE",
                "NSE:TCS",
                "NSE:INFY",
                "NSE:TCS",
                "NSE:INFY",
            ],
        ),
        ("?symbol=%3Cimg%3E", vec![]),
    ] {
        let json = found(&service, &token, query);
        assert_eq!(symbols(&json), expected, "{query}");
        assert_eq!(json["count"].as_u64(), Some(expected.len() as u64), "{query}");
    }
    // The sale closes an earlier purchase, whose strategy counts.
    let json = found(&service, &token, "?strategy=buy%20the%20dip&from=2026-11-01");
    assert_eq!(json["count"].as_u64(), Some(0));
    assert_eq!(json["summary"]["realised"].as_f64(), Some(288.0));
    let none = found(&service, &token, "?symbol=NIFTY");
    assert!(none["summary"]["realised"].is_null() && none["summary"]["win_rate"].is_null());
}

#[test]
fn pages_follow_each_other_and_say_when_nothing_changed() {
    let (_scene, service, token) = started();
    let (mut query, mut seen) = ("?limit=2&symbol=NSE".to_owned(), Vec::new());
    loop {
        let json = found(&service, &token, &query);
        assert_eq!(json["count"].as_u64(), Some(4));
        seen.extend(symbols(&json));
        let Some(cursor) = json["next_cursor"].as_str() else {
            break;
        };
        query = format!("?limit=2&symbol=NSE&cursor={cursor}");
    }
    assert_eq!(seen, ["NSE:TCS", "NSE:INFY", "NSE:TCS", "NSE:INFY"]);
    let mut client = service.client();
    let first = client.request("GET", "/api/journal/search", &bearer(&token));
    assert_eq!(first.header("cache-control"), Some("private, no-cache"));
    let etag = first.header("etag").unwrap().to_owned();
    let lines = format!("{}If-None-Match: {etag}\r\n", bearer(&token));
    assert_eq!(client.request("GET", "/api/journal/search", &lines).status, 304);
    write(&service, &token, &entry("2026-11-20", "A", "sell", ("1", "1", "0"), ""));
    assert_eq!(client.request("GET", "/api/journal/search", &lines).status, 200);
}

#[test]
fn bad_filters_are_named_and_other_users_entries_do_not_exist() {
    let (_scene, service, token) = started();
    for (query, code) in [
        ("?from=yesterday", "validation_failed"),
        ("?to=2026-13-01", "validation_failed"),
        ("?from=20261101", "validation_failed"),
        ("?from=", "validation_failed"),
        ("?to=", "validation_failed"),
        ("?to=%20", "validation_failed"),
        ("?symbol=a&symbol=b", "validation_failed"),
        ("?limit=201", "validation_failed"),
        ("?cursor=x", "cursor_invalid"),
    ] {
        let target = format!("/api/journal/search{query}");
        service
            .client()
            .request("GET", &target, &bearer(&token))
            .expect_problem(400, code);
    }
    let other = service.register("b@mail.example", "correct horse");
    let json = found(&service, &other, "");
    assert_eq!(
        (json["count"].as_u64(), json["summary"]["closed_pairs"].as_u64()),
        (Some(0), Some(0))
    );
    service
        .get("/api/journal/search")
        .expect_problem(401, "token_missing");
}
