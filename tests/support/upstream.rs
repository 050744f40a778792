//! A broker with the answers of a test: a real HTTP server on a port of its own, one request a
//! connection, stopped when dropped.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest wait for its peer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A client's request.
pub struct Asked {
    pub target: String,
    /// Request line and headers.
    pub head: String,
    pub body: String,
}

/// An answer.
pub struct Said {
    pub status: u16,
    pub content_type: String,
    pub body: String,
    /// The target of a redirect.
    pub location: Option<String>,
}

impl Said {
    /// A success with this JSON.
    pub fn json(body: impl Into<String>) -> Self {
        let content_type = "application/json".into();
        Self {
            status: 200,
            content_type,
            body: body.into(),
            location: None,
        }
    }
}

/// A running broker.
pub struct Upstream {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Upstream {
    pub fn start(say: impl Fn(&Asked) -> Said + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let thread = std::thread::Builder::new().spawn(move || {
            std::thread::scope(|scope| {
                let say = &say;
                while let Ok((stream, _)) = listener.accept() {
                    if ended.load(Ordering::SeqCst) {
                        break;
                    }
                    scope.spawn(move || converse(stream, say));
                }
            });
        });
        Self {
            address,
            over,
            thread: Some(thread.unwrap()),
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Serves one connection. A client that has seen enough may hang up at any point.
fn converse(stream: TcpStream, say: &(impl Fn(&Asked) -> Said + Sync)) -> Option<()> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    let target = head.split(' ').nth(1)?.to_owned();
    let asked = Asked {
        target,
        head,
        body: String::from_utf8(body).ok()?,
    };
    let Said {
        status,
        content_type,
        body,
        location,
    } = say(&asked);
    let length = body.len();
    let location = location
        .map(|to| format!("Location: {to}\r\n"))
        .unwrap_or_default();
    let answer = format!(
        "HTTP/1.1 {status} Word\r\nContent-Type: {content_type}\r\nConnection: close\r\n\
         {location}Content-Length: {length}\r\n\r\n{body}"
    );
    stream.get_mut().write_all(answer.as_bytes()).ok()
}
