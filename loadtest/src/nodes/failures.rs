//! The failure table: each failure done for real, and what clients of each node saw.

use std::fmt::Write;
use std::thread;
use std::time::{Duration, Instant};

use super::link::Mode;
use super::postgres::{Disk, is_root};
use super::timeline::{LEGEND, Stretch};
use super::watch::Watch;
use super::world::{Plan, World};
use crate::error::Error;
use crate::harness::Harness;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Of PostgreSQL where its disk is filled: a fresh cluster takes half of it.
const DISK_MIB: u32 = 128;

/// Watched before a fault.
const BEFORE: Duration = Duration::from_secs(1);

/// What is done to a world; the number is the leader's.
type Step = fn(&mut World, usize) -> Result<(), Error>;

/// A failure.
struct Row {
    name: &'static str,
    begin: Step,
    lasts_s: u64,
    /// Mends it.
    end: Step,
    after_s: u64,
    /// Its disk can be filled, for which PostgreSQL has one of its own.
    needs_disk: bool,
}

const ROW: Row = Row {
    name: "",
    begin: |_, _| Ok(()),
    lasts_s: 12,
    end: |_, _| Ok(()),
    after_s: 10,
    needs_disk: false,
};

const ROWS: [Row; 11] = [
    Row {
        name: "leader killed with kill -9, started again",
        begin: |world, leader| {
            world.nodes[leader].kill();
            Ok(())
        },
        end: |world, leader| world.start_node(leader),
        ..ROW
    },
    Row {
        name: "leader stopped cleanly, started again after 3 s",
        begin: |world, leader| {
            world.nodes[leader].begin_stop();
            Ok(())
        },
        lasts_s: 3,
        end: |world, leader| {
            world.nodes[leader].end_stop();
            world.start_node(leader)
        },
        ..ROW
    },
    Row {
        name: "leader SIGSTOP for 20 s, then SIGCONT",
        begin: |world, leader| {
            world.nodes[leader].freeze();
            Ok(())
        },
        lasts_s: 20,
        end: |world, leader| {
            world.nodes[leader].thaw();
            Ok(())
        },
        ..ROW
    },
    Row {
        name: "way of the leader to PostgreSQL mute",
        begin: |world, leader| {
            world.nodes[leader].postgres.set(Mode::Mute);
            Ok(())
        },
        end: |world, leader| {
            world.nodes[leader].heal();
            Ok(())
        },
        ..ROW
    },
    Row {
        name: "way of the leader to Valkey cut",
        begin: |world, leader| {
            world.nodes[leader].valkey.set(Mode::Cut);
            Ok(())
        },
        end: |world, leader| {
            world.nodes[leader].heal();
            Ok(())
        },
        ..ROW
    },
    Row {
        name: "ways of the leader to both mute",
        begin: |world, leader| {
            world.nodes[leader].postgres.set(Mode::Mute);
            world.nodes[leader].valkey.set(Mode::Mute);
            Ok(())
        },
        end: |world, leader| {
            world.nodes[leader].heal();
            Ok(())
        },
        ..ROW
    },
    Row {
        name: "Valkey killed with kill -9, started empty",
        begin: |world, _| {
            world.valkey.kill();
            Ok(())
        },
        lasts_s: 15,
        end: |world, _| world.valkey.launch(),
        ..ROW
    },
    Row {
        name: "PostgreSQL killed with kill -9, started again",
        begin: |world, _| {
            world.postgres.kill();
            Ok(())
        },
        lasts_s: 15,
        end: |world, _| world.postgres.launch(),
        ..ROW
    },
    Row {
        name: "PostgreSQL SIGSTOP, then SIGCONT",
        begin: |world, _| {
            world.postgres.freeze();
            Ok(())
        },
        lasts_s: 15,
        end: |world, _| {
            world.postgres.thaw();
            Ok(())
        },
        ..ROW
    },
    Row {
        name: "both killed, started again",
        begin: |world, _| {
            world.valkey.kill();
            world.postgres.kill();
            Ok(())
        },
        end: |world, _| {
            world.valkey.launch()?;
            world.postgres.launch()
        },
        after_s: 20,
        ..ROW
    },
    Row {
        name: "disk of PostgreSQL full, then emptied",
        begin: |world, _| world.postgres.fill_disk(),
        lasts_s: 20,
        end: |world, _| world.postgres.empty_disk(),
        needs_disk: true,
        ..ROW
    },
];

/// Plays every row, or with `--faults` those with this in their name.
pub fn measure(harness: &Harness) -> Result<String, Error> {
    let disk = if is_root() { Disk::Small(DISK_MIB) } else { Disk::Unsynced };
    let plan = Plan { disk, ..Plan::default() };
    let mut world = World::start(harness, &NAMES, plan)?;
    let token = world.token.clone();
    let watch = Watch::start(&world, &token);
    let wanted = |row: &&Row| {
        let named = harness.faults.as_deref().is_none_or(|part| row.name.contains(part));
        named && (is_root() || !row.needs_disk)
    };
    let mut table = String::from(
        "| what failed | for s | prices stale, s | public provider's, s | market routes failed, s \
         | epoch | calls within 1 s, at most | refused |\n|---|---|---|---|---|---|---|---|\n",
    );
    let mut timelines = String::new();
    for row in ROWS.iter().filter(wanted) {
        eprintln!("  {}", row.name);
        world.await_rest()?;
        let (from_ms, until_ms) = play(&mut world, row)?;
        let names: Vec<String> = world.nodes.iter().map(|node| node.name.clone()).collect();
        let (seen, calls) = (watch.seen(), world.calls.all());
        let stretch = Stretch { from_ms, until_ms, names: &names, seen: &seen, calls: &calls };
        let sum = stretch.summary();
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} | {} → {} | {} | {} |",
            row.name,
            row.lasts_s,
            sum.stale_s,
            sum.public_s,
            sum.failed_s,
            sum.epochs.0,
            sum.epochs.1,
            sum.calls_in_1s,
            sum.refused
        );
        let rendered = stretch.render();
        eprint!("{rendered}");
        let _ = write!(timelines, "\n{}:\n\n{rendered}", row.name);
    }
    watch.end();
    Ok(format!(
        "Seconds are those of the node with the most; market routes failed counts all living \
         nodes.\n\n{table}\n{LEGEND}{timelines}"
    ))
}

/// From and until when it is to be shown.
fn play(world: &mut World, row: &Row) -> Result<(u64, u64), Error> {
    let leader = world.leader().ok_or(Error::invalid("nobody leads at rest"))?;
    let from_ms = world.elapsed_ms();
    thread::sleep(BEFORE);
    let began = Instant::now();
    (row.begin)(world, leader)?;
    thread::sleep(Duration::from_secs(row.lasts_s).saturating_sub(began.elapsed()));
    (row.end)(world, leader)?;
    thread::sleep(Duration::from_secs(row.after_s));
    let until_ms = world.elapsed_ms();
    // What was sent until then is answered or not by now.
    thread::sleep(Duration::from_secs(2));
    Ok((from_ms, until_ms))
}
