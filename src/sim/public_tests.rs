//! The public provider as a client sees it.

use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use crate::sim::simulator::Sim;
use crate::sim::testing::{BROKER_A, BROWSER, FRIDAY, get, sim, sim_at};
use crate::sim::world::SimSettings;

fn spark(sim: &Sim, symbols: &str) -> sonic_rs::Value {
    let target = format!("/p/v7/finance/spark?symbols={symbols}&range=1d&interval=5m");
    get(sim, &target, BROWSER).json()
}

#[test]
fn a_librarys_user_agent_is_refused_in_plain_text() {
    let (sim, _) = sim();
    let target = "/p/v7/finance/spark?symbols=INFY.NS";
    for agent in [
        "",
        "User-Agent: ureq/3.5.1\r\n",
        "User-Agent: curl/8.5.0\r\n",
    ] {
        let got = get(&sim, target, agent);
        assert_eq!((got.status, got.text()), (429, "Edge: Too Many Requests"), "{agent}");
        assert_eq!(got.header("Content-Type"), Some("text/plain"));
    }
    assert_eq!(get(&sim, target, BROWSER).status, 200);
}

#[test]
fn the_nested_batch_leaves_out_what_it_does_not_know() {
    let (sim, _) = sim();
    let json = spark(&sim, "INFY.NS,%5ENSEI,M%26M.NS,NOSUCH.NS");
    assert!(json["spark"]["error"].is_null());
    let results = json["spark"]["result"].as_array().unwrap();
    let mut symbols: Vec<_> = results
        .iter()
        .map(|r| r["symbol"].as_str().unwrap())
        .collect();
    symbols.sort_unstable();
    assert_eq!(symbols, ["INFY.NS", "M&M.NS", "^NSEI"]);
    let quote = get(&sim, "/a/quote/ohlc?i=NSE:NIFTY+50", BROKER_A).json();
    let quote = &quote["data"]["NSE:NIFTY 50"];
    let nifty = results
        .iter()
        .find(|r| r["symbol"].as_str() == Some("^NSEI"))
        .unwrap();
    let response = &nifty["response"][0];
    let meta = &response["meta"];
    assert_eq!(meta["currency"].as_str(), Some("INR"));
    assert_eq!(meta["instrumentType"].as_str(), Some("INDEX"));
    assert_eq!(meta["previousClose"].as_f64(), quote["ohlc"]["close"].as_f64());
    assert_eq!(meta["chartPreviousClose"].as_f64(), meta["previousClose"].as_f64());
    // 11:42:17 IST less a quarter of an hour.
    assert_eq!(meta["regularMarketTime"].as_i64(), Some(1_795_155_137 - 900));
    let stamps = response["timestamp"].as_array().unwrap();
    let closes = response["indicators"]["quote"][0]["close"]
        .as_array()
        .unwrap();
    assert_eq!((stamps.len(), closes.len()), (27, 27), "five-minute bars from 09:15 to 11:25");
    let all = spark(&sim, "INFY.NS,TCS.NS,SBIN.NS,%5ENSEI,RELIANCE.NS").to_string();
    assert!(all.contains("null,"), "some bars are null");
}

#[test]
fn batches_are_at_most_twenty_and_an_unknown_one_is_404() {
    let (sim, _) = sim();
    let target = |n: usize| format!("/p/v7/finance/spark?symbols={}", vec!["INFY.NS"; n].join(","));
    assert_eq!(get(&sim, &target(20), BROWSER).status, 200);
    let over = get(&sim, &target(21), BROWSER);
    assert_eq!(over.status, 400);
    assert_eq!(
        over.text(),
        concat!(
            r#"{"spark":{"result":null,"error":{"code":"Bad Request","description":"#,
            r#""Number of symbols needs to be less than or equal to 20"}}}"#
        )
    );
    let unknown = get(&sim, "/p/v7/finance/spark?symbols=NOSUCH.NS,ZOMATO.NS", BROWSER);
    assert_eq!(unknown.status, 404);
    assert!(unknown.json()["spark"]["result"].is_null());
}

#[test]
fn the_flat_batch_is_a_map_without_a_price_time() {
    let (sim, _) = sim();
    let json = get(&sim, "/p/v8/finance/spark?symbols=INFY.NS,%5EBSESN", BROWSER).json();
    let infy = &json["INFY.NS"];
    assert!(infy["previousClose"].is_null() && infy.get("meta").is_none());
    let price = infy["fulldayPrice"].as_f64();
    let change = infy["fulldayChange"].as_f64();
    let before = infy["chartPreviousClose"].as_f64().unwrap();
    assert!((price.unwrap() - change.unwrap() - before).abs() < 0.001);
    assert_eq!(infy["dataGranularity"].as_i64(), Some(300));
}

#[test]
fn a_retired_symbol_is_a_ghost() {
    let (sim, _) = sim();
    let got = get(&sim, "/p/v8/finance/chart/TATAMOTORS.NS?range=1d", BROWSER);
    assert_eq!(got.status, 200);
    let json = got.json();
    let meta = &json["chart"]["result"][0]["meta"];
    assert!(meta["currency"].is_null() && meta.get("regularMarketPrice").is_none());
    assert_eq!(meta["exchangeName"].as_str(), Some("YHD"));
}

#[test]
fn the_chart_tells_previous_close_from_the_close_before_a_period() {
    let (sim, _) = sim();
    let chart = |query: &str| get(&sim, &format!("/p/v8/finance/chart/M%26M.NS?{query}"), BROWSER);
    let day = chart("range=1d&interval=5m").json();
    // From 20 October to 20 November.
    let month = chart("period1=1792434600&period2=1795199400&interval=1d").json();
    let meta = |json: &sonic_rs::Value| json["chart"]["result"][0]["meta"].clone();
    let day_meta = meta(&day);
    let month_meta = meta(&month);
    assert!(month_meta.get("previousClose").is_none());
    assert_ne!(
        day_meta["chartPreviousClose"].as_f64(),
        month_meta["chartPreviousClose"].as_f64()
    );
    let result = &month["chart"]["result"][0];
    let stamps = result["timestamp"].as_array().unwrap();
    assert!((20..=26).contains(&stamps.len()), "{stamps:?}");
    assert_eq!(stamps[0].as_i64().unwrap().rem_euclid(86_400), 13_500, "stamped at the open");
    assert!(result["indicators"].get("adjclose").is_some());
    for (query, status, words) in [
        ("range=1d&interval=10m", 400, "Invalid input - interval=10m is not supported."),
        ("range=1y&interval=1d", 400, "Invalid input - range=1y is not supported."),
        ("period1=1795200000&period2=1795200001", 400, "Data doesn't exist for startDate"),
    ] {
        let got = chart(query);
        assert_eq!(got.status, status, "{query}");
        assert!(got.text().contains(words), "{query}: {}", got.text());
    }
    let unknown = get(&sim, "/p/v8/finance/chart/NOSUCH.NS", BROWSER);
    assert_eq!(unknown.status, 404);
    assert!(unknown.text().contains("symbol may be delisted"));
}

#[test]
fn before_the_open_there_is_a_price_and_no_bars() {
    let (sim, _) = sim_at("2026-11-20T08:30:00+05:30", SimSettings::default());
    let json = spark(&sim, "INFY.NS");
    let response = &json["spark"]["result"][0]["response"][0];
    assert_eq!(response["timestamp"].as_array().map(sonic_rs::Array::len), Some(0));
    assert!(response["meta"]["regularMarketPrice"].as_f64() > Some(0.0));
    // The price is Thursday's close.
    assert_eq!(response["meta"]["regularMarketTime"].as_i64(), Some(1_795_082_700));
}

#[test]
fn the_delay_is_a_setting() {
    let settings = SimSettings {
        public_delay_s: 0,
        ..SimSettings::default()
    };
    let (sim, _) = sim_at(FRIDAY, settings);
    let json = spark(&sim, "INFY.NS");
    let meta = &json["spark"]["result"][0]["response"][0]["meta"];
    assert_eq!(meta["regularMarketTime"].as_i64(), Some(1_795_155_137));
}
