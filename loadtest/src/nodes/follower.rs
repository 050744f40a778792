//! Snapshots from a follower beside a node that is alone, also while the database answers late.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::thread;
use std::time::Duration;

use super::world::{Plan, World};
use crate::error::Error;
use crate::figures::{Slice, median};
use crate::generator::slice_of;
use crate::harness::Harness;
use crate::servers::{State, socket_address};
use crate::snapshot;

/// Interleaved rounds, ordinarily and quickly.
const ROUNDS: [usize; 2] = [9, 1];
const SLICE_MS: u64 = 3_000;
const CONNECTIONS: &str = "64";
const PER_SECOND: &str = "5000";
/// How late the database is.
const LATE_MS: u64 = 2_000;
/// Until what the database was asked before it became late, or well again, has ended.
const SETTLES: Duration = Duration::from_secs(5);

/// In the lines, in the order of a round.
const WHO: [&str; 4] =
    ["alone", "leader", "follower", "follower, PostgreSQL answers after two seconds"];

/// Measures each in turn, in every round.
pub fn measure(harness: &Harness) -> Result<String, Error> {
    let alone = harness.start_bhav("alone", State::Empty, &[])?;
    let settings = vec![("BHAV_EDGE_THREADS", "2".to_owned())];
    let world = World::start(harness, &["a", "b"], Plan { settings, ..Plan::default() })?;
    let leader = world.leader().ok_or(Error::invalid("nobody leads"))?;
    let follower = 1 - leader;
    let arguments = ["open", "--path", snapshot::PATH, "--connections", CONNECTIONS, "--rate"];
    let arguments: Vec<String> =
        arguments.into_iter().chain([PER_SECOND]).map(str::to_owned).collect();
    let of_node = |node: usize| -> Result<Slice, Error> {
        let process = world.nodes[node].process().ok_or(Error::invalid("a node does not run"))?;
        let address = socket_address(&format!("http://127.0.0.1:{}", world.nodes[node].port))?;
        slice_of(&harness.programs, address, process, &arguments, SLICE_MS)
    };
    let mut slices: BTreeMap<usize, Vec<Slice>> = BTreeMap::new();
    for _ in 0..ROUNDS[usize::from(harness.is_quick)] {
        let lone =
            slice_of(&harness.programs, alone.address, &alone.process, &arguments, SLICE_MS)?;
        slices.entry(0).or_default().push(lone);
        slices.entry(1).or_default().push(of_node(leader)?);
        slices.entry(2).or_default().push(of_node(follower)?);
        world.nodes.iter().for_each(|node| node.postgres.delay(LATE_MS));
        thread::sleep(SETTLES);
        slices.entry(3).or_default().push(of_node(follower)?);
        world.nodes.iter().for_each(|node| node.postgres.delay(0));
        thread::sleep(SETTLES);
    }
    if world.leader() != Some(leader) {
        return Err(Error::invalid("another node has come to lead meanwhile"));
    }
    Ok(lines(&slices))
}

fn lines(slices: &BTreeMap<usize, Vec<Slice>>) -> String {
    let mut out = format!(
        "Snapshot at {PER_SECOND} req/s on {CONNECTIONS} connections, open loop; medians of rounds \
         in which each is measured in turn, ratios within the round.\n\n\
         | node | CPU µs/request | ratio | p50 µs | p99.9 µs | ratio | send lag p99.9 µs | others \
         use of the machine | failed |\n|---|---|---|---|---|---|---|---|---|\n"
    );
    let of = |who: usize, figure: fn(&Slice) -> f64| -> Vec<f64> {
        slices.get(&who).into_iter().flatten().map(figure).collect()
    };
    let middle = |values: &[f64]| median(values).unwrap_or(f64::NAN);
    let ratio = |who: usize, figure: fn(&Slice) -> f64| {
        let (own, base) = (of(who, figure), of(0, figure));
        middle(&own.iter().zip(&base).map(|(own, base)| own / base).collect::<Vec<_>>())
    };
    let cpu: fn(&Slice) -> f64 = |slice| slice.cpu_us_per_request;
    let p999: fn(&Slice) -> f64 = |slice| slice.load.latency.p999_us;
    for (who, name) in WHO.into_iter().enumerate() {
        let failed: f64 =
            of(who, |slice| (slice.load.errors + slice.load.other_status) as f64).iter().sum();
        let _ = writeln!(
            out,
            "| {name} | {:.1} | {:.3} | {:.0} | {:.0} | {:.3} | {:.0} | {:.0} % | {failed} |",
            middle(&of(who, cpu)),
            ratio(who, cpu),
            middle(&of(who, |slice| slice.load.latency.p50_us)),
            middle(&of(who, p999)),
            ratio(who, p999),
            middle(&of(who, |slice| slice.load.send_lag.p999_us)),
            100.0 * middle(&of(who, |slice| slice.foreign_share)),
        );
    }
    out
}
