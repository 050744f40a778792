//! Every described success occurs, and every described field.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bhav::api::{ROUTES, Route};
use bhav::http::Method;
use parking_lot::Mutex;
use sonic_rs::JsonValueTrait;

use super::ages;
use super::checker::Checker;
use super::ledger;
use super::walk::Walk;
use crate::contract::openapi::needs;
use crate::signals::stage::{NINE, RECORD, SIGNALS, Stage};
use crate::support::upstream::{Asked, Said, Upstream};
use crate::support::wait::at_once;
use crate::support::{
    Answer, EventReader, SNAPSHOT, STREAM, Scene, Service, TRADING, bearer, until,
};

const LOGIN: &str = r#"{"email":"walk@example.com","password":"nine green parrots"}"#;
const ENTRY: &str = r#"{"traded_on":"2026-11-20","symbol":"NIFTY 26NOV 25000 CE","side":"buy",
    "quantity":75,"price":112.5,"fees":20,"strategy":"breakout","notes":"first\nsecond",
    "tags":["one","two"]}"#;
const BARE: &str = r#"{"traded_on":"2026-11-19","symbol":"INFY","side":"sell","quantity":0.5,
    "price":0}"#;
/// Fields of a wrong clock, of backups, of refused reloads and of a taken address: those have
/// scenarios of their own.
const NEVER_THERE: [&str; 65] = [
    // Two points a week apart: in the tests of portfolios. A late source: as in quotes.
    "Week.from",
    "Week.to",
    "Week.pnl_change",
    "Week.changed",
    "Mover.delay_s",
    // Candles that must be fetched again: in the tests of signals.
    "Candles.suspect",
    // Ten weeks of judged signals: in the tests of signals.
    "BrierComparison.difference",
    "BrierComparison.high",
    "BrierComparison.low",
    "BrierComparison.standard_error",
    "BrierComparison.verdict",
    "Interval.high",
    "Interval.low",
    "Interval.standard_error",
    "Interval.value",
    // Movers while no feed answers, and prices that run behind: in the tests of movers.
    "ListedShare.delay_s",
    "ListedShare.stale",
    "Movers.stale",
    // Shares that a sync proves: in the tests beside the ledger's gains and returns.
    "AgreementLineView.simulated",
    "HoldingReturnView.absolute_pct",
    "HoldingReturnView.isin",
    "HoldingReturnView.purchases",
    "HoldingReturnView.roots",
    "HoldingReturnView.sales",
    "HoldingReturnView.symbol",
    "HoldingReturnView.value",
    "HoldingReturnView.xirr",
    "HoldingReturnView.xirr_reason",
    "SaleView.simulated",
    // An unknown version is no success: in the tests of `/mcp`.
    "RpcError.data",
    "RpcVersions.requested",
    "RpcVersions.supported",
    // Patterns of one day that contradict each other: in the tests of signals.
    "ListedSignal.conflict",
    // A list that is not believed: in the tests of lists of instruments.
    "HealthMarket.instruments_failure",
    "HealthClock.ahead_of_exchange_ms",
    "Health.backup",
    "HealthBackup.succeeded_ist",
    "HealthBackup.failed",
    "Health.reload",
    "HealthReload.refused_ist",
    "Health.admin_listener",
    "HealthAdminListener.failure",
    // Connections to other machines: in the tests of health and of nodes.
    "Health.exposed",
    "HealthExposed.setting",
    "HealthExposed.reason",
    // Prices that wait for the public provider: in the tests of `bhav status`.
    "HealthTrouble.until_ist",
    "Health.shared_server",
    "HealthSharedServer.refused",
    "HealthSharedServer.foreign",
    // One node of several: in their tests.
    "Health.node",
    "Health.leader",
    "Health.epoch",
    "Health.relay",
    "HealthRelay.state",
    "HealthRelay.age_ms",
    "HealthRelay.gaps",
    "HealthRelay.tokens",
    "HealthTokens.broker_a",
    "HealthTokens.broker_b",
    "HealthTokens.told",
    "HealthTokens.taken",
    "HealthTokens.foreign",
    "Health.changes",
    "HealthChanges.applied",
    "HealthChanges.age_ms",
];
/// All market data here is simulated, on a clock that was set, and a request to `/mcp` has an id.
const ALWAYS_THERE: [&str; 13] = [
    "RpcAnswer.id",
    // An older service has neither, and `bhav status` reads it.
    "Health.troubles",
    "Health.day",
    "Candles.simulated",
    "HealthMarket.calendar_until",
    "HealthClock.set",
    "Market.simulated",
    // Broker A names it; its quotes stand here by then.
    "Mover.day_open",
    "Mover.simulated",
    "Quote.simulated",
    "Signal.simulated",
    "ListedSignal.simulated",
    "SignalRecord.simulated",
];

/// Activations, an account, both brokers, a journal, and the deletion of all.
fn one_user(checker: &mut Checker) {
    let scene = Scene::at(TRADING);
    let mut config = scene.config_without_tokens();
    config.broker_a.api_secret = Some("simsecreta".into());
    let service = scene.start_with(&config);
    let walk = &mut Walk::new(&service, checker);
    for path in ["/brokera/status", "/brokerb/status"] {
        walk.get(path);
    }
    activate(walk, &scene);
    service.await_instruments();
    service.fresh_snapshot();
    walk.get("/api/portfolio/live-prices?symbols=NSE:INFY,NSE:M%26M,NSE:NOSUCH,BSE:RELIANCE");
    let prices = "/api/portfolio/live-prices?symbols=NSE:INFY";
    for target in ["/brokera/status", "/brokerb/status", prices] {
        walk.still_stands(target);
    }
    let new = walk.expect(201, "POST", "/api/auth/register", LOGIN);
    walk.enter(&new);
    before_and_after_syncs(walk, &scene);
    journal(walk);
    keys(walk);
    watchlists(walk);
    let changed =
        r#"{"current_password":"nine green parrots","new_password":"ten red ones, then"}"#;
    let new = walk.expect(200, "POST", "/api/auth/password", changed);
    walk.enter(&new);
    walk.expect(200, "POST", "/api/auth/logout", "");
    let again = LOGIN.replace("nine green parrots", "ten red ones, then");
    let new = walk.expect(200, "POST", "/api/auth/login", &again);
    walk.enter(&new);
    // A browser with the logins of two accounts.
    let other = LOGIN.replacen('@', "+other@", 1);
    let other = walk
        .expect(201, "POST", "/api/auth/register", &other)
        .field("access_token");
    let own = new.field("access_token");
    let cookies = format!("Cookie: access_token_cookie={own}; access_token_cookie={other}\r\n");
    let login = std::mem::replace(&mut walk.auth, cookies);
    walk.get("/api/auth/session");
    walk.auth = login;
    let by_cookie = again.replacen('{', r#"{"cookie":true,"#, 1);
    let own = "Origin: http://localhost\r\n";
    walk.send("POST", "/api/auth/login", own, &by_cookie)
        .with_status(200);
    walk.expect(200, "DELETE", "/api/portfolio/data", "");
    walk.get("/api/portfolio/export");
    let proof = r#"{"password":"ten red ones, then"}"#;
    walk.expect(200, "DELETE", "/api/auth/account", proof);
}

/// A key is made, used, listed and revoked.
fn keys(walk: &mut Walk<'_>) {
    let order = r#"{"name":"a widget","scopes":["market:read","signals:read"],
        "expires_at":"2099-01-01T00:00:00Z","current_password":"nine green parrots"}"#;
    let made = walk.expect(201, "POST", "/api/keys", order);
    let login = std::mem::replace(&mut walk.auth, bearer(&made.field("key")));
    walk.get("/api/auth/session");
    walk.get("/api/portfolio/live-prices?symbols=NSE:INFY");
    for method in ["tools/list", "nothing"] {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
        walk.expect(200, "POST", "/mcp", &message);
    }
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    walk.expect(202, "POST", "/mcp", notification);
    walk.auth = login;
    walk.get("/api/keys");
    walk.still_stands("/api/keys");
    walk.expect(204, "DELETE", &format!("/api/keys/{}", made.field("id")), "");
}

fn watchlists(walk: &mut Walk<'_>) {
    walk.get("/api/watchlists");
    let lists = r#"{"watchlists":[{"name":"Shares","symbols":["NSE:M&M","BSE:SENSEX"]},
        {"id":null,"name":"Later","symbols":[],"colour":"unknown"}]}"#;
    walk.expect(200, "PUT", "/api/watchlists", lists);
    let lists = r#"{"watchlists":[{"id":2,"name":"Sooner","symbols":["NSE:INFY"]}]}"#;
    walk.expect(200, "PUT", "/api/watchlists", lists);
    walk.get("/api/watchlists");
    walk.still_stands("/api/watchlists");
    let unknown = lists.replace("2", "1");
    walk.expect(404, "PUT", "/api/watchlists", &unknown);
    walk.get("/api/portfolio/export");
}

fn activate(walk: &mut Walk<'_>, scene: &Scene) {
    for (broker, name, code) in [
        ("brokera", "request_token", scene.request_token()),
        ("brokerb", "api_session", scene.api_session()),
    ] {
        let body = format!(r#"{{"{name}":"{code}"}}"#);
        walk.expect(200, "POST", &format!("/{broker}/activate"), &body);
        walk.get(&format!("/{broker}/status"));
    }
}

const READS: [&str; 9] = [
    "/api/portfolio/holdings",
    "/api/portfolio/holdings?broker=a",
    "/api/portfolio/holdings?broker=b",
    "/api/portfolio/positions",
    "/api/portfolio/positions?type=day",
    "/api/portfolio/positions?type=net&include_closed=true",
    "/api/portfolio/pnl",
    "/api/portfolio/pnl?days=365",
    "/api/portfolio/export",
];

/// A code of the simulated account that both brokers know.
fn code(scene: &Scene, route: &str, name: &str) -> String {
    let json = scene
        .control("POST", route, r#"{"user_id":"PF0001"}"#)
        .json();
    json[name].as_str().unwrap().to_owned()
}

fn before_and_after_syncs(walk: &mut Walk<'_>, scene: &Scene) {
    READS.iter().for_each(|target| drop(walk.get(target)));
    walk.get("/api/portfolio/holdings?live=true");
    // The server's own key, which causes a warning, and another.
    for key in ["simkeya", "simkeya-1"] {
        let said = sync_broker_a(walk, scene, key);
        assert_eq!(said.text().contains("\"warnings\":"), key == "simkeya");
    }
    sync_broker_b(walk, scene);
    READS.iter().for_each(|target| drop(walk.get(target)));
    a_cost_of_some_shares(walk, scene);
    a_share_that_was_all_sold_today(walk, scene);
    [
        "/api/portfolio/holdings",
        "/api/portfolio/positions",
        "/api/portfolio/pnl",
    ]
    .iter()
    .for_each(|target| walk.still_stands(target));
    let live = "/api/portfolio/holdings?live=true";
    until("an answer of the rows that moved", || {
        let tag = walk.get(live).header("etag").unwrap().replace('"', "%22");
        let answer = walk.get(&format!("{live}&since={tag}"));
        answer.json()["since"].as_str().map(drop)
    });
    until("a price that is fresher than the broker's", || {
        let answer = walk.get(live);
        answer.text().contains("\"source\":").then_some(())
    });
}

/// Forty shares at the depository, of which thirty have a cost.
fn a_cost_of_some_shares(walk: &mut Walk<'_>, scene: &Scene) {
    let held = r#"{"user_id":"PF0001",
        "demat":[{"stock_code":"TCS","isin":"INE467B01029","quantity":"40"}],
        "portfolio":[{"stock_code":"TCS","quantity":"30","average_price":"250",
            "symbol":"NSE:TCS"}]}"#;
    assert_eq!(scene.control("POST", "broker_b/holdings", held).status, 200);
    sync_broker_b(walk, scene);
    walk.get("/api/portfolio/holdings?broker=b");
    walk.get("/api/portfolio/export");
}

fn a_share_that_was_all_sold_today(walk: &mut Walk<'_>, scene: &Scene) {
    let held = r#"{"user_id":"PF0001","rows":[
        {"symbol":"NSE:TCS","quantity":5,"average_paise":300000},
        {"symbol":"NSE:INFY","quantity":0,"sold":5,"average_paise":150000}]}"#;
    assert_eq!(scene.control("POST", "broker_a/holdings", held).status, 200);
    sync_broker_a(walk, scene, "simkeya-1");
    walk.get("/api/portfolio/export");
}

fn sync_broker_a(walk: &mut Walk<'_>, scene: &Scene, key: &str) -> Answer {
    let code = code(scene, "broker_a/request_token", "request_token");
    let body =
        format!(r#"{{"api_key":"{key}","api_secret":"simsecreta","request_token":"{code}"}}"#);
    walk.expect(200, "POST", "/api/portfolio/sync", &body)
}

pub fn sync_broker_b(walk: &mut Walk<'_>, scene: &Scene) {
    let body = format!(
        r#"{{"api_key":"sim+key=b&1","api_secret":"simsecretb","api_session":"{}"}}"#,
        code(scene, "broker_b/api_session", "api_session")
    );
    walk.expect(200, "POST", "/api/portfolio/brokerb-sync", &body);
}

fn journal(walk: &mut Walk<'_>) {
    walk.get("/api/journal");
    let added = walk.expect(201, "POST", "/api/journal", ENTRY);
    let entry = added.header("location").unwrap().to_owned();
    walk.expect(201, "POST", "/api/journal", BARE);
    let page = walk.get("/api/journal?limit=1");
    let json = page.json();
    let cursor = json["next_cursor"].as_str().unwrap();
    walk.get(&format!("/api/journal?limit=1&cursor={cursor}"));
    walk.get(&entry);
    walk.get("/api/portfolio/export");
    walk.get("/api/journal/search");
    walk.expect(201, "POST", "/api/journal", &BARE.replace("sell", "buy"));
    let page = walk.get("/api/journal/search?limit=1&symbol=INFY");
    assert!(page.text().contains("closed_pairs"));
    walk.get("/api/auth/session");
    walk.still_stands("/api/auth/session");
    walk.still_stands("/api/journal/search");
    for target in ["/api/journal", &entry, "/api/portfolio/export"] {
        walk.still_stands(target);
    }
    walk.expect(200, "PUT", &entry, BARE);
    walk.expect(200, "DELETE", &entry, "");
}

/// Broker A's rows for a user at the first sync, after a split, a sale and a purchase, and after
/// one more purchase and a corrected cost.
fn broker(asked: &Asked, sync: usize) -> Said {
    let row = |name: &str, quantity: u32, average: u32, last: u32| {
        format!(
            r#"{{"tradingsymbol":"{name}","exchange":"NSE","isin":"","quantity":{quantity},
            "t1_quantity":0,"average_price":{average},"last_price":{last},"close_price":{last},
            "pnl":1,"product":"CNC","instrument_token":1}}"#
        )
    };
    let rows = match sync {
        1 => [row("INFY", 10, 1500, 2000), row("ITC", 7, 400, 410)],
        2 => [row("INFY", 50, 300, 404), row("TCS", 1, 3000, 3100)],
        _ => [row("INFY", 51, 300, 404), row("TCS", 1, 3010, 3100)],
    };
    Said::json(match asked.target.as_str() {
        "/session/token" => r#"{"status":"success","data":{"access_token":"t"}}"#.to_owned(),
        "/portfolio/holdings" => {
            format!(r#"{{"status":"success","data":[{}]}}"#, rows.join(","))
        }
        "/portfolio/positions" => {
            r#"{"status":"success","data":{"net":[{"tradingsymbol":"INFY","exchange":"NSE",
            "instrument_token":1,"product":"MIS","quantity":2,"overnight_quantity":0,
            "multiplier":1,"average_price":10,"close_price":11,"last_price":12,"value":-20,
            "pnl":4,"m2m":4,"unrealised":4,"realised":0}],"day":[]}}"#
                .to_owned()
        }
        _ => "{}".to_owned(),
    })
}

/// None of this broker's data is simulated.
fn a_split_and_a_sale(checker: &mut Checker) {
    let syncs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&syncs);
    let upstream = Upstream::start(move |asked| broker(asked, counted.load(Ordering::SeqCst)));
    let (_scene, service) = Scene::trading_with(|config| {
        config.broker_a.url = upstream.url();
        config.broker_a.access_token = None;
    });
    let walk = &mut Walk::new(&service, checker);
    let new = walk.expect(201, "POST", "/api/auth/register", LOGIN);
    walk.enter(&new);
    for number in 1..=3 {
        syncs.store(number, Ordering::SeqCst);
        let body =
            format!(r#"{{"api_key":"key-{number}","api_secret":"s","request_token":"code"}}"#);
        let said = walk.expect(200, "POST", "/api/portfolio/sync", &body);
        assert_eq!(said.text().contains("\"changed_count\":0"), number == 1, "{}", said.text());
    }
    READS.iter().for_each(|target| drop(walk.get(target)));
}

/// The beginning of a stream.
fn stream(walk: &mut Walk<'_>) {
    let mut events = EventReader::open(walk.service, STREAM, "");
    let event = events.event_named("snapshot");
    let answer = Answer {
        body: events.text().as_bytes().to_vec(),
        ..events.head.clone()
    };
    walk.checker.check("GET", STREAM, &answer);
    let schema = serde_json::json!({"$ref": "#/components/schemas/Snapshot"});
    let data = serde_json::from_str(&event.data).unwrap();
    walk.checker.valid(&schema, &data, &event.data);
    let target = format!("{STREAM}?symbols=NSE:INFY,NSE:NOSUCH");
    let mut events = EventReader::open(walk.service, &target, "");
    let schema = serde_json::json!({"$ref": "#/components/schemas/QuotesEvent"});
    until("a quote", || {
        events.look();
        let event = events.ready().filter(|event| event.name == "quotes")?;
        let data: serde_json::Value = serde_json::from_str(&event.data).unwrap();
        walk.checker.valid(&schema, &data, &event.data);
        (data["quotes"][0]["symbol"] == "NSE:INFY").then_some(())
    });
    assert_eq!(walk.send("GET", STREAM, "If-None-Match: *\r\n", "").status, 304);
}

/// Health while all is well, and while no feed answers; a stale snapshot, and one restored after a
/// restart.
fn feeds_that_come_and_go(checker: &mut Checker) {
    let (scene, service) = Scene::trading();
    service.fresh_snapshot();
    let walk = &mut Walk::new(&service, checker);
    walk.get(SNAPSHOT);
    walk.still_stands(SNAPSHOT);
    until("shares that move", || {
        let moved = walk
            .get("/api/market/movers?all=true")
            .text()
            .contains("\"last_price\":1");
        walk.get("/api/market/movers");
        moved.then_some(())
    });
    stream(walk);
    until("health that is up", || {
        (walk.send("GET", "/api/health", "", "").status == 200).then_some(())
    });
    walk.still_stands("/api/health");
    walk.get("/api/openapi.json");
    walk.still_stands("/api/openapi.json");
    scene.refuse_all();
    service.snapshot_where("a stale one", |json| json["market"]["stale"] == true);
    walk.get(SNAPSHOT);
    until("a failure in health", || {
        walk.get("/api/health")
            .text()
            .contains("\"failure\":")
            .then_some(())
    });
    service.stop();
    let service = scene.start();
    service.snapshot_where("the one of before", |json| json["market"]["stale"] == true);
    Walk::new(&service, checker).get(SNAPSHOT);
}

/// Health before prices are pushed, during that, and after it.
fn a_ticker_that_comes_and_goes(checker: &mut Checker) {
    let scene = Scene::at(TRADING);
    scene.fault("broker_a.ticker", r#"{"kind":"heartbeat_only"}"#);
    let mut config = scene.config();
    config.broker_a.ticker_url = scene.sim.broker_a_ticker_url();
    let service = scene.start_with(&config);
    service.fresh_snapshot();
    let walk = &mut Walk::new(&service, checker);
    until("health that is up", || walk.send("GET", "/api/health", "", "").status == 200);
    walk.get("/api/health");
    scene.control("DELETE", "faults", "");
    until("ticks", || walk.get("/api/health").text().contains("\"live\":true"));
    scene.fault("broker_a.ticker", r#"{"kind":"hangup"}"#);
    until("their end", || {
        walk.get("/api/health")
            .text()
            .contains("\"failure\":\"broken\"")
    });
}

/// Signals and candles while they are made, and while they cannot be.
fn signals_to_come(checker: &mut Checker) {
    let stage = Stage::with("2026-11-19", &NINE, 1);
    let targets = ["/api/market/candles?symbol=NSE:INFY", SIGNALS];
    // Each share's candles take a while, so that what is being made is seen on any machine.
    for source in ["broker_a.historical", "public.chart"] {
        stage
            .scene
            .fault(source, r#"{"kind":"delay","delay_ms":2000}"#);
    }
    let service = stage.start();
    for target in targets {
        stage.step_until("what is being made", || {
            let answer = Walk::new(&service, checker).get(target);
            answer.text().contains(r#""progress""#).then_some(())
        });
    }
    service.stop();
    let stage = Stage::with("2026-11-19", &NINE, 1);
    stage.scene.refuse_all();
    let service = stage.start();
    for target in targets {
        stage.step_until("what cannot be made", || {
            let answer = Walk::new(&service, checker).get(target);
            answer.text().contains(r#""detail""#).then_some(())
        });
    }
}

/// Signals of a finished day, then together with those of a running one.
fn signals(checker: &mut Checker) {
    let stage = Stage::with("2026-11-19", &NINE, 1);
    let service = stage.start();
    stage.await_signals(&service, "2026-11-19");
    // The snapshot is written a moment after the list is published.
    stage.step_until("signals in the snapshot", || {
        service.get(SNAPSHOT).json()["signals"][0]
            .is_object()
            .then_some(())
    });
    stage.health_where("the close", &service, |json| json["close"].get("date").is_some());
    let walk = &mut Walk::new(&service, checker);
    for target in [
        SIGNALS,
        "/api/signals?direction=bullish",
        RECORD,
        SNAPSHOT,
        "/api/health",
    ] {
        walk.get(target);
    }
    let candles = "/api/market/candles?symbol=NSE:INFY&days=3";
    stage.step_until("candles", || (service.get(candles).json()["state"] == "ready").then_some(()));
    let named = "/api/market/search?symbols=NSE:INFY,NSE:NOSUCH";
    let listed = "/api/market/search?isins=INE009A01021";
    for target in [
        candles,
        "/api/market/movers",
        "/api/market/search?q=infy",
        named,
        listed,
    ] {
        walk.get(target);
        walk.still_stands(target);
    }
    walk.still_stands(SIGNALS);
    walk.still_stands("/api/signals?direction=bullish");
    walk.still_stands(RECORD);
}

/// A user's reads that no scenario has made and that need no parameter.
fn other_reads(all: &Checker, checker: &mut Checker) {
    let is_read = |checker: &Checker, route: &Route| {
        checker
            .answered
            .contains(&("GET".to_owned(), route.path.to_owned(), 200))
    };
    let is_other = |route: &&Route| {
        route.method == Method::Get
            && is_read(all, route)
            && !is_read(checker, route)
            && needs(&checker.document, route).is_empty()
    };
    let others: Vec<&Route> = ROUTES.iter().filter(is_other).collect();
    if others.is_empty() {
        return;
    }
    let (_scene, service) = Scene::trading();
    let walk = &mut Walk::new(&service, checker);
    let new = walk.expect(201, "POST", "/api/auth/register", LOGIN);
    walk.enter(&new);
    for route in others {
        walk.get(route.path);
        walk.still_stands(route.path);
    }
}

fn missing(all: &BTreeSet<String>, seen: &BTreeSet<String>, known: &[&str]) -> Vec<String> {
    all.difference(seen)
        .filter(|place| !known.contains(&place.as_str()))
        .cloned()
        .collect()
}

#[test]
fn every_success_is_as_described_and_everything_described_comes() {
    let scenarios: [fn(&mut Checker); 9] = [
        one_user,
        ledger::files_and_what_they_come_to,
        a_split_and_a_sale,
        feeds_that_come_and_go,
        a_ticker_that_comes_and_goes,
        signals_to_come,
        signals,
        ages::delayed_prices,
        ages::indices_of_their_own_times,
    ];
    let seen = Mutex::new(Checker::new());
    at_once(scenarios, |scenario| {
        let mut checker = Checker::new();
        scenario(&mut checker);
        seen.lock().add(checker);
    });
    let mut checker = seen.into_inner();
    let all = checker.everything();
    other_reads(&all, &mut checker);
    let unanswered: Vec<_> = all.answered.difference(&checker.answered).collect();
    assert!(unanswered.is_empty(), "never had: {unanswered:?}");
    assert!(all.present.len() > 200, "{}", all.present.len());
    let never = missing(&all.present, &checker.present, &NEVER_THERE);
    assert!(never.is_empty(), "described and never there: {never:?}");
    let mut always = missing(&all.absent, &checker.absent, &ALWAYS_THERE);
    always.retain(|place| checker.present.contains(place));
    assert!(always.is_empty(), "described as optional and always there: {always:?}");
}

#[test]
fn a_service_gives_the_document_that_was_judged() {
    let scene = Scene::at(TRADING);
    let service: Service = scene.start();
    let answer = service.get("/api/openapi.json");
    assert_eq!(answer.header("cache-control"), Some("public, no-cache"));
    let path = crate::support::source::root().join("src/api/openapi.json");
    assert_eq!(answer.body, std::fs::read(path).unwrap());
    for coding in ["gzip", "br"] {
        let headers = format!("Accept-Encoding: {coding}\r\n");
        let packed = service
            .client()
            .request("GET", "/api/openapi.json", &headers);
        assert_eq!((packed.status, packed.header("content-encoding")), (200, Some(coding)));
        assert!(packed.body.len() * 5 < answer.body.len(), "{coding}: {}", packed.body.len());
        let head = service
            .client()
            .request("HEAD", "/api/openapi.json", &headers);
        assert_eq!(head.header("etag"), packed.header("etag"));
    }
}
