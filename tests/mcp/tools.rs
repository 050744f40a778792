//! The tools: what a key's scopes list, and that each figure is that of the route.

use jsonschema::Validator;
use serde_json::{Value, json};

use super::assistant::{Assistant, Called, NEW, OLD, VERSIONS, post};
use super::world::World;
use super::{arguments, questions};
use crate::accounts::keys::{PASSWORD, made};
use crate::support::{bearer, say};

const TOOLS: usize = 14;
/// A document above this may be cut: its quotes are escaped where it stands in a text.
const CUT_FROM_BYTES: usize = 24_000;

/// Each tool with arguments, and the targets of its routes with the same.
fn calls() -> Vec<(&'static str, Value, Vec<&'static str>)> {
    vec![
        ("market_snapshot", json!({}), vec!["/api/index/snapshot"]),
        (
            "quotes",
            json!({"symbols": ["NSE:INFY", "NSE:M&M", "BSE:SENSEX", "NSE:NOSUCH"]}),
            vec!["/api/portfolio/live-prices?symbols=NSE:INFY,NSE:M%26M,BSE:SENSEX,NSE:NOSUCH"],
        ),
        (
            "quotes",
            json!({"symbols": "NSE:INFY,NSE:M&M"}),
            vec!["/api/portfolio/live-prices?symbols=NSE:INFY,NSE:M%26M"],
        ),
        ("holdings", json!({}), vec!["/api/portfolio/holdings"]),
        ("holdings", json!({"broker": "b"}), vec!["/api/portfolio/holdings?broker=b"]),
        ("positions", json!({"type": "net"}), vec!["/api/portfolio/positions?type=net"]),
        (
            "positions",
            json!({"include_closed": true, "type": null}),
            vec!["/api/portfolio/positions?include_closed=true"],
        ),
        ("portfolio_summary", json!({"days": 7}), vec!["/api/portfolio/pnl?days=7"]),
        ("journal", json!({}), vec!["/api/journal/search"]),
        (
            "journal",
            json!({"symbol": "infy", "limit": 1}),
            vec!["/api/journal/search?symbol=infy&limit=1"],
        ),
        ("signals", json!({}), vec!["/api/signals", "/api/signals/record"]),
        (
            "signals",
            json!({"direction": "bullish"}),
            vec!["/api/signals?direction=bullish", "/api/signals/record"],
        ),
        (
            "search_instruments",
            json!({"q": "infosys & co"}),
            vec!["/api/market/search?q=infosys%20%26%20co"],
        ),
        ("search_instruments", json!({"q": "inf"}), vec!["/api/market/search?q=inf"]),
        (
            "candles",
            json!({"symbol": "NSE:INFY", "days": 30}),
            vec!["/api/market/candles?symbol=NSE:INFY&days=30"],
        ),
        ("trades", json!({}), vec!["/api/trades"]),
        (
            "trades",
            json!({"symbol": "reliance", "side": "sell", "from": "2024-07-01", "limit": 1}),
            vec!["/api/trades?symbol=reliance&side=sell&from=2024-07-01&limit=1"],
        ),
        ("open_lots", json!({}), vec!["/api/trades/lots"]),
        (
            "open_lots",
            json!({"as_of": "2024-08-20", "isin": "INE002A01018"}),
            vec!["/api/trades/lots?as_of=2024-08-20&isin=INE002A01018"],
        ),
        ("realised_gains", json!({}), vec!["/api/trades/gains"]),
        ("realised_gains", json!({"fy": "2024-25"}), vec!["/api/trades/gains?fy=2024-25"]),
        ("returns", json!({"person": "self"}), vec!["/api/trades/returns?person=self"]),
        ("ledger_gaps", json!({}), vec!["/api/trades/reconciliation"]),
        ("ledger_gaps", json!({"limit": 2}), vec!["/api/trades/reconciliation?limit=2"]),
    ]
}

pub fn schema_of(tools: &[Value], name: &str, kind: &str) -> Validator {
    let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
    jsonschema::options()
        .should_validate_formats(true)
        .build(&tool[kind])
        .unwrap()
}

#[track_caller]
pub fn expect_valid(schema: &Validator, value: &Value) {
    let errors: Vec<String> = schema
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

/// What the routes answer, as a tool with one or two routes shows it.
fn expected(world: &World, targets: &[&str]) -> String {
    match targets {
        [target] => world.get(target).text().to_owned(),
        [list, record] => {
            let (list, record) = (world.get(list), world.get(record));
            format!(r#"{{"list":{},"record":{}}}"#, list.text(), record.text())
        }
        other => panic!("{other:?}"),
    }
}

/// One service for all that only reads: it takes its time to publish signals.
#[test]
fn tools_answer_as_their_routes_do() {
    let world = World::new();
    every_figure_is_that_of_the_route_in_every_version(&world);
    a_key_sees_the_tools_of_its_scopes_and_no_other(&world);
    tools_are_described_for_reading_alone(&world);
    a_refusal_is_a_result_with_the_problem_of_the_route(&world);
    questions::are_answered_by_calls_alone(&world);
    arguments::are_judged_by_the_published_schema(&world);
}

fn every_figure_is_that_of_the_route_in_every_version(world: &World) {
    let mut compared = 0;
    for version in VERSIONS {
        let assistant = Assistant::new(&world.service, &world.key, version);
        let tools = assistant.tools();
        assert_eq!(tools.len(), TOOLS);
        for (name, arguments, targets) in calls() {
            expect_valid(&schema_of(&tools, name, "inputSchema"), &without_nulls(&arguments));
            let called = assistant.call(name, &arguments);
            let document = called.document();
            let whole = expected(world, &targets);
            if document != whole && whole.len() > CUT_FROM_BYTES {
                assert!(document.contains(r#""next_cursor":""#), "{version} {name} {arguments}");
                expect_pages(&assistant, name, &arguments, &whole);
            } else {
                assert_eq!(document, whole, "{version} {name} {arguments}");
            }
            if version != OLD[2] {
                let data = serde_json::from_str(&document).unwrap();
                expect_valid(&schema_of(&tools, name, "outputSchema"), &data);
                expect_summary(name, &called, &document);
            }
            compared += document.len();
        }
    }
    say(&format!(
        "MCP: {compared} bytes of {TOOLS} tools in 4 versions are those of their routes\n"
    ));
}

fn without_nulls(arguments: &Value) -> Value {
    let mut arguments = arguments.clone();
    arguments
        .as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    arguments
}

/// A short answer has its data as text, too; a longer one has a line with the figures that matter.
fn expect_summary(name: &str, called: &Called, document: &str) {
    let text = called.text();
    if document.len() <= 4 * 1024 {
        assert_eq!(text, document, "{name}");
    } else {
        assert!(text.starts_with(name) && text.ends_with("in structuredContent"), "{text}");
        assert!(text.len() < 1_000 && !text.contains('\n'), "{text}");
        assert!(!text.contains("Ignore all rules"), "{text}");
    }
}

/// The pages of a long answer have all rows of the route's answer and nothing else.
fn expect_pages(assistant: &Assistant<'_>, name: &str, arguments: &Value, whole: &str) {
    let whole: Value = serde_json::from_str(whole).unwrap();
    let mut rows: Vec<Value> = Vec::new();
    let mut arguments = arguments.clone();
    loop {
        let page = assistant.call(name, &arguments).data();
        rows.extend(rows_of(&page));
        match page.get("next_cursor").filter(|cursor| !cursor.is_null()) {
            Some(cursor) => arguments["cursor"] = cursor.clone(),
            None => break,
        }
    }
    assert_eq!(rows, rows_of(&whole), "{name}");
}

/// The rows of all lists that may be long, sorted by where they are.
fn rows_of(document: &Value) -> Vec<Value> {
    let lists = [
        "/holdings",
        "/positions",
        "/trend",
        "/candles",
        "/list/signals",
        "/trades",
        "/lots",
        "/sales",
        "/rows",
    ];
    let first = lists
        .iter()
        .filter_map(|at| document.pointer(at)?.as_array());
    first.flatten().cloned().collect()
}

fn a_key_sees_the_tools_of_its_scopes_and_no_other(world: &World) {
    let market = ["market_snapshot", "quotes", "search_instruments", "candles"];
    let portfolio = ["holdings", "positions", "portfolio_summary"];
    let trades = [
        "trades",
        "open_lots",
        "realised_gains",
        "returns",
        "ledger_gaps",
    ];
    let mut all = 0;
    for (scopes, expected) in [
        (&["market:read"][..], &market[..]),
        (&["portfolio:read"], &portfolio),
        (&["journal:read"], &["journal"]),
        (&["signals:read"], &["signals"]),
        (&["trades:read"], &trades),
        (&["trades:write", "journal:write"], &[]),
        (
            &["market:read", "journal:read"],
            &[&market[..2], &["journal"], &market[2..]].concat(),
        ),
    ] {
        let key = world.key_of(scopes);
        for version in VERSIONS {
            let assistant = Assistant::new(&world.service, &key, version);
            assert_eq!(assistant.names(), expected, "{scopes:?} {version}");
            let status = if version == NEW { 400 } else { 200 };
            for (name, arguments, _) in calls() {
                all += 1;
                if expected.contains(&name) {
                    assistant.call(name, &arguments).document();
                } else {
                    let params = json!({"name": name, "arguments": arguments});
                    let refused = assistant.refusal("tools/call", &params);
                    assert_eq!(refused, (status, -32_602), "{scopes:?} {version} {name}");
                }
            }
        }
    }
    assert!(all > 300, "{all}");
}

fn tools_are_described_for_reading_alone(world: &World) {
    for version in VERSIONS {
        let assistant = Assistant::new(&world.service, &world.key, version);
        let list = assistant.result("tools/list", &json!({}));
        let cached = (list.get("ttlMs").is_some(), list.get("cacheScope").is_some());
        assert_eq!(cached, (version == NEW, version == NEW));
        assert!(version != NEW || list["cacheScope"] == "private", "{list}");
        assert!(list.to_string().len() < 50 * 1024, "{} bytes", list.to_string().len());
        for tool in list["tools"].as_array().unwrap() {
            assert_eq!(tool["annotations"]["readOnlyHint"], true);
            for kind in ["title", "description"] {
                assert!(tool[kind].as_str().unwrap().len() > 15, "{tool}");
            }
            assert_eq!(tool.get("outputSchema").is_some(), version != OLD[2], "{tool}");
            let text = tool.to_string();
            assert!(!text.contains("multipleOf") && !text.contains("#/components"), "{text}");
            // Texts from outside are in no description.
            assert!(!text.contains("asha") && !text.contains("Ignore all rules"), "{text}");
        }
        let plain = list["tools"].as_array().unwrap();
        let snapshot = plain
            .iter()
            .find(|tool| tool["name"] == "market_snapshot")
            .unwrap();
        let nothing = json!({"type": "object", "additionalProperties": false});
        assert_eq!(snapshot["inputSchema"], nothing);
    }
    // A shorter list describes the members of its answers.
    let narrow = world.key_of(&["portfolio:read"]);
    let tools = Assistant::new(&world.service, &narrow, NEW).tools();
    assert!(
        tools[0]["outputSchema"]
            .to_string()
            .contains("Shares owned"),
        "{}",
        tools[0]
    );
}

fn a_refusal_is_a_result_with_the_problem_of_the_route(world: &World) {
    for version in VERSIONS {
        let assistant = Assistant::new(&world.service, &world.key, version);
        for (tool, arguments, code) in [
            ("quotes", json!({}), "symbols_missing"),
            ("quotes", json!({"symbols": "INFY"}), "symbol_malformed"),
            ("quotes", json!({"symbols": vec!["NSE:INFY"; 51]}), "too_many_symbols"),
            ("quotes", json!({"symbols": [1, {}]}), "validation_failed"),
            ("quotes", json!({"symbols": "NSE:INFY&symbols=NSE:TCS"}), "symbol_malformed"),
            ("quotes", json!({"symbols": "NSE:INFY", "user_id": 2}), "validation_failed"),
            ("holdings", json!({"broker": "c"}), "validation_failed"),
            ("holdings", json!({"live": "yes"}), "validation_failed"),
            ("holdings", json!({"cursor": "1-2"}), "cursor_invalid"),
            ("holdings", json!({"cursor": {"a": 1}}), "validation_failed"),
            ("positions", json!({"type": "all"}), "validation_failed"),
            ("portfolio_summary", json!({"days": 366}), "validation_failed"),
            ("portfolio_summary", json!({"days": 1.5}), "validation_failed"),
            ("journal", json!({"cursor": "x"}), "cursor_invalid"),
            ("journal", json!({"from": "yesterday"}), "validation_failed"),
            ("signals", json!({"min_samples": -1}), "validation_failed"),
            ("search_instruments", json!({"q": " "}), "validation_failed"),
            ("search_instruments", json!({"q": "é".repeat(5_000)}), "target_too_long"),
            ("candles", json!({"symbol": "NSE:NOSUCH"}), "candles_not_found"),
            ("candles", json!({"symbol": "NSE:INFY", "days": 601}), "validation_failed"),
            ("market_snapshot", json!({"x": 1}), "validation_failed"),
            ("trades", json!({"isin": "INE009A0102"}), "validation_failed"),
            ("trades", json!({"account": "A"}), "validation_failed"),
            ("open_lots", json!({"as_of": "2026-02-30"}), "validation_failed"),
            ("open_lots", json!({"cursor": "0-1"}), "cursor_invalid"),
            ("realised_gains", json!({"fy": "2025-27"}), "validation_failed"),
            ("realised_gains", json!({"fy": "2025-26", "cursor": "0-1"}), "cursor_invalid"),
            ("realised_gains", json!({"cursor": "A".repeat(27)}), "cursor_invalid"),
            ("returns", json!({"cursor": "9-9"}), "cursor_invalid"),
            ("ledger_gaps", json!({"limit": 1_001}), "validation_failed"),
        ] {
            let called = assistant.call(tool, &arguments);
            assert_eq!(called.code(), code, "{tool} {arguments}: {}", called.text());
        }
        for (days, others) in [(json!(7.0), json!(7)), (json!(365.0), json!(365))] {
            let [one, other] = [days, others].map(|days| {
                assistant
                    .call("portfolio_summary", &json!({"days": days}))
                    .document()
            });
            assert_eq!(one, other);
        }
        let text = json!({"symbols": "[\"NSE:INFY\",\"NSE:M&M\"]"});
        let list = json!({"symbols": ["NSE:INFY", "NSE:M&M"]});
        let [text, list] = [text, list].map(|given| assistant.call("quotes", &given).document());
        assert_eq!(text, list);
        let called = assistant.call("portfolio_summary", &json!({"days": 0}));
        let (problem, _) = called.refused();
        assert_eq!(problem["errors"][0]["field"], "days", "{problem}");
    }
}

#[test]
fn what_is_not_there_yet_says_when_to_ask_again() {
    let scene = crate::portfolio::close::scene_by_hand(crate::support::TRADING);
    scene.refuse_all();
    let service = scene.start();
    let login = bearer(&service.register("asha@example.com", PASSWORD));
    let key = bearer(&made(&service, &login, r#""market:read","signals:read""#, "").1);
    let assistant = Assistant::new(&service, &key, OLD[0]);
    let (problem, rest) = assistant.call("market_snapshot", &json!({})).refused();
    let refused = (&problem["code"], &problem["status"]);
    assert_eq!(refused, (&json!("snapshot_not_ready"), &json!(503)));
    assert!(rest.starts_with("Retry after ") && rest.ends_with(" s."), "{rest}");
    let answer = post(&service, &login, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    answer.expect_problem(401, "key_missing");
}
