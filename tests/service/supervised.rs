//! What a supervisor hears: readiness, the watchdog's pings while every part gets on, the status.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;

use bhav::app::Stuck;
use bhav::base::Clock;
use bhav::rt::edge;
use bhav::sim::SimSettings;

use super::process::{Program, serve};
use super::support::{Scene, TRADING, until};

/// Hears what systemd would.
pub struct Ear(UnixDatagram);

impl Ear {
    pub fn at(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self(socket)
    }

    /// The next message, if one came.
    pub fn heard(&self) -> Option<String> {
        let mut bytes = [0; 1024];
        let length = self.0.recv(&mut bytes).ok()?;
        Some(String::from_utf8(bytes[..length].to_vec()).unwrap())
    }

    /// The first message from now on of which `holds` is true.
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
    ear.until("word of stale data", |heard| heard.contains("STATUS=") && heard.contains("STALE"));
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

/// Blocking a worker is what no handler does; the probes that go through it notice.
#[test]
fn a_stuck_edge_worker_stops_the_pings_and_a_free_one_does_not() {
    let clock = Clock::manual(TRADING.parse().unwrap());
    let scene = Scene::on(clock.clone(), SimSettings::default());
    let service = scene.start();
    let vitals = service.0.vitals();
    let well = || until("every part", || vitals.stuck().is_none().then_some(()));
    well();
    let (release, held) = crossbeam_channel::bounded::<()>(0);
    let (entered, inside) = crossbeam_channel::bounded(1);
    edge::spawn_for(0, move || {
        entered.send(()).unwrap();
        assert!(held.recv().is_err());
    })
    .unwrap();
    inside.recv().unwrap();
    for _ in 0..3 {
        clock.advance_ms(6_000);
        // The others have gone on by now: only the held worker is behind.
        let sweeper = &service.0.server().shared().slots;
        until("the others", || (sweeper.now_ms() >= clock.monotonic_ms()).then_some(()));
    }
    for _ in 0..20 {
        assert_eq!(vitals.stuck(), Some(Stuck::Edge));
    }
    drop(release);
    well();
    clock.advance_ms(60_000);
    well();
}
