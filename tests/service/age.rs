//! How old a price is, as clients see it: `as_of`, `delay_s` and `stale`, while feeds lag, break,
//! come back and start again.

use bhav::base::Clock;
use bhav::cache::Peek;
use bhav::sim::SimSettings;
use jiff::{SignedDuration, Timestamp};
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use super::support::{Client, PRICES, SNAPSHOT, Scene, Service, TRADING, until};
use crate::commands::{bhav, run, state_flag};

/// A quarter of an hour, as the public provider is behind by nature.
const QUARTER_S: u64 = 900;
/// What a measured delay may differ by: whole seconds, and a busy machine.
const MEASURED_S: u64 = 5;
/// Broker A may have missed one round of 250 ms, has 1.5 s of grace, and tells whole seconds; the
/// rest is for a busy machine.
const UNMARKED_MS_MAX: i64 = 2 * 250 + 1_500 + 1_000 + 600;
/// The public provider may have missed one round of 250 ms and has 7 s of grace.
const PUBLIC_STALE_MS: i64 = 2 * 250 + 7_000;

/// The indices and two shares, as a query has them.
const WATCHED: [&str; 5] =
    ["NSE:NIFTY%2050", "NSE:NIFTY%20BANK", "BSE:SENSEX", "NSE:INFY", "NSE:SBIN"];
/// The snapshot's names of the first three.
const LEADS: [&str; 3] = ["index1", "bankindex", "index2"];

fn settings(public_delay_s: i64) -> SimSettings {
    SimSettings { rate_limits: false, public_delay_s, ..SimSettings::default() }
}

/// Both on one clock that the test moves.
struct Lapse {
    clock: Clock,
    scene: Scene,
    service: Service,
    watch: Watch,
}

impl Lapse {
    fn with(public_delay_s: i64) -> Self {
        let clock = Clock::manual(TRADING.parse().unwrap());
        let scene = Scene::on(clock.clone(), settings(public_delay_s));
        let mut config = scene.config();
        // The clock stands while a request waits.
        config.cache.miss_wait_ms = 50;
        let service = scene.start_with(&config);
        Self { clock, scene, service, watch: Watch::default() }
    }

    /// Moves the clock by `step_ms` at each look, which checks what clients see, until it is as
    /// wanted.
    #[track_caller]
    fn step_until(&mut self, step_ms: i64, what: &str, mut holds: impl FnMut(&Seen) -> bool) {
        let Self { clock, service, watch, .. } = self;
        let mut client = service.client();
        until(what, || {
            clock.advance_ms(step_ms);
            let seen = watch.look(&mut client);
            seen.is_some_and(|seen| holds(&seen)).then_some(())
        });
    }

    fn breaks(&self, route: &str, kind: &str) {
        self.scene.fault(route, &format!(r#"{{"kind":"{kind}"}}"#));
    }
}

/// What was seen last of each symbol, to know that no time goes back.
#[derive(Default)]
struct Watch {
    latest: Vec<(String, Timestamp)>,
}

/// One look at the snapshot and the watched quotes.
struct Seen {
    snapshot: Value,
    quotes: Vec<Value>,
}

impl Watch {
    /// `None` before there is anything. No time may have gone back.
    #[track_caller]
    fn look(&mut self, client: &mut Client) -> Option<Seen> {
        let snapshot = client.get(SNAPSHOT);
        let quotes = client.get(&format!("{PRICES}{}", WATCHED.join(",")));
        if snapshot.status != 200 || quotes.status != 200 {
            return None;
        }
        let seen = Seen {
            snapshot: snapshot.json(),
            quotes: quotes.json()["quotes"].as_array().unwrap().iter().cloned().collect(),
        };
        self.note("snapshot", time(&seen.market()["as_of_ist"]), &seen.snapshot);
        for quote in &seen.quotes {
            self.note(quote["symbol"].as_str().unwrap(), time(&quote["as_of"]), quote);
        }
        Some(seen)
    }

    #[track_caller]
    fn note(&mut self, name: &str, as_of: Timestamp, shown: &Value) {
        match self.latest.iter_mut().find(|(known, _)| known == name) {
            None => self.latest.push((name.to_owned(), as_of)),
            Some((_, latest)) => {
                assert!(as_of >= *latest, "{name} went back from {latest} to {as_of}: {shown}");
                *latest = as_of;
            }
        }
    }
}

impl Seen {
    fn market(&self) -> &Value {
        &self.snapshot["market"]
    }

    fn quote(&self, symbol: &str) -> &Value {
        self.quotes.iter().find(|quote| quote["symbol"] == symbol).unwrap()
    }

    /// All of one source, and fresh.
    fn is_fresh_of(&self, source: &str) -> bool {
        let fresh = |shown: &Value| shown["source"] == source && shown["stale"] == false;
        self.quotes.len() == WATCHED.len() && fresh(self.market()) && self.quotes.iter().all(fresh)
    }
}

fn time(text: &Value) -> Timestamp {
    text.as_str().unwrap().parse().unwrap()
}

#[track_caller]
fn expect_delay(shown: &Value, delay_s: u64) {
    let said = shown["delay_s"].as_u64();
    assert!(said.is_some_and(|said| said.abs_diff(delay_s) <= MEASURED_S), "{shown}");
}

#[test]
fn the_public_provider_alone_says_how_far_it_is_behind() {
    let scene = Scene::with(TRADING, settings(QUARTER_S as i64));
    let mut config = scene.config();
    config.broker_a.access_token = None;
    config.broker_a.api_key = None;
    let service = scene.start_with(&config);
    let market = service.fresh_snapshot().json()["market"].clone();
    assert_eq!(market["source"], "public");
    expect_delay(&market, QUARTER_S);
    let behind = scene.clock.now().duration_since(time(&market["as_of_ist"])).as_secs() as u64;
    assert!(behind.abs_diff(QUARTER_S) <= MEASURED_S, "{market}");
    let quote = until("a quote", || {
        let answer = service.prices("NSE:INFY");
        (answer.status == 200).then(|| answer.json()["quotes"][0].clone())
    });
    assert_eq!(quote["stale"], false);
    expect_delay(&quote, QUARTER_S);
    let health = until("health", || {
        let health = service.health();
        (health["feeds"]["public"]["state"] == "ok").then_some(health)
    });
    expect_delay(&health["feeds"]["public"], QUARTER_S);
    expect_delay(&health["market"], QUARTER_S);
    let url = format!("--url=http://{}", service.0.address());
    let now = format!("--now={}", scene.clock.now());
    let state = state_flag(scene.state.path());
    let screen = run(&mut bhav(&["status", &url, &now, &state])).out;
    let row = screen.lines().find(|line| line.starts_with("public")).unwrap();
    assert!(row.contains("15 min") && row.contains("behind"), "{row}");
    service.0.stop();
}

#[test]
fn broker_a_runs_behind_nothing_and_says_no_delay() {
    let scene = Scene::at(TRADING);
    let service = scene.start();
    let market = service.snapshot_where("broker A", |json| {
        json["market"]["source"] == "broker_a" && json["market"]["stale"] == false
    });
    assert!(market.json()["market"]["delay_s"].is_null());
    let quote = service.prices("NSE:INFY").json()["quotes"][0].clone();
    assert!(quote["source"] == "broker_a" && quote["delay_s"].is_null(), "{quote}");
    service.0.stop();
}

/// From the fault until the public provider, two minutes behind here, has passed broker A.
#[test]
fn at_a_failover_the_later_price_stays_until_the_other_source_has_passed_it() {
    for fault in ["refuse", "mute_price", "nulls", "rate_limit"] {
        const DELAY_S: u64 = 120;
        let mut lapse = Lapse::with(DELAY_S as i64);
        lapse.step_until(100, "broker A", |seen| seen.is_fresh_of("broker_a"));
        lapse.breaks("broker_a", fault);
        let broken_at = lapse.clock.now();
        lapse.step_until(100, "the mark", |seen| {
            seen.market()["stale"] == true && seen.quotes.iter().all(|quote| quote["stale"] == true)
        });
        let marked_ms = lapse.clock.now().duration_since(broken_at).as_millis() as i64;
        assert!(marked_ms <= UNMARKED_MS_MAX + 2_000, "{fault}: marked after {marked_ms} ms");
        let mut client = lapse.service.client();
        let clock = lapse.clock.clone();
        lapse.step_until(250, "a share nobody asked for before", |seen| {
            assert_eq!(seen.market()["source"], "broker_a", "{fault}: nothing has passed it");
            clock.advance_ms(250);
            let other = client.get(&format!("{PRICES}NSE:TCS"));
            if other.status != 200 {
                return false;
            }
            let quote = other.json()["quotes"][0].clone();
            if quote["source"] == "public" {
                expect_delay(&quote, DELAY_S);
            } else {
                // One that is mute answers too.
                assert_eq!(fault, "mute_price", "{quote}");
            }
            assert_eq!(quote["stale"], fault == "mute_price", "{quote}");
            true
        });
        lapse.step_until(1_000, "the public provider", |seen| seen.is_fresh_of("public"));
        let passed_s = lapse.clock.now().duration_since(broken_at).as_secs() as u64;
        assert!(passed_s + MEASURED_S >= DELAY_S, "{fault}: after {passed_s} s");
        assert_eq!(lapse.scene.control("DELETE", "faults", "").status, 200);
        lapse.step_until(100, "broker A again", |seen| seen.is_fresh_of("broker_a"));
        lapse.service.0.stop();
    }
}

#[test]
fn no_time_goes_back_over_a_restart_either() {
    let scene = Scene::with(TRADING, settings(QUARTER_S as i64));
    let service = scene.start();
    service.await_instruments();
    let mut watch = Watch::default();
    until("broker A", || {
        watch.look(&mut service.client()).filter(|seen| seen.is_fresh_of("broker_a"))
    });
    scene.fault("broker_a", r#"{"kind":"refuse"}"#);
    service.0.stop();
    let service = scene.start();
    let first = watch.look(&mut service.client()).unwrap();
    assert!(first.market()["stale"] == true && first.market()["source"] == "broker_a");
    until("the public provider is asked, and its answers are older", || {
        let seen = watch.look(&mut service.client()).unwrap();
        assert_eq!(seen.market()["source"], "broker_a");
        (service.health()["feeds"]["public"]["rounds"].as_u64() > Some(4)).then_some(())
    });
    assert_eq!(scene.control("DELETE", "faults", "").status, 200);
    until("broker A", || {
        watch.look(&mut service.client()).filter(|seen| seen.is_fresh_of("broker_a"))
    });
    service.0.stop();
}

#[test]
fn a_stale_quote_that_nobody_kept_fresh_is_waited_for() {
    const DEMAND_MS: u64 = 1_000;
    let scene = Scene::at(TRADING);
    let mut config = scene.config();
    config.cache.demand_ttl_ms = DEMAND_MS;
    config.cache.miss_wait_ms = 10_000;
    let service = scene.start_with(&config);
    service.await_instruments();
    assert_eq!(service.prices("NSE:INFY").json()["quotes"][0]["stale"], false);
    let l1 = &service.0.server().shared().service.state().l1;
    let asked_ms = scene.clock.monotonic_ms();
    until("a quote that is stale and not in demand", || {
        let now_ms = scene.clock.monotonic_ms();
        let stale = matches!(l1.peek("NSE:INFY", now_ms), Peek::Known { stale: true, .. });
        (stale && now_ms > asked_ms + 2 * DEMAND_MS).then_some(())
    });
    let before = scene.clock.now();
    let quote = service.prices("NSE:INFY").json()["quotes"][0].clone();
    assert_eq!(quote["stale"], false, "{quote}");
    assert!(time(&quote["as_of"]) >= before - SignedDuration::from_secs(2), "{quote}");
    // Where no feed answers it waits no longer than for one that is not there.
    scene.refuse_all();
    let bounded = Clock::system();
    until("an old quote all the same", || {
        let quote = service.prices("NSE:INFY").json()["quotes"][0].clone();
        (quote["stale"] == true).then_some(())
    });
    assert!(bounded.monotonic_ms() < 2 * 10_000);
    service.0.stop();
}

#[test]
fn nonsense_of_the_public_provider_is_a_failure_within_its_limit() {
    for fault in
        ["nulls", "wrong_types", "missing_fields", "zero_price", "html_5xx", "error_in_200"]
    {
        let mut lapse = {
            let clock = Clock::manual(TRADING.parse().unwrap());
            let scene = Scene::on(clock.clone(), settings(QUARTER_S as i64));
            let mut config = scene.config();
            config.cache.miss_wait_ms = 50;
            config.broker_a.access_token = None;
            config.broker_a.api_key = None;
            let service = scene.start_with(&config);
            Lapse { clock, scene, service, watch: Watch::default() }
        };
        lapse.step_until(50, "the public provider", |seen| seen.is_fresh_of("public"));
        lapse.breaks("public", fault);
        let broken_at = lapse.clock.now();
        lapse.step_until(50, "the mark", |seen| {
            seen.market()["stale"] == true && seen.quotes.iter().all(|quote| quote["stale"] == true)
        });
        let marked_ms = lapse.clock.now().duration_since(broken_at).as_millis() as i64;
        // The scheduler looks five times a second of the machine, and the clock runs fast here.
        assert!(marked_ms <= PUBLIC_STALE_MS + 2_500, "{fault}: marked after {marked_ms} ms");
        let health = until("health", || {
            lapse.clock.advance_ms(100);
            let health = lapse.service.health();
            (health["status"] != "ok").then_some(health)
        });
        assert_ne!(health["feeds"]["public"]["state"], "ok", "{fault}: {health}");
        lapse.service.0.stop();
    }
}

/// Health does not wait for the prices to be old.
#[test]
fn rounds_that_fail_are_not_ok_while_prices_are_still_fresh() {
    let scene = Scene::at(TRADING);
    let mut config = scene.config();
    config.broker_a.access_token = None;
    config.broker_a.api_key = None;
    let service = scene.start_with(&config);
    until("health", || (service.health()["status"] == "ok").then_some(()));
    scene.fault("public", r#"{"kind":"nulls"}"#);
    until("health tells it", || {
        let health = service.health();
        let failing = health["feeds"]["public"]["state"] == "failing"
            || health["feeds"]["public"]["state"] == "open";
        (failing && health["status"] == "degraded").then(|| {
            assert_eq!(service.get(SNAPSHOT).json()["market"]["stale"], false);
        })
    });
    service.0.stop();
}

/// Each index says its own time while one call carries only one of them.
#[test]
fn one_symbol_a_call_leaves_each_index_with_a_time_of_its_own() {
    let mut lapse = Lapse::with(QUARTER_S as i64);
    lapse.breaks("broker_a", "refuse");
    lapse.breaks("public.spark", "error_in_200");
    let mut differed = 0;
    lapse.step_until(50, "three indices of three times", |seen| {
        let as_of = time(&seen.market()["as_of_ist"]);
        for (name, symbol) in LEADS.iter().zip(["NSE:NIFTY 50", "NSE:NIFTY BANK", "BSE:SENSEX"]) {
            let own = &seen.snapshot[&*format!("{name}_as_of")];
            let own = if own.is_null() { as_of } else { time(own) };
            differed += usize::from(own != as_of);
            let quote = seen.quote(symbol);
            if raw_price(&seen.snapshot[&*format!("{name}_price")])
                == raw_price(&quote["last_price"])
            {
                assert_eq!(own, time(&quote["as_of"]), "{name}: {}", seen.snapshot);
            }
        }
        differed > 20 && seen.market()["stale"] == false
    });
    lapse.service.0.stop();
}

fn raw_price(value: &Value) -> String {
    value.to_string()
}

/// At the first failover after a start, and after: whatever is shown of a sector is the word of the
/// feed that leads.
#[test]
fn a_sector_comes_from_the_feed_that_leads_or_is_null() {
    let mut lapse = Lapse::with(30);
    lapse.step_until(100, "broker A", |seen| seen.is_fresh_of("broker_a"));
    lapse.breaks("broker_a", "refuse");
    let mut client = lapse.service.client();
    let mut nulls = 0;
    lapse.step_until(200, "the public provider with every sector", |seen| {
        let sectors = seen.snapshot["sectors"].as_array().unwrap();
        let symbols: Vec<String> = sectors
            .iter()
            .map(|sector| sector["symbol"].as_str().unwrap().replace(' ', "%20"))
            .collect();
        let answer = client.get(&format!("{PRICES}{}", symbols.join(",")));
        let json = answer.json();
        for sector in sectors.iter().filter(|sector| !sector["change_pct"].is_null()) {
            let quotes = json["quotes"].as_array().unwrap();
            let quote = quotes.iter().find(|quote| quote["symbol"] == sector["symbol"]).unwrap();
            // Between the two answers the other feed may have spoken.
            if quote["change_pct"].to_string() == sector["change_pct"].to_string() {
                assert_eq!(quote["source"], seen.market()["source"], "{sector} {quote}");
            }
        }
        nulls += sectors.iter().filter(|sector| sector["change_pct"].is_null()).count();
        seen.market()["source"] == "public"
            && seen.market()["stale"] == false
            && sectors.iter().all(|sector| sector["change_pct"].is_number())
    });
    lapse.service.0.stop();
}

/// An answer that takes long says what was so when it was asked for.
#[test]
fn a_slow_answer_is_as_old_as_its_question() {
    let scene = Scene::at(TRADING);
    let service = scene.start();
    service.await_instruments();
    let mut watch = Watch::default();
    let mut client = service.client();
    until("broker A", || watch.look(&mut client).filter(|seen| seen.is_fresh_of("broker_a")));
    scene.fault("broker_a.quote", r#"{"kind":"delay","delay_ms":3000}"#);
    let rounds = || service.health()["feeds"]["broker_a"]["rounds"].as_u64().unwrap();
    let before = rounds();
    until("some slow answers", || {
        let seen = watch.look(&mut client)?;
        let shown = std::iter::once((seen.market(), "as_of_ist"))
            .chain(seen.quotes.iter().map(|quote| (quote, "as_of")));
        for (shown, name) in shown.filter(|(shown, _)| shown["source"] == "broker_a") {
            let age = scene.clock.now().duration_since(time(&shown[name]));
            let unmarked = shown["stale"] == false;
            assert!(
                !unmarked || age.as_millis() as i64 <= UNMARKED_MS_MAX,
                "{age:?} old, unmarked: {shown}"
            );
        }
        (rounds() >= before + 4).then_some(())
    });
    service.0.stop();
}

/// Broker A's spare route has rows without a time: they are of no later moment than the index.
#[test]
fn rows_without_a_time_look_no_newer_than_the_index_beside_them() {
    let mut lapse = Lapse::with(QUARTER_S as i64);
    lapse.step_until(100, "broker A", |seen| seen.is_fresh_of("broker_a"));
    lapse.breaks("broker_a.quote", "wrong_types");
    let scene = &lapse.scene;
    let asked = || scene.stats()["requests"]["broker_a.ohlc"].as_u64().unwrap_or(0);
    let clock = lapse.clock.clone();
    let mut client = lapse.service.client();
    until("the spare route", || {
        clock.advance_ms(100);
        drop(client.get(SNAPSHOT));
        (asked() > 3).then_some(())
    });
    lapse.step_until(100, "fresh by the spare route", |seen| {
        let index = time(&seen.quote("NSE:NIFTY 50")["as_of"]);
        for symbol in ["NSE:INFY", "NSE:SBIN"] {
            let share = seen.quote(symbol);
            assert!(time(&share["as_of"]) <= index, "{share} beside {index}");
        }
        seen.is_fresh_of("broker_a")
    });
    // Prices that stand have no time that moves.
    lapse.breaks("broker_a.ohlc", "mute_price");
    let muted_at = lapse.clock.now();
    lapse.step_until(100, "the mark", |seen| {
        for quote in &seen.quotes {
            let newest = muted_at + SignedDuration::from_secs(1);
            assert!(time(&quote["as_of"]) <= newest, "{quote}, all stands since {muted_at}");
        }
        seen.market()["stale"] == true && seen.quotes.iter().all(|quote| quote["stale"] == true)
    });
    lapse.service.0.stop();
}

#[test]
fn signals_are_of_no_date_until_there_is_a_list() {
    let scene = Scene::at(TRADING);
    scene.fault("broker_a.historical", r#"{"kind":"refuse"}"#);
    scene.fault("public.chart", r#"{"kind":"refuse"}"#);
    let service = scene.start();
    let json = service.fresh_snapshot().json();
    assert!(json.as_object().unwrap().contains_key(&"signals_as_of"), "{json}");
    assert!(json["signals_as_of"].is_null() && json["signals"].as_array().unwrap().is_empty());
    service.0.stop();
}

/// As `bhav demo` on the state of an earlier one: its clock starts again at eleven.
#[test]
fn kept_prices_of_the_future_are_dropped() {
    let late = "2026-11-20T11:05:00+05:30";
    let scene = Scene::at(late);
    let service = scene.start();
    service.await_instruments();
    service.fresh_snapshot();
    assert_eq!(service.prices("NSE:INFY").quoted(), ["NSE:INFY"]);
    service.0.stop();
    let again = Scene { state: scene.state, ..Scene::at(TRADING) };
    again.fault("*", r#"{"kind":"refuse"}"#);
    let service = again.start();
    service.get(SNAPSHOT).expect_problem(503, "snapshot_not_ready");
    service.prices("NSE:INFY").expect_problem(503, "quotes_unavailable");
    assert_eq!(again.control("DELETE", "faults", "").status, 200);
    let market = service.fresh_snapshot().json()["market"].clone();
    assert!(time(&market["as_of_ist"]) < late.parse::<Timestamp>().unwrap(), "{market}");
    service.0.stop();
}

/// A time ahead of everything else is not believed, and keeps nothing out.
#[test]
fn a_wrong_time_blocks_no_price() {
    let scene = Scene::at(TRADING);
    let service = scene.start();
    service.await_instruments();
    let mut watch = Watch::default();
    let mut client = service.client();
    until("broker A", || watch.look(&mut client).filter(|seen| seen.is_fresh_of("broker_a")));
    let rounds = || service.health()["feeds"]["broker_a"]["rounds"].as_u64().unwrap();
    let before = rounds();
    until("the feed to be known", || (rounds() > before + 2).then_some(()));
    for by_s in [30, 240, 86_400] {
        scene.fault(
            "broker_a.quote",
            &format!(r#"{{"kind":"future_time","by_s":{by_s},"count":2}}"#),
        );
        let before = rounds();
        until("broker A is fresh after it", || {
            let seen = watch.look(&mut client)?;
            for quote in &seen.quotes {
                let newest = scene.clock.now() + SignedDuration::from_secs(1);
                assert!(time(&quote["as_of"]) <= newest, "by {by_s} s: {quote}");
            }
            (rounds() > before + 4 && seen.is_fresh_of("broker_a")).then_some(())
        });
    }
    service.0.stop();
}
