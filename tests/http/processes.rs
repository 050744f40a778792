//! Resources of a whole process: descriptors, memory, processor time.

use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use bhav::base::Clock;
use bhav::http::settings::HttpSettings;

use crate::support::harness::settings;
use crate::support::process::{
    CpuMeter, alone, alone_with_few_descriptors, alone_with_socket, alone_with_socket_of_nobody,
    descriptors, resident_kib,
};
use crate::support::{Client, Harness, until};

/// Enough bodies for the cost of each to show.
const BODIES: usize = 500;
const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nx";
const GET: &str = "GET /g HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn thousands_of_connections_come_and_go_and_nothing_stays() {
    alone(
        "http::processes::thousands_of_connections_come_and_go_and_nothing_stays",
        || {
            let harness = Harness::start();
            assert_eq!(harness.connect().ask(GET).status, 200);
            until("the first is gone", || harness.shared().slots.open() == 0);
            let before = descriptors();
            for round in 0..30 {
                let mut wires: Vec<_> = (0..100).map(|_| harness.connect()).collect();
                for (number, wire) in wires.iter_mut().enumerate() {
                    match (number + round) % 4 {
                        0 => assert_eq!(wire.ask(GET).status, 200),
                        1 => drop(wire.write("GET /par").try_write(b"tial")),
                        2 => drop(wire.write(GET).try_write(GET.as_bytes())),
                        _ => {}
                    }
                }
            }
            until("the table is empty", || harness.shared().slots.open() == 0);
            assert_eq!(harness.shared().stats.accepted.value(), 3_001);
            until("no descriptor is left", || descriptors() <= before);
        },
    );
}

#[test]
fn clients_that_never_read_cost_little_memory() {
    alone("http::processes::clients_that_never_read_cost_little_memory", || {
        let harness = Harness::start();
        assert_eq!(harness.connect().ask(GET).status, 200);
        let before_kib = resident_kib();
        let wires: Vec<_> = (0..8).map(|_| harness.connect()).collect();
        let many = GET.repeat(2_000);
        for wire in &wires {
            wire.socket.set_nonblocking(true).unwrap();
        }
        // Writes until no connection accepts more, twice in a row.
        let mut quiet = 0;
        until("the server stops reading", || {
            let took = wires
                .iter()
                .any(|wire| (&wire.socket).write(many.as_bytes()).is_ok());
            quiet = if took { 0 } else { quiet + 1 };
            quiet > 100
        });
        let grown_kib = resident_kib().saturating_sub(before_kib);
        assert!(grown_kib < 8 * 1024, "{grown_kib} KiB for {} connections", wires.len());
        let answer = harness.connect().ask(GET);
        assert_eq!(answer.status, 200);
    });
}

#[test]
fn bodies_that_do_not_arrive_cost_no_more_than_what_arrived() {
    alone(
        "http::processes::bodies_that_do_not_arrive_cost_no_more_than_what_arrived",
        || {
            let harness = Harness::start();
            let head =
                |length| format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
            let all_gone = || until("all are gone", || harness.shared().slots.open() == 0);
            // Stacks are kept for later connections and must not count here.
            let mut wires: Vec<_> = (0..BODIES).map(|_| harness.connect()).collect();
            wires
                .iter_mut()
                .for_each(|wire| assert_eq!(wire.ask(head(1) + "x").status, 200));
            drop(wires);
            all_gone();
            let before_kib = resident_kib();
            for (form, line) in [("length", head(65_536) + "x"), ("chunked", CHUNKED.into())] {
                let mut wires: Vec<_> = (0..BODIES).map(|_| harness.connect()).collect();
                wires
                    .iter_mut()
                    .for_each(|wire| assert_eq!(wire.ask(head(1) + "x" + &line).status, 200));
                let open_kib = resident_kib().saturating_sub(before_kib);
                drop(wires);
                all_gone();
                let left_kib = resident_kib().saturating_sub(before_kib);
                for grown_kib in [open_kib, left_kib] {
                    assert!(
                        grown_kib < BODIES as u64 * 24,
                        "{form}: {open_kib}, then {left_kib} KiB"
                    );
                }
            }
        },
    );
}

#[test]
fn running_out_of_descriptors_is_survived_without_burning_a_core() {
    let test = "http::processes::running_out_of_descriptors_is_survived_without_burning_a_core";
    alone_with_few_descriptors(test, 300, || {
        let harness = Harness::start();
        let mut inside = harness.connect();
        assert_eq!(inside.ask(GET).status, 200);
        let mut meter = CpuMeter::open();
        let errors = || harness.shared().stats.accept_errors.value();
        let mut knocking: Vec<_> = (0..3)
            .map(|_| Client::unconnected(&harness.address).unwrap())
            .collect();
        let mut hoard = Vec::new();
        while let Ok(file) = File::open("/dev/null") {
            hoard.push(file);
        }
        assert!((1..300).contains(&hoard.len()), "{} files opened", hoard.len());
        for wire in &knocking {
            wire.knock(&harness.address).unwrap();
        }
        until("accepting fails", || errors() > 0);

        let (ticks, first) = (meter.ticks(), errors());
        let clock = Clock::system();
        while clock.monotonic_ms() < 1_000 {
            let tenth = crossbeam_channel::after(Duration::from_millis(100));
            tenth.recv().unwrap();
            assert_eq!(inside.ask(GET).status, 200, "those inside are served meanwhile");
        }
        let (spent, tries) = (meter.ticks() - ticks, errors() - first);
        assert!((1..60).contains(&tries), "{tries} tries in a second");
        assert!(spent < 30, "{spent} of 100 ticks spent on waiting");

        drop(hoard);
        for wire in &mut knocking {
            assert_eq!(wire.ask(GET).status, 200, "the backlog is served once there is room");
        }
        assert_eq!(harness.connect().ask(GET).status, 200);
    });
}

#[test]
fn a_socket_from_systemd_wins_over_the_address() {
    let test = "http::processes::a_socket_from_systemd_wins_over_the_address";
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    alone_with_socket(test, tcp.into(), || {
        let unused = HttpSettings {
            listen: "127.0.0.1:1".into(),
            ..settings()
        };
        let harness = Harness::with(&unused);
        assert_ne!(harness.address, unused.listen);
        assert_eq!(harness.connect().ask(GET).status, 200);
    });
}

#[test]
fn a_socket_of_a_simpler_supervisor_is_used_too() {
    let test = "http::processes::a_socket_of_a_simpler_supervisor_is_used_too";
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    alone_with_socket_of_nobody(test, tcp.into(), || {
        let unused = HttpSettings {
            listen: "127.0.0.1:1".into(),
            ..settings()
        };
        assert_eq!(Harness::with(&unused).connect().ask(GET).status, 200);
    });
}

#[test]
fn a_unix_socket_from_systemd_is_used_and_left_in_place() {
    let test = "http::processes::a_unix_socket_from_systemd_is_used_and_left_in_place";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("edge.sock");
    let unix = UnixListener::bind(&path).unwrap();
    alone_with_socket(test, unix.into(), || {
        let harness = Harness::start();
        assert!(harness.address.starts_with("unix:/"), "{}", harness.address);
        assert_eq!(harness.connect().ask(GET).status, 200);
        assert_eq!(harness.drain(), 0);
    });
    assert!(path.exists(), "the socket belongs to systemd");
}
