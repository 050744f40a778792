//! A tiny real HTTP server for the tests of this layer: port 0, one request per connection.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::brokers::BrokerErrorKind;

#[path = "../../tests/contract/replies/documented.rs"]
#[allow(
    dead_code,
    reason = "the content types are for the test of the whole service"
)]
pub(super) mod documented;

/// Longest that the server's side of a test may wait for its peer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A client's request.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        Some(&found.1)
    }
}

/// Serves `respond` while `client` runs. `client` gets the base URL and a function that returns the
/// requests so far.
pub(super) fn serve(
    respond: impl Fn(&Seen, &mut TcpStream) + Send + Sync,
    client: impl FnOnce(&str, &dyn Fn() -> Vec<Seen>),
) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Mutex::new(Vec::new());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while let Ok((mut stream, _)) = listener.accept() {
                if over.load(Ordering::SeqCst) {
                    break;
                }
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                if let Some(request) = read_request(&mut stream) {
                    seen.lock().push(request.clone());
                    respond(&request, &mut stream);
                }
            }
        });
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            client(&format!("http://{address}"), &|| seen.lock().clone());
        }));
        over.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(address));
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Writes a complete answer that closes the connection. `headers` ends in CRLF if not empty.
pub(super) fn answer(stream: &mut TcpStream, status: u16, headers: &str, body: &[u8]) {
    let head = format!(
        "HTTP/1.1 {status} Word\r\n{headers}Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    // A client that has read enough may have closed the connection.
    let _ = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(body));
}

/// Sends nothing until the client closes the connection.
pub(crate) fn linger(stream: &mut TcpStream) {
    let _ = stream.read(&mut [0; 64]);
}

/// Sends a byte every 20 ms until the client hangs up.
pub(super) fn drip(stream: &mut TcpStream) {
    stream
        .set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    while stream.write_all(b" ").is_ok() {
        if let Ok(0) = stream.read(&mut [0; 64]) {
            return;
        }
    }
}

fn read_request(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        bytes.push(byte[0]);
    }
    let head = String::from_utf8(bytes).ok()?;
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let method = first.next()?.to_owned();
    let target = first.next()?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let mut seen = Seen {
        method,
        target,
        headers,
        body: String::new(),
    };
    let length = seen
        .header("content-length")
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    seen.body = String::from_utf8(body).ok()?;
    Some(seen)
}
