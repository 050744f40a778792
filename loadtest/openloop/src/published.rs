//! When each state of the snapshot was published, as a client can know it.
//!
//! One connection asks for the snapshot every two milliseconds and sends the tag that it has. The
//! new state was published after the last request that still found the old one was sent: this
//! moment counts as its publication, so a delay measured from it is never too short, and too long
//! by a few milliseconds at most.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ureq::Agent;
use ureq::http::header::{ETAG, IF_NONE_MATCH};

use crate::sys;

/// Pause between two requests.
const PAUSE: Duration = Duration::from_millis(2);

/// Pause after a request that failed.
const FAILED_PAUSE: Duration = Duration::from_millis(50);

/// Longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A tag that no state has.
const NO_TAG: &str = "\"none\"";

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
        let watcher = Self {
            seen: Arc::default(),
            stop: Arc::default(),
        };
        let (seen, stop) = (Arc::clone(&watcher.seen), Arc::clone(&watcher.stop));
        let config = Agent::config_builder().timeout_global(Some(TIMEOUT));
        let agent: Agent = config.http_status_as_error(false).build().into();
        let url = format!("http://{target}{path}");
        thread::spawn(move || {
            sys::tighten_timers();
            let (mut tag, mut last_old_ns) = (NO_TAG.to_owned(), None);
            while !stop.load(Ordering::Relaxed) {
                let sent_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
                let Ok((status, etag)) = ask(&agent, &url, &tag) else {
                    // A server that restarts: the next state is the first one seen.
                    (tag, last_old_ns) = (NO_TAG.to_owned(), None);
                    thread::sleep(FAILED_PAUSE);
                    continue;
                };
                if status == 200 && etag != tag {
                    let id = etag.replace('"', "").into_bytes();
                    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                    seen.push(Publication {
                        id,
                        after_ns: last_old_ns,
                    });
                    tag = etag;
                }
                last_old_ns = Some(sent_ns);
                thread::sleep(PAUSE);
            }
        });
        watcher
    }

    /// Every state so far, in their order.
    pub fn seen(&self) -> Vec<Publication> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Status and tag of one answer, which is read to its end.
fn ask(agent: &Agent, url: &str, tag: &str) -> Result<(u16, String), ureq::Error> {
    let mut answer = agent.get(url).header(IF_NONE_MATCH, tag).call()?;
    answer.body_mut().read_to_vec()?;
    let etag = answer
        .headers()
        .get(ETAG)
        .and_then(|etag| etag.to_str().ok());
    Ok((answer.status().as_u16(), etag.unwrap_or_default().to_owned()))
}
