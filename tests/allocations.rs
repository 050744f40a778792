//! Shows that answers from memory allocate nothing: the snapshot, its 304, fifty cached quotes,
//! health, and an event of a stream.
//!
//! The HTTP server and the routes run as in the product, over a real socket. The parts around them
//! (feeds, warmers, log) are left out and the clock stands still, because work that is done once a
//! second or once a refresh does allocate: a new `Date`, a new snapshot. Only the cost of requests
//! remains. Once each connection's worker has grown its buffers, no thread but the test's own may
//! call the allocator: the count covers the whole process, not selected threads.

#![allow(clippy::unwrap_used)]
#![allow(unsafe_code)] // An allocator cannot be written without.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bhav::api::{Api, State};
use bhav::app::assemble;
use bhav::base::{Clock, Quote, Source, Symbol, json};
use bhav::cache::{Kept, L1, Limits, Vouched};
use bhav::config::Config;
use bhav::http::settings::HttpSettings;
use bhav::http::{Listener, Preconditions, Prepared, PublishedJson, Server};
use bhav::ops::state_lock::InstanceLock;

#[path = "../src/base/testing.rs"]
mod samples;

/// Calls of the allocator by threads that are not the test's own.
static CALLS: AtomicUsize = AtomicUsize::new(0);
/// Calls that allocate. The others free.
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Constant, without a destructor: reading it allocates nothing itself.
    static IS_CLIENT: Cell<bool> = const { Cell::new(false) };
}

struct Counting;

fn count(of: &[&AtomicUsize]) {
    if !IS_CLIENT.get() {
        of.iter().for_each(|counter| {
            counter.fetch_add(1, Ordering::Relaxed);
        });
    }
}

// SAFETY: every call goes to the system's allocator with its arguments unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(&[&CALLS, &ALLOCATIONS]);
        // SAFETY: the caller upholds the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(&[&CALLS, &ALLOCATIONS]);
        // SAFETY: the caller upholds the same contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(&[&CALLS, &ALLOCATIONS]);
        // SAFETY: the caller upholds the same contract.
        unsafe { System.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(&[&CALLS]);
        // SAFETY: the caller upholds the same contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const NOW: &str = "2026-11-20T11:00:00+05:30";
/// Enough connections for every edge worker to serve some.
const CONNECTIONS: usize = 8;
const WARM_UP: usize = 50;
const COUNTED: usize = 1_000;
/// Times that each kind of request is counted.
const ROUNDS: usize = 3;
const QUOTES: usize = 50;
const QUERY: &[u8] = b"?symbols=";

fn symbols() -> Vec<Symbol> {
    (0..QUOTES)
        .map(|at| Symbol::parse(&format!("NSE:SIM{at:03}")).unwrap())
        .collect()
}

/// The real state with a snapshot published and fifty quotes cached.
fn state(clock: &Clock, state_dir: &Path) -> State {
    let mut config = Config {
        state_dir: state_dir.into(),
        ..Config::default()
    };
    config.http.allowed_origins = vec!["https://app.example".to_owned()];
    let lock = Arc::new(InstanceLock::of(&config.state_dir));
    let state = assemble(&config, &lock, clock).unwrap().state;
    let json = format!(r#"{{"index1_price":24321.88,"sectors":[{}0]}}"#, "1,".repeat(900));
    state.snapshot.publish(json.into_bytes());
    for symbol in symbols() {
        keep(&state.l1, &symbol, "1412.95", 0);
    }
    let ever = Limits {
        period_ms: u64::MAX,
        grace_ms: 0,
    };
    state.l1.freshness().set_limits(Source::BrokerA, ever, ever);
    let health =
        Prepared::new(200, &[("Content-Type", "application/json")], b"{\"status\":\"ok\"}");
    state.health.store(Some(Arc::new(health)));
    state
}

/// Puts a quote of `second` into the cache.
fn keep(l1: &L1, symbol: &Symbol, price: &str, second: i64) {
    let as_of: jiff::Timestamp = NOW.parse().unwrap();
    let quote = Quote {
        previous_close: json::parse_decimal("1389.65"),
        asked: as_of,
        simulated: true,
        ..samples::quote(symbol.as_str(), price, as_of + jiff::SignedDuration::from_secs(second))
    };
    let vouched = Vouched {
        mono_ms: 0,
        calls: 1,
    };
    assert_eq!(l1.insert(quote, vouched, 0), Kept::Taken);
}

/// Reads one answer of known length, and checks its beginning.
fn exchange(client: &mut TcpStream, request: &[u8], answer: &mut [u8], status: &[u8]) {
    client.write_all(request).unwrap();
    client.read_exact(answer).unwrap();
    assert!(answer.starts_with(status), "{}", String::from_utf8_lossy(answer));
}

/// Number of allocator calls for a thousand of `request` over open connections.
fn calls(clients: &mut [TcpStream], request: &str, status: &str) -> usize {
    let (request, status) = (request.as_bytes(), status.as_bytes());
    // All answers are as long as the first.
    clients[0].write_all(request).unwrap();
    let mut first = vec![0; 64 * 1024];
    let mut length = 0;
    while !is_whole(&first[..length]) {
        length += clients[0].read(&mut first[length..]).unwrap();
    }
    if request.windows(QUERY.len()).any(|window| window == QUERY) {
        let body = String::from_utf8_lossy(&first[..length]);
        assert_eq!(body.matches("\"last_price\"").count(), QUOTES, "{body}");
    }
    let mut answer = vec![0; length];
    for at in 0..WARM_UP * CONNECTIONS {
        exchange(&mut clients[at % CONNECTIONS], request, &mut answer, status);
    }
    let before = CALLS.load(Ordering::SeqCst);
    for at in 0..COUNTED {
        exchange(&mut clients[at % CONNECTIONS], request, &mut answer, status);
    }
    CALLS.load(Ordering::SeqCst) - before
}

/// A snapshot whose length does not depend on its number.
fn numbered(number: usize) -> Vec<u8> {
    format!(r#"{{"number":{number:06},"sectors":[{}0]}}"#, "1,".repeat(900)).into_bytes()
}

/// Number of allocations for a thousand events; each change is one event on every stream.
fn calls_of_streams(address: &str, snapshot: &PublishedJson) -> usize {
    snapshot.publish(numbered(0));
    let mut clients: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|_| {
            let mut client = TcpStream::connect(address).unwrap();
            client
                .set_read_timeout(Some(Duration::from_secs(10)))
                .unwrap();
            client
                .write_all(b"GET /api/index/stream HTTP/1.1\r\nHost: a\r\n\r\n")
                .unwrap();
            let mut first = Vec::new();
            while !(first.ends_with(b"]}\n\n\r\n")) {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
                first.push(byte[0]);
            }
            client
        })
        .collect();
    let text =
        numbered(0).len() + "event: snapshot\nid: 0123456789abcdef01234567\ndata: \n\n".len();
    let mut chunk = vec![0; format!("{text:x}\r\n\r\n").len() + text];
    let mut before = 0;
    for number in 1..=(WARM_UP + COUNTED / CONNECTIONS) {
        if number == WARM_UP {
            before = ALLOCATIONS.load(Ordering::SeqCst);
        }
        snapshot.publish(numbered(number));
        for client in &mut clients {
            client.read_exact(&mut chunk).unwrap();
            let shown = String::from_utf8_lossy(&chunk);
            assert!(shown.contains(&format!("\"number\":{number:06},")), "{shown}");
        }
    }
    ALLOCATIONS.load(Ordering::SeqCst) - before
}

/// Number of allocator calls for changes of a quote that `readers` streams show together with the
/// snapshot. Rounds continue the numbering, since prices never go back.
fn calls_of_quotes(
    (address, snapshot, l1): (&str, &PublishedJson, &L1),
    readers: usize,
    rounds: std::ops::Range<usize>,
) -> usize {
    let symbols = symbols();
    let names = symbols
        .iter()
        .map(Symbol::as_str)
        .collect::<Vec<_>>()
        .join(",");
    let request = format!("GET /api/index/stream?symbols={names} HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut clients: Vec<TcpStream> = (0..readers)
        .map(|_| {
            let mut client = TcpStream::connect(address).unwrap();
            client
                .set_read_timeout(Some(Duration::from_secs(10)))
                .unwrap();
            client.write_all(request.as_bytes()).unwrap();
            let mut first = Vec::new();
            while !first.ends_with(b"\"pending\":[]}\n\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
                first.push(byte[0]);
            }
            client
        })
        .collect();
    let mut room = vec![0; 64 * 1024];
    let (start, mut before) = (rounds.start, 0);
    for number in rounds {
        // The first rounds fill pools.
        if number == start + 5 {
            before = CALLS.load(Ordering::SeqCst);
        }
        keep(l1, &symbols[0], &format!("1{number:03}.25"), number as i64);
        snapshot.publish(numbered(10_000 + number));
        let (price, state) =
            (format!("1{number:03}.25"), format!("\"number\":{:06},", 10_000 + number));
        for client in &mut clients {
            let mut length = 0;
            let mut shown = String::new();
            while !(shown.contains(&price) && shown.contains(&state) && shown.ends_with("\n\n\r\n"))
            {
                length += client.read(&mut room[length..]).unwrap();
                shown = String::from_utf8_lossy(&room[..length]).into_owned();
            }
            assert_eq!(shown.matches("\"last_price\"").count(), 1, "{shown}");
        }
    }
    CALLS.load(Ordering::SeqCst) - before
}

fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, _)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    bytes.len() == head.len() + 4 + length.map_or(0, |length| length.parse().unwrap())
}

/// The ETag of the snapshot that is coded with Brotli.
fn tag_of_snapshot(state: &State) -> String {
    let published = state.snapshot.load();
    let br = published
        .as_ref()
        .unwrap()
        .select(Some(b"br"), Preconditions::NONE)
        .unwrap();
    let head = String::from_utf8(br.headers().to_vec()).unwrap();
    head.lines()
        .find_map(|line| line.strip_prefix("ETag: "))
        .unwrap()
        .to_owned()
}

fn connected(address: &str) -> Vec<TcpStream> {
    let connected = (0..CONNECTIONS).map(|_| {
        let client = TcpStream::connect(address).unwrap();
        client
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        client
    });
    connected.collect()
}

/// Requests that are answered from memory, and the beginning of their answers. `tag` is the
/// snapshot's.
fn requests(tag: &str) -> Vec<(&'static str, String, &'static str)> {
    let names = symbols()
        .iter()
        .map(Symbol::to_string)
        .collect::<Vec<_>>()
        .join(",");
    let snapshot = "GET /api/index/snapshot HTTP/1.1\r\nHost: a\r\n";
    let browser = "User-Agent: Mozilla/5.0\r\nAccept: */*\r\nOrigin: https://app.example\r\n";
    vec![
        ("snapshot", format!("{snapshot}\r\n"), "HTTP/1.1 200 "),
        (
            "br",
            format!("{snapshot}{browser}Accept-Encoding: gzip, br\r\n\r\n"),
            "HTTP/1.1 200 ",
        ),
        (
            "304",
            format!("{snapshot}Accept-Encoding: br\r\nIf-None-Match: \"x\", {tag}\r\n\r\n"),
            "HTTP/1.1 304 ",
        ),
        (
            "live-prices",
            format!("GET /api/portfolio/live-prices?symbols={names} HTTP/1.1\r\nHost: a\r\n\r\n"),
            "HTTP/1.1 200 ",
        ),
        (
            "health",
            "GET /api/health HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "HTTP/1.1 200 ",
        ),
    ]
}

#[test]
fn answers_from_memory_allocate_nothing() {
    IS_CLIENT.set(true);
    let clock = Clock::manual(NOW.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let state = state(&clock, dir.path());
    let tag = tag_of_snapshot(&state);
    let (snapshot_events, l1) = (Arc::clone(&state.snapshot), Arc::clone(&state.l1));
    // The clock stands still, so no interval would ever pass.
    let settings = HttpSettings {
        connections_max: 64,
        stream_interval_ms: 0,
        ..HttpSettings::default()
    };
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let server = Server::start(listener, &settings, &clock, Api::new(state)).unwrap();
    let mut clients = connected(server.address());
    for (what, request, status) in requests(&tag) {
        // On a busy machine a thread may warm up in one round. What an answer needs it needs in
        // each.
        let rounds = (0..ROUNDS).map(|_| calls(&mut clients, &request, status));
        let found = rounds.min();
        assert_eq!(found, Some(0), "{what}: calls of the allocator for {COUNTED} requests");
    }
    let found = calls_of_streams(server.address(), &snapshot_events);
    // The last reader of a replaced snapshot frees it, so only allocations count. A walk has a
    // record for all streams together.
    let walks = COUNTED / CONNECTIONS;
    assert!(found <= walks + COUNTED / 100, "{found} allocations for {COUNTED} events");
    let served = (server.address(), &*snapshot_events, &*l1);
    let of_one = calls_of_quotes(served, 1, 1..30);
    let of_many = calls_of_quotes(served, CONNECTIONS, 30..59);
    // The thread that makes an event allocates for it, however many streams read it.
    let (counted, found) = (24 * (CONNECTIONS - 1), of_many.saturating_sub(of_one));
    assert!(found < counted, "{found} calls of the allocator for {counted} further events");
    // Shows that the count works at all: a problem document is made for each request.
    let refused = "GET /nowhere HTTP/1.1\r\nHost: a\r\nX-Request-Id: same\r\n\r\n";
    let found = calls(&mut clients, refused, "HTTP/1.1 404 ");
    assert!(found >= COUNTED, "only {found} calls were seen");
    drop(clients);
    server.drain();
}
