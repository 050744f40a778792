//! `/livez` and `/readyz` from the start to the end of a service.

use bhav::cache::pending::Class;
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use crate::support::scrape::Scrape;
use crate::support::{Answer, Client, SNAPSHOT, Scene, Service, TRADING, until};

fn missing(answer: &Answer) -> Vec<String> {
    let json = answer.json();
    let names = json["missing"].as_array().unwrap();
    names
        .iter()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

/// The first answer with this status.
#[track_caller]
fn ready_when(service: &Service, status: &str) -> Answer {
    let mut admin = service.admin();
    until(status, || {
        Some(admin.get("/readyz")).filter(|answer| answer.json()["status"] == status)
    })
}

/// Feeds that failed together recover one by one. Broker A serves, so nobody needs the other, and
/// still its recovery is noticed.
#[test]
fn a_standby_that_failed_is_asked_until_it_answers() {
    let scene = Scene::at(TRADING);
    scene.fault("broker_a", r#"{"kind":"refuse","count":6}"#);
    scene.fault("public", r#"{"kind":"refuse"}"#);
    let service = scene.start_with(&scene.watched());
    service.fresh_snapshot();
    let mut admin = service.admin();
    until("broker A alone", || {
        (missing(&admin.get("/readyz")) == ["public"]).then_some(())
    });
    scene.control("DELETE", "faults", "");
    ready_when(&service, "ok");
}

#[test]
fn ready_once_there_is_something_to_serve() {
    let scene = Scene::at(TRADING);
    scene.refuse_all();
    let service = scene.start_with(&scene.watched());
    let starting = ready_when(&service, "starting");
    assert_eq!(starting.status, 503);
    assert_eq!(starting.header("cache-control"), Some("no-store"));
    assert!(missing(&starting).contains(&"snapshot".to_owned()), "{}", starting.text());
    assert_eq!(service.admin().get("/livez").status, 200, "a restart would not help");
    scene.control("DELETE", "faults", "");
    service.fresh_snapshot();
    let ready = ready_when(&service, "ok");
    assert_eq!((ready.status, missing(&ready).len()), (200, 0), "{}", ready.text());
    assert_eq!(service.admin().request("HEAD", "/readyz", "").status, 200);
}

#[test]
fn a_lost_broker_makes_it_degraded_and_not_unready() {
    let (scene, service) = Scene::trading_on(Scene::watched);
    service.fresh_snapshot();
    scene.fault("broker_a", r#"{"kind":"refuse"}"#);
    let degraded = ready_when(&service, "degraded");
    assert_eq!(degraded.status, 200);
    assert!(missing(&degraded).contains(&"broker_a".to_owned()), "{}", degraded.text());
    // With both feeds dead, held prices are served and marked, so clients may still come.
    scene.refuse_all();
    service.snapshot_where("a stale snapshot", |json| json["market"]["stale"] == true);
    let mut admin = service.admin();
    let both = until("stale data to show", || {
        let answer = admin.get("/readyz");
        missing(&answer)
            .contains(&"fresh index data".to_owned())
            .then_some(answer)
    });
    assert_eq!((both.status, both.json()["status"].as_str()), (200, Some("degraded")));
    assert_eq!(admin.get("/livez").status, 200);
    let scrape = Scrape::of(&service);
    assert_eq!(scrape.value("bhav_snapshot_stale"), 1.0);
    let ok = "bhav_feed_state{source=\"broker_a\",state=\"ok\"}";
    assert_eq!(scrape.value(ok), 0.0);
}

#[test]
fn a_draining_service_is_alive_and_not_ready() {
    let scene = Scene::at(TRADING);
    let mut config = scene.watched();
    config.http.drain_timeout_ms = 20_000;
    config.cache.miss_wait_ms = 4_000;
    let service = scene.start_with(&config);
    service.fresh_snapshot();
    scene.fault("*", r#"{"kind":"delay","delay_ms":600000}"#);
    let address = service.0.address().to_owned();
    let admin = service.0.admin().unwrap().address().to_owned();
    let pending = service.0.server().shared().service.state().pending.clone();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            Client::connect(&address).get("/api/portfolio/live-prices?symbols=NSE:SBIN")
        });
        until("a request to wait", || {
            (pending.stats(Class::Listed).waiters == 1).then_some(())
        });
        // The same connection before and after: this listener ends last.
        let mut probe = Client::connect(&admin);
        assert_eq!(probe.get("/readyz").status, 200);
        let stopping = scope.spawn(|| service.stop());
        let draining = until("the drain to show", || {
            Some(probe.get("/readyz")).filter(|answer| answer.status == 503)
        });
        assert_eq!(draining.json()["status"], "draining");
        assert_eq!(probe.get("/livez").status, 200);
        drop(probe);
        assert_eq!(stopping.join().unwrap(), 0);
    });
}

#[test]
fn off_means_no_listener_and_a_taken_port_ends_the_start() {
    let (scene, service) = Scene::trading();
    assert!(service.0.admin().is_none());
    let mut config = scene.watched();
    config.state_dir = scene.state.path().join("other");
    config.admin.listen = service.0.address().into();
    let error = bhav::app::App::start(&config, &scene.clock).err().unwrap();
    assert!(error.to_string().starts_with("BHAV_ADMIN_LISTEN: "), "{error}");
    assert_eq!(error.exit(), bhav::ops::Exit::Unavailable);
    let path = scene.state.path().join("admin.sock");
    let listen = format!("unix:{}", path.display());
    config.admin.listen = listen.as_str().into();
    let second = scene.start_with(&config);
    assert_eq!(second.0.admin().unwrap().address(), listen);
    assert!(path.exists());
    assert!(service.get(SNAPSHOT).status < 600);
    second.stop();
}

#[test]
fn connections_left_open_do_not_blind_the_probes() {
    let (_scene, service) = Scene::trading_on(Scene::watched);
    let mut idle: Vec<_> = (0..40).map(|_| service.admin()).collect();
    for (number, client) in idle.iter_mut().enumerate() {
        // Half of them send nothing.
        if number % 2 == 0 {
            assert_eq!(client.get("/livez").status, 200, "{number}");
        }
    }
    assert_eq!(service.admin().get("/livez").status, 200);
    assert_eq!(service.admin().get("/metrics").status, 200);
    // A connection that has had an answer is closed soon, without another one, and frees its place.
    idle[0].closes();
}

/// Clients that leave connections open keep no supervisor waiting.
#[test]
fn silent_connections_on_the_listener_do_not_hold_up_a_probe() {
    let (_scene, service) = Scene::trading_on(Scene::watched);
    let address = service.0.admin().unwrap().address().to_owned();
    let probe = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";
    let get_metrics = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
    let kinds: [(&str, &[u8], usize); 5] = [
        ("nothing", b"", 64),
        ("more than there is room for", b"", 200),
        ("half a line", b"GET /liv", 64),
        ("half a head", b"GET /livez HTTP/1.1\r\nHost: a\r\n", 128),
        ("an empty line", b"\r\n", 64),
    ];
    for (what, bytes, count) in kinds {
        let mut silent: Vec<_> = (0..count).map(|_| Client::connect(&address)).collect();
        for wire in &mut silent {
            // One that was ended for another may be closed already.
            let _ = wire.try_write(bytes);
        }
        for _ in 0..5 {
            let begun = bhav::base::Clock::system();
            assert_eq!(Client::connect(&address).ask(probe).status, 200);
            // The deadline of a silent one is five seconds.
            assert!(begun.monotonic_ms() < 2_500, "{what}: {} ms", begun.monotonic_ms());
        }
    }
    // Connections that were used and are kept open; a scrape among them is answered whole.
    let mut kept: Vec<_> = (0..70)
        .map(|_| {
            let mut wire = Client::connect(&address);
            assert_eq!(wire.ask(probe).status, 200);
            wire
        })
        .collect();
    let mut scrape = Client::connect(&address);
    scrape.write(get_metrics);
    let more: Vec<_> = (0..70).map(|_| Client::connect(&address)).collect();
    let answer = scrape.answer();
    assert_eq!(answer.status, 200);
    let name = "bhav_admin_connections_evicted_total ";
    let line = answer
        .text()
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap();
    assert!(line.parse::<u64>().unwrap() > 0);
    kept[0].closes();
    drop(more);
}
