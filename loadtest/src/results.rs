//! Renders everything that was measured as Markdown.

use std::fmt::Write;

use crate::alone;
use crate::feeds::{Coalescing, Hang, Quotes};
use crate::fetch::Snapshot;
use crate::generator::Slice;
use crate::memory::{IDLE_CONNECTIONS, IdleMemory, Storm};
use crate::rounds::{CONNECTION_COUNTS, Figures, HALF_CONNECTIONS, RATE_PER_S, Scenario, Sizes};
use crate::servers::Kind;
use crate::stats::{median, median_ratio, spread};
use crate::targets;

/// The server that ratios refer to.
pub const YARDSTICK: Kind = Kind::MayMinihttp;

/// A figure of a slice.
type OfSlice = fn(&Slice) -> f64;

/// All that one run found out.
pub struct Results {
    /// Circumstances, by name.
    pub surroundings: Vec<(&'static str, String)>,
    /// How much was measured.
    pub sizes: Sizes,
    /// Busy share of the machine before the run.
    pub busy_at_rest: f64,
    /// What every server sent.
    pub snapshot: Snapshot,
    /// Servers in the order of the tables.
    pub kinds: Vec<Kind>,
    /// The interleaved rounds.
    pub figures: Figures,
    /// Idle memory of each server.
    pub idle: Vec<IdleMemory>,
    /// bhav's storm of connections.
    pub storm: Option<Storm>,
    /// bhav's cached quotes.
    pub quotes: Option<Quotes>,
    /// bhav's upstream calls under many clients.
    pub coalescing: Option<Coalescing>,
    /// bhav while its upstreams hang.
    pub hang: Option<Hang>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

/// A number with fixed decimals, or a dash.
pub fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
}

impl Results {
    /// The whole document.
    pub fn render(&self) -> String {
        let mut out = String::from(
            "# Load test results\n\nWritten by the driver; `README.md` says how to read it. \
             Figures are medians over the rounds; a ratio is taken within each round against \
             may_minihttp, and the median of these ratios is shown.\n\n",
        );
        self.render_head(&mut out);
        self.render_beside_peers(&mut out);
        targets::render(self, &mut out);
        self.render_cpu(&mut out);
        self.render_saturation(&mut out);
        self.render_half(&mut out);
        self.render_idle(&mut out);
        alone::render(self, &mut out);
        out
    }

    fn render_head(&self, out: &mut String) {
        for (name, value) in &self.surroundings {
            line(out, &format!("- {name}: {value}"));
        }
        line(
            out,
            &format!(
                "- {} rounds of {} ms a slice, {}",
                self.sizes.rounds,
                self.sizes.slice_ms,
                match self.sizes.tick_us {
                    0 => "requests evenly spaced".to_owned(),
                    tick_us => format!("CPU slices in bursts every {tick_us} µs"),
                }
            ),
        );
        let responses = self.kinds.iter().map(|&kind| {
            let bytes = number(median(&self.figures.response_bytes(kind)), 0);
            format!("{} {bytes}", kind.name())
        });
        line(
            out,
            &format!(
                "- body of {} bytes with {} signals; bytes of a response with its head: {}",
                self.snapshot.body.len(),
                self.snapshot.signals(),
                responses.collect::<Vec<_>>().join(", "),
            ),
        );
        let foreign: Vec<f64> = self
            .figures
            .measured
            .iter()
            .map(|measured| measured.slice.foreign_share * 100.0)
            .collect();
        line(
            out,
            &format!(
                "- machine used by others: {:.1} % before the run; in the slices median {} %, \
                 most {} %",
                self.busy_at_rest * 100.0,
                number(median(&foreign), 1),
                number(spread(&foreign).map(|(_, most)| most), 1),
            ),
        );
        for note in &self.notes {
            line(out, &format!("- left out: {note}"));
        }
        line(out, "");
    }

    /// The first server's figures as ratios to each of the others, taken within a round.
    fn render_beside_peers(&self, out: &mut String) {
        let Some((&first, peers)) = self.kinds.split_first() else { return };
        line(out, &format!("## {} beside the others, on equal bytes\n", first.name()));
        let names: String = peers.iter().map(|kind| format!(" to {} |", kind.name())).collect();
        line(out, &format!("| what | connections | {} |{names}", first.name()));
        line(out, &format!("|---|---|---|{}", "---|".repeat(peers.len())));
        let cpu: OfSlice = |slice| slice.cpu_us_per_request;
        let rate: OfSlice = |slice| slice.load.rate_per_s;
        for connections in CONNECTION_COUNTS {
            let what = "CPU µs per request, less is better";
            self.render_ratios(out, what, Scenario::Rate(connections), connections, (cpu, 2));
        }
        for connections in CONNECTION_COUNTS {
            let what = "saturated req/s, more is better";
            let scenario = Scenario::Saturation(connections);
            self.render_ratios(out, what, scenario, connections, (rate, 0));
        }
        line(out, "");
    }

    fn render_ratios(
        &self,
        out: &mut String,
        what: &str,
        scenario: Scenario,
        connections: usize,
        (of, decimals): (OfSlice, usize),
    ) {
        let Some((&first, peers)) = self.kinds.split_first() else { return };
        let own = self.values(first, scenario, of);
        let ratios = peers.iter().map(|&peer| {
            let ratio = median_ratio(&own, &self.values(peer, scenario, of));
            format!(" {} |", number(ratio, 3))
        });
        let ratios: String = ratios.collect();
        let own = number(median(&own), decimals);
        line(out, &format!("| {what} | {connections} | {own} |{ratios}"));
    }

    fn render_cpu(&self, out: &mut String) {
        line(out, &format!("## Snapshot at {RATE_PER_S} req/s, open loop\n"));
        line(
            out,
            "| server | connections | CPU µs/request | ratio | spread | p50 µs | p99 µs \
             | p99.9 µs | max µs | send lag p99.9 µs | failed |",
        );
        line(out, "|---|---|---|---|---|---|---|---|---|---|---|");
        for connections in CONNECTION_COUNTS {
            for &kind in &self.kinds {
                self.render_cpu_row(out, kind, connections);
            }
        }
        line(out, "\nCPU without any load, in % of one core:\n");
        for &kind in &self.kinds {
            let share = median(&self.figures.unloaded_shares(kind)).map(|share| share * 100.0);
            line(out, &format!("- {}: {} %", kind.name(), number(share, 2)));
        }
        line(out, "");
    }

    fn render_cpu_row(&self, out: &mut String, kind: Kind, connections: usize) {
        let scenario = Scenario::Rate(connections);
        let cpu = self.values(kind, scenario, |slice| slice.cpu_us_per_request);
        let (low, high) = spread(&cpu).unwrap_or_default();
        line(
            out,
            &format!(
                "| {} | {connections} | {} | {} | {low:.2}–{high:.2} | {} | {} | {} | {} | {} \
                 | {} |",
                kind.name(),
                number(median(&cpu), 2),
                number(self.ratio(kind, scenario, |slice| slice.cpu_us_per_request), 3),
                self.median_of(kind, scenario, |slice| slice.load.latency.p50_us),
                self.median_of(kind, scenario, |slice| slice.load.latency.p99_us),
                self.median_of(kind, scenario, |slice| slice.load.latency.p999_us),
                self.median_of(kind, scenario, |slice| slice.load.latency.max_us),
                self.median_of(kind, scenario, |slice| slice.load.send_lag.p999_us),
                self.failed(kind, scenario),
            ),
        );
    }

    fn render_saturation(&self, out: &mut String) {
        line(out, "## Snapshot at saturation, closed loop\n");
        line(out, "| server | connections | req/s | ratio | p99 µs | failed |");
        line(out, "|---|---|---|---|---|---|");
        for connections in CONNECTION_COUNTS {
            let scenario = Scenario::Saturation(connections);
            for &kind in &self.kinds {
                line(
                    out,
                    &format!(
                        "| {} | {connections} | {} | {} | {} | {} |",
                        kind.name(),
                        self.median_of(kind, scenario, |slice| slice.load.rate_per_s),
                        number(self.ratio(kind, scenario, |slice| slice.load.rate_per_s), 3),
                        self.median_of(kind, scenario, |slice| slice.load.latency.p99_us),
                        self.failed(kind, scenario),
                    ),
                );
            }
        }
        line(out, "");
    }

    fn render_half(&self, out: &mut String) {
        let reference = self.kinds.first().map_or("", |kind| kind.name());
        line(
            out,
            &format!(
                "## Snapshot at half of {reference}'s saturation, open loop, \
                 {HALF_CONNECTIONS} connections\n"
            ),
        );
        line(
            out,
            "| server | req/s | p50 µs | p99 µs | p99.9 µs | lowest p99.9 µs | max µs \
             | send lag p99.9 µs | failed |",
        );
        line(out, "|---|---|---|---|---|---|---|---|---|");
        for &kind in &self.kinds {
            let scenario = Scenario::Half;
            let tail = self.values(kind, scenario, |slice| slice.load.latency.p999_us);
            line(
                out,
                &format!(
                    "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                    kind.name(),
                    self.median_of(kind, scenario, |slice| slice.load.rate_per_s),
                    self.median_of(kind, scenario, |slice| slice.load.latency.p50_us),
                    self.median_of(kind, scenario, |slice| slice.load.latency.p99_us),
                    number(median(&tail), 0),
                    number(spread(&tail).map(|(lowest, _)| lowest), 0),
                    self.median_of(kind, scenario, |slice| slice.load.latency.max_us),
                    self.median_of(kind, scenario, |slice| slice.load.send_lag.p999_us),
                    self.failed(kind, scenario),
                ),
            );
        }
        line(out, "");
    }

    fn render_idle(&self, out: &mut String) {
        line(out, &format!("## {IDLE_CONNECTIONS} idle keep-alive connections\n"));
        line(out, "| server | KiB/connection | ratio | RSS before, MiB | answered | still open |");
        line(out, "|---|---|---|---|---|---|");
        let yardstick = self
            .idle
            .iter()
            .find(|idle| idle.kind == YARDSTICK)
            .map(|idle| idle.kib_per_connection);
        for idle in &self.idle {
            let ratio = yardstick.map(|base| idle.kib_per_connection / base);
            line(
                out,
                &format!(
                    "| {} | {:.2} | {} | {:.1} | {} | {} |",
                    idle.kind.name(),
                    idle.kib_per_connection,
                    number(ratio, 3),
                    idle.fresh_kib as f64 / 1_024.0,
                    idle.report.answered,
                    idle.still_open,
                ),
            );
        }
        line(out, "");
    }

    /// One value per round.
    pub fn values(&self, kind: Kind, scenario: Scenario, of: impl Fn(&Slice) -> f64) -> Vec<f64> {
        self.figures.values(kind, scenario, of)
    }

    /// Median of the ratios to the yardstick.
    pub fn ratio(
        &self,
        kind: Kind,
        scenario: Scenario,
        of: impl Fn(&Slice) -> f64 + Copy,
    ) -> Option<f64> {
        let yardstick = self.values(YARDSTICK, scenario, of);
        median_ratio(&self.values(kind, scenario, of), &yardstick)
    }

    fn median_of(&self, kind: Kind, scenario: Scenario, of: impl Fn(&Slice) -> f64) -> String {
        number(median(&self.values(kind, scenario, of)), 0)
    }

    fn failed(&self, kind: Kind, scenario: Scenario) -> f64 {
        self.values(kind, scenario, |slice| (slice.load.errors + slice.load.other_status) as f64)
            .iter()
            .sum()
    }
}

/// Appends a line.
pub fn line(out: &mut String, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{text}");
}
