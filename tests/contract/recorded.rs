//! Every route's reply, recorded: a client gets it byte for byte as in
//! `tests/fixtures/replies.txt`, members in the same order and numbers with the same digits.
//!
//! A change of the file is a change for clients: read its diff before it is committed.

use std::fmt::Write as _;

use bhav::api::{ROUTES, Route};
use bhav::base::Clock;
use bhav::http::Method;
use bhav::sim::SimSettings;
use jiff::civil::date;

use super::openapi::{document, needs};
use crate::signals::stage::{NINE, RECORD, SIGNALS, Stage};
use crate::support::source::expect_made;
use crate::support::{Answer, SNAPSHOT, Scene, Service, bearer, until};

pub const RECORDED: &str = "tests/fixtures/replies.txt";
/// Reads that are not recorded, and why.
pub const UNRECORDED: [(&str, &str); 9] = [
    ("/api/index/stream", "it does not end"),
    ("/api/health", "its values change each second; its names are recorded"),
    ("/api/openapi.json", "it is a file of the repository, which a test compares"),
    ("/api/auth/session", "it has the version and the expiry of a login"),
    ("/api/keys", "keys have times of the day of the run"),
    ("/api/market/candles", "the source is asked after the first request"),
    ("/api/market/movers", "they are computed once a second while somebody asks"),
    ("/api/market/search", "the list comes when the broker's file has been read"),
    ("/api/journal/search", "its entries are those of the journal, and its figures have tests"),
];
/// After the close prices stand still, however long a request takes.
const EVENING: &str = "2026-11-20T20:00:00+05:30";
/// Each check advances the clock, so that limits of a second pass.
const STEP_MS: i64 = 50;

const LOGIN: &str = r#"{"email":"replies@example.com","password":"nine green parrots","name":"A"}"#;
const OTHER_LOGIN: &str = r#"{"email":"replies@example.com","password":"ten red ones, then"}"#;
const ENTRY: &str = r#"{"traded_on":"2026-11-20","symbol":"NIFTY 26NOV 25000 CE","side":"buy",
    "quantity":75.50,"price":112.500001,"fees":0.0,"strategy":"\"break\"out","notes":"a\nb\t\\é",
    "tags":["one","two"]}"#;
const BARE: &str = r#"{"traded_on":"2026-11-19","symbol":"INFY","side":"sell","quantity":0.5,
    "price":0}"#;
const READS: [&str; 8] = [
    "/api/portfolio/holdings",
    "/api/portfolio/holdings?broker=b",
    "/api/portfolio/positions",
    "/api/portfolio/positions?type=net&include_closed=true",
    "/api/portfolio/pnl",
    "/api/portfolio/pnl?days=365",
    "/api/portfolio/export",
    "/api/journal?limit=1",
];

/// `text` with `word` in the place of each value that follows `opening`.
fn without(text: &str, opening: &str, word: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(opening) {
        let (before, value) = rest.split_at(at + opening.len());
        out += before;
        out += word;
        rest = &value[value.find('"').unwrap()..];
    }
    out + rest
}

/// `text` with the values that differ from run to run replaced: tokens, and times of the day of the
/// run. A revision differs from version to version.
fn steady(text: &str) -> String {
    let out = without(text, "\"access_token\":\"", "<token>");
    let out = without(&out, "\"revision\":\"", "<revision>");
    // A hash under a key of the run.
    let out = without(&out, "\"network\":\"", "<network>");
    let evening = "T20:";
    let mut steady = String::with_capacity(out.len());
    let mut rest = out.as_str();
    while let Some(at) = rest.find(evening) {
        steady += &rest[..at];
        steady += "T<now>";
        rest = &rest[at + "T20:00:00".len()..];
    }
    steady + rest
}

struct Recorder<'a> {
    service: &'a Service,
    text: &'a mut String,
    auth: String,
}

impl Recorder<'_> {
    fn note(&mut self, what: &str, answer: &Answer) {
        let kind = answer.header("content-type").unwrap_or_default();
        let body = steady(answer.text());
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{what}\n{} {kind}\n{body}\n", answer.status);
    }

    fn send(&mut self, method: &str, target: &str, body: &str) -> Answer {
        let mut client = self.service.client();
        let answer = if body.is_empty() {
            client.request(method, target, &self.auth)
        } else {
            client.send_json(method, target, &self.auth, body)
        };
        self.note(&format!("{method} {target}"), &answer);
        answer
    }

    fn get(&mut self, target: &str) -> Answer {
        self.send("GET", target, "")
    }

    fn enter(&mut self, answer: &Answer) {
        let token = answer.json()["access_token"].to_string();
        self.auth = bearer(token.trim_matches('"'));
    }

    /// Only the names of its members, in order: their values change each second.
    fn note_names(&mut self, target: &str) {
        let answer = self.service.get(target);
        let pieces: Vec<&str> = answer.text().split("\":").collect();
        let names =
            pieces[..pieces.len() - 1].iter().map(|piece| piece.rsplit('"').next().unwrap());
        // Members that are present only sometimes.
        let names = names.filter(|name| !matches!(*name, "age_ms" | "failure" | "delay_s"));
        let _ =
            writeln!(self.text, "names in GET {target}\n{}\n", names.collect::<Vec<_>>().join(" "));
    }
}

fn code(scene: &Scene, route: &str, name: &str) -> String {
    let answer = scene.control("POST", route, r#"{"user_id":"PF0001"}"#);
    answer.json()[name].to_string().trim_matches('"').to_owned()
}

fn user(text: &mut String) {
    let clock = Clock::manual(EVENING.parse().unwrap());
    let settings = SimSettings { rate_limits: false, ..SimSettings::default() };
    let scene = Scene::by_hand(clock, settings);
    let service = scene.start_with(&scene.config_without_tokens());
    let to = &mut Recorder { service: &service, text, auth: String::new() };
    market(to, &scene);
    strangers(to);
    let new = to.send("POST", "/api/auth/register", LOGIN);
    to.enter(&new);
    portfolio(to, &scene);
    journal(to);
    watchlists(to);
    refusals(to);
    let passwords =
        r#"{"current_password":"nine green parrots","new_password":"ten red ones, then"}"#;
    let new = to.send("POST", "/api/auth/password", passwords);
    to.enter(&new);
    to.send("POST", "/api/auth/logout", "");
    let new = to.send("POST", "/api/auth/login", OTHER_LOGIN);
    to.enter(&new);
    to.send("DELETE", "/api/portfolio/data", "");
    to.get("/api/portfolio/export");
    to.send("DELETE", "/api/auth/account", r#"{"password":"ten red ones, then"}"#);
}

fn market(to: &mut Recorder<'_>, scene: &Scene) {
    for path in ["/brokera/status", "/brokerb/status"] {
        to.get(path);
    }
    for (broker, name, code) in [
        ("brokera", "request_token", scene.request_token()),
        ("brokerb", "api_session", scene.api_session()),
    ] {
        to.send("POST", &format!("/{broker}/activate"), &format!(r#"{{"{name}":"{code}"}}"#));
        to.get(&format!("/{broker}/status"));
    }
    let look = |what, target: &str, holds: fn(&str) -> bool| {
        until(what, || {
            scene.advance_ms(STEP_MS);
            let answer = to.service.get(target);
            (answer.status == 200 && holds(answer.text())).then_some(())
        });
    };
    look("broker A's snapshot", SNAPSHOT, |text| {
        text.contains("\"stale\":false,\"source\":\"broker_a\"")
    });
    look("health", "/api/health", |_| true);
    until("broker A's instruments", || {
        scene.advance_ms(STEP_MS);
        to.service.has_instruments()
    });
    let prices = "/api/portfolio/live-prices?symbols=NSE:INFY,NSE:M%26M,BSE:RELIANCE,NSE:TCS";
    look("quotes", prices, |text| text.contains("\"unavailable\":[]"));
    look("the day's signals in the snapshot", SNAPSHOT, |text| {
        text.contains("\"signals_as_of\":\"2026-11-20\"")
    });
    to.get(SNAPSHOT);
    to.get(&format!("{prices},NSE:NOSUCH"));
    to.note_names("/api/health");
}

fn strangers(to: &mut Recorder<'_>) {
    for target in ["/nowhere", "/api/portfolio/holdings", "/api/journal/0"] {
        to.get(target);
    }
    for query in ["", "symbols=", "symbols=INFY", "symbols=NSE:%zz"] {
        to.get(&format!("/api/portfolio/live-prices?{query}"));
    }
    to.get(&format!("/api/portfolio/live-prices?symbols={}", ["NSE:INFY"; 51].join(",")));
    to.get("/api/signals?direction=up&min_samples=-1");
    to.send("PATCH", SNAPSHOT, "{}");
    to.send("POST", "/api/auth/register", r#"{"email":"x","password":"short","name":7}"#);
    to.send("POST", "/api/auth/register", r#"{"email":"x@y.example","password":"password123"}"#);
    to.send("POST", "/api/auth/login", OTHER_LOGIN);
    to.send("POST", "/api/auth/login", "{");
    to.send("POST", "/brokera/activate", r#"{"request_token":"nonsense"}"#);
}

fn portfolio(to: &mut Recorder<'_>, scene: &Scene) {
    READS.iter().for_each(|target| drop(to.get(target)));
    let sync_a = |to: &mut Recorder<'_>, key: &str| {
        let code = code(scene, "broker_a/request_token", "request_token");
        let body =
            format!(r#"{{"api_key":"{key}","api_secret":"simsecreta","request_token":"{code}"}}"#);
        to.send("POST", "/api/portfolio/sync", &body);
    };
    let sync_b = |to: &mut Recorder<'_>| {
        let code = code(scene, "broker_b/api_session", "api_session");
        let body = format!(
            r#"{{"api_key":"sim+key=b&1","api_secret":"simsecretb","api_session":"{code}"}}"#
        );
        to.send("POST", "/api/portfolio/brokerb-sync", &body);
    };
    // The server's own key, which causes a warning, and another.
    sync_a(to, "simkeya");
    sync_a(to, "simkeya-1");
    sync_b(to);
    READS.iter().for_each(|target| drop(to.get(target)));
    // Forty shares at the depository, of which thirty have a cost, all without a price.
    let held = r#"{"user_id":"PF0001",
        "demat":[{"stock_code":"TCS","isin":"INE467B01029","quantity":"40"}],
        "portfolio":[{"stock_code":"TCS","quantity":"30","average_price":"250.125",
            "symbol":"NSE:TCS"}]}"#;
    assert_eq!(scene.control("POST", "broker_b/holdings", held).status, 200);
    sync_b(to);
    READS.iter().for_each(|target| drop(to.get(target)));
    to.get("/api/portfolio/holdings?live=true&broker=b");
    let refused = |key: &str, code: &str| {
        format!(r#"{{"api_key":"{key}","api_secret":"simsecreta","request_token":"{code}"}}"#)
    };
    to.send("POST", "/api/portfolio/sync", &refused("simkeya-2", "nonsense"));
    to.send("POST", "/api/portfolio/sync", &refused("other", &scene.request_token()));
    scene.fault("broker_a.session", r#"{"kind":"refuse"}"#);
    to.send("POST", "/api/portfolio/sync", &refused("simkeya-3", "x"));
}

fn journal(to: &mut Recorder<'_>) {
    let added = to.send("POST", "/api/journal", ENTRY);
    let entry = added.header("location").unwrap().to_owned();
    to.send("POST", "/api/journal", BARE);
    to.get("/api/journal");
    to.get("/api/journal?limit=1");
    to.get(&entry);
    to.get("/api/portfolio/export");
    to.send("PUT", &entry, BARE);
    to.send("POST", "/api/journal", r#"{"side":"hold","quantity":-1,"tags":["a","a"]}"#);
    to.send("DELETE", &entry, "");
    to.get(&entry);
}

fn watchlists(to: &mut Recorder<'_>) {
    let list = r#"{"name":"Shares ₹","symbols":["NSE:M&M","NSE:NIFTY 50"]}"#;
    to.get("/api/watchlists");
    to.send("PUT", "/api/watchlists", &format!(r#"{{"watchlists":[{list}]}}"#));
    to.get("/api/watchlists");
    to.send("PUT", "/api/watchlists", &format!(r#"{{"watchlists":[{list},{list},{{}}]}}"#));
    to.send("PUT", "/api/watchlists", r#"{"watchlists":[{"id":7,"name":"a","symbols":[]}]}"#);
}

fn refusals(to: &mut Recorder<'_>) {
    for target in [
        "/api/portfolio/holdings?broker=c",
        "/api/portfolio/holdings?live=1",
        "/api/portfolio/positions?type=all",
        "/api/portfolio/pnl?days=366",
        "/api/journal?limit=0",
        "/api/journal?cursor=AAAA",
    ] {
        to.get(target);
    }
    to.send("POST", "/api/auth/register", LOGIN);
    let wrong = r#"{"current_password":"not this one","new_password":"ten red ones, then"}"#;
    to.send("POST", "/api/auth/password", wrong);
    to.send("DELETE", "/api/auth/account", r#"{"password":"not this one"}"#);
    let headers = format!("{}If-Match: \"x\"\r\n", to.auth);
    let answer = to.service.client().request("DELETE", "/api/portfolio/data", &headers);
    to.note("DELETE /api/portfolio/data, If-Match", &answer);
}

/// Signals of a finished day, then together with those of a running one.
fn signals(text: &mut String) {
    let stage = Stage::with("2026-11-19", &NINE, 1);
    let service = stage.start();
    stage.await_signals(&service, "2026-11-19");
    let to = &mut Recorder { service: &service, text, auth: String::new() };
    for target in [SIGNALS, "/api/signals?direction=bullish", "/api/signals?symbol=NSE:INFY"] {
        to.get(target);
    }
    to.get(RECORD);
    let listed = until("the day's signals in the snapshot", || {
        let answer = service.get(SNAPSHOT);
        answer.text().contains("\"signals_as_of\":\"2026-11-19\"").then_some(answer)
    });
    let top = listed.text().split("\"signals\":").nth(1).unwrap();
    let top = top.split("\"sectors\":").next().unwrap();
    let _ = writeln!(to.text, "signals of {SNAPSHOT}\n{top}\n");
    service.stop();
    stage.go_into(date(2026, 11, 20), (20, 0));
    let service = stage.start();
    stage.await_signals(&service, "2026-11-20");
    let to = &mut Recorder { service: &service, text, auth: String::new() };
    to.get(SIGNALS);
    to.get(RECORD);
}

/// A user's reads that nothing above has made and that need no parameter.
fn others(text: &mut String) {
    let document = document();
    let is_other = |route: &&Route| {
        let is_made =
            ["\n", "?"].iter().any(|end| text.contains(&format!("GET {}{end}", route.path)));
        let is_left_out = UNRECORDED.iter().any(|(path, _)| *path == route.path);
        route.method == Method::Get
            && !is_made
            && !is_left_out
            && needs(&document, route).is_empty()
    };
    let others: Vec<&Route> = ROUTES.iter().filter(is_other).collect();
    if others.is_empty() {
        return;
    }
    let clock = Clock::manual(EVENING.parse().unwrap());
    let scene = Scene::by_hand(clock, SimSettings::default());
    let service = scene.start_with(&scene.config_without_tokens());
    let to = &mut Recorder { service: &service, text, auth: String::new() };
    let new = to.service.client().account("register", "other@example.com", "nine green parrots");
    to.enter(&new);
    for route in others {
        to.get(route.path);
    }
}

#[test]
fn every_reply_is_as_it_was_recorded() {
    let mut text = String::new();
    user(&mut text);
    signals(&mut text);
    others(&mut text);
    expect_made(RECORDED, &text);
}
