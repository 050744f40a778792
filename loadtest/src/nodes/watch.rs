//! Clients of each node: one reads prices, one asks for its health, one writes into a journal.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use openloop::request::live_prices_path;
use serde_json::json;

use super::node::Living;
use super::seen::{Seen, What, status};
use super::world::{World, elapsed_ms};
use crate::http::{Answer, Client};
use crate::snapshot;

/// Between two requests of the same client.
const PRICES_EVERY: Duration = Duration::from_millis(100);
const HEALTH_EVERY: Duration = Duration::from_millis(250);
const WRITES_EVERY: Duration = Duration::from_millis(500);

/// No answer after this long counts as none: far more than market routes take.
const MARKET_DEADLINE: Duration = Duration::from_secs(2);
/// Longer than the service's own deadline of a write.
const WRITE_DEADLINE: Duration = Duration::from_secs(10);

/// Whose prices are read beside the snapshot.
const SHARES: [&str; 4] = ["NSE:INFY", "NSE:SBIN", "NSE:TCS", "BSE:RELIANCE"];

/// Running clients.
pub struct Watch {
    stop: Arc<AtomicBool>,
    kept: Arc<Kept>,
    threads: Vec<JoinHandle<()>>,
}

/// What they remember.
#[derive(Default)]
pub struct Kept {
    seen: Mutex<Vec<Seen>>,
    /// Texts of entries whose writing was acknowledged.
    acknowledged: Mutex<Vec<String>>,
    writes: AtomicU64,
    /// Who was last seen to lead.
    leader: AtomicUsize,
}

/// A client of one node.
struct Reader {
    node: usize,
    root: String,
    living: Arc<Living>,
    began: Instant,
    client: Client,
    kept: Arc<Kept>,
}

impl Watch {
    /// Three clients of each node, who write as the user of `token`.
    pub fn start(world: &World, token: &str) -> Self {
        let (stop, kept) = (Arc::new(AtomicBool::new(false)), Arc::new(Kept::default()));
        let mut watch = Self { stop, kept, threads: Vec::new() };
        for (node, of) in world.nodes.iter().enumerate() {
            let reader = |deadline| Reader {
                node,
                root: format!("http://127.0.0.1:{}", of.port),
                living: Arc::clone(&of.living),
                began: world.began,
                client: Client::unpooled(deadline),
                kept: Arc::clone(&watch.kept),
            };
            let (market, health) = (reader(MARKET_DEADLINE), reader(MARKET_DEADLINE));
            let (writer, token) = (reader(WRITE_DEADLINE), format!("Bearer {token}"));
            let stop = || Arc::clone(&watch.stop);
            let threads = [
                every(PRICES_EVERY, stop(), move || market.read_market()),
                every(HEALTH_EVERY, stop(), move || health.read_health()),
                every(WRITES_EVERY, stop(), move || writer.write(&token)),
            ];
            watch.threads.extend(threads);
        }
        watch
    }

    /// Who was last seen to lead.
    pub fn leader(&self) -> usize {
        self.kept.leader.load(Ordering::SeqCst)
    }

    /// What was seen so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.kept.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the clients: everything they saw, and the texts of all acknowledged entries.
    pub fn end(mut self) -> (Vec<Seen>, Vec<String>) {
        self.stop.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let take = |texts: &Mutex<Vec<String>>| {
            std::mem::take(&mut *texts.lock().unwrap_or_else(PoisonError::into_inner))
        };
        (self.seen(), take(&self.kept.acknowledged))
    }
}

fn every(
    pause: Duration,
    stop: Arc<AtomicBool>,
    step: impl Fn() + Send + 'static,
) -> JoinHandle<()> {
    thread::spawn(move || {
        while !stop.load(Ordering::SeqCst) {
            let due = Instant::now() + pause;
            step();
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    })
}

impl Reader {
    fn read_market(&self) {
        self.see(snapshot::PATH, &[], |answer| Some(What::snapshot(answer)));
        self.see(&live_prices_path(SHARES.into_iter()), &[], |answer| Some(What::prices(answer)));
    }

    fn read_health(&self) {
        self.see("/api/health", &[], |answer| {
            let what = What::health(answer);
            if let Some(What::Health { leads: true, .. }) = what {
                self.kept.leader.store(self.node, Ordering::SeqCst);
            }
            what
        });
    }

    fn write(&self, token: &str) {
        let number = self.kept.writes.fetch_add(1, Ordering::SeqCst);
        let text = format!("{} of node {}", number, self.node);
        let entry = json!({
            "traded_on": "2026-11-20", "symbol": "NSE:INFY", "side": "buy", "quantity": 10,
            "price": 1764.90, "notes": text,
        });
        let headers = [("Authorization", token)];
        self.noted(|| {
            let url = format!("{}/api/journal", self.root);
            let answer = self.client.send("POST", &url, &headers, Some(&entry)).ok();
            let status = status(answer.as_ref());
            if status == 201 {
                let mut all = self.kept.acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
                all.push(text.clone());
            }
            Some(What::Write { status })
        });
        let read = |answer: Option<&Answer>| Some(What::Read { status: status(answer) });
        self.see("/api/journal?limit=1", &headers, read);
    }

    fn see(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        what: impl Fn(Option<&Answer>) -> Option<What>,
    ) {
        self.noted(|| {
            let answer = self.client.send("GET", &format!("{}{path}", self.root), headers, None);
            what(answer.ok().as_ref())
        });
    }

    /// Notes what `ask` saw, and whether the node could have answered all the while.
    fn noted(&self, ask: impl FnOnce() -> Option<What>) {
        let (before, sent_ms) = (self.living.now(), elapsed_ms(self.began));
        let start = self.living.start();
        let Some(what) = ask() else { return };
        let (after, got_ms) = (self.living.now(), elapsed_ms(self.began));
        // An answer may be from either process.
        if start != self.living.start() {
            return;
        }
        let lived = before.is_some() && before == after;
        let seen = Seen { node: self.node, start, lived, sent_ms, got_ms, what };
        self.kept.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    }
}
