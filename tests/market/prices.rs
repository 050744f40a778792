//! `GET /api/portfolio/live-prices`: the meaning of a query and of a quote.

use crate::market::figures::{percent, raw, shortest};
use crate::support::{PRICES, Scene, Service, members, until};
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

fn service() -> (Scene, Service) {
    let (scene, service) = Scene::trading();
    service.await_instruments();
    (scene, service)
}

/// Fifty symbols that the simulator has, and one more.
const FIFTY_ONE: usize = 51;

fn many(count: usize) -> String {
    let shares = include_str!("../../src/sim/exchange/universe.csv")
        .lines()
        .skip(1)
        .map(|line| {
            let mut columns = line.split(',');
            (columns.next().unwrap(), columns.next().unwrap())
        });
    let symbols = shares
        .filter(|(exchange, _)| *exchange == "NSE")
        .take(count);
    let symbols = symbols.map(|(exchange, ticker)| format!("{exchange}:{ticker}"));
    symbols
        .collect::<Vec<_>>()
        .join(",")
        .replace(' ', "%20")
        .replace('&', "%26")
}

#[test]
fn a_quote_has_the_fields_of_the_contract_in_numbers_of_the_simulator() {
    // A Sunday: prices stand still.
    let scene = Scene::at("2026-11-22T11:00:00+05:30");
    let service = scene.start();
    service.await_instruments();
    let answer = service.prices("NSE:INFY,NSE:NIFTY%2050,NSE:M%26M,BSE:SENSEX");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("cache-control"), Some("no-cache"));
    assert_eq!(members(&answer.json()), ["quotes", "unavailable"]);
    let quotes: Vec<&str> = answer.text().split("{\"symbol\"").skip(1).collect();
    for (text, symbol) in quotes
        .iter()
        .zip(["NSE:INFY", "NSE:NIFTY 50", "NSE:M&M", "BSE:SENSEX"])
    {
        assert!(text.starts_with(&format!(":\"{symbol}\"")), "{text}");
        let (last, previous) = scene.said(symbol);
        assert_eq!(raw(text, "last_price"), shortest(last));
        assert_eq!(raw(text, "change"), shortest(last - previous));
        assert_eq!(raw(text, "change_pct"), percent(last, previous));
        let session = ["day_low", "day_high", "day_open"];
        let range = session.map(|member| raw(text, member).to_owned());
        assert_eq!(range, scene.figures(symbol, ["low", "high", "open"]).map(shortest));
    }
    assert_eq!(quotes.len(), 4);
    for quote in answer.json()["quotes"].as_array().unwrap().iter() {
        let mut names = members(quote);
        names.sort();
        let expected = [
            "as_of",
            "change",
            "change_pct",
            "day_high",
            "day_low",
            "day_open",
            "last_price",
            "simulated",
            "source",
            "stale",
            "symbol",
        ];
        assert_eq!(names, expected);
        assert!(quote["as_of"].as_str().unwrap().ends_with("+05:30"));
        assert!(quote["source"] == "broker_a" && quote["simulated"] == true);
        assert_eq!(quote["stale"], false);
    }
}

#[test]
fn order_is_kept_and_duplicates_are_dropped() {
    let (_scene, service) = service();
    let answer = service.prices("NSE:TCS,BSE:SENSEX,NSE:TCS,NSE:INFY,NSE:NOSUCH,BSE:SENSEX");
    assert_eq!(answer.quoted(), ["NSE:TCS", "BSE:SENSEX", "NSE:INFY"]);
    assert_eq!(answer.unavailable(), ["NSE:NOSUCH"]);
    let unknown = service.prices("NSE:NOSUCH,BSE:NOTHERE,NSE:NOSUCH");
    assert_eq!(unknown.status, 200);
    assert_eq!(unknown.unavailable(), ["NSE:NOSUCH", "BSE:NOTHERE"]);
    assert!(unknown.quoted().is_empty());
}

#[test]
fn symbols_are_percent_decoded() {
    let (_scene, service) = service();
    for (query, expected) in [
        ("NSE:M%26M", &["NSE:M&M"][..]),
        ("NSE%3AM%26M", &["NSE:M&M"]),
        ("NSE:NIFTY%2050", &["NSE:NIFTY 50"]),
        ("NSE:NIFTY+50", &["NSE:NIFTY 50"]),
        ("NSE%3AINFY%2CNSE%3ATCS", &["NSE:INFY", "NSE:TCS"]),
        ("NSE:INFY%2cNSE:M%26M,BSE:SENSEX", &["NSE:INFY", "NSE:M&M", "BSE:SENSEX"]),
        ("%4e%53%45:INFY", &["NSE:INFY"]),
        ("NSE:INFY&other=1", &["NSE:INFY"]),
        ("NSE:INFY&symbols=NSE:TCS", &["NSE:INFY", "NSE:TCS"]),
    ] {
        let answer = service.prices(query);
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
        assert_eq!(answer.quoted(), expected, "{query}");
    }
}

#[test]
fn fifty_are_served_and_one_more_is_refused() {
    let (_scene, service) = service();
    let answer = service.prices(&many(FIFTY_ONE - 1));
    assert_eq!(answer.status, 200);
    assert_eq!((answer.quoted().len(), answer.unavailable().len()), (FIFTY_ONE - 1, 0));
    for query in [many(FIFTY_ONE), ["NSE:INFY"; FIFTY_ONE].join(",")] {
        let json = service
            .prices(&query)
            .expect_problem(400, "too_many_symbols");
        assert_eq!(json["errors"][0]["field"], "symbols");
    }
}

#[test]
fn head_is_get_without_a_body() {
    let (_scene, service) = service();
    let mut client = service.client();
    let target = format!("{PRICES}NSE:NOSUCH");
    let full = client.get(&target);
    let head = client.request("HEAD", &target, "");
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), full.header("content-length"));
    let refused = client.request("HEAD", &format!("{PRICES}INFY"), "");
    assert_eq!((refused.status, refused.body.len()), (400, 0));
    assert_eq!(client.get(&target).text(), full.text());
}

#[test]
fn what_is_no_symbol_is_refused() {
    let (_scene, service) = service();
    let mut client = service.client();
    let base = "/api/portfolio/live-prices";
    for target in [
        base.to_owned(),
        format!("{base}?"),
        format!("{base}?symbol=NSE:INFY"),
    ] {
        let json = client.get(&target).expect_problem(400, "symbols_missing");
        assert_eq!(json["errors"][0]["field"], "symbols", "{target}");
    }
    let json = client.get(PRICES).expect_problem(400, "symbols_missing");
    assert_eq!(json["errors"][0]["field"], "symbols");
    let long = format!("NSE:{}", "A".repeat(60));
    for query in [
        "INFY",
        "NSE:",
        ":INFY",
        "nse:INFY",
        "NSE:infy",
        "NFO:NIFTY26NOVFUT",
        "MCX:GOLD",
        "NSE:INFY,",
        ",NSE:INFY",
        "NSE:INFY,,NSE:TCS",
        "NSE:INFY%2C",
        "NSE:M%2",
        "NSE:M%zzM",
        "NSE:INFY%00",
        "NSE:%22",
        "NSE:INFY%0d%0aX-Evil:%201",
        "NSE:%E0%A4%B0",
        "NSE:INFY,+NSE:TCS",
        &long,
    ] {
        let json = client
            .get(&format!("{PRICES}{query}"))
            .expect_problem(400, "symbol_malformed");
        assert_eq!(json["errors"][0]["field"], "symbols", "{query}");
        assert!(json["errors"][0]["message"].is_str(), "{query}");
    }
}

#[test]
fn quotes_that_no_feed_confirms_any_more_are_stale() {
    let (scene, service) = service();
    let fresh = service.prices("NSE:INFY,NSE:NIFTY+50");
    assert!(fresh.text().contains("\"stale\":false") && !fresh.text().contains("\"stale\":true"));
    scene.refuse_all();
    until("both stale", || {
        let answer = service.prices("NSE:INFY,NSE:NIFTY+50");
        assert_eq!((answer.status, answer.quoted().len()), (200, 2));
        (answer.text().matches("\"stale\":true").count() == 2).then_some(())
    });
}
