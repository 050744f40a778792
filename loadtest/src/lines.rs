//! Lines of RESULTS.md that are text and not a table.

use crate::figures::{Figures, Key, Slice, median, spread};
use crate::harness::Harness;
use crate::render::number;
use crate::run::ServerSpec;

/// The simulator's names of broker A's quote endpoints, which share one budget.
const QUOTE_CALLS: [&str; 3] = ["broker_a.quote", "broker_a.ohlc", "broker_a.ltp"];

/// A ratio below a table.
pub fn ratio(what: &str, ratio: Option<f64>) -> String {
    format!("{what}: {}\n", number(ratio, 2))
}

/// CPU of each server without load.
pub fn unloaded(harness: &Harness, figures: &Figures, servers: &[ServerSpec]) -> String {
    let servers = servers.iter().filter(|server| harness.has(server.kind));
    let lines = servers.map(|server| {
        let share = figures.median((server.name, "unloaded"), |slice| slice.value("core share"));
        format!("- {}: {} %\n", server.name, number(share.map(|share| share * 100.0), 2))
    });
    lines.collect()
}

/// What became of more connections than the cap.
pub fn storm(figures: &Figures, key: Key) -> String {
    let slices = figures.of(key);
    let of = |name| slices.first().map_or(f64::NAN, |slice| slice.value(name));
    let recovered = match of("recovered ms") {
        ms if ms.is_finite() => {
            format!("a new connection was answered {ms:.0} ms after they closed")
        }
        _ => "a new connection was **not** answered".to_owned(),
    };
    format!(
        "{} attempted, {} connected, {} answered, {} with another status, {} failed; \
         RSS {:.0} MiB; {recovered}.\n",
        of("attempted"),
        of("connected"),
        of("answered"),
        of("another_status"),
        of("failed"),
        (of("held KiB") / 1_024.0).floor(),
    )
}

/// Calls of broker A's quote endpoints.
pub fn quote_calls_per_s(slice: &Slice) -> f64 {
    let calls = slice
        .values("upstream ")
        .filter(|(name, _)| QUOTE_CALLS.contains(name));
    calls.map(|(_, count)| count).sum::<f64>() / slice.load.elapsed_s
}

/// What many clients cost the upstreams.
pub fn clients(figures: &Figures, key: Key) -> String {
    let slices = figures.of(key);
    let Some(slice) = slices.first() else {
        return String::new();
    };
    let load = &slice.load;
    let mut out = format!(
        "{} requests in {:.1} s from a cold cache, {} errors, {} not 200, p50 {:.0} µs, p99 \
         {:.0} µs, max {:.0} µs; {} of the symbols had a quote afterwards. Upstream calls:\n\n",
        load.requests,
        load.elapsed_s,
        load.errors,
        load.other_status,
        load.latency.p50_us,
        load.latency.p99_us,
        load.latency.max_us,
        slice.value("quoted"),
    );
    for (name, count) in slice.values("upstream ").filter(|&(_, count)| count > 0.0) {
        out.push_str(&format!("- {name}: {count} ({:.2} a second)\n", count / load.elapsed_s));
    }
    let most = slice.value("quote calls in one second");
    out.push_str(&format!("- most quote calls to broker A within any second: {most}\n"));
    for (reason, count) in slice
        .values("turned away ")
        .filter(|&(_, count)| count > 0.0)
    {
        out.push_str(&format!("- turned away, {reason}: {count}\n"));
    }
    out
}

/// How much of the machine others used, over slices.
pub fn foreign<'a>(slices: impl Iterator<Item = &'a Slice>) -> String {
    let shares: Vec<f64> = slices.map(|slice| slice.foreign_share * 100.0).collect();
    let most = spread(&shares).map(|(_, most)| most);
    format!("median {} %, most {} %", number(median(&shares), 1), number(most, 1))
}
