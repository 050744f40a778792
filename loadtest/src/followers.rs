//! Snapshots from a follower beside a node that is alone, also while the database answers late.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::figures::Figures;
use crate::generator::slice;
use crate::harness::{Effort, Harness};
use crate::http;
use crate::servers::{More, Server, State};
use crate::stores::{self, Postgres, SIGNING_KEY, SOCKET};
use crate::{snapshot, wait};

/// How late the database is.
const LATE_MS: u64 = 2_000;
/// Until what the database was asked before it became late, or well again, has ended.
const SETTLES: Duration = Duration::from_secs(5);
const START_DEADLINE: Duration = Duration::from_secs(90);

/// In the lines, in the order of a round; the last is the follower while the database is late.
pub const WHO: [&str; 4] = [
    "alone",
    "leader",
    "follower",
    "follower, PostgreSQL answers after two seconds",
];

/// Measures each in turn, in every round.
pub fn measure(harness: &Harness, effort: &Effort) -> Result<Figures> {
    let postgres = Postgres::start("followers", false)?;
    let (_valkey, cache) = stores::valkey(&postgres.folder)?;
    let late_folder = postgres.folder.join("late");
    fs::create_dir(&late_folder).context("make a folder for a socket")?;
    let late_ms = delayed(&late_folder.join(SOCKET), &postgres.folder.join(SOCKET))?;
    let alone = harness.start_bhav("alone", State::Empty, &[], More::default())?;
    let store = stores::url(&late_folder);
    let node = |name: &str, more: More| {
        let settings = [
            ("BHAV_NODE", name),
            ("BHAV_STORE_URL", &store),
            ("BHAV_CACHE_URL", &cache),
            ("JWT_SECRET", SIGNING_KEY),
        ];
        harness.start_bhav(name, State::Empty, &settings, more)
    };
    let a = node("a", More::default())?;
    let b = node(
        "b",
        More {
            simulator: Some(Rc::clone(a.simulator()?)),
            ..More::default()
        },
    )?;
    let rest = wait::until(START_DEADLINE, || Ok(leader_first(&a, &b)))?;
    let [leader, follower] = rest.context("the nodes never came to rest")?;
    let arguments = [
        "--path",
        snapshot::PATH,
        "--connections",
        "64",
        "--rate",
        "5000",
    ];
    let arguments = arguments.map(str::to_owned);
    let mut figures = Figures::default();
    for _ in 0..effort.rounds {
        for (who, server) in WHO.into_iter().zip([&alone, leader, follower, follower]) {
            let is_late = who == WHO[3];
            if is_late {
                late_ms.store(LATE_MS, Ordering::Relaxed);
                thread::sleep(SETTLES);
            }
            let slice = slice(&harness.programs, server, &arguments, effort.slice_ms)?;
            figures.push((who, ""), slice);
            if is_late {
                late_ms.store(0, Ordering::Relaxed);
                thread::sleep(SETTLES);
            }
        }
    }
    let still_leads = state_of(leader).is_some_and(|state| state == "leader");
    ensure!(still_leads, "another node has come to lead meanwhile");
    Ok(figures)
}

/// The two in their order, if one leads and the other follows it with fresh prices.
fn leader_first<'a>(a: &'a Server, b: &'a Server) -> Option<[&'a Server; 2]> {
    match [state_of(a)?.as_str(), state_of(b)?.as_str()] {
        ["leader", "follower"] => Some([a, b]),
        ["follower", "leader"] => Some([b, a]),
        _ => None,
    }
}

/// The role of a node that serves fresh prices, as it says itself.
fn state_of(node: &Server) -> Option<String> {
    let json = |path: &str| {
        http::get(&node.url(path), &[])
            .ok()?
            .expect(200)
            .ok()?
            .json()
            .ok()
    };
    let market = json(snapshot::PATH)?["market"].take();
    let is_fresh = market["stale"] == false && market["source"] == "broker_a";
    json("/api/health")?["role"]
        .as_str()
        .filter(|_| is_fresh)
        .map(str::to_owned)
}

/// Listens at `path` for the server at `server`, and holds up each of its answers for so many
/// milliseconds as the number says that is returned.
fn delayed(path: &Path, server: &Path) -> Result<Arc<AtomicU64>> {
    let listener = UnixListener::bind(path).context("listen")?;
    let (late_ms, never) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (server, late) = (server.to_owned(), Arc::clone(&late_ms));
    thread::spawn(move || {
        for node in listener.incoming().map_while(Result::ok) {
            // What cannot be passed on ends.
            let Ok(server) = UnixStream::connect(&server) else {
                continue;
            };
            let (Ok(node_end), Ok(server_end)) = (node.try_clone(), server.try_clone()) else {
                continue;
            };
            let (never, late) = (Arc::clone(&never), Arc::clone(&late));
            thread::spawn(move || pass(&node, &server, &never));
            thread::spawn(move || pass(&server_end, &node_end, &late));
        }
    });
    Ok(late_ms)
}

fn pass(mut from: &UnixStream, mut to: &UnixStream, late_ms: &AtomicU64) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count) = from.read(&mut buffer) {
        thread::sleep(Duration::from_millis(late_ms.load(Ordering::Relaxed)));
        if count == 0 || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // The end of one end is that of the other.
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
