//! Clients of each node while faults occur: one reads prices, one reads health, one writes to a
//! journal. They check every answer at once. Each runs on its own thread until the test ends.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::Scope;
use std::time::Duration;

use bhav::base::Clock;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use parking_lot::Mutex;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use super::programs::entry;
use crate::contract::openapi::expect_listed;
use crate::support::{Answer, Client, PRICES, SNAPSHOT};

/// Pauses between two requests of a client.
const PRICES_EVERY: Duration = Duration::from_millis(100);
const HEALTH_EVERY: Duration = Duration::from_millis(250);
const WRITES_EVERY: Duration = Duration::from_millis(500);
/// Deadlines: far above the time of market routes, and above the service's own deadline of a write.
const MARKET_MS: u64 = 2_000;
const WRITE_MS: u64 = 10_000;
/// Maximum delay of health, which is published once a second.
const HEALTH_LATE_MS: u64 = 2_000;
/// After a pause this long of the test itself, a node's pause is not a fault: the machine is too
/// busy.
const PAUSE_MS: u64 = 500;
const SHARES: &str = "NSE:INFY,NSE:SBIN,NSE:TCS,BSE:RELIANCE";

/// The state of a node's process.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Life {
    /// Number of its last start.
    start: u32,
    changes: u32,
    runs: bool,
}

#[derive(Default)]
struct Known {
    lives: BTreeMap<usize, Life>,
    /// The leader of each epoch.
    leaders: BTreeMap<u64, usize>,
    /// Nodes that report leading in an epoch that is over, with that epoch and since when.
    outlived: BTreeMap<usize, (Life, u64, u64)>,
    acknowledged: BTreeSet<String>,
    counts: BTreeMap<&'static str, u64>,
    /// Nodes whose snapshot is stale, with the time since which it is.
    stale_since_ms: BTreeMap<usize, u64>,
    faults: Vec<String>,
    stepped_ms: u64,
    busy_until_ms: u64,
}

/// A client's view of a node that ran during the whole request.
struct Seen {
    answer: Option<Answer>,
    life: Life,
    sent_ms: u64,
}

/// The last prices that a client saw.
#[derive(Default)]
struct Last {
    start: u32,
    served: BTreeSet<&'static str>,
    as_of: BTreeMap<String, String>,
}

/// All clients, and their observations.
pub struct Clients {
    addresses: Vec<String>,
    clock: Clock,
    known: Mutex<Known>,
}

impl Clients {
    /// Clients of the nodes at these addresses, none of which has been started yet.
    pub fn of(addresses: Vec<String>) -> Self {
        Self {
            addresses,
            clock: Clock::system(),
            known: Mutex::default(),
        }
    }

    /// Records that the node was started again.
    pub fn started(&self, node: usize) {
        self.known.lock().lives.entry(node).or_default().start += 1;
        self.set_running(node, true);
    }

    /// Records whether the node can answer from now on.
    pub fn set_running(&self, node: usize, runs: bool) {
        let mut known = self.known.lock();
        let life = known.lives.entry(node).or_default();
        *life = Life {
            changes: life.changes + 1,
            runs,
            ..*life
        };
    }

    /// Whether the node can answer.
    pub fn runs(&self, node: usize) -> bool {
        self.known
            .lock()
            .lives
            .get(&node)
            .is_some_and(|life| life.runs)
    }

    /// The leader of the highest epoch seen, and that epoch.
    pub fn leader(&self) -> Option<(usize, u64)> {
        self.known
            .lock()
            .leaders
            .last_key_value()
            .map(|(epoch, node)| (*node, *epoch))
    }

    /// Must be called often. A pause between two calls shows that the machine is busy.
    pub fn step(&self) {
        let (now_ms, mut known) = (self.clock.monotonic_ms(), self.known.lock());
        if now_ms > known.stepped_ms + PAUSE_MS {
            known.busy_until_ms = now_ms + MARKET_MS;
        }
        known.stepped_ms = now_ms;
    }

    /// The counts, the faults, and the notes of all acknowledged entries.
    pub fn end(self) -> (BTreeMap<&'static str, u64>, Vec<String>, BTreeSet<String>) {
        let known = self.known.into_inner();
        (known.counts, known.faults, known.acknowledged)
    }

    /// Starts three clients of each node, which run until `stop` has no sender any more.
    pub fn watch<'a>(&'a self, scope: &'a Scope<'a, '_>, auth: &'a str, stop: &Receiver<()>) {
        let every = |pause: Duration, mut ask: Box<dyn FnMut() + Send + 'a>| {
            let stop = stop.clone();
            scope.spawn(move || {
                while stop.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                    ask();
                }
            });
        };
        for node in 0..self.addresses.len() {
            let (mut last, mut number) = (Last::default(), 0);
            every(PRICES_EVERY, Box::new(move || self.read_prices(node, &mut last)));
            every(HEALTH_EVERY, Box::new(move || self.read_health(node)));
            let write = move || {
                number += 1;
                self.write(node, auth, &format!("{number} of node {node}"));
            };
            every(WRITES_EVERY, Box::new(write));
        }
    }

    fn read_prices(&self, node: usize, last: &mut Last) {
        for target in [SNAPSHOT.to_owned(), format!("{PRICES}{SHARES}")] {
            let Some(seen) = self.ask(node, MARKET_MS, "GET", &target, "", "") else {
                continue;
            };
            if last.start != seen.life.start {
                *last = Last {
                    start: seen.life.start,
                    ..Last::default()
                };
            }
            let route = if target == SNAPSHOT {
                "snapshot"
            } else {
                "live-prices"
            };
            let mut known = self.known.lock();
            *known.counts.entry("answers of market routes").or_default() += 1;
            let Some(answer) = seen.answer.filter(|answer| answer.status == 200) else {
                if last.served.contains(route) && known.busy_until_ms < self.clock.monotonic_ms() {
                    let at_ms = seen.sent_ms;
                    known
                        .faults
                        .push(format!("{route} of node {node} at {at_ms} ms: no 200"));
                }
                continue;
            };
            last.served.insert(route);
            if target == SNAPSHOT {
                let stale = answer.json()["market"]["stale"] == true;
                let what = if stale {
                    "stale snapshots"
                } else {
                    "fresh snapshots"
                };
                *known.counts.entry(what).or_default() += 1;
                let since_ms = known.stale_since_ms.remove(&node).unwrap_or(seen.sent_ms);
                if stale {
                    known.stale_since_ms.insert(node, since_ms);
                    let longest_ms = known.counts.entry("longest stale, ms").or_default();
                    *longest_ms = (*longest_ms).max(seen.sent_ms - since_ms);
                }
            }
            for (what, as_of) in times(&answer.json()) {
                let before = last
                    .as_of
                    .insert(what.clone(), as_of.clone())
                    .unwrap_or_default();
                if as_of < before {
                    let fault = format!("{what} of node {node}: {as_of} after {before}");
                    known.faults.push(fault);
                }
            }
        }
    }

    fn read_health(&self, node: usize) {
        let Some(seen) = self.ask(node, MARKET_MS, "GET", "/api/health", "", "") else {
            return;
        };
        let Some(health) = seen.answer.map(|answer| answer.json()) else {
            return;
        };
        let mut known = self.known.lock();
        let epoch = health["epoch"]
            .as_u64()
            .filter(|_| health["role"] == "leader");
        let Some(epoch) = epoch else {
            known.outlived.remove(&node);
            return;
        };
        let first = *known.leaders.entry(epoch).or_insert(node);
        if first != node {
            known
                .faults
                .push(format!("nodes {first} and {node} lead in epoch {epoch}"));
        }
        let highest = *known.leaders.last_key_value().unwrap().0;
        let now = (seen.life, epoch, seen.sent_ms);
        let (life, of, since_ms) = *known.outlived.entry(node).or_insert(now);
        if epoch == highest {
            known.outlived.remove(&node);
        } else if (life, of) != (seen.life, epoch) {
            // A node that was stopped shows its old state for a moment.
            known.outlived.insert(node, now);
        } else if seen.sent_ms > since_ms + HEALTH_LATE_MS {
            let others = format!("and another in {highest}");
            known
                .faults
                .push(format!("node {node} leads on in epoch {epoch}, {others}"));
        }
    }

    fn write(&self, node: usize, auth: &str, notes: &str) {
        let written = self.send(node, WRITE_MS, "POST", "/api/journal", auth, &entry(notes));
        let mut known = self.known.lock();
        let what = match written.map_or(0, |answer| answer.status) {
            201 => {
                known.acknowledged.insert(notes.to_owned());
                "writes acknowledged"
            }
            0 => "writes without an answer",
            _ => "writes refused",
        };
        *known.counts.entry(what).or_default() += 1;
    }

    /// `None` if the node was not running during the whole request.
    fn ask(
        &self,
        node: usize,
        deadline_ms: u64,
        method: &str,
        target: &str,
        auth: &str,
        body: &str,
    ) -> Option<Seen> {
        let life = || {
            self.known
                .lock()
                .lives
                .get(&node)
                .copied()
                .filter(|life| life.runs)
        };
        let (before, sent_ms) = (life()?, self.clock.monotonic_ms());
        let answer = self.send(node, deadline_ms, method, target, auth, body);
        let in_time = self.clock.monotonic_ms() <= sent_ms + deadline_ms;
        let answer = answer.filter(|_| in_time);
        (life() == Some(before)).then_some(Seen {
            answer,
            life: before,
            sent_ms,
        })
    }

    /// Sends one request on a new connection. `None` if the node does not answer.
    pub fn send(
        &self,
        node: usize,
        deadline_ms: u64,
        method: &str,
        target: &str,
        auth: &str,
        body: &str,
    ) -> Option<Answer> {
        let address = &self.addresses[node];
        let mut client = Client::unconnected(address).ok()?;
        let deadline = Some(Duration::from_millis(deadline_ms));
        client.socket.set_read_timeout(deadline).ok()?;
        client.socket.set_write_timeout(deadline).ok()?;
        client.knock(address).ok()?;
        let length = body.len();
        let text = format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n{auth}\r\n{body}"
        );
        client.try_write(text.as_bytes()).ok()?;
        let answer = client.try_answer().ok()?;
        expect_listed(method, target, answer.status, &answer.body);
        Some(answer)
    }
}

/// The times of the prices in a snapshot or in an answer with quotes.
fn times(document: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match document
        .get("quotes")
        .and_then(|quotes| quotes.as_array().cloned())
    {
        None => vec![("snapshot".to_owned(), text(&document["market"]["as_of_ist"]))],
        Some(quotes) => quotes
            .iter()
            .map(|quote| (text(&quote["symbol"]), text(&quote["as_of"])))
            .collect(),
    }
}
