//! Broker A's WebSocket against the simulator's: prices from ticks, polls that only confirm them,
//! and the course of both during faults.

use bhav::base::Clock;
use bhav::config::Config;
use bhav::sim::SimSettings;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use crate::support::wait::{at_once, until};
use crate::support::{SNAPSHOT, Scene, Service, TRADING};

pub const ROUTE: &str = "broker_a.ticker";

/// A health document, as far as the ticker is concerned.
pub struct Seen(pub Value);

impl Seen {
    fn ticker(&self) -> &Value {
        &self.0["feeds"]["broker_a"]["ticker"]
    }

    pub fn is_live(&self) -> bool {
        self.ticker()["live"] == true
    }

    fn state(&self) -> Option<&str> {
        self.ticker()["state"].as_str()
    }

    pub fn failure(&self) -> Option<&str> {
        self.ticker()["failure"].as_str()
    }

    pub fn stands(&self, state: &str, failure: &str) -> bool {
        self.state() == Some(state) && self.failure() == Some(failure)
    }

    pub fn ticks(&self) -> u64 {
        self.ticker()["ticks"].as_u64().unwrap()
    }

    pub fn subscribed(&self) -> u64 {
        self.ticker()["subscribed"].as_u64().unwrap()
    }

    fn reconnects(&self) -> u64 {
        self.ticker()["reconnects"].as_u64().unwrap()
    }

    fn polls(&self) -> u64 {
        self.0["feeds"]["broker_a"]["rounds"].as_u64().unwrap()
    }
}

/// A service with the simulator's ticker, in the middle of trading.
pub struct Stage {
    pub service: Service,
    pub scene: Scene,
}

impl Stage {
    fn new() -> Self {
        Self::with(Scene::at(TRADING), |_| {})
    }

    /// In this scene, with other settings.
    pub fn with(scene: Scene, change: impl FnOnce(&mut Config)) -> Self {
        Self::of(scene.config(), scene, change)
    }

    fn of(mut config: Config, scene: Scene, change: impl FnOnce(&mut Config)) -> Self {
        config.broker_a.ticker_url = scene.sim.broker_a_ticker_url();
        change(&mut config);
        Self {
            service: scene.start_with(&config),
            scene,
        }
    }

    pub fn seen(&self) -> Seen {
        Seen(self.service.health())
    }

    /// The first health document for which `holds` is true.
    pub fn seen_where(&self, what: &str, holds: impl Fn(&Seen) -> bool) -> Seen {
        until(what, || Some(self.seen()).filter(&holds))
    }

    pub fn live(&self) -> Seen {
        self.seen_where("ticks", Seen::is_live)
    }

    /// Sets a fault of the ticker.
    fn fault(&self, kind: &str) {
        self.scene.fault(ROUTE, &format!(r#"{{"kind":"{kind}"}}"#));
    }

    fn mend(&self) {
        assert_eq!(self.scene.control("DELETE", "faults", "").status, 200);
    }

    /// Polls the snapshot until health is as awaited. See [`shown_until`](Self::shown_until).
    #[track_caller]
    pub fn fresh_until(&self, fault: &str, what: &str, holds: impl Fn(&Seen) -> bool) {
        self.shown_until(fault, what, |_| holds(&self.seen()));
    }

    /// Polls the snapshot until `done`. It must never be stale, and its time must never go back.
    /// `fault` names the ticker's fault meanwhile.
    #[track_caller]
    fn shown_until(&self, fault: &str, what: &str, done: impl Fn(&Value) -> bool) {
        let (mut client, mut newest) = (self.service.client(), String::new());
        // The ticker's state may be reported before the first call is answered.
        self.service.snapshot_where("a first snapshot", |_| true);
        until(&format!("{what} under {fault}"), || {
            let shown = client.get(SNAPSHOT).json();
            let seen = || format!("{}\n{}", shown["market"], self.service.health()["feeds"]);
            assert_eq!(shown["market"]["stale"].as_bool(), Some(false), "{fault}: {}", seen());
            let as_of = as_of(&shown);
            assert!(as_of >= newest, "{fault}: {newest} was shown before {}", seen());
            newest = as_of;
            done(&shown).then_some(())
        });
    }

    /// Activates broker A with a login of this moment.
    fn log_in(&self) {
        let body = format!(r#"{{"request_token":"{}"}}"#, self.scene.request_token());
        self.service
            .post("/brokera/activate", "", &body)
            .with_status(200);
    }
}

fn as_of(shown: &Value) -> String {
    shown["market"]["as_of_ist"].as_str().unwrap().to_owned()
}

#[test]
fn prices_come_by_ticks_and_polls_only_confirm_them() {
    let stage = Stage::new();
    let began = stage.live();
    assert_eq!(began.state(), Some("speaking"));
    let start = as_of(&stage.service.get(SNAPSHOT).json());
    // Some seconds of ticks of every index, in which full polling would make a dozen calls or more.
    let later = stage
        .seen_where("more ticks", |seen| seen.ticks() >= began.ticks() + 4 * began.subscribed());
    assert!(later.polls() <= began.polls() + 2, "{} {}", began.polls(), later.polls());
    let shown = stage.service.get(SNAPSHOT).json();
    assert!(as_of(&shown) > start);
    assert_eq!(shown["market"]["source"].as_str(), Some("broker_a"));
    assert_eq!(shown["market"]["simulated"].as_bool(), Some(true));
    assert_eq!(later.0["feeds"]["broker_a"]["state"].as_str(), Some("ok"));
}

#[test]
fn what_clients_ask_for_is_answered_by_a_call_and_then_ticks() {
    let stage = Stage::new();
    let began = stage.live().subscribed();
    // A miss: a call answers although polls are slow.
    let first = stage.service.prices("NSE:INFY").json();
    assert_eq!(first["quotes"][0]["symbol"].as_str(), Some("NSE:INFY"), "{first:?}");
    let now = stage.seen_where("one more subscription", |seen| seen.subscribed() == began + 1);
    let time = |json: &Value| json["quotes"][0]["as_of"].as_str().unwrap().to_owned();
    until("a newer price by a tick", || {
        let quotes = stage.service.prices("NSE:INFY").json();
        (time(&quotes) > time(&first)).then_some(())
    });
    assert!(stage.seen().polls() <= now.polls() + 2);
    assert_eq!(stage.scene.stats()["ticker_subscribed"].as_u64(), Some(began + 1));
}

#[test]
fn when_ticks_stop_calls_keep_every_snapshot_fresh() {
    let faults = [
        ("hangup", "broken"),
        ("close_frame", "broken"),
        ("silent", "silent"),
    ];
    at_once(faults, |(fault, failure)| {
        let stage = Stage::new();
        let before = stage.live().polls();
        stage.fault(fault);
        stage.fresh_until(fault, "the end of the connection", |seen| {
            seen.failure() == Some(failure) && seen.polls() > before + 3
        });
        stage.mend();
        stage.fresh_until(fault, "ticks again", Seen::is_live);
    });
}

#[test]
fn heartbeats_without_prices_are_not_taken_for_prices() {
    at_once(["heartbeat_only", "lead_stands", "mute_price"], |fault| {
        let stage = Stage::new();
        let before = stage.live().polls();
        stage.fault(fault);
        stage.fresh_until(fault, "polls at full pace", |seen| {
            !seen.is_live() && seen.polls() > before + 5
        });
        assert_eq!(stage.seen().reconnects(), 0);
    });
}

#[test]
fn polls_never_exceed_one_a_second_whatever_the_ticker_does() {
    let scene = Scene::with(TRADING, SimSettings::default());
    let stage = Stage::with(scene, |config| config.broker_a.quote_interval_ms = 1_050);
    stage.live();
    for _ in 0..2 {
        stage.scene.fault(ROUTE, r#"{"kind":"hangup","count":1}"#);
        stage.fresh_until("hangup", "a loss", |seen| !seen.is_live());
        stage.fresh_until("hangup", "ticks again", Seen::is_live);
    }
    let stats = stage.scene.stats();
    assert_eq!(stats["max_quote_calls_in_1s"].as_i64(), Some(1));
    assert!(stats["rejected"].as_object().unwrap().is_empty(), "{stats:?}");
}

#[test]
fn a_refused_connection_is_no_verdict_on_the_token() {
    let scene = Scene::at(TRADING);
    scene.fault(ROUTE, r#"{"kind":"expired_token"}"#);
    let stage = Stage::with(scene, |_| {});
    let before = stage
        .seen_where("a refusal", |seen| seen.stands("refused", "refused"))
        .polls();
    stage.fresh_until("expired_token", "polls at full pace", |seen| seen.polls() > before + 5);
    assert_eq!(stage.seen().0["feeds"]["broker_a"]["state"].as_str(), Some("ok"));
    assert_eq!(stage.scene.stats()["requests"][ROUTE].as_i64(), Some(1), "tried once");
}

#[test]
fn other_answers_than_an_upgrade_are_told_apart() {
    let answers = [
        (r#"{"kind":"rate_limit"}"#, "busy"),
        (r#"{"kind":"html_5xx"}"#, "busy"),
        (r#"{"kind":"redirect","location":"http://127.0.0.1:1/"}"#, "redirected"),
        (r#"{"kind":"error_in_200"}"#, "not_websocket"),
        (r#"{"kind":"refuse"}"#, "unreachable"),
    ];
    at_once(answers, |(fault, failure)| {
        let scene = Scene::at(TRADING);
        scene.fault(ROUTE, fault);
        let stage = Stage::with(scene, |_| {});
        stage.seen_where(fault, |seen| seen.stands("waiting", failure));
        stage.service.fresh_snapshot();
    });
}

#[test]
fn messages_that_come_slowly_are_read_whole() {
    let stage = Stage::new();
    let before = stage.live();
    // Half a second for a message, over many waits of a read.
    stage
        .scene
        .fault(ROUTE, r#"{"kind":"drip","bytes_per_s":1000}"#);
    stage.fresh_until("a slow line", "ticks", |seen| {
        seen.ticks() >= before.ticks() + 5 * before.subscribed()
    });
    let after = stage.seen();
    assert_eq!((after.reconnects(), after.failure()), (0, None));
}

/// More than half a minute for a message; a byte comes sooner than a read gives up.
#[test]
fn messages_that_never_end_are_silence() {
    let stage = Stage::new();
    let subscribed = stage.live().subscribed();
    let more = stage.service.prices("NSE:INFY,NSE:TCS,NSE:SBIN").json();
    assert_eq!(more["quotes"].as_array().unwrap().len(), 3);
    let after = stage
        .seen_where("their ticks", |seen| seen.is_live() && seen.subscribed() == subscribed + 3);
    stage
        .scene
        .fault(ROUTE, r#"{"kind":"drip","bytes_per_s":20}"#);
    stage.fresh_until("a crawling line", "its end", |seen| {
        seen.failure() == Some("silent") && seen.polls() > after.polls() + 3
    });
    stage.mend();
    stage.fresh_until("a crawling line", "ticks again", Seen::is_live);
}

#[test]
fn damaged_packets_are_counted_and_left_out() {
    let stage = Stage::new();
    let before = stage.live();
    stage.fault("unknown_length");
    stage.fresh_until("unknown_length", "polls", |seen| seen.polls() > before.polls() + 3);
    let after = stage.seen();
    assert_eq!(after.reconnects(), 0);
    // Health is up to a second old on both sides.
    assert!(after.ticks() <= before.ticks() + 3 * after.subscribed());
}

#[test]
fn bad_framing_ends_the_connection() {
    let stage = Stage::new();
    stage.live();
    stage.fault("short");
    stage.fresh_until("short", "the end of the connection", |seen| {
        seen.failure() == Some("bad_messages")
    });
}

#[test]
fn strange_but_harmless_messages_change_nothing() {
    let stage = Stage::new();
    let before = stage.live();
    for kind in ["order_text", "error_text", "ping", "fragmented", "flood"] {
        stage.fault(kind);
    }
    stage.fresh_until("a flood and more", "floods", |seen| seen.ticks() > before.ticks() + 15_000);
    let health = stage.service.get("/api/health");
    assert!(!health.text().contains("SIMORDERCANARY"));
    let after = Seen(health.json());
    assert_eq!((after.reconnects(), after.is_live()), (0, true));
}

#[test]
fn ticks_that_are_implausible_or_late_are_not_shown_and_polls_return_to_full_pace() {
    let faults = [
        r#"{"kind":"zero_price"}"#,
        r#"{"kind":"future_time","by_s":600}"#,
        r#"{"kind":"future_time","by_s":60}"#,
        r#"{"kind":"lag","by_s":30}"#,
        r#"{"kind":"wrong_endian"}"#,
    ];
    at_once(faults, |fault| {
        let stage = Stage::new();
        // A source whose clock is not known yet is trusted.
        let measured = stage
            .seen_where("seconds of ticks", |seen| seen.ticks() >= 4 * seen.subscribed().max(1));
        stage.scene.fault(ROUTE, fault);
        stage.shown_until(fault, "polls at full pace", |shown| {
            let at: jiff::Timestamp = as_of(shown).parse().unwrap();
            let ahead = at.duration_since(stage.scene.clock.now()).as_secs();
            assert!(ahead < 30, "{fault}: {at}");
            assert!(shown["index1_price"].as_f64().unwrap() > 1.0);
            stage.seen().polls() > measured.polls() + 5
        });
    });
}

#[test]
fn a_login_opens_it_and_the_end_of_the_token_closes_it() {
    let scene = Scene::at(TRADING);
    let stage = Stage::of(scene.config_without_tokens(), scene, |_| {});
    let connections = || stage.scene.stats()["ticker_connections"].as_i64();
    stage.seen_where("rest", |seen| seen.state() == Some("off"));
    assert_eq!(connections(), Some(0));
    stage.log_in();
    stage.live();
    assert_eq!(connections(), Some(1));
    // Calls find the token dead, and the ticker stops too.
    assert_eq!(stage.scene.control("POST", "broker_a/expire", "").status, 200);
    stage.service.prices("NSE:INFY");
    stage.seen_where("rest again", |seen| seen.state() == Some("off"));
    until("no connection", || connections() == Some(0));
}

/// Hours of this day only: ticks are needed around six, when tokens end.
const EARLY: &str = r#"
[[session]]
date = "2026-11-20"
name = "Early"
source = "made up"
[[session.part]]
continuous = "05:30-12:00"
"#;

#[test]
fn at_six_it_closes_with_the_token_and_opens_again_with_the_login_of_the_morning() {
    let scene = Scene::still_at("2026-11-20T05:59:57+05:30");
    let calendar = scene.state.path().join("calendar.toml");
    std::fs::write(&calendar, EARLY).unwrap();
    let stage = Stage::of(scene.config_without_tokens(), scene, |config| {
        config.market.calendar_file = Some(calendar);
        config.broker_a.access_token = Some("simtokena".into());
    });
    let open = || stage.scene.stats()["ticker_connections"].as_i64().unwrap();
    let opened = || stage.scene.stats()["requests"][ROUTE].as_i64();
    until("a connection", || open() == 1);
    stage.scene.advance_ms(2_999);
    // Every wait of the ticker's thread has ended several times.
    let timer = Clock::system();
    until("a second", || timer.monotonic_ms() > 1_000);
    assert_eq!((open(), opened()), (1, Some(1)), "a millisecond before");
    stage.scene.advance_ms(1);
    until("its end", || open() == 0);
    // Hours without a token, in which nothing is tried.
    for _ in 0..19 {
        stage.scene.advance_ms(10 * 60_000);
        let timer = Clock::system();
        until("a moment", || timer.monotonic_ms() > 50);
    }
    let rests = stage.seen_where("rest", |seen| seen.state() == Some("off"));
    assert_eq!((rests.failure(), rests.reconnects()), (None, 0));
    assert_eq!((open(), opened()), (0, Some(1)));
    stage.log_in();
    until("a connection", || open() == 1);
    assert_eq!(opened(), Some(2));
}

#[test]
fn it_rests_while_the_market_does() {
    let stage = Stage::with(Scene::at("2026-11-20T20:00:00+05:30"), |_| {});
    stage.service.fresh_snapshot();
    let seen = stage.seen();
    assert_eq!((seen.state(), seen.failure()), (Some("off"), None));
}

#[test]
fn another_broker_than_the_usual_one_has_no_usual_ticker() {
    let (_scene, service) = Scene::trading();
    service.fresh_snapshot();
    assert!(Seen(service.health()).ticker().is_null());
}

#[test]
fn a_peer_that_speaks_no_tls_is_told_apart() {
    let stage = Stage::with(Scene::at(TRADING), |config| {
        config.broker_a.ticker_url = config.broker_a.ticker_url.replace("ws://", "wss://");
    });
    stage.seen_where("a failed handshake", |seen| seen.stands("waiting", "tls"));
    stage.service.fresh_snapshot();
}

/// Stops the service. An idle machine takes less than 300 ms: the ticker at most a quarter of a
/// second, and the service the rest. A busy machine gets more.
#[expect(clippy::print_stdout, reason = "what was measured")]
fn ends_within_reason(service: Service) {
    let timer = Clock::system();
    service.stop();
    let took_ms = timer.monotonic_ms();
    println!("the service ended within {took_ms} ms");
    assert!(took_ms < 5_000, "{took_ms} ms");
}

#[test]
fn a_peer_that_never_answers_does_not_hold_up_the_end() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stage = Stage::with(Scene::at(TRADING), |config| {
        config.broker_a.ticker_url = format!("ws://{}", silent.local_addr().unwrap());
    });
    stage.seen_where("a connection under way", |seen| seen.state() == Some("connecting"));
    stage.fresh_until("no answer", "polls at full pace", |seen| seen.polls() > 5);
    // The upgrade alone may take seven seconds.
    ends_within_reason(stage.service);
}

#[test]
fn a_service_that_stops_says_goodbye_and_does_not_wait_for_the_ticker() {
    let stage = Stage::new();
    stage.live();
    ends_within_reason(stage.service);
    until("no connection", || stage.scene.stats()["ticker_connections"] == 0);
}

#[test]
fn before_and_after_continuous_trading_it_stays_and_prices_are_as_fresh_as_the_phase_says() {
    let phases = [
        ("2026-11-20T09:03:00+05:30", "pre_open"),
        ("2026-11-20T15:20:00+05:30", "closing"),
    ];
    at_once(phases, |(at, phase)| {
        let stage = Stage::with(Scene::at(at), |_| {});
        let began = stage.seen_where("a subscription", |seen| seen.subscribed() >= 3);
        // Longer than a connection without ticks lasts while prices move.
        stage.shown_until(phase, "some seconds", |shown| {
            assert_eq!(shown["market"]["phase"].as_str(), Some(phase));
            stage.seen().0["uptime_s"].as_u64().unwrap() > 12
        });
        assert_eq!(stage.seen().reconnects(), 0, "{phase}: {:?}", began.0);
        let shown = stage.service.get(SNAPSHOT).json();
        let exchange: jiff::Timestamp = as_of(&shown).parse().unwrap();
        assert!(exchange <= stage.scene.clock.now(), "{phase}");
    });
}

#[test]
fn ticks_that_differ_from_calls_are_counted_and_those_of_the_same_world_do_not() {
    let stage =
        Stage::with(Scene::at(TRADING), |config| config.admin.listen = "127.0.0.1:0".into());
    let before = stage.live().polls();
    // Each miss is a call in addition to the ticks.
    for symbol in ["NSE:INFY", "NSE:TCS", "NSE:SBIN"] {
        stage.service.prices(symbol);
    }
    until("calls beside ticks", || stage.seen().polls() > before + 2);
    let metrics = stage.service.admin().get("/metrics").text().to_owned();
    assert!(metrics.contains("\nbhav_ticker_disagrees_total 0\n"), "{metrics}");
    assert!(metrics.contains("\nbhav_ticker_up 1\n"), "{metrics}");
}
