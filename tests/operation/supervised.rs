//! Messages to a supervisor: readiness, the watchdog's pings while every subsystem makes progress,
//! the status.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;

use crate::support::{Program, Scene, TRADING, serve, until};
use bhav::app::{Stuck, Watchdog};
use bhav::base::Clock;
use bhav::rt::coroutines;
use bhav::sim::SimSettings;

/// Receives messages in place of systemd.
pub struct Ear(UnixDatagram);

impl Ear {
    pub fn at(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self(socket)
    }

    /// The next message, if one has arrived.
    pub fn heard(&self) -> Option<String> {
        let mut bytes = [0; 1024];
        let length = self.0.recv(&mut bytes).ok()?;
        Some(String::from_utf8(bytes[..length].to_vec()).unwrap())
    }

    /// The first message from now on for which `holds` is true.
    pub fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        until(what, || self.heard().filter(|heard| holds(heard)))
    }
}

/// `bhav serve` against the scene's upstreams, with systemd's variables.
pub fn supervised(scene: &Scene) -> Command {
    let mut command = serve(scene, scene.state.path());
    command
        .arg("--admin-listen=127.0.0.1:0")
        .env("BROKERA_API_KEY", "simkeya")
        .env("BROKERA_ACCESS_TOKEN", "simtokena")
        .env("NOTIFY_SOCKET", scene.state.path().join("notify"));
    command
}

#[test]
fn ready_is_said_with_data_and_pings_follow_until_the_end() {
    let scene = Scene::at(TRADING);
    let ear = Ear::at(&scene.state.path().join("notify"));
    let mut program = Program::of(supervised(&scene).env("WATCHDOG_USEC", "300000"));
    let ready = ear.until("readiness", |heard| heard.contains("READY=1"));
    assert!(ready.contains("market open, prices of broker_a"), "{ready}");
    assert!(ready.contains("broker A token until 21 Nov 06:00 IST"), "{ready}");
    assert!(ready.contains("broker B has no token; store ok"), "{ready}");
    for _ in 0..5 {
        ear.until("a ping", |heard| heard == "WATCHDOG=1\n");
    }
    scene.refuse_all();
    ear.until("word of stale data", |heard| {
        heard.contains("STATUS=") && heard.contains("STALE")
    });
    program.terminate();
    ear.until("word of the end", |heard| heard.contains("STOPPING=1"));
    assert_eq!(program.exit().code(), Some(0));
}

#[test]
fn without_any_feed_it_is_ready_all_the_same_after_a_bounded_wait() {
    let scene = Scene::at(TRADING);
    scene.refuse_all();
    let ear = Ear::at(&scene.state.path().join("notify"));
    let clock = Clock::system();
    let _program = Program::of(&mut supervised(&scene));
    let ready = ear.until("readiness", |heard| heard.contains("READY=1"));
    assert!(ready.contains("no prices yet"), "{ready}");
    assert!(clock.monotonic_ms() >= 10_000, "after {} ms", clock.monotonic_ms());
}

/// All messages up to readiness, including that one.
fn said_until_ready(ear: &Ear) -> Vec<String> {
    let mut said = Vec::new();
    until("readiness", || {
        said.extend(std::iter::from_fn(|| ear.heard()));
        said.iter()
            .any(|heard| heard.contains("READY=1"))
            .then_some(())
    });
    said
}

#[test]
fn a_migration_asks_for_more_time_and_a_start_without_one_does_not() {
    const FIRST: &str = include_str!("../../sql/store/0001_accounts.sql");
    let scene = Scene::at(TRADING);
    let path = scene.state.path().join(bhav::store::FILE_NAME);
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch(FIRST).unwrap();
    old.pragma_update(None, "application_id", 0x6268_6176)
        .unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    drop(old);
    let ear = Ear::at(&scene.state.path().join("notify"));
    let mut program = Program::of(&mut supervised(&scene));
    let said = said_until_ready(&ear);
    let asked = |said: &[String]| {
        said.iter()
            .filter(|heard| *heard == "EXTEND_TIMEOUT_USEC=60000000\n")
            .count()
    };
    // The copy and its sync, and each of the migrations.
    assert!(asked(&said) >= 4, "{said:?}");
    assert!(said.last().is_some_and(|heard| heard.contains("store ok")), "{said:?}");
    program.terminate();
    ear.until("word of the end", |heard| heard.contains("STOPPING=1"));
    assert_eq!(program.exit().code(), Some(0));
    let _again = Program::of(&mut supervised(&scene));
    assert_eq!(asked(&said_until_ready(&ear)), 0, "the file has the present schema now");
}

/// No handler blocks a worker. The probes that go through the workers notice a blocked one.
#[test]
fn a_stuck_edge_worker_stops_the_pings_and_a_free_one_does_not() {
    let clock = Clock::manual(TRADING.parse().unwrap());
    let scene = Scene::by_hand(clock.share(), SimSettings::default());
    let service = scene.start();
    let watchdog = Watchdog::of(&service.0);
    let well = || until("every part", || watchdog.stuck().is_none().then_some(()));
    well();
    let (release, held) = crossbeam_channel::bounded::<()>(0);
    let (entered, inside) = crossbeam_channel::bounded(1);
    coroutines::spawn_for(0, move || {
        entered.send(()).unwrap();
        assert!(held.recv().is_err());
    })
    .unwrap();
    inside.recv().unwrap();
    for _ in 0..3 {
        clock.advance_ms(6_000);
        // The others have made progress: only the held worker is behind.
        let sweeper = &service.0.server().shared().slots;
        until("the others", || (sweeper.now_ms() >= clock.monotonic_ms()).then_some(()));
    }
    for _ in 0..20 {
        assert_eq!(watchdog.stuck(), Some(Stuck::Edge));
    }
    drop(release);
    well();
    clock.advance_ms(60_000);
    well();
}
