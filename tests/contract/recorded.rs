//! Twelve replies, byte for byte as in `tests/fixtures/replies.txt`: members in the same order and
//! numbers with the same digits. The other replies are held against their description
//! (`described`).
//!
//! A change of the file is a change for clients: read its diff before it is committed.

use std::fmt::Write as _;

use bhav::base::Clock;
use bhav::sim::SimSettings;

use crate::support::source::expect_made;
use crate::support::{Answer, SNAPSHOT, Scene, Service, bearer, until};

const RECORDED: &str = "tests/fixtures/replies.txt";
/// After the close prices stand still, however long a request takes.
const EVENING: &str = "2026-11-20T20:00:00+05:30";
/// Each check advances the clock, so that limits of a second pass.
const STEP_MS: i64 = 50;

const LOGIN: &str = r#"{"email":"replies@example.com","password":"nine green parrots","name":"A"}"#;
const ENTRY: &str = r#"{"traded_on":"2026-11-20","symbol":"NIFTY 26NOV 25000 CE","side":"buy",
    "quantity":75.50,"price":112.500001,"fees":0.0,"strategy":"\"break\"out","notes":"a\nb\t\\é",
    "tags":["one","two"]}"#;
const PRICES: &str = "/api/portfolio/live-prices?symbols=NSE:INFY,NSE:M%26M,BSE:RELIANCE,NSE:TCS";

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
    let mut parts = out.split("T20:");
    let mut steady = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        steady += "T<now>";
        steady += &part["00:00".len()..];
    }
    steady
}

struct Recorder<'a> {
    service: &'a Service,
    text: String,
    auth: String,
}

impl Recorder<'_> {
    fn send(&self, method: &str, target: &str, body: &str) -> Answer {
        let mut client = self.service.client();
        match body {
            "" => client.request(method, target, &self.auth),
            body => client.send_json(method, target, &self.auth, body),
        }
    }

    /// Sends a request, and records its reply.
    fn record(&mut self, method: &str, target: &str, body: &str) -> Answer {
        let answer = self.send(method, target, body);
        let kind = answer.header("content-type").unwrap_or_default();
        let body = steady(answer.text());
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{method} {target}\n{} {kind}\n{body}\n", answer.status);
        answer
    }

    fn get(&mut self, target: &str) {
        self.record("GET", target, "");
    }
}

/// Waits until prices and signals of the evening are shown.
fn await_market(service: &Service, scene: &Scene) {
    let look = |what, target: &str, holds: fn(&str) -> bool| {
        until(what, || {
            scene.advance_ms(STEP_MS);
            let answer = service.get(target);
            (answer.status == 200 && holds(answer.text())).then_some(())
        });
    };
    look("broker A's snapshot", SNAPSHOT, |text| {
        text.contains("\"stale\":false,\"source\":\"broker_a\"")
    });
    until("broker A's instruments", || {
        scene.advance_ms(STEP_MS);
        service.has_instruments()
    });
    look("quotes", PRICES, |text| text.contains("\"unavailable\":[]"));
    look("the day's signals in the snapshot", SNAPSHOT, |text| {
        text.contains("\"signals_as_of\":\"2026-11-20\"")
    });
}

#[test]
fn twelve_replies_are_as_they_were_recorded() {
    let clock = Clock::manual(EVENING.parse().unwrap());
    let settings = SimSettings {
        rate_limits: false,
        ..SimSettings::default()
    };
    let scene = Scene::by_hand(clock, settings);
    let service = scene.start_with(&scene.config_without_tokens());
    let mut to = Recorder {
        service: &service,
        text: String::new(),
        auth: String::new(),
    };
    let code = scene.request_token();
    to.record("POST", "/brokera/activate", &format!(r#"{{"request_token":"{code}"}}"#));
    await_market(&service, &scene);
    to.get(SNAPSHOT);
    to.get(&format!("{PRICES},NSE:NOSUCH"));
    to.get("/api/signals/record");
    to.get("/nowhere");
    to.record("POST", "/api/auth/register", r#"{"email":"x","password":"short","name":7}"#);
    let new = to.record("POST", "/api/auth/register", LOGIN);
    to.auth = bearer(&new.field("access_token"));
    let minted = scene.control("POST", "broker_a/request_token", r#"{"user_id":"PF0001"}"#);
    let code = minted.field("request_token");
    let order =
        format!(r#"{{"api_key":"simkeya","api_secret":"simsecreta","request_token":"{code}"}}"#);
    to.record("POST", "/api/portfolio/sync", &order);
    to.get("/api/portfolio/holdings");
    to.get("/api/portfolio/positions?type=net&include_closed=true");
    to.get("/api/portfolio/pnl");
    to.send("POST", "/api/journal", ENTRY);
    to.get("/api/journal");
    expect_made(RECORDED, &to.text);
}
