//! After a restart all clients reconnect at the same moment.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};

use bhav::base::Clock;
use socket2::{Domain, Socket, Type};
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use super::morning::Morning;
use crate::support::{Client, PRICES, Program, SNAPSHOT, on_socket, say, until};

/// As many clients as the suite has time for. A real crowd differs only in number.
const CLIENTS: usize = 2_000;
/// Room of the connection limit above them, as in the page on operating.
const ROOM: usize = 300;
/// The error of a connect(2) that continues by itself (Linux).
const EINPROGRESS: i32 = 115;
/// The program with `listener` passed as systemd does.
fn start_on(morning: &Morning, listener: &TcpListener, connections_max: usize) -> Program {
    let mut command = on_socket(listener.try_clone().unwrap());
    command.args(morning.flags("127.0.0.1:0"));
    command.arg(format!("--max-connections={connections_max}"));
    command.arg("--http-connections-per-address-max=0");
    Program::of(&mut morning.arranged(command))
}

/// A listening socket, as the socket unit holds it.
fn listening() -> TcpListener {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket
        .bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into())
        .unwrap();
    socket.listen(4_096).unwrap();
    let listener = TcpListener::from(socket);
    listener.set_nonblocking(true).unwrap();
    listener
}

/// A connection in progress that nobody has accepted yet.
fn knock(address: SocketAddr) -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_nonblocking(true).unwrap();
    if let Err(error) = socket.connect(&address.into()) {
        assert_eq!(error.raw_os_error(), Some(EINPROGRESS), "{error}");
    }
    socket
}

fn asked(morning: &Morning) -> i64 {
    let stats = morning.scene.stats();
    let requests = stats["requests"].as_object().unwrap();
    requests
        .iter()
        .map(|(_, count)| count.as_i64().unwrap())
        .sum()
}

#[test]
fn everybody_who_comes_back_at_once_is_answered() {
    let clients = std::env::var("BHAV_TEST_CLIENTS").map_or(CLIENTS, |n| n.parse().unwrap());
    rlimit::increase_nofile_limit(clients as u64 + 500).unwrap();
    let morning = Morning::at("2026-11-20T11:00:00+05:30");
    let listener = listening();
    let address = listener.local_addr().unwrap();
    let connections_max = clients + ROOM;
    let mut first = start_on(&morning, &listener, connections_max);
    let mut client = Client::connect(&first.address);
    until("data", || (client.get(SNAPSHOT).status == 200).then_some(()));
    let quotes = format!("{PRICES}NSE:INFY");
    until("a quote", || (client.get(&quotes).status == 200).then_some(()));
    first.ends();
    let asked_before = asked(&morning);

    // Nobody listens yet, and no connection is refused.
    let waiting: Vec<Socket> = (0..clients).map(|_| knock(address)).collect();
    let watch = Clock::system();
    let program = start_on(&morning, &listener, connections_max);
    let started_ms = watch.monotonic_ms();
    let mut clients_left = Vec::with_capacity(clients);
    for (number, socket) in waiting.into_iter().enumerate() {
        let target = if number % 2 == 0 { SNAPSHOT } else { &quotes };
        let request = format!("GET {target} HTTP/1.1\r\nHost: bhav\r\n\r\n");
        until("its turn to connect", || (&socket).write_all(request.as_bytes()).ok());
        socket.set_nonblocking(false).unwrap();
        clients_left.push(Client::over(socket).unwrap());
    }
    let mut stale = 0;
    for client in &mut clients_left {
        let answer = client.answer().with_status(200);
        let json = answer.json();
        let quote = &json["quotes"][0];
        let seen = match quote.is_object() {
            true => morning.check(quote, "as_of"),
            false => morning.check(&json["market"], "as_of_ist"),
        };
        stale += usize::from(seen.stale);
    }
    let asked_more = asked(&morning) - asked_before;
    say(&format!(
        "{clients} answered, {stale} of them marked stale, {} ms after the start; the upstreams \
         were asked {asked_more} times\n",
        watch.monotonic_ms() - started_ms
    ));
    // Their data is in memory, or one call fetches it for all. The other calls are the start's own.
    assert!(asked_more < 500, "{asked_more} calls for {clients} clients");
    // All clients stay connected.
    morning.well(&program.address);
    assert_eq!(clients_left.len(), clients);
    morning.serves(&mut clients_left[0], "broker_a", false);
}
