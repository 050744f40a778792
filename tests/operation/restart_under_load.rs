//! A restart while clients poll, the listening socket being held by a supervisor, as a socket unit
//! does it: nobody is refused and no answer is lost.
//!
//! `RESTART_REQUESTS_PER_S` sets the rate, `RESTARTS` how often; the counts are printed.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bhav::base::Clock;
use crossbeam_channel::{bounded, tick};
use socket2::{Domain, Socket, Type};

use super::process::few_candles;
use crate::support::service::{Scene, TRADING, until};

/// Modest, so that a busy machine keeps up; half of it on new connections.
const REQUESTS_PER_S: u64 = 200;
const KEEP_ALIVE_CLIENTS: u64 = 10;
/// As in the socket unit.
const BACKLOG: i32 = 4096;
/// An answer that takes longer is lost.
const ANSWER_MAX: Duration = Duration::from_secs(20);

const GET: &[u8] = b"GET /api/index/snapshot HTTP/1.1\r\nHost: bhav\r\n\r\n";

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

/// The real program on a socket that this process holds.
struct Held {
    listener: TcpListener,
    address: String,
    scene: Scene,
}

impl Held {
    fn new() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
        socket.listen(BACKLOG).unwrap();
        let listener = TcpListener::from(socket);
        let address = listener.local_addr().unwrap().to_string();
        Self { listener, address, scene: Scene::at(TRADING) }
    }

    fn start(&self) -> Running {
        let scene = &self.scene;
        let activated = "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\" 3<&0 </dev/null";
        let handed: OwnedFd = self.listener.try_clone().unwrap().into();
        let child = Command::new("sh")
            .args(["-c", activated, env!("CARGO_BIN_EXE_bhav"), "serve"])
            .arg("--admin-listen=127.0.0.1:0")
            .arg(few_candles())
            .args(scene.flags(scene.state.path()))
            .env_clear()
            .env("BROKERA_API_KEY", "simkeya")
            .env("BROKERA_ACCESS_TOKEN", "simtokena")
            .stdin(Stdio::from(handed))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Running(child.unwrap())
    }
}

/// What became of the requests, in words.
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

fn connect(address: &str, counts: &Counts) -> Option<TcpStream> {
    match TcpStream::connect(address) {
        Ok(stream) => {
            stream.set_read_timeout(Some(ANSWER_MAX)).unwrap();
            stream.set_nodelay(true).unwrap();
            Some(stream)
        }
        Err(error) => {
            counts.add(format!("connection failed: {}", error.kind()));
            None
        }
    }
}

/// Reads one whole answer. `Ok` says whether the server will close; `Err` whether a byte had come.
fn answer(stream: &mut TcpStream) -> Result<(u16, bool), (ErrorKind, bool)> {
    let mut got = Vec::new();
    let mut part = [0; 4096];
    loop {
        let head = got.windows(4).position(|end| end == b"\r\n\r\n");
        if let Some(end) = head {
            let text = String::from_utf8(got[..end].to_vec()).unwrap().to_ascii_lowercase();
            let value =
                |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            let length: usize = value("content-length:").map_or(0, |text| text.parse().unwrap());
            if got.len() >= end + 4 + length {
                let status = text.split(' ').nth(1).unwrap().parse().unwrap();
                return Ok((status, value("connection:") == Some("close")));
            }
        }
        match stream.read(&mut part) {
            Ok(0) => return Err((ErrorKind::UnexpectedEof, !got.is_empty())),
            Ok(count) => got.extend_from_slice(&part[..count]),
            Err(error) => return Err((error.kind(), !got.is_empty())),
        }
    }
}

/// Whether the server has closed an idle connection.
fn is_closed(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let seen = stream.peek(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    !seen.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// One client that keeps its connection until the server says that it closes.
fn keep_alive(address: &str, every: Duration, counts: &Counts, end: &AtomicBool) {
    let ticks = tick(every);
    let mut open: Option<TcpStream> = None;
    while !end.load(Ordering::Relaxed) {
        ticks.recv().unwrap();
        if open.as_ref().is_some_and(is_closed) {
            // As every client's pool does: a connection that ended while idle is not used again.
            counts.add("closed while idle");
            open = None;
        }
        let reused = open.is_some();
        let Some(mut stream) = open.take().or_else(|| connect(address, counts)) else { continue };
        let answered = match stream.write_all(GET) {
            Ok(()) => answer(&mut stream),
            Err(error) => Err((error.kind(), false)),
        };
        match answered {
            Ok((200, closes)) => {
                counts.add(if closes { "kept, the last" } else { "kept" });
                open = (!closes).then_some(stream);
            }
            Ok((status, _)) => counts.add(format!("status {status}")),
            // Closed between two requests without a word, while one was on its way.
            Err((kind, false)) if reused => counts.add(format!("raced the close: {kind}")),
            Err((kind, _)) => counts.add(format!("lost: {kind}")),
        }
    }
}

/// A new connection for each request, sent at their pace however long the answers take.
fn strangers(address: &str, every: Duration, counts: &Counts, end: &AtomicBool) {
    let (asked, waiting) = bounded::<TcpStream>(100_000);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for mut stream in waiting {
                match answer(&mut stream) {
                    Ok((200, _)) => counts.add("new"),
                    Ok((status, _)) => counts.add(format!("status {status}")),
                    Err((kind, _)) => counts.add(format!("lost: {kind}")),
                }
            }
        });
        let ticks = tick(every);
        while !end.load(Ordering::Relaxed) {
            ticks.recv().unwrap();
            let Some(mut stream) = connect(address, counts) else { continue };
            match stream.write_all(GET) {
                Ok(()) => asked.send(stream).unwrap(),
                Err(error) => counts.add(format!("lost: {}", error.kind())),
            }
        }
        drop(asked);
    });
}

/// A process that does not outlive the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Ended already, most times.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Ends the clients, also where the test fails: they would be waited for.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Past the harness, which would swallow it.
fn say(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

fn terminate(running: &mut Running) -> u64 {
    let child = &mut running.0;
    let clock = Clock::system();
    let kill = format!("kill -TERM {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let status = until("the old one's end", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    clock.monotonic_ms()
}

#[test]
fn a_restart_refuses_nobody_and_loses_no_answer() {
    let rate = from_environment("RESTART_REQUESTS_PER_S", REQUESTS_PER_S);
    let restarts = from_environment("RESTARTS", 2);
    let held = Held::new();
    let mut running = held.start();
    let (counts, end) = (Counts::default(), AtomicBool::new(false));
    // Until there is a snapshot, which every later process restores.
    until("data", || {
        let mut stream = connect(&held.address, &counts)?;
        stream.write_all(GET).unwrap();
        answer(&mut stream).ok().filter(|(status, _)| *status == 200)
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
            say(&format!("the old one ended after {took_ms} ms"));
            running = held.start();
            before = served(before);
        }
    });
    terminate(&mut running);
    let counts = counts.0.into_inner().unwrap();
    say(&format!("{rate} requests/s, {restarts} restarts: {counts:?}"));
    let good = ["new", "kept", "kept, the last", "closed while idle"];
    let bad: Vec<_> = counts.iter().filter(|(what, _)| !good.contains(&what.as_str())).collect();
    assert!(bad.is_empty(), "{bad:?} of {counts:?}");
    let last = counts["kept, the last"] + counts.get("closed while idle").unwrap_or(&0);
    assert!(last >= restarts, "{counts:?}");
}
