//! Minutes of random faults: nodes that are killed, stopped and restarted, servers that are killed
//! and stopped, ways that are cut and mute. Repeated with the same seed.

use std::fmt::Write;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::judge::{self, LOST, UNEQUAL};
use super::link::{Link, Mode};
use super::watch::Watch;
use super::world::{Plan, World};
use crate::error::Error;
use crate::harness::Harness;
use crate::http::Client;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// How long faults come, ordinarily and quickly, in seconds.
const LASTS_S: [u64; 2] = [600, 60];
/// Between two new faults, in milliseconds.
const FAULT_EVERY_MS: (u64, u64) = (300, 5_000);
/// How long a fault lasts, in milliseconds: shorter and longer than a lease.
const FAULT_LASTS_MS: (u64, u64) = (200, 12_000);
/// Entries of a page of the journal.
const PAGE: usize = 200;
/// What is compared at rest: so often, with this long between two looks, more than the relay takes.
const LOOKS: usize = 100;
const LOOK_APART: Duration = Duration::from_millis(400);

/// What can be wrong at one place at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Kill(usize),
    Freeze(usize),
    Restart(usize),
    Postgres(usize, Mode),
    Valkey(usize, Mode),
    KillValkey,
    FreezePostgres,
    KillPostgres,
}

impl Fault {
    /// What it occupies: a node's process, one of its ways, a server.
    fn place(self) -> (usize, usize) {
        match self {
            Self::Kill(node) | Self::Freeze(node) | Self::Restart(node) => (0, node),
            Self::Postgres(node, _) => (1, node),
            Self::Valkey(node, _) => (2, node),
            Self::KillValkey => (3, 0),
            Self::FreezePostgres | Self::KillPostgres => (4, 0),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Kill(_) => "kill -9 of a node",
            Self::Freeze(_) => "SIGSTOP of a node",
            Self::Restart(_) => "clean restart of a node",
            Self::Postgres(_, Mode::Mute) => "mute way to PostgreSQL",
            Self::Postgres(..) => "cut way to PostgreSQL",
            Self::Valkey(_, Mode::Mute) => "mute way to Valkey",
            Self::Valkey(..) => "cut way to Valkey",
            Self::KillValkey => "kill -9 of Valkey, which starts empty",
            Self::FreezePostgres => "SIGSTOP of PostgreSQL",
            Self::KillPostgres => "kill -9 of PostgreSQL",
        }
    }
}

/// SplitMix64: the same seed gives the same faults.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn between(&mut self, (low, high): (u64, u64)) -> u64 {
        low + self.below(high - low)
    }
}

/// Plays faults, and judges what clients saw meanwhile.
pub fn measure(harness: &Harness) -> Result<String, Error> {
    let lasts_s = harness.seconds.unwrap_or(LASTS_S[usize::from(harness.is_quick)]);
    let seed = harness.seed.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |since| since.as_secs())
    });
    eprintln!("  three nodes, {lasts_s} s, seed {seed}");
    let mut world = World::start(harness, &NAMES, Plan::default())?;
    let token = world.token.clone();
    let watch = Watch::start(&world, &token);
    let played = play(&mut world, &watch, seed, Duration::from_secs(lasts_s))?;
    world.await_rest()?;
    let (compared, unequal) = compare(&world)?;
    let (seen, acknowledged) = watch.end();
    let mut verdict = judge::judge(seen, &world.calls.all());
    for node in 0..world.nodes.len() {
        let kept = journal(&world, node, &token)?;
        for text in acknowledged.iter().filter(|text| !kept.contains(*text)) {
            verdict.fault(LOST, format!("entry {text}, read at node {node}"));
        }
    }
    verdict.count("comparisons of all nodes' snapshots at rest", compared as u64);
    for what in unequal {
        verdict.fault(UNEQUAL, what);
    }
    let row = world.postgres.query("SELECT epoch FROM leases WHERE role = 'feed'")?;
    let stats = world.simulator.stats()?;
    Ok(head(lasts_s, seed, &played, &row, &stats) + &verdict.render())
}

fn head(lasts_s: u64, seed: u64, played: &[Fault], row: &str, stats: &Value) -> String {
    let mut out = format!(
        "- three nodes, {lasts_s} s, {} faults, seed {seed} (`--seed {seed}` repeats them); the \
         broker refuses more than one call within a second\n",
        played.len()
    );
    let mut names: Vec<&str> = played.iter().map(|fault| fault.name()).collect();
    names.sort_unstable();
    for same in names.chunk_by(|one, other| one == other) {
        let _ = writeln!(out, "  - {} × {}", same.len(), same[0]);
    }
    let _ = writeln!(
        out,
        "- epoch in the database at the end: {row}; most calls for quotes within one second: {}; \
         refused by the simulator: {}",
        stats["max_quote_calls_in_1s"], stats["rejected"]
    );
    out
}

/// Begins faults and ends each in its time; all that were begun.
fn play(world: &mut World, watch: &Watch, seed: u64, lasts: Duration) -> Result<Vec<Fault>, Error> {
    let mut chance = Chance(seed);
    let began = Instant::now();
    let (mut played, mut under_way): (Vec<Fault>, Vec<(Instant, Fault)>) = Default::default();
    let mut next = began;
    while began.elapsed() < lasts {
        let now = Instant::now();
        while let Some(over) = under_way.iter().position(|(until, _)| *until <= now) {
            let (_, fault) = under_way.swap_remove(over);
            end(world, fault)?;
        }
        if let Some(node) = world.nodes.iter_mut().position(super::node::Node::has_ended) {
            let stops = |fault: &Fault| *fault == Fault::Restart(node);
            if !under_way.iter().any(|(_, fault)| stops(fault)) {
                return Err(Error::Invalid(format!("node {node} ended by itself")));
            }
        }
        if next <= now {
            let fault = draw(&mut chance, watch.leader());
            let lasts = Duration::from_millis(chance.between(FAULT_LASTS_MS));
            next = now + Duration::from_millis(chance.between(FAULT_EVERY_MS));
            if !under_way.iter().any(|(_, other)| other.place() == fault.place()) {
                eprintln!("  {:6} ms: {fault:?} for {} ms", world.elapsed_ms(), lasts.as_millis());
                begin(world, fault);
                under_way.push((now + lasts, fault));
                played.push(fault);
            }
        }
        thread::sleep(Duration::from_millis(20));
    }
    under_way.into_iter().try_for_each(|(_, fault)| end(world, fault))?;
    Ok(played)
}

/// Half of those of nodes are the leader's.
fn draw(chance: &mut Chance, leader: usize) -> Fault {
    let any = chance.below(NAMES.len() as u64) as usize;
    let prefers_leader = chance.below(2) == 0;
    let node = if prefers_leader { leader } else { any };
    let mode = if chance.below(2) == 0 { Mode::Cut } else { Mode::Mute };
    match chance.below(20) {
        0..=3 => Fault::Kill(node),
        4..=7 => Fault::Freeze(node),
        8..=9 => Fault::Restart(node),
        10..=12 => Fault::Postgres(node, mode),
        13..=15 => Fault::Valkey(node, mode),
        16..=17 => Fault::KillValkey,
        18 => Fault::FreezePostgres,
        _ => Fault::KillPostgres,
    }
}

fn way(world: &World, fault: Fault) -> Option<(&Link, Mode)> {
    match fault {
        Fault::Postgres(node, mode) => Some((&world.nodes[node].postgres, mode)),
        Fault::Valkey(node, mode) => Some((&world.nodes[node].valkey, mode)),
        _ => None,
    }
}

fn begin(world: &mut World, fault: Fault) {
    match fault {
        Fault::Kill(node) => world.nodes[node].kill(),
        Fault::Freeze(node) => world.nodes[node].freeze(),
        Fault::Restart(node) => world.nodes[node].begin_stop(),
        Fault::KillValkey => world.valkey.kill(),
        Fault::FreezePostgres => world.postgres.freeze(),
        Fault::KillPostgres => world.postgres.kill(),
        Fault::Postgres(..) | Fault::Valkey(..) => {
            if let Some((link, mode)) = way(world, fault) {
                link.set(mode);
            }
        }
    }
}

fn end(world: &mut World, fault: Fault) -> Result<(), Error> {
    match fault {
        Fault::Kill(node) => world.start_node(node),
        Fault::Restart(node) => {
            world.nodes[node].end_stop();
            world.start_node(node)
        }
        Fault::Freeze(node) => {
            world.nodes[node].thaw();
            Ok(())
        }
        Fault::KillValkey => world.valkey.launch(),
        Fault::FreezePostgres => {
            world.postgres.thaw();
            Ok(())
        }
        Fault::KillPostgres => world.postgres.launch(),
        Fault::Postgres(..) | Fault::Valkey(..) => {
            if let Some((link, _)) = way(world, fault) {
                link.set(Mode::Open);
            }
            Ok(())
        }
    }
}

/// Whenever no node shows anything new for a while, all show the same.
fn compare(world: &World) -> Result<(usize, Vec<String>), Error> {
    let client = Client::new(Duration::from_secs(5));
    let tags = || -> Result<Vec<String>, Error> {
        let tag = |node| {
            let url = world.url(node, crate::snapshot::PATH);
            let answer = client.send("GET", &url, &[], None)?.expect(200)?;
            Ok(answer.header("etag").unwrap_or_default().to_owned())
        };
        (0..world.nodes.len()).map(tag).collect()
    };
    let (mut compared, mut unequal) = (0, Vec::new());
    for _ in 0..LOOKS {
        let before = tags()?;
        thread::sleep(LOOK_APART);
        if tags()? != before {
            continue;
        }
        compared += 1;
        if before.iter().any(|tag| *tag != before[0]) {
            unequal.push(format!("{before:?}"));
        }
    }
    match compared {
        0 => Err(Error::invalid("the nodes never showed the same twice")),
        _ => Ok((compared, unequal)),
    }
}

/// Notes of all entries, as a node shows them.
fn journal(
    world: &World,
    node: usize,
    token: &str,
) -> Result<std::collections::HashSet<String>, Error> {
    let client = Client::unpooled(Duration::from_secs(10));
    let bearer = format!("Bearer {token}");
    let (mut notes, mut cursor) = (std::collections::HashSet::new(), String::new());
    loop {
        let url = world.url(node, &format!("/api/journal?limit={PAGE}{cursor}"));
        let page = client.send("GET", &url, &[("Authorization", &bearer)], None)?;
        let page = page.expect(200)?.json()?;
        let entries = page["entries"].as_array().into_iter().flatten();
        notes.extend(entries.filter_map(|entry| entry["notes"].as_str().map(str::to_owned)));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(notes),
        }
    }
}
