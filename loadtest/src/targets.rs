//! The figures that bhav has to reach, held against what was measured.

use std::fmt::Write;

use crate::feeds::{Hang, Quotes};
use crate::generator::Slice;
use crate::results::{Results, number};
use crate::rounds::{CONNECTION_COUNTS, Scenario};
use crate::servers::Kind;
use crate::stats::{median, median_ratio};

/// Most CPU per request, as a ratio to may_minihttp.
const CPU_RATIO_MAX: f64 = 0.95;

/// Least saturated rate, as a ratio to may_minihttp.
const SATURATION_RATIO_MIN: f64 = 1.0;

/// Most p99.9 at half of saturation, in microseconds.
const TAIL_US_MAX: f64 = 2_000.0;

/// Most p99.9 while every upstream hangs, as a ratio to healthy upstreams.
const HANG_RATIO_MAX: f64 = 2.0;

/// Most CPU of live-prices with 50 cached symbols, as a ratio to the snapshot.
const QUOTES_RATIO_MAX: f64 = 2.0;

/// Most memory per idle connection, in KiB.
const IDLE_KIB_MAX: f64 = 10.0;

/// Most calls a second to broker A's quote endpoint.
const QUOTE_CALLS_PER_S_MAX: f64 = 1.0;

/// The simulator's names of broker A's quote endpoints, which share one budget.
const QUOTE_CALLS: [&str; 3] = ["broker_a.quote", "broker_a.ohlc", "broker_a.ltp"];

impl Quotes {
    /// CPU of live-prices as a ratio to the snapshot's, median over the rounds.
    pub fn cpu_ratio(&self) -> Option<f64> {
        let cpu = |slices: &[Slice]| -> Vec<f64> {
            slices.iter().map(|slice| slice.cpu_us_per_request).collect()
        };
        median_ratio(&cpu(&self.live_prices), &cpu(&self.snapshot))
    }
}

impl Hang {
    /// p99.9 with hanging upstreams as a ratio to healthy ones, median over the rounds.
    pub fn tail_ratio(&self) -> Option<f64> {
        let tail = |slices: &[Slice]| -> Vec<f64> {
            slices.iter().map(|slice| slice.load.latency.p999_us).collect()
        };
        median_ratio(&tail(&self.hanging), &tail(&self.healthy))
    }
}

struct Target {
    what: String,
    wanted: String,
    measured: String,
    is_met: bool,
}

impl Target {
    fn at_most(what: impl Into<String>, most: f64, measured: Option<f64>) -> Self {
        Self {
            what: what.into(),
            wanted: format!("≤ {most}"),
            measured: number(measured, 3),
            is_met: measured.is_some_and(|value| value <= most),
        }
    }

    fn at_least(what: impl Into<String>, least: f64, measured: Option<f64>) -> Self {
        Self {
            what: what.into(),
            wanted: format!("≥ {least}"),
            measured: number(measured, 3),
            is_met: measured.is_some_and(|value| value >= least),
        }
    }
}

/// Appends the table of targets; nothing if bhav was left out.
pub fn render(results: &Results, out: &mut String) {
    if !results.kinds.contains(&Kind::Bhav) {
        return;
    }
    out.push_str("## Targets\n\n| what | wanted | measured | |\n|---|---|---|---|\n");
    for target in targets(results) {
        let verdict = if target.is_met { "met" } else { "**missed**" };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {verdict} |",
            target.what, target.wanted, target.measured
        );
    }
    out.push('\n');
}

fn targets(results: &Results) -> Vec<Target> {
    let cpu = |slice: &Slice| slice.cpu_us_per_request;
    let mut targets = Vec::new();
    for connections in CONNECTION_COUNTS {
        let scenario = Scenario::Rate(connections);
        targets.push(Target::at_most(
            format!("CPU per request to may_minihttp, {connections} connections"),
            CPU_RATIO_MAX,
            results.ratio(Kind::Bhav, scenario, cpu),
        ));
        for kind in [Kind::Nginx, Kind::Actix, Kind::Axum] {
            if results.kinds.contains(&kind) {
                let other = results.values(kind, scenario, cpu);
                targets.push(Target::at_most(
                    format!("the same to {}", kind.name()),
                    1.0,
                    median_ratio(&results.values(Kind::Bhav, scenario, cpu), &other),
                ));
            }
        }
    }
    for connections in CONNECTION_COUNTS {
        targets.push(Target::at_least(
            format!("saturated rate to may_minihttp, {connections} connections"),
            SATURATION_RATIO_MIN,
            results.ratio(Kind::Bhav, Scenario::Saturation(connections), |slice| {
                slice.load.rate_per_s
            }),
        ));
    }
    let tail = results.values(Kind::Bhav, Scenario::Half, |slice| slice.load.latency.p999_us);
    targets.push(Target::at_most("p99.9 at half of saturation, µs", TAIL_US_MAX, median(&tail)));
    targets.extend(single_targets(results));
    targets
}

fn single_targets(results: &Results) -> Vec<Target> {
    let idle = results.idle.iter().find(|idle| idle.kind == Kind::Bhav);
    let quote_calls = results.coalescing.as_ref().map(|coalescing| {
        let calls: u64 = coalescing
            .calls
            .iter()
            .filter(|(name, _)| QUOTE_CALLS.contains(&name.as_str()))
            .map(|(_, count)| count)
            .sum();
        calls as f64 / (results.sizes.clients_ms as f64 / 1_000.0)
    });
    let recovered =
        results.storm.and_then(|storm| storm.recovered_after_ms).map(|ms| ms as f64 / 1_000.0);
    vec![
        Target::at_most(
            "the same while every upstream hangs, ratio",
            HANG_RATIO_MAX,
            results.hang.as_ref().and_then(Hang::tail_ratio),
        ),
        Target::at_most(
            "CPU of live-prices with 50 cached symbols to the snapshot",
            QUOTES_RATIO_MAX,
            results.quotes.as_ref().and_then(Quotes::cpu_ratio),
        ),
        Target::at_most(
            "KiB per idle connection",
            IDLE_KIB_MAX,
            idle.map(|idle| idle.kib_per_connection),
        ),
        Target::at_most("answer on a new connection after 30,000, s", 1.0, recovered),
        Target::at_most(
            "broker A quote calls a second under 1,000 clients",
            QUOTE_CALLS_PER_S_MAX,
            quote_calls,
        ),
    ]
}
