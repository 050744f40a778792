//! Answers that are too long for one: at most 32 KiB each, and a cursor that leads through all.

use serde_json::{Value, json};

use super::assistant::{ANSWER_BYTES_MAX, Assistant, VERSIONS};
use super::tools::{expect_valid, schema_of};
use crate::accounts::keys::{ALL, PASSWORD, made, scene};
use crate::ledger::owner::confirmed;
use crate::portfolio::close::scene_by_hand;
use crate::support::upstream::{Asked, Said, Upstream};
use crate::support::{Service, TRADING, bearer, say};

const HOLDINGS: usize = 300;
/// Shares that were bought and sold in one financial year.
const SHARES: usize = 160;
/// Purchases of one share that was sold at once: more lots of one sale than an answer can hold.
const PURCHASES: usize = 200;

/// An ISIN with its check digit.
fn isin(number: usize) -> String {
    let body = format!("INE{number:06}01");
    let digits: String = body
        .chars()
        .map(|c| c.to_digit(36).unwrap().to_string())
        .collect();
    let digits = digits.bytes().rev().map(|digit| u32::from(digit - b'0'));
    let sum: u32 = digits
        .enumerate()
        .map(|(at, digit)| {
            if at % 2 == 0 {
                digit * 2 / 10 + digit * 2 % 10
            } else {
                digit
            }
        })
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
        let next = page
            .get("next_cursor")
            .filter(|next| !next.is_null())
            .cloned();
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
    service
        .post("/api/portfolio/sync", &login, code)
        .with_status(200);
    let rest = service
        .client()
        .request("GET", "/api/portfolio/holdings", &login);
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
        say(&format!(
            "MCP {version}: {HOLDINGS} holdings, {bytes} bytes, in {count} pages\n"
        ));
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
        service
            .post("/api/journal", &login, &entry.to_string())
            .with_status(201);
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

/// The tradebook of a busy year.
fn tradebook() -> String {
    let mut book = "symbol,isin,trade_date,exchange,segment,series,trade_type,auction,quantity,\
                    price,trade_id,order_id,order_execution_time\n"
        .to_owned();
    let mut number = 0;
    let mut add = |share: usize, date: String, side: &str, quantity: usize| {
        number += 1;
        let isin = isin(share);
        book += &format!(
            "S{share:03},{isin},{date},NSE,EQ,EQ,{side},false,{quantity},81234.55,{number},\
             {number},{date}T10:00:00\n"
        );
    };
    for share in 1..=SHARES {
        add(share, format!("2024-05-{:02}", 1 + share % 28), "buy", 3);
        add(share, format!("2024-09-{:02}", 1 + share % 28), "sell", 2);
    }
    for purchase in 0..PURCHASES {
        let date = format!("2024-{:02}-{:02}", 4 + purchase / 28, 1 + purchase % 28);
        add(0, date, "buy", 1);
    }
    add(0, "2025-03-03".to_owned(), "sell", PURCHASES);
    book
}

/// The whole list of a route, over its pages.
fn of_route(service: &Service, login: &str, target: &str, list: &str) -> Vec<Value> {
    let mut all = Vec::new();
    let mut next = target.to_owned();
    loop {
        let page: Value =
            serde_json::from_slice(&service.client().request("GET", &next, login).body).unwrap();
        all.extend(
            page.pointer(list)
                .unwrap()
                .as_array()
                .unwrap()
                .iter()
                .cloned(),
        );
        match page["next_cursor"].as_str() {
            Some(cursor) => next = format!("{target}&cursor={cursor}"),
            None => return all,
        }
    }
}

#[test]
fn a_busy_year_of_trades_comes_in_pages_with_the_same_totals_on_each() {
    let (_scene, service, login) = scene(|_| ());
    confirmed(&service, &login, "a", tradebook().as_bytes());
    let key = bearer(&made(&service, &login, ALL, "").1);
    for version in VERSIONS {
        let assistant = Assistant::new(&service, &key, version);
        for (tool, target, list) in [
            ("trades", "/api/trades?limit=500", "/trades"),
            ("open_lots", "/api/trades/lots?limit=90", "/lots"),
            ("ledger_gaps", "/api/trades/reconciliation?limit=90", "/rows"),
        ] {
            let pages = walked(&assistant, tool, &json!({}));
            let all = of_route(&service, &login, target, list);
            assert!(all.len() >= SHARES && pages.len() > 1, "{tool}");
            assert_eq!(concat(&pages, list), all, "{version} {tool}");
        }
        expect_gains_in_pages(&assistant, &service, &login);
    }
}

/// What is left out is too long to be on every page, so it comes first; then the sales, of which
/// one has more lots than an answer can hold.
fn expect_gains_in_pages(assistant: &Assistant<'_>, service: &Service, login: &str) {
    let target = "/api/trades/gains?fy=2024-25&limit=1000";
    let rest = service.client().request("GET", target, login);
    let whole: Value = serde_json::from_slice(&rest.body).unwrap();
    let pages = walked(assistant, "realised_gains", &json!({"fy": "2024-25"}));
    let left_out = concat(&pages, "/left_out");
    assert!(left_out.len() > SHARES, "{}", left_out.len());
    assert_eq!(left_out, concat(std::slice::from_ref(&whole), "/left_out"));
    let sales = concat(&pages, "/sales");
    let (mut cut, mut expected) = (0, concat(std::slice::from_ref(&whole), "/sales"));
    for (sale, whole) in sales.iter().zip(&mut expected) {
        if sale["lots"] == json!([]) {
            assert_eq!(whole["lots"].as_array().unwrap().len(), PURCHASES);
            whole["lots"] = json!([]);
            cut += 1;
        }
    }
    assert_eq!((sales.len(), cut), (SHARES + 1, 1));
    assert_eq!(sales, expected);
    for page in &pages {
        for same in ["fy", "totals", "rules", "charges"] {
            assert_eq!(page[same], whole[same], "{same}");
        }
    }
    let count = pages.len();
    say(&format!("MCP: gains of {} bytes in {count} pages\n", rest.body.len()));
    // The list has become shorter than the cursor says.
    let other = json!({"fy": "2023-24", "cursor": pages[0]["next_cursor"]});
    assert_eq!(assistant.call("realised_gains", &other).code(), "cursor_invalid");
}
