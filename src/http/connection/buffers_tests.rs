//! However a request with a body ends, no buffer set keeps a byte of the body.
//!
//! Each set is inspected when it is given back or dropped, on whichever worker, so the tests see
//! the same memory that the next connection gets.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::base::Clock;
use crate::http::connection::buffers::Buffers;
use crate::http::server::shared::Serve;
use crate::http::settings::HttpSettings;
use crate::http::{Listener, Request, Response, Server};
use crate::rt::{Lane, LaneSpec};

/// Part of every body in this file.
const CANARY: &[u8] = b"c4n4ry-of-the-body";
const PATIENCE: Duration = Duration::from_secs(20);

static GIVEN_BACK: AtomicUsize = AtomicUsize::new(0);
static FOUND: AtomicUsize = AtomicUsize::new(0);

/// Called with each set after it was wiped, before its lengths are reset.
pub(crate) fn inspect(set: &Buffers) {
    GIVEN_BACK.fetch_add(1, Ordering::SeqCst);
    for bytes in [&set.input[..], &set.out, &set.body] {
        if memchr::memmem::find(bytes, CANARY).is_some() {
            FOUND.fetch_add(1, Ordering::SeqCst);
        }
    }
}

struct Careless {
    lane: Lane,
}

impl Serve for Careless {
    fn serve(&self, request: &Request<'_>, response: &mut Response<'_>) {
        match request.path() {
            b"/panic" => panic!("on purpose"),
            b"/echo" => response.body().extend_from_slice(request.body),
            b"/lane" => {
                let ticket = self.lane.submit(10_000, || ()).unwrap();
                ticket.wait().unwrap();
                assert!(request.body.ends_with(CANARY));
            }
            _ => {}
        }
        response.send(200, "text/plain", &[]);
    }
}

fn started() -> Server<Careless> {
    crate::rt::coroutines::configure(2);
    let clock = Clock::system();
    let settings = HttpSettings {
        listen: "127.0.0.1:0".into(),
        head_timeout_ms: 300,
        body_timeout_ms: 300,
        body_bytes_max: 8 * 1024,
        drain_timeout_ms: 10_000,
        ..HttpSettings::default()
    };
    let spec = LaneSpec {
        name: "careless",
        threads: 1,
        queue_max: 4,
    };
    let service = Careless {
        lane: Lane::start(&spec, &clock).unwrap(),
    };
    let listener = Listener::bind(&settings.listen).unwrap();
    Server::start(listener, &settings, &clock, service).unwrap()
}

/// Sends each of `parts` in its own write and returns the first line of the response.
fn sent(server: &Server<Careless>, parts: &[&[u8]], then: Then) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    for part in parts {
        let before = GIVEN_BACK.load(Ordering::SeqCst);
        if stream.write_all(part).is_err() {
            break;
        }
        let clock = Clock::system();
        while GIVEN_BACK.load(Ordering::SeqCst) == before && clock.monotonic_ms() < 20_000 {
            std::thread::yield_now();
        }
    }
    match then {
        Then::Leave => return String::new(),
        Then::Finish => stream.shutdown(Shutdown::Write).unwrap(),
        Then::Wait => {}
    }
    let mut answer = Vec::new();
    // The server may reset the connection of a refused client.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer)
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[derive(Clone, Copy)]
enum Then {
    /// Ends the sending direction, then reads the response.
    Finish,
    /// Keeps the connection open until the server closes it.
    Wait,
    /// Closes the connection.
    Leave,
}

fn post(path: &str, framing: &str) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n").into_bytes()
}

#[test]
fn a_buffer_set_keeps_no_byte_of_a_body_however_its_request_ends() {
    let server = started();
    let body = [&[b'.'; 100][..], CANARY].concat();
    let length = format!("Content-Length: {}", body.len());
    let chunked = "Transfer-Encoding: chunked";
    let chunk = [format!("{:x}\r\n", body.len()).as_bytes(), &body, b"\r\n"].concat();
    let whole = |path: &str| [post(path, &length), body.clone()].concat();
    let get = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let cut = body.len() - 4;
    let mut outcomes = Vec::new();
    let mut try_out = |expected: &str, parts: &[&[u8]], then: Then| {
        let got = sent(&server, parts, then);
        assert!(got.contains(expected), "{expected}: {got}");
        outcomes.push(FOUND.load(Ordering::SeqCst));
    };
    use Then::{Finish, Leave, Wait};
    // Answered at once, echoed, in pieces, chunked, after and before others, parked on a lane.
    try_out("200", &[&whole("/")], Finish);
    try_out("200", &[&whole("/echo")], Finish);
    try_out("200", &[&whole("/lane")], Finish);
    try_out("200", &[&post("/", &length), &body[..cut], &body[cut..]], Finish);
    try_out("200", &[&[&post("/", &length), &body[..cut]].concat(), &body[cut..]], Finish);
    try_out("200", &[&[&post("/", chunked), &chunk[..], b"0\r\n\r\n"].concat()], Finish);
    try_out("200", &[&[&get[..], &whole("/"), get].concat()], Finish);
    // Complete requests that wait for room in the output.
    try_out("200", &[&[get.repeat(200), whole("/")].concat()], Finish);
    // A panic, refusals, a body that was not announced, a slow one, clients that leave.
    try_out("500", &[&whole("/panic")], Finish);
    try_out("413", &[&[&post("/", "Content-Length: 9000"), &body[..]].concat()], Finish);
    try_out("400", &[&[&post("/", chunked), &body[..]].concat()], Finish);
    try_out("400", &[&[&post("/", chunked), &chunk[..], b"zz", &body[..]].concat()], Finish);
    try_out("400", &[&[&post("/", "Content-Length: x"), &body[..]].concat()], Finish);
    try_out("", &[&[&post("/", "X-None: 1"), &body[..]].concat()], Finish);
    try_out("408", &[&[&post("/", "Content-Length: 4000"), &body[..]].concat()], Wait);
    try_out("", &[&[&post("/", "Content-Length: 4000"), &body[..]].concat()], Finish);
    try_out("", &[&[&post("/", "Content-Length: 4000"), &body[..]].concat()], Leave);
    try_out("", &[&post("/", chunked), &chunk, &chunk[..60]], Leave);
    // Read and dropped after a refusal.
    try_out("413", &[&post("/", "Content-Length: 9000"), &body, &body], Finish);
    assert_eq!(server.drain(), 0);
    assert_eq!(outcomes, vec![0; outcomes.len()], "sets that still held a body, so far");
    assert_eq!(FOUND.load(Ordering::SeqCst), 0);
    assert!(GIVEN_BACK.load(Ordering::SeqCst) > outcomes.len());
}

#[test]
fn a_dropped_set_is_wiped() {
    let mut set = Buffers::take(1024);
    set.input[..CANARY.len()].copy_from_slice(CANARY);
    set.arrived(CANARY.len());
    set.holds_body = true;
    // `inspect` counts the set if it still contains the canary.
    drop(set);
    assert_eq!(FOUND.load(Ordering::SeqCst), 0);
}

#[test]
fn a_set_that_held_no_body_is_not_wiped() {
    let mut set = Buffers::take(1024);
    set.input[..3].copy_from_slice(b"GET");
    set.arrived(3);
    set.wipe_body();
    assert_eq!(&set.input[..3], b"GET");
}
