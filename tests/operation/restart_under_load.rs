//! A restart while clients poll. A supervisor holds the listening socket, as a socket unit does: no
//! connection is refused and no answer is lost.
//!
//! `RESTART_REQUESTS_PER_S` sets the rate, `RESTARTS` how often; the counts are printed.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bhav::base::Clock;
use crossbeam_channel::{bounded, tick};
use socket2::{Domain, Socket, Type};

use crate::support::client::Lost;
use crate::support::{Client, Process, Scene, TRADING, few_candles, on_socket, say, until};

/// Modest, so that a busy machine keeps up; half of it on new connections.
const REQUESTS_PER_S: u64 = 200;
const KEEP_ALIVE_CLIENTS: u64 = 10;
/// The backlog of the socket unit.
const BACKLOG: i32 = 4096;
/// Time after which an answer counts as lost.
const ANSWER_MAX: Duration = Duration::from_secs(20);

const GET: &[u8] = b"GET /api/index/snapshot HTTP/1.1\r\nHost: bhav\r\n\r\n";

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

/// The real program on a socket held by this process.
struct Held {
    listener: TcpListener,
    address: String,
    scene: Scene,
}

impl Held {
    fn new() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket
            .bind(
                &"127.0.0.1:0"
                    .parse::<std::net::SocketAddr>()
                    .unwrap()
                    .into(),
            )
            .unwrap();
        socket.listen(BACKLOG).unwrap();
        let listener = TcpListener::from(socket);
        let address = listener.local_addr().unwrap().to_string();
        Self {
            listener,
            address,
            scene: Scene::at(TRADING),
        }
    }

    fn start(&self) -> Process {
        let scene = &self.scene;
        let mut command = on_socket(self.listener.try_clone().unwrap());
        command
            .args(["serve", "--admin-listen=127.0.0.1:0", &few_candles()])
            .args(scene.flags(scene.state.path()))
            .env("BROKERA_API_KEY", "simkeya")
            .env("BROKERA_ACCESS_TOKEN", "simtokena")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Process::start(&mut command)
    }
}

/// Results of the requests, counted by name.
#[derive(Default)]
struct Counts(Mutex<BTreeMap<String, u64>>);

impl Counts {
    fn add(&self, what: impl Into<String>) {
        *self.0.lock().unwrap().entry(what.into()).or_default() += 1;
    }

    fn of(&self, what: &str) -> u64 {
        self.0.lock().unwrap().get(what).copied().unwrap_or(0)
    }
}

fn connect(address: &str, counts: &Counts) -> Option<Client> {
    match Client::try_connect(address) {
        Ok(client) => {
            client.socket.set_read_timeout(Some(ANSWER_MAX)).unwrap();
            Some(client)
        }
        Err(error) => {
            counts.add(format!("connection failed: {}", error.kind()));
            None
        }
    }
}

/// Whether the server has closed an idle connection.
fn is_closed(client: &Client) -> bool {
    client.socket.set_nonblocking(true).unwrap();
    let seen = client.socket.peek(&mut [MaybeUninit::uninit()]);
    client.socket.set_nonblocking(false).unwrap();
    !seen.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

fn lost(error: &std::io::Error) -> Lost {
    Lost {
        kind: error.kind(),
        begun: false,
    }
}

/// A client that keeps its connection until the server announces the close.
fn keep_alive(address: &str, every: Duration, counts: &Counts, end: &AtomicBool) {
    let ticks = tick(every);
    let mut open: Option<Client> = None;
    while !end.load(Ordering::Relaxed) {
        ticks.recv().unwrap();
        if open.as_ref().is_some_and(is_closed) {
            // Like every client's pool: a connection closed while idle is not used again.
            counts.add("closed while idle");
            open = None;
        }
        let reused = open.is_some();
        let Some(mut client) = open.take().or_else(|| connect(address, counts)) else {
            continue;
        };
        let sent = client.try_write(GET).map_err(|error| lost(&error));
        match sent.and_then(|()| client.try_answer()) {
            Ok(answer) if answer.status == 200 => {
                let closes = answer.says_close();
                counts.add(if closes { "kept, the last" } else { "kept" });
                open = (!closes).then_some(client);
            }
            Ok(answer) => counts.add(format!("status {}", answer.status)),
            // Closed between two requests while the next was on its way.
            Err(Lost { kind, begun: false }) if reused => {
                counts.add(format!("raced the close: {kind}"));
            }
            Err(Lost { kind, .. }) => counts.add(format!("lost: {kind}")),
        }
    }
}

/// Opens a connection for each request at a fixed rate, however long the answers take.
fn strangers(address: &str, every: Duration, counts: &Counts, end: &AtomicBool) {
    let (asked, waiting) = bounded::<Client>(100_000);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for mut client in waiting {
                match client.try_answer() {
                    Ok(answer) if answer.status == 200 => counts.add("new"),
                    Ok(answer) => counts.add(format!("status {}", answer.status)),
                    Err(Lost { kind, .. }) => counts.add(format!("lost: {kind}")),
                }
            }
        });
        let ticks = tick(every);
        while !end.load(Ordering::Relaxed) {
            ticks.recv().unwrap();
            let Some(mut client) = connect(address, counts) else {
                continue;
            };
            match client.try_write(GET) {
                Ok(()) => asked.send(client).unwrap(),
                Err(error) => counts.add(format!("lost: {}", error.kind())),
            }
        }
        drop(asked);
    });
}

/// Ends the clients also if the test fails; otherwise the test would wait for them.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn terminate(running: &mut Process) -> u64 {
    let clock = Clock::system();
    running.ends();
    clock.monotonic_ms()
}

#[test]
fn a_restart_refuses_nobody_and_loses_no_answer() {
    let rate = from_environment("RESTART_REQUESTS_PER_S", REQUESTS_PER_S);
    let restarts = from_environment("RESTARTS", 2);
    let held = Held::new();
    let mut running = held.start();
    let (counts, end) = (Counts::default(), AtomicBool::new(false));
    // Waits for a snapshot, which every later process restores.
    until("data", || {
        let mut client = connect(&held.address, &counts)?;
        client.try_write(GET).unwrap();
        client
            .try_answer()
            .ok()
            .filter(|answer| answer.status == 200)
    });
    let served = |before: u64| {
        let done = || counts.of("new") + counts.of("kept");
        until("clients at work", || (done() >= before + rate).then_some(()));
        done()
    };
    std::thread::scope(|scope| {
        let (address, counts, end) = (&held.address, &counts, &end);
        let _ends = EndOnDrop(end);
        let kept_every = Duration::from_micros(2_000_000 * KEEP_ALIVE_CLIENTS / rate);
        for _ in 0..KEEP_ALIVE_CLIENTS {
            scope.spawn(move || keep_alive(address, kept_every, counts, end));
        }
        let new_every = Duration::from_micros(2_000_000 / rate);
        scope.spawn(move || strangers(address, new_every, counts, end));
        let mut before = served(0);
        for _ in 0..restarts {
            let took_ms = terminate(&mut running);
            say(&format!("the old one ended after {took_ms} ms\n"));
            running = held.start();
            before = served(before);
        }
    });
    terminate(&mut running);
    let counts = counts.0.into_inner().unwrap();
    say(&format!("{rate} requests/s, {restarts} restarts: {counts:?}\n"));
    let good = ["new", "kept", "kept, the last", "closed while idle"];
    let bad: Vec<_> = counts
        .iter()
        .filter(|(what, _)| !good.contains(&what.as_str()))
        .collect();
    assert!(bad.is_empty(), "{bad:?} of {counts:?}");
    let last = counts["kept, the last"] + counts.get("closed while idle").unwrap_or(&0);
    assert!(last >= restarts, "{counts:?}");
}
