//! The market's phase in the snapshot, at fixed instants.

use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use super::figures::number;
use crate::support::wait::at_once;
use crate::support::{Scene, Service, members, until};

#[test]
fn the_snapshot_says_the_phase_of_its_time_and_the_next_transition() {
    at_once(
        [
            ("20T09:05", "pre_open", false, "20T09:15"),
            ("20T11:00", "open", true, "20T15:15"),
            // In the closing auction the indices stand still without being stale.
            ("20T15:20", "closing", true, "20T15:30"),
            // The auction goes on after trading has ended.
            ("20T15:31", "closing", false, "20T15:35"),
            // Between the auction and the post-close.
            ("20T15:40", "closed", false, "20T15:50"),
            ("20T15:55", "post_close", false, "20T16:00"),
            ("24T11:00", "holiday", false, "25T00:00"),
            // A Sunday.
            ("22T11:00", "closed", false, "23T09:00"),
        ],
        |(now, phase, is_open, next)| {
            let full = |text: &str| format!("2026-11-{text}:00+05:30");
            let scene = Scene::at(&full(now));
            let json = scene.start().fresh_snapshot().json();
            let market = &json["market"];
            assert_eq!(market["phase"], phase, "{now}");
            assert_eq!(market["is_open"], is_open, "{now}");
            assert_eq!(market["next_transition_at"].as_str(), Some(&*full(next)), "{now}");
            assert!(members(market).contains(&"as_of_ist".to_owned()));
        },
    );
}

#[test]
fn the_phase_changes_under_a_running_service() {
    let scene = Scene::at("2026-11-20T09:14:57+05:30");
    let service = scene.start();
    let bell = "2026-11-20T09:15:00+05:30".parse().unwrap();
    let answer = service.snapshot_where("the opening bell", |json| {
        let before = scene.clock.now();
        assert!(json["market"]["is_open"] == (json["market"]["phase"] == "open"), "{json}");
        json["market"]["phase"] == "open" && before >= bell
    });
    assert_eq!(answer.json()["market"]["next_transition_at"], "2026-11-20T15:15:00+05:30");
}

/// The changes of two indices, a share and the sectors, the range of one index and of the share,
/// and the time of the primary index.
fn changes(service: &Service) -> (Vec<Value>, String) {
    let quotes = service.prices("NSE:NIFTY%2050,NSE:INFY").json();
    let snapshot = service.get("/api/index/snapshot").json();
    let mut said = vec![
        snapshot["index1_change"].clone(),
        snapshot["index2_change"].clone(),
    ];
    for quote in quotes["quotes"].as_array().unwrap().iter() {
        let members = ["change", "change_pct", "day_low", "day_high"];
        said.extend(members.map(|member| quote[member].clone()));
    }
    let sectors = snapshot["sectors"].as_array().unwrap().iter();
    said.extend(sectors.map(|sector| sector["change_pct"].clone()));
    (said, snapshot["market"]["as_of_ist"].as_str().unwrap().to_owned())
}

/// Advances the clock to `at`, and waits until the feeds have been called twice since.
fn go_to(scene: &Scene, service: &Service, at: &str) {
    let at: jiff::Timestamp = at.parse().unwrap();
    scene.advance_ms(at.as_millisecond() - scene.clock.now_ms());
    let rounds = || -> u64 {
        let feeds = service.health()["feeds"].clone();
        ["broker_a", "public"]
            .iter()
            .filter_map(|feed| feeds[*feed]["rounds"].as_u64())
            .sum()
    };
    let before = rounds();
    until("two polls", || {
        scene.advance_ms(2_000);
        rounds() > before + 2
    });
}

/// At midnight the brokers' previous close becomes that of the session before, and their range is
/// empty.
#[test]
fn a_price_keeps_its_own_sessions_change_and_range_until_one_of_the_new_session_is_there() {
    let scene = Scene::still_at("2026-11-19T20:00:00+05:30");
    let service = scene.start();
    until("prices", || {
        scene.advance_ms(1_000);
        let quoted = service.prices("NSE:NIFTY%2050,NSE:INFY");
        quoted.status == 200
            && quoted.quoted().len() == 2
            && service.get("/api/index/snapshot").status == 200
    });
    go_to(&scene, &service, "2026-11-19T21:00:00+05:30");
    let (evening, of_evening) = changes(&service);
    assert!(of_evening.starts_with("2026-11-19T15:3"), "{of_evening}");
    assert!(
        evening
            .iter()
            .all(|change| change.as_f64().is_some_and(|change| change != 0.0))
    );
    let shown = service.prices("NSE:INFY");
    let range = ["day_low", "day_high"].map(|member| number(shown.text(), member));
    assert_eq!(range, scene.figures("NSE:INFY", ["low", "high"]));
    go_to(&scene, &service, "2026-11-20T00:10:00+05:30");
    assert_eq!(changes(&service), (evening.clone(), of_evening.clone()), "after midnight");
    service.stop();
    let service = scene.start();
    go_to(&scene, &service, "2026-11-20T00:20:00+05:30");
    // What nobody asked for since the restart may come with the next call.
    until("both prices", || {
        scene.advance_ms(1_000);
        service.prices("NSE:NIFTY%2050,NSE:INFY").quoted().len() == 2
    });
    assert_eq!(changes(&service), (evening.clone(), of_evening.clone()), "after a restart");
    go_to(&scene, &service, "2026-11-20T09:10:00+05:30");
    assert_eq!(changes(&service), (evening.clone(), of_evening), "in the pre-open");
    // Half an hour later the public provider, with its delay of a quarter of an hour, has the new
    // session too.
    go_to(&scene, &service, "2026-11-20T09:45:00+05:30");
    let (day, of_day) = changes(&service);
    assert!(of_day.starts_with("2026-11-20T09:"), "{of_day}");
    assert!(day[0].as_f64().is_some() && day != evening);
}

/// Nothing is stored of the session that the prices are from, so its range is unknown, and its
/// change but for shares whose candles have come.
#[test]
fn a_first_start_at_night_shows_no_change_instead_of_none() {
    let scene = Scene::still_at("2026-11-20T00:10:00+05:30");
    let service = scene.start();
    until("prices", || {
        scene.advance_ms(1_000);
        service.prices("NSE:NIFTY%2050,NSE:INFY").quoted().len() == 2
            && service.get("/api/index/snapshot").status == 200
    });
    let (night, of_night) = changes(&service);
    assert!(of_night.starts_with("2026-11-19T15:3"), "{of_night}");
    let known: Vec<&Value> = night.iter().filter(|said| !said.is_null()).collect();
    let is_change = |said: &&Value| said.as_f64().is_some_and(|change| change != 0.0);
    assert!(known.len() <= 2 && known.iter().all(is_change), "{night:?}");
}

/// The staleness and the time of the snapshot and of two shares.
fn ages(service: &Service) -> Vec<(bool, String)> {
    let market = service.get("/api/index/snapshot").json()["market"].clone();
    let prices = service.prices("NSE:INFY,NSE:SBIN").json();
    let mut ages = vec![(market["stale"].clone(), market["as_of_ist"].clone())];
    let quotes = prices["quotes"].as_array().unwrap().iter();
    ages.extend(quotes.map(|quote| (quote["stale"].clone(), quote["as_of"].clone())));
    let text = |at: &Value| at.as_str().unwrap()[11..19].to_owned();
    ages.iter()
        .map(|(stale, at)| (stale.as_bool().unwrap(), text(at)))
        .collect()
}

/// The last price before the auction is not the close. A share that did not trade until the end has
/// its close all the same, once the source has the auction's prices.
#[test]
fn a_source_that_froze_before_the_auction_is_marked_until_it_has_the_close() {
    let scene = Scene::still_at("2026-11-20T15:10:00+05:30");
    scene.halt("NSE:SBIN", true);
    scene.fault("public", r#"{"kind":"refuse"}"#);
    let mut config = scene.config();
    // The clock stands while a request waits.
    config.cache.miss_wait_ms = 50;
    let service = scene.start_with(&config);
    until("prices", || {
        scene.advance_ms(1_000);
        let quoted = service.prices("NSE:INFY,NSE:SBIN");
        quoted.status == 200
            && quoted.quoted().len() == 2
            && service.get("/api/index/snapshot").status == 200
    });
    let await_ages = |what: &str, expected: [(bool, &str); 3]| {
        until(what, || {
            scene.advance_ms(1_000);
            let ages = ages(&service);
            let ages: Vec<_> = ages
                .iter()
                .map(|(stale, at)| (*stale, at.as_str()))
                .collect();
            ages == expected
        });
    };
    go_to(&scene, &service, "2026-11-20T15:20:00+05:30");
    let frozen = [
        (false, "15:15:00"),
        (false, "15:15:00"),
        (false, "15:10:00"),
    ];
    await_ages("the auction", frozen);
    scene.fault("broker_a", r#"{"kind":"mute_price"}"#);
    go_to(&scene, &service, "2026-11-20T15:30:00+05:30");
    await_ages("the auction, of a source that has frozen", frozen);
    for at in ["2026-11-20T15:37:00+05:30", "2026-11-20T15:50:00+05:30"] {
        go_to(&scene, &service, at);
        await_ages("marks", frozen.map(|(_, at)| (true, at)));
    }
    assert_eq!(scene.control("DELETE", "faults", "").status, 200);
    go_to(&scene, &service, "2026-11-20T16:00:00+05:30");
    await_ages(
        "the close",
        [
            (false, "15:35:00"),
            (false, "15:35:00"),
            (false, "15:10:00"),
        ],
    );
}
