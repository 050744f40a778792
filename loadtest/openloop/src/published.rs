//! When each state of the snapshot was published, as a client can know it.
//!
//! One connection asks for the snapshot every two milliseconds and sends the tag that it has. The
//! new state was published after the last request that still found the old one was sent: this
//! moment counts as its publication, so a delay measured from it is never too short, and too long
//! by a few milliseconds at most.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::{scan, sys};

/// Pause between two requests.
const PAUSE: Duration = Duration::from_millis(2);

/// Pause before a broken connection is opened anew.
const RECONNECT_PAUSE: Duration = Duration::from_millis(50);

/// Longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// One state of the snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// The id of its event: its `ETag` without the quotes.
    pub id: Vec<u8>,
    /// It was published after this moment, in nanoseconds; `None` of the first one seen.
    pub after_ns: Option<u64>,
}

/// Watches until it is dropped.
#[derive(Debug)]
pub struct Watcher {
    seen: Arc<Mutex<Vec<Publication>>>,
    stop: Arc<AtomicBool>,
}

impl Watcher {
    /// Watches `path` of a server. Times count from `started`.
    pub fn start(target: SocketAddr, path: &str, started: Instant) -> Self {
        let watcher = Self { seen: Arc::default(), stop: Arc::default() };
        let (seen, stop) = (Arc::clone(&watcher.seen), Arc::clone(&watcher.stop));
        let head = format!("GET {path} HTTP/1.1\r\nHost: {target}\r\nUser-Agent: openloop/0.1\r\n");
        thread::spawn(move || {
            sys::tighten_timers();
            let mut tag = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                // A server that restarts: the next state is the first one seen.
                let _ = watch(target, &head, started, &mut tag, &seen, &stop);
                tag.clear();
                thread::sleep(RECONNECT_PAUSE);
            }
        });
        watcher
    }

    /// Every state so far, in their order.
    pub fn seen(&self) -> Vec<Publication> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn watch(
    target: SocketAddr,
    head: &str,
    started: Instant,
    tag: &mut Vec<u8>,
    seen: &Mutex<Vec<Publication>>,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&target, TIMEOUT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let mut last_old_ns = None;
    while !stop.load(Ordering::Relaxed) {
        let sent_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        stream.write_all(head.as_bytes())?;
        stream.write_all(b"If-None-Match: ")?;
        stream.write_all(if tag.is_empty() { b"\"none\"" } else { tag })?;
        stream.write_all(b"\r\n\r\n")?;
        let (status, etag) = answer(&mut stream)?;
        if status == 200 && etag != *tag {
            *tag = etag;
            let id = tag.iter().copied().filter(|byte| *byte != b'"').collect();
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push(Publication { id, after_ns: last_old_ns });
        }
        last_old_ns = Some(sent_ns);
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Status and `ETag` of one answer, which is read to its end.
fn answer(stream: &mut TcpStream) -> io::Result<(u16, Vec<u8>)> {
    let (mut bytes, mut room) = (Vec::new(), [0; 16 * 1024]);
    loop {
        let count = stream.read(&mut room)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&room[..count]);
        let read = |head: &httparse::Response<'_, '_>| {
            let etag = scan::header(head, "etag").unwrap_or_default().to_vec();
            scan::body_bytes(head).map(|body_bytes| (head.code.unwrap_or(0), etag, body_bytes))
        };
        let Some((head_bytes, read)) = scan::head(&bytes, read).map_err(io::Error::other)? else {
            continue;
        };
        let (status, etag, body_bytes) = read.map_err(io::Error::other)?;
        if bytes.len() >= head_bytes + body_bytes {
            return Ok((status, etag));
        }
    }
}
