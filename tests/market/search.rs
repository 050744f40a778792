//! `GET /api/market/search`: instruments by ticker, name and ISIN.

use crate::support::{Scene, Service, TRADING, until};
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

const SEARCH: &str = "/api/market/search";

fn found(service: &Service, query: &str) -> Vec<String> {
    let answer = service.get(&format!("{SEARCH}?q={query}"));
    assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    let json = answer.json();
    let rows = json["instruments"].as_array().unwrap();
    assert_eq!(json["count"].as_u64(), Some(rows.len() as u64));
    assert!(rows.len() <= 20, "{query}");
    rows.iter()
        .map(|row| row["symbol"].as_str().unwrap().to_owned())
        .collect()
}

/// By ticker in any case, by words of the name, and by ISIN.
fn finds_shares_and_indices(service: &Service) {
    for (query, first) in [
        ("INFY", "NSE:INFY"),
        ("infy", "NSE:INFY"),
        ("nse:inf", "NSE:INFY"),
        ("m%26m", "NSE:M&M"),
        ("nifty+50", "NSE:NIFTY 50"),
        ("INE009A01021", "NSE:INFY"),
        ("ine009a01021", "NSE:INFY"),
    ] {
        assert_eq!(found(service, query).first().map(String::as_str), Some(first), "{query}");
    }
    assert!(
        found(service, "bse:INE009A01021")
            .iter()
            .all(|symbol| symbol.starts_with("BSE:"))
    );
    assert_eq!(found(service, "zzzz"), [""; 0]);
}

#[test]
fn the_compiled_in_list_is_searched_before_a_broker_has_sent_one() {
    let scene = Scene::at(TRADING);
    scene.refuse_all();
    let service = scene.start();
    finds_shares_and_indices(&service);
    assert_eq!(found(&service, "infosys"), ["NSE:INFY"]);
    assert_eq!(found(&service, "ports+ADANI"), ["NSE:ADANIPORTS"]);
    let text = service
        .get(&format!("{SEARCH}?q=infosys"))
        .text()
        .to_owned();
    let expected = concat!(
        r#"{"as_of":"2026-09-30","count":1,"#,
        r#""instruments":[{"symbol":"NSE:INFY","name":"Infosys"}]}"#
    );
    assert_eq!(text, expected);
}

#[test]
fn a_brokers_list_is_searched_by_name_also_after_a_restart() {
    let (scene, service) = Scene::trading();
    service.await_instruments();
    finds_shares_and_indices(&service);
    let json = service.get(&format!("{SEARCH}?q=infy")).json();
    let name = json["instruments"][0]["name"].as_str().unwrap().to_owned();
    let by_name = found(&service, &name.replace(' ', "+"));
    assert!(by_name.contains(&"NSE:INFY".to_owned()), "{name}: {by_name:?}");
    service.stop();
    scene.refuse_all();
    let service = scene.start();
    assert_eq!(found(&service, &name.replace(' ', "+")), by_name);
}

/// Without the new token the list would be fetched again only after minutes.
#[test]
fn a_new_token_fetches_the_list_at_once() {
    let scene = Scene::at(TRADING);
    scene.fault("broker_a.instruments", r#"{"kind":"html_5xx","count":1}"#);
    let service = scene.start_with(&scene.config_without_tokens());
    let give_token = || {
        let body = format!(r#"{{"request_token":"{}"}}"#, scene.request_token());
        service
            .client()
            .send_json("POST", "/brokera/activate", "", &body)
            .with_status(200);
    };
    give_token();
    until("a failed fetch of the list", || {
        service.health()["warmers"]["instruments"] == "failing"
    });
    give_token();
    service.await_instruments();
}

#[test]
fn an_unchanged_result_is_a_304_and_bad_queries_are_refused() {
    let scene = Scene::at(TRADING);
    scene.refuse_all();
    let service = scene.start();
    let target = format!("{SEARCH}?q=bank");
    let first = service.get(&target);
    assert_eq!(first.header("cache-control"), Some("public, no-cache"));
    let tag = first.header("etag").unwrap().to_owned();
    let unchanged = service
        .client()
        .request("GET", &target, &format!("If-None-Match: {tag}\r\n"));
    assert_eq!((unchanged.status, &*unchanged.body), (304, &b""[..]));
    let long = "A".repeat(65);
    service.get(SEARCH).expect_problem(400, "symbols_missing");
    for query in [
        "q=",
        "q=%26",
        "q=NSE:",
        "q=a%0Ab",
        "q=a&q=b",
        "q=%ff",
        &format!("q={long}"),
    ] {
        let answer = service.get(&format!("{SEARCH}?{query}"));
        let problem = answer.expect_problem(400, "validation_failed");
        assert_eq!(problem["errors"][0]["field"], "q", "{query}");
    }
}

#[test]
fn the_names_of_whole_symbols_are_told_in_their_order() {
    let scene = Scene::at(TRADING);
    let service = scene.start();
    service.await_instruments();
    let answer =
        service.get(&format!("{SEARCH}?symbols=NSE:TCS,BSE:SBIN,NSE:NOSUCH,NSE:NIFTY%2050"));
    let json = answer.with_status(200).json();
    let found = json["instruments"].as_array().unwrap().iter();
    let named: Vec<_> = found
        .map(|one| [&one["symbol"], &one["name"]].map(|member| member.as_str().unwrap()))
        .collect();
    let expected = [
        ["NSE:TCS", "Tata Consultancy Services"],
        ["BSE:SBIN", "State Bank of India"],
        ["NSE:NIFTY 50", "Nifty 50"],
    ];
    assert_eq!(named, expected);
    let many = format!("{SEARCH}?symbols={}", ["NSE:INFY"; 51].join(","));
    service.get(&many).expect_problem(400, "too_many_symbols");
    service
        .get(&format!("{SEARCH}?symbols=infy"))
        .expect_problem(400, "symbol_malformed");
}

/// Broker B's files and trades have its own codes, and the ISIN of each.
#[test]
fn the_symbols_of_several_isins_are_told_with_them() {
    let scene = Scene::at(TRADING);
    let service = scene.start();
    service.await_instruments();
    let target = format!("{SEARCH}?isins=INE280A01028,INE000A00000,INE009A01021");
    let json = service.get(&target).with_status(200).json();
    let found = json["instruments"].as_array().unwrap().iter();
    let named: Vec<_> = found
        .map(|one| [&one["isin"], &one["symbol"]].map(|member| member.as_str().unwrap()))
        .collect();
    assert_eq!(named, [["INE280A01028", "NSE:TITAN"], ["INE009A01021", "NSE:INFY"]]);
    let many = ["INE009A01021"; 51].join(",");
    for isins in ["", "INE009A01021,", "ine009a01021", "NSE:INFY", &many] {
        let answer = service.get(&format!("{SEARCH}?isins={isins}"));
        let problem = answer.expect_problem(400, "validation_failed");
        assert_eq!(problem["errors"][0]["field"], "isins", "{isins}");
    }
}
