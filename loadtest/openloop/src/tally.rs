//! What an engine counts while it runs, and its report.

use hdrhistogram::Histogram;

use crate::report::{LoadReport, Percentiles};
use crate::schedule::NS_PER_S;

/// Largest latency told apart, in nanoseconds.
const LATENCY_NS_MAX: u64 = 120_000_000_000;

/// What was counted in one run.
#[derive(Debug, Clone)]
pub struct Tally {
    /// The counts among the figures, and the time to the last response. The others are made of the
    /// following.
    pub counts: LoadReport,
    /// Bytes of whole responses, heads included.
    pub response_bytes: u64,
    /// Latencies, in nanoseconds.
    pub latency: Histogram<u64>,
    /// Lateness of sends on free connections, in nanoseconds.
    pub send_lag: Histogram<u64>,
}

impl Default for Tally {
    fn default() -> Self {
        let empty = || Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("constant bounds");
        let counts = LoadReport::default();
        Self {
            counts,
            response_bytes: 0,
            latency: empty(),
            send_lag: empty(),
        }
    }
}

impl Tally {
    /// The figures of a run for which the generator used so much CPU time.
    pub fn report(&self, generator_cpu_ns: u64) -> LoadReport {
        let (requests, elapsed_s) = (self.counts.requests, self.counts.elapsed_s);
        LoadReport {
            bytes_per_response: self.response_bytes as f64 / requests.max(1) as f64,
            rate_per_s: requests as f64 / elapsed_s.max(f64::MIN_POSITIVE),
            latency: Percentiles::of(&self.latency),
            send_lag: Percentiles::of(&self.send_lag),
            generator_cpu_s: generator_cpu_ns as f64 / NS_PER_S as f64,
            ..self.counts
        }
    }
}
