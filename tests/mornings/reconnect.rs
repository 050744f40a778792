//! After a restart everybody comes back in the same moment.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use super::morning::Morning;
use crate::service::process::Program;
use crate::service::support::{Client, SNAPSHOT, until};

/// As many as the suite has time for; the number is the only thing that differs from a whole city.
const CLIENTS: usize = 2_000;
/// Longest wait for anything of it.
const PATIENCE: Duration = Duration::from_secs(20);

/// The program with `listener` handed to it the way systemd does it.
fn start_on(morning: &Morning, listener: &TcpListener) -> Program {
    let socket: OwnedFd = listener.try_clone().unwrap().into();
    let mut command = Command::new("sh");
    let activated = "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\" 3<&0 </dev/null";
    command.env_clear().args(["-c", activated, env!("CARGO_BIN_EXE_bhav")]);
    command.args(morning.flags("127.0.0.1:0")).stdin(socket);
    Program::of(&mut morning.arranged(command))
}

#[test]
fn everybody_who_comes_back_at_once_is_answered() {
    let clients = std::env::var("BHAV_TEST_CLIENTS").map_or(CLIENTS, |n| n.parse().unwrap());
    let morning = Morning::at("2026-11-20T11:00:00+05:30");
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    socket.listen(4_096).unwrap();
    let listener = TcpListener::from(socket);
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let mut first = start_on(&morning, &listener);
    let mut client = Client::connect(&first.address);
    until("data", || (client.get(SNAPSHOT).status == 200).then_some(()));
    let quotes = format!("{}NSE:INFY", crate::service::support::PRICES);
    until("a quote", || (client.get(&quotes).status == 200).then_some(()));
    first.terminate();
    assert_eq!(first.exit().code(), Some(0));
    let asked_before = morning.scene.stats();

    // Nobody listens yet, and no connection is refused.
    let mut waiting = Vec::with_capacity(clients);
    for number in 0..clients {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_nonblocking(true).unwrap();
        match socket.connect(&address.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(115) => {}
            Err(error) => panic!("client {number}: {error}"),
        }
        waiting.push(socket);
    }
    let program = start_on(&morning, &listener);
    let mut answered = 0;
    let target = [SNAPSHOT, &quotes];
    for (number, socket) in waiting.iter().enumerate() {
        socket.set_nonblocking(false).unwrap();
        let target = target[number % 2];
        let request = format!("GET {target} HTTP/1.1\r\nHost: bhav\r\n\r\n");
        until("room to send", || (&*socket).write_all(request.as_bytes()).ok());
    }
    for (number, socket) in waiting.iter().enumerate() {
        let mut head = [0; 12];
        (&*socket).read_exact(&mut head).unwrap();
        let status = String::from_utf8_lossy(&head[9..]).into_owned();
        assert_eq!(status, "200", "client {number}");
        answered += 1;
    }
    assert_eq!(answered, clients);
    morning.well(&program.address);
    let mut client = Client::connect(&program.address);
    morning.serves(&mut client, "broker_a", false);
    // They cost the feeds nothing: what they ask for is there.
    let calls = |stats: &sonic_rs::Value| stats["requests"]["broker_a.quote"].clone();
    eprintln!(
        "{clients} answered; broker A {:?} -> {:?}",
        calls(&asked_before),
        calls(&morning.scene.stats())
    );
}
