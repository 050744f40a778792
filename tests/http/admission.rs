//! Admission of connections: caps, addresses, proxies, sockets.

use std::fs::File;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::time::Duration;

use bhav::http::settings::HttpSettings;
use bhav::http::{ListenError, Listener};

use crate::support::harness::settings;
use crate::support::{Client, Harness, small, until};

const GET: &str = "GET /g HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn at_the_cap_accepting_pauses_and_resumes_when_one_ends() {
    let harness = Harness::with(&HttpSettings {
        connections_max: 3,
        ..settings()
    });
    let mut inside: Vec<_> = (0..3).map(|_| harness.connect()).collect();
    for wire in &mut inside {
        assert_eq!(wire.ask(GET).status, 200);
    }
    let mut outside = harness.connect();
    outside.write(GET);
    until("accepting pauses", || harness.shared().stats.accept_pauses.value() > 0);
    assert_eq!(harness.shared().slots.open(), 3);
    assert_eq!(harness.probe.served(), 3, "the fourth waits");
    for wire in &mut inside {
        assert_eq!(wire.ask(GET).status, 200, "those inside are served meanwhile");
    }
    inside.pop();
    assert_eq!(outside.answer().status, 200);
    assert_eq!(harness.shared().slots.open(), 3);
}

/// A closed connection frees its slot and its share of the address together.
#[test]
fn who_waits_at_the_cap_is_not_refused_for_one_that_has_just_left() {
    let harness = Harness::with(&HttpSettings {
        connections_max: 2,
        ..settings()
    });
    let mut inside = harness.connect();
    assert_eq!(inside.ask(GET).status, 200);
    let mut leaving = harness.connect();
    assert_eq!(leaving.ask(GET).status, 200);
    for _ in 0..200 {
        let pauses = harness.shared().stats.accept_pauses.value();
        let mut waiting = harness.connect();
        waiting.write(GET);
        until("accepting pauses", || harness.shared().stats.accept_pauses.value() > pauses);
        drop(leaving);
        assert_eq!(waiting.answer().status, 200);
        leaving = waiting;
    }
    assert_eq!(harness.shared().stats.address_refusals.value(), 0);
}

#[test]
fn silent_connections_at_the_cap_make_room_when_their_time_is_up() {
    let harness = Harness::with(&HttpSettings {
        connections_max: 2,
        ..small()
    });
    let mut silent: Vec<_> = (0..2).map(|_| harness.connect()).collect();
    until("both are inside", || harness.shared().slots.open() == 2);
    assert_eq!(harness.connect().ask(GET).status, 200);
    silent[0].closes();
}

#[test]
fn one_address_may_have_so_many_and_a_trusted_proxy_any_number() {
    let capped = HttpSettings {
        connections_per_address_max: 2,
        ..settings()
    };
    let harness = Harness::with(&capped);
    let mut first = harness.connect();
    let mut second = harness.connect();
    assert_eq!((first.ask(GET).status, second.ask(GET).status), (200, 200));
    harness.connect().closes();
    assert_eq!(harness.shared().stats.address_refusals.value(), 1);
    assert_eq!(second.ask(GET).status, 200);
    drop(first);
    until("the place is given back", || harness.shared().slots.open() == 1);
    assert_eq!(harness.connect().ask(GET).status, 200);

    let trusted = vec!["127.0.0.1".parse().unwrap()];
    let harness = Harness::with(&HttpSettings {
        trusted_proxies: trusted,
        ..capped
    });
    let mut many: Vec<_> = (0..5).map(|_| harness.connect()).collect();
    assert!(many.iter_mut().all(|wire| wire.ask(GET).status == 200));
}

#[test]
fn an_address_leaves_a_tenth_to_others_and_unix_sockets_are_not_counted() {
    let few = HttpSettings {
        connections_max: 10,
        ..settings()
    };
    assert!(few.connections_per_address_max > 10, "by default");
    let harness = Harness::with(&few);
    let mut one: Vec<_> = (0..9).map(|_| harness.connect()).collect();
    assert!(one.iter_mut().all(|wire| wire.ask(GET).status == 200));
    harness.connect().closes();
    assert_eq!(harness.shared().stats.address_refusals.value(), 1);
    // Another address of this machine.
    let mut other = Client::unconnected(&harness.address).unwrap();
    let own: SocketAddr = "127.0.0.2:0".parse().unwrap();
    other.socket.bind(&own.into()).unwrap();
    other.knock(&harness.address).unwrap();
    assert_eq!(other.ask(GET).status, 200);
    drop((one, other));
    let folder = tempfile::tempdir().unwrap();
    let listen = format!("unix:{}", folder.path().join("edge.sock").display());
    let harness = Harness::with(&HttpSettings { listen, ..few });
    let mut many: Vec<_> = (0..10).map(|_| harness.connect()).collect();
    assert!(many.iter_mut().all(|wire| wire.ask(GET).status == 200));
}

#[test]
fn only_a_trusted_proxy_names_the_client() {
    let forwarded = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.2.3.4, 198.51.100.7\r\n\r\n";
    let harness = Harness::start();
    assert_eq!(harness.connect().ask(forwarded).field("client"), "127.0.0.1");
    let trusted = vec!["127.0.0.1".parse().unwrap()];
    let harness = Harness::with(&HttpSettings {
        trusted_proxies: trusted,
        ..settings()
    });
    assert_eq!(harness.connect().ask(forwarded).field("client"), "198.51.100.7");
    assert_eq!(harness.connect().ask(GET).field("client"), "127.0.0.1");
    let spoofed = forwarded.replace("198.51.100.7", "<b>");
    assert_eq!(harness.connect().ask(spoofed).field("client"), "127.0.0.1");
}

#[test]
fn a_unix_socket_serves_and_is_removed_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("edge.sock");
    let listen = format!("unix:{}", path.display());
    let unix = HttpSettings {
        listen: listen.clone(),
        ..settings()
    };
    {
        let harness = Harness::with(&unix);
        assert_eq!(harness.address, listen);
        let mut wire = harness.connect();
        let forwarded = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 198.51.100.7\r\n\r\n";
        assert_eq!(wire.ask(forwarded).field("client"), "198.51.100.7");
        assert_eq!(
            wire.ask("GET /large?3000000 HTTP/1.1\r\nHost: a\r\n\r\n")
                .body
                .len(),
            3_000_000
        );
        assert!(matches!(Listener::bind(&listen), Err(ListenError::InUse { .. })));
        wire.finish().closes();
        assert_eq!(harness.drain(), 0);
    }
    assert!(!path.exists(), "the process may exit as soon as the drain is over");
    // A socket that a killed instance left behind is replaced.
    drop(UnixListener::bind(&path).unwrap());
    let harness = Harness::with(&unix);
    assert_eq!(harness.connect().ask(GET).status, 200);
}

#[test]
fn the_socket_of_a_supervisor_is_found_by_its_kind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("edge.sock");
    let file = || OwnedFd::from(File::open(folder.path()).unwrap());
    let unix = UnixListener::bind(&path).unwrap();
    let listeners = open(vec![file(), unix.into()]).unwrap();
    assert_eq!(addresses(&listeners), [format!("unix:{}", path.display())]);
    drop(listeners);
    assert!(path.exists(), "it is the supervisor's");
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap().to_string();
    let listeners = open(vec![tcp.into(), file()]).unwrap();
    assert_eq!(addresses(&listeners), [address]);
    let blocked = listeners[0].accept().unwrap_err();
    assert_eq!(blocked.kind(), ErrorKind::WouldBlock);
    // A file is what another version has left with the supervisor.
    assert!(matches!(open(vec![file()]), Err(ListenError::BadAddress(_))));
}

fn open(passed: Vec<OwnedFd>) -> Result<Vec<Listener>, ListenError> {
    Listener::open(
        "nowhere",
        passed
            .into_iter()
            .map(|fd| (Some("edge".into()), fd))
            .collect(),
    )
}

fn addresses(listeners: &[Listener]) -> Vec<String> {
    listeners.iter().map(Listener::address).collect()
}

fn sockets_of_each_family(folder: &Path) -> Vec<OwnedFd> {
    let mut passed: Vec<OwnedFd> = Vec::new();
    for address in [
        "127.0.0.1:0",
        "[::1]:0",
        "127.0.0.2:0",
        "[::]:0",
        "0.0.0.0:0",
    ] {
        passed.push(TcpListener::bind(address).unwrap().into());
    }
    for name in ["one.sock", "another.sock"] {
        passed.push(UnixListener::bind(folder.join(name)).unwrap().into());
    }
    passed
}

#[test]
fn every_passed_socket_is_served_whatever_its_family_and_their_limits_are_shared() {
    let folder = tempfile::tempdir().unwrap();
    let listeners = open(sockets_of_each_family(folder.path())).unwrap();
    let at: Vec<String> = addresses(&listeners)
        .into_iter()
        .map(|address| {
            address
                .replace("[::]", "[::1]")
                .replace("0.0.0.0", "127.0.0.1")
        })
        .collect();
    assert_eq!(at.len(), 7);
    let limited = HttpSettings {
        connections_max: 7,
        ..settings()
    };
    let harness = Harness::on(listeners, &limited);
    // Each has its answer while all others are open too.
    let mut inside: Vec<_> = at.iter().map(|address| Client::connect(address)).collect();
    for _ in 0..3 {
        for (wire, address) in inside.iter_mut().zip(&at) {
            assert_eq!(wire.ask(GET).status, 200, "{address}");
        }
    }
    // One more anywhere waits until one anywhere has ended.
    let mut outside: Vec<_> = [1, 6]
        .map(|number: usize| Client::connect(&at[number]))
        .into();
    for wire in &mut outside {
        wire.write(GET);
    }
    until("accepting pauses", || harness.shared().stats.accept_pauses.value() > 1);
    assert_eq!(harness.shared().slots.open(), 7);
    inside.truncate(2);
    for wire in &mut outside {
        assert_eq!(wire.answer().status, 200);
    }
    // What waits in any backlog when the drain begins is answered.
    drop((inside, outside));
    until("all are gone", || harness.shared().slots.open() == 0);
    let mut last: Vec<_> = at.iter().map(|address| Client::connect(address)).collect();
    for wire in &mut last {
        wire.write(GET);
    }
    let asked = last.len();
    let drained = std::thread::scope(|scope| {
        let drained = scope.spawn(|| harness.drain());
        let answers: Vec<_> = last.iter_mut().map(|wire| wire.answer().status).collect();
        assert_eq!(answers, vec![200; asked]);
        drop(last);
        drained.join().unwrap()
    });
    assert_eq!(drained, 0);
    assert!(
        at.iter()
            .all(|address| Client::try_connect(address).is_err())
    );
}

#[test]
fn addresses_count_together_over_all_sockets() {
    let sockets = ["127.0.0.1:0", "127.0.0.1:0"].map(|at| TcpListener::bind(at).unwrap().into());
    let listeners = open(sockets.into()).unwrap();
    let at = addresses(&listeners);
    let capped = HttpSettings {
        connections_per_address_max: 2,
        ..settings()
    };
    let harness = Harness::on(listeners, &capped);
    let mut inside: Vec<_> = at.iter().map(|address| Client::connect(address)).collect();
    assert!(inside.iter_mut().all(|wire| wire.ask(GET).status == 200));
    for address in &at {
        Client::connect(address).closes();
    }
    assert_eq!(harness.shared().stats.address_refusals.value(), 2);
}

#[test]
fn a_passed_socket_that_cannot_be_served_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let tcp = || OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap());
    let raw = |domain, kind| OwnedFd::from(socket2::Socket::new(domain, kind, None).unwrap());
    let connected = || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        OwnedFd::from(std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap())
    };
    let bound = || {
        let socket = raw(socket2::Domain::IPV4, socket2::Type::STREAM);
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        rustix::net::bind(&socket, &any).unwrap();
        socket
    };
    let seqpacket = || raw(socket2::Domain::UNIX, socket2::Type::SEQPACKET);
    let udp = |at: &str| OwnedFd::from(std::net::UdpSocket::bind(at).unwrap());
    let bound_datagram =
        || OwnedFd::from(UnixDatagram::bind(folder.path().join("d.sock")).unwrap());
    for (what, socket, reason) in [
        ("UDP", udp("127.0.0.1:0"), "no stream socket"),
        ("UDP on IPv6", udp("[::1]:0"), "no stream socket"),
        ("a Unix datagram", UnixDatagram::unbound().unwrap().into(), "no stream socket"),
        ("a bound one", bound_datagram(), "no stream socket"),
        ("packets in sequence", seqpacket(), "no stream socket"),
        (
            "a new socket",
            raw(socket2::Domain::IPV6, socket2::Type::STREAM),
            "does not listen",
        ),
        ("a bound socket", bound(), "does not listen"),
        (
            "a new Unix socket",
            raw(socket2::Domain::UNIX, socket2::Type::STREAM),
            "does not listen",
        ),
        ("a connection", connected(), "Accept=yes"),
        (
            "one of a pair",
            std::os::unix::net::UnixStream::pair().unwrap().0.into(),
            "Accept=yes",
        ),
    ] {
        // Beside a good one, before it and behind it.
        for sockets in [
            vec![socket.try_clone().unwrap()],
            vec![tcp(), socket.try_clone().unwrap()],
            vec![socket.try_clone().unwrap(), tcp()],
        ] {
            let told = open(sockets).unwrap_err().to_string();
            assert!(told.contains(reason), "{what}: {told}");
            assert!(told.starts_with("systemd passed edge, which"), "{what}: {told}");
        }
    }
}

#[test]
fn a_name_of_several_addresses_is_served_on_each() {
    let listeners = Listener::bind("localhost:0").unwrap();
    let at = addresses(&listeners);
    let ports: Vec<_> = at
        .iter()
        .map(|address| address.rsplit(':').next().unwrap())
        .collect();
    assert!(ports.iter().all(|port| *port == ports[0] && *port != "0"), "{at:?}");
    let harness = Harness::on(listeners, &settings());
    for address in &at {
        assert_eq!(Client::connect(address).ask(GET).status, 200, "{address}");
    }
    let told = Listener::bind(&format!("localhost:{}", ports[0])).unwrap_err();
    assert!(matches!(told, ListenError::InUse { .. }), "{told}");
    drop(harness);
}

#[test]
fn a_second_instance_on_the_same_port_is_told_so() {
    let harness = Harness::start();
    match Listener::bind(&harness.address) {
        Err(ListenError::InUse { address }) => assert_eq!(address, harness.address),
        other => panic!("{other:?}"),
    }
    assert!(matches!(Listener::bind("nowhere"), Err(ListenError::BadAddress(_))));
    assert_eq!(harness.connect().ask(GET).status, 200);
}

#[test]
fn a_port_can_be_bound_again_at_once() {
    let harness = Harness::start();
    let address = harness.address.clone();
    let mut wire = harness.connect();
    // The server closes first, so that its end of the connection lingers in the kernel.
    assert!(
        wire.ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .says_close()
    );
    wire.closes();
    assert_eq!(harness.drain(), 0);
    let again = Harness::with(&HttpSettings {
        listen: address,
        ..settings()
    });
    assert_eq!(again.connect().ask(GET).status, 200);
}

#[test]
fn a_client_that_resets_costs_nothing() {
    let harness = Harness::start();
    for number in 0..50 {
        let mut wire = harness.connect();
        match number % 3 {
            0 => {}
            1 => {
                wire.write("GET / HT");
            }
            _ => {
                wire.write("GET /large?500000 HTTP/1.1\r\nHost: a\r\n\r\n");
            }
        }
        // A close with this option set sends a reset.
        wire.socket.set_linger(Some(Duration::ZERO)).unwrap();
    }
    assert_eq!(harness.connect().ask(GET).status, 200);
    until("all are gone", || harness.shared().slots.open() == 0);
}
