//! Answers that are too long for one: at most 32 KiB each, and a cursor that leads through all.

use serde_json::{Value, json};

use super::assistant::{ANSWER_BYTES_MAX, Assistant, VERSIONS};
use super::tools::{expect_valid, schema_of};
use crate::accounts::keys::{ALL, PASSWORD, made, scene};
use crate::portfolio::close::scene_by_hand;
use crate::support::upstream::{Asked, Said, Upstream};
use crate::support::{TRADING, bearer, say};

const HOLDINGS: usize = 300;

/// An ISIN with its check digit.
fn isin(number: usize) -> String {
    let body = format!("INE{number:06}01");
    let digits: String = body.chars().map(|c| c.to_digit(36).unwrap().to_string()).collect();
    let digits = digits.bytes().rev().map(|digit| u32::from(digit - b'0'));
    let sum: u32 = digits
        .enumerate()
        .map(|(at, digit)| if at % 2 == 0 { digit * 2 / 10 + digit * 2 % 10 } else { digit })
        .sum();
    format!("{body}{}", (10 - sum % 10) % 10)
}

/// A broker with many holdings, each share on both exchanges.
fn broker(asked: &Asked) -> Said {
    let row = |number: usize| {
        format!(
            r#"{{"tradingsymbol":"S{:03}","exchange":"{}","isin":"{}","quantity":{number},
            "t1_quantity":0,"average_price":81234.57,"last_price":91234.58,"close_price":91000.05,
            "pnl":1,"product":"CNC","instrument_token":1}}"#,
            number / 2,
            ["NSE", "BSE"][number % 2],
            isin(number / 2)
        )
    };
    Said::json(match asked.target.as_str() {
        "/session/token" => r#"{"status":"success","data":{"access_token":"t"}}"#.to_owned(),
        "/portfolio/holdings" => {
            let rows: Vec<String> = (2..HOLDINGS + 2).map(row).collect();
            format!(r#"{{"status":"success","data":[{}]}}"#, rows.join(","))
        }
        _ => r#"{"status":"success","data":{"net":[],"day":[]}}"#.to_owned(),
    })
}

/// Every page of a tool, and their number.
fn walked(assistant: &Assistant<'_>, tool: &str, arguments: &Value) -> Vec<Value> {
    let (tools, mut arguments) = (assistant.tools(), arguments.clone());
    let mut pages = Vec::new();
    loop {
        let called = assistant.call(tool, &arguments);
        assert!(called.answer.body.len() <= ANSWER_BYTES_MAX, "{}", called.answer.body.len());
        let page = called.data();
        if tools[0].get("outputSchema").is_some() {
            expect_valid(&schema_of(&tools, tool, "outputSchema"), &page);
        }
        let next = page.get("next_cursor").filter(|next| !next.is_null()).cloned();
        pages.push(page);
        match next {
            Some(next) => arguments["cursor"] = next,
            None => return pages,
        }
    }
}

fn concat(pages: &[Value], pointer: &str) -> Vec<Value> {
    pages
        .iter()
        .flat_map(|page| page.pointer(pointer).unwrap().as_array().unwrap())
        .cloned()
        .collect()
}

#[test]
fn three_hundred_holdings_come_in_pages_that_validate() {
    let upstream = Upstream::start(broker);
    let scene = scene_by_hand(TRADING);
    let mut config = scene.config();
    config.broker_a.url = upstream.url();
    config.broker_a.access_token = None;
    config.auth.key_requests_per_minute = 0;
    let service = scene.start_with(&config);
    let login = bearer(&service.register("asha@example.com", PASSWORD));
    let key = bearer(&made(&service, &login, ALL, "").1);
    let code = r#"{"api_key":"k-1","api_secret":"s","request_token":"c"}"#;
    service.post("/api/portfolio/sync", &login, code).with_status(200);
    let rest = service.client().request("GET", "/api/portfolio/holdings", &login);
    let whole: Value = serde_json::from_slice(&rest.body).unwrap();
    let list = |pointer| concat(std::slice::from_ref(&whole), pointer);
    let merged = list("/summary/merged").len();
    assert_eq!((list("/holdings").len(), merged), (HOLDINGS, HOLDINGS / 2));
    for version in VERSIONS {
        let assistant = Assistant::new(&service, &key, version);
        let pages = walked(&assistant, "holdings", &json!({}));
        for pointer in ["/holdings", "/summary/merged"] {
            assert_eq!(concat(&pages, pointer), list(pointer), "{version} {pointer}");
        }
        // Totals are of all holdings, on every page.
        for page in &pages {
            let total = &page["summary"]["total_current_value"];
            assert_eq!(*total, whole["summary"]["total_current_value"]);
        }
        let (bytes, count) = (rest.body.len(), pages.len());
        say(&format!("MCP {version}: {HOLDINGS} holdings, {bytes} bytes, in {count} pages\n"));
        assert!(count > bytes / ANSWER_BYTES_MAX, "{count}");
        // A cursor of another list is refused.
        let first = pages[0]["next_cursor"].clone();
        let other = assistant.call("holdings", &json!({"cursor": first, "broker": "b"}));
        assert_eq!(other.code(), "cursor_invalid");
    }
}

#[test]
fn long_notes_shorten_a_page_of_the_journal() {
    let (_scene, service, login) = scene(|_| ());
    let key = bearer(&made(&service, &login, ALL, "").1);
    for number in 0..24 {
        // Quotes and line ends are escaped twice where the document stands in a text.
        let notes = ["\u{20b9}", "\"", "\n", "a"][number % 4].repeat(4_000);
        let entry = json!({
            "traded_on": "2026-11-20", "symbol": format!("NSE:S{number}"), "side": "buy",
            "quantity": 1, "price": 100.05, "notes": notes,
        });
        service.post("/api/journal", &login, &entry.to_string()).with_status(201);
    }
    let target = "/api/journal/search?limit=200";
    let rest = service.client().request("GET", target, &login);
    let whole: Value = serde_json::from_slice(&rest.body).unwrap();
    for version in VERSIONS {
        let assistant = Assistant::new(&service, &key, version);
        for limit in [None, Some(7), Some(200)] {
            let arguments = limit.map_or(json!({}), |limit| json!({"limit": limit}));
            let pages = walked(&assistant, "journal", &arguments);
            assert_eq!(
                concat(&pages, "/entries"),
                concat(std::slice::from_ref(&whole), "/entries"),
                "{version}"
            );
            assert!(pages.len() > 3 && pages.iter().all(|page| page["count"] == 24));
        }
    }
}
