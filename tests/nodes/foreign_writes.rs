//! A stranger on the shared server writes under the nodes' keys: programs of their own, with a
//! database. What he writes is in `src/nodes/valkey/test_server_stranger.rs`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bhav::base::Clock;
use bhav::nodes::valkey::KEPT;
use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use sonic_rs::JsonValueTrait;

use super::programs::{Node, Shared, entry};
use super::stranger::{Act, KeyRow, Stranger, acts};
use crate::support::postgres::{self, Server};
use crate::support::{SNAPSHOT, Signal, say, until};

const EVERY: Duration = Duration::from_millis(100);
/// Of the page: another node leads within some seven seconds.
const LEADS_WITHIN_MS: u64 = 7_000;
/// Longer than a lease and its next try.
const HANGS_MS: u64 = 8_000;

fn rows() -> Vec<KeyRow> {
    KEPT.iter()
        .map(|row| (row.name, row.kept_type.as_str()))
        .collect()
}

/// The beginning of the keys on the server, which a stranger reads there.
fn prefix(stranger: &mut Stranger) -> Option<String> {
    let script: &[u8] = b"return (redis.call('KEYS', 'bhav:*:leader')[1] or '')";
    let found = stranger.send(&[b"EVAL".to_vec(), script.to_vec(), b"0".to_vec()])?;
    let name = String::from_utf8(found).ok()?;
    name.strip_suffix("leader").map(str::to_owned)
}

/// Writes everything that a stranger can write under every key, one act each 100 ms, while it is
/// active.
pub struct Writer {
    active: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
    _stop: Sender<()>,
}

impl Writer {
    pub fn start(socket: &Path) -> Self {
        let (active, written) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (_stop, stopped) = bounded::<()>(0);
        let (path, is_active, count) = (socket.to_owned(), active.clone(), written.clone());
        let mut chance = fastrand::Rng::with_seed(7);
        let run = move || {
            let mut known = None;
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                let act = |known: &mut Option<Vec<Act>>, chance: &mut fastrand::Rng| {
                    let mut stranger = Stranger::connect(&path)?;
                    if known.is_none() {
                        *known = Some(acts(&prefix(&mut stranger)?, &rows()));
                    }
                    let acts = known.as_ref()?;
                    stranger.act(&acts[chance.usize(..acts.len())])
                };
                if is_active.load(Ordering::SeqCst) && act(&mut known, &mut chance).is_some() {
                    count.fetch_add(1, Ordering::SeqCst);
                }
            }
        };
        std::thread::Builder::new().spawn(run).unwrap();
        Self {
            active,
            written,
            _stop,
        }
    }

    pub fn set_active(&self, active: bool) {
        self.active.store(active, Ordering::SeqCst);
    }

    pub fn written(&self) -> u64 {
        self.written.load(Ordering::SeqCst)
    }
}

fn leads(node: &Node) -> bool {
    node.health()["role"] == "leader"
}

/// Waits until this node leads; returns how long that took.
fn await_lead(what: &str, node: &Node, timer: &Clock) -> u64 {
    let begun_ms = timer.monotonic_ms();
    until(what, || leads(node));
    timer.monotonic_ms() - begun_ms
}

/// While the database hangs, prices are fresh on every node, and a write is refused with its time.
fn expect_prices_and_no_writes(nodes: [&Node; 2], auth: &str) {
    for node in nodes {
        until("fresh prices while the database hangs", || {
            node.program.client().get(SNAPSHOT).json()["market"]["stale"] == false
        });
        let body = entry("while the database hangs");
        let client = &mut node.program.client();
        let refused = client
            .send_json("POST", "/api/journal", auth, &body)
            .with_status(503);
        assert!(refused.header("retry-after").is_some(), "{}", refused.head());
    }
}

/// What was found to stop a cluster for good: one write, then the leader is killed, hangs or ends
/// in good order, or the database hangs.
#[test]
fn one_write_under_the_leaders_key_and_whatever_then_fails_a_node_leads_soon() {
    let name = "one_write_under_the_leaders_key_and_whatever_then_fails_a_node_leads_soon";
    if postgres::server().is_none() {
        return;
    }
    // Its own, since it will hang. It ends with the test process.
    let database = Server::start_at(5432, |_| (), &["listen_addresses="]);
    let database: &'static Server = Box::leak(Box::new(database));
    let key = "a key that all the nodes know, as they must";
    let Some(shared) = Shared::with(name, database, bhav::sim::SimSettings::default(), key) else {
        return;
    };
    let (timer, mut told) = (Clock::system(), String::new());
    let mut leader = shared.node("a");
    until("a leader", || leads(&leader));
    let mut follower = shared.node("b");
    let auth = leader.register("nine green parrots");
    let mut stranger = Stranger::connect(&shared.server.socket()).unwrap();
    let key = until("the key", || prefix(&mut stranger)) + "leader";
    let write = |stranger: &mut Stranger, value: &str| {
        let set = [
            b"SET".to_vec(),
            key.clone().into_bytes(),
            value.as_bytes().to_vec(),
        ];
        stranger.send(&set).unwrap();
    };
    let values = ["garbage", "", "0 evil/evil", "999999999 evil/evil"];
    for (at, value) in values.iter().enumerate() {
        until("a follower", || follower.health()["relay"]["state"] == "following");
        write(&mut stranger, value);
        let how = ["killed", "stopped", "ended in good order", "killed"][at];
        match at {
            0 | 3 => leader.program.kill(),
            1 => leader.program.signal(Signal::STOP),
            _ => leader.program.terminate(),
        }
        let took_ms = await_lead(how, &follower, &timer);
        told += &format!("'{value}', {how}: {took_ms} ms\n");
        assert!(took_ms < LEADS_WITHIN_MS, "{told}");
        if at == 1 {
            leader.program.signal(Signal::CONT);
            leader.program.kill();
        }
        (leader, follower) = (follower, shared.node(&format!("n{at}")));
    }
    // PostgreSQL hangs: the leader leads on by his claim.
    until("a follower", || follower.health()["relay"]["state"] == "following");
    let epoch = leader.health()["epoch"].as_u64();
    write(&mut stranger, "garbage");
    database.signal(Signal::STOP);
    let begun_ms = timer.monotonic_ms();
    let mut always = true;
    until("the end of the hang", || {
        always &= leads(&leader);
        timer.monotonic_ms() > begun_ms + HANGS_MS
    });
    expect_prices_and_no_writes([&leader, &follower], &auth);
    database.signal(Signal::CONT);
    assert!(always, "{told}");
    assert_eq!(leader.health()["epoch"].as_u64(), epoch, "{told}");
    let foreign = leader.health()["shared_server"]["foreign"][0]
        .as_str()
        .map(str::to_owned);
    assert_eq!(foreign.as_deref(), Some("leader"), "{}", leader.health());
    if std::env::var("BHAV_CHAOS_S").is_ok() {
        say(&told);
    }
}
