//! What an engine counts while it runs, and its report.

use hdrhistogram::Histogram;

use crate::report::{LoadReport, Percentiles};
use crate::schedule::NS_PER_S;

/// Largest latency told apart, in nanoseconds.
const LATENCY_NS_MAX: u64 = 120_000_000_000;

/// What was counted in one run.
#[derive(Debug, Clone)]
pub struct Tally {
    /// Responses received.
    pub requests: u64,
    /// Requests lost.
    pub errors: u64,
    /// Of these, unanswered when the grace had passed.
    pub unanswered: u64,
    /// Responses with another status than the expected one.
    pub other_status: u64,
    /// Connections opened anew.
    pub reconnects: u64,
    /// Bytes of whole responses, heads included.
    pub response_bytes: u64,
    /// From start to last response, in nanoseconds.
    pub elapsed_ns: u64,
    /// Latencies, in nanoseconds.
    pub latency: Histogram<u64>,
    /// Lateness of sends on free connections, in nanoseconds.
    pub send_lag: Histogram<u64>,
}

impl Default for Tally {
    fn default() -> Self {
        let empty = || Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("constant bounds");
        Self {
            requests: 0,
            errors: 0,
            unanswered: 0,
            other_status: 0,
            reconnects: 0,
            response_bytes: 0,
            elapsed_ns: 0,
            latency: empty(),
            send_lag: empty(),
        }
    }
}

impl Tally {
    /// The figures of a run for which the generator used so much CPU time.
    pub fn report(&self, generator_cpu_ns: u64) -> LoadReport {
        let elapsed_s = self.elapsed_ns as f64 / NS_PER_S as f64;
        LoadReport {
            requests: self.requests,
            errors: self.errors,
            unanswered: self.unanswered,
            other_status: self.other_status,
            reconnects: self.reconnects,
            bytes_per_response: self.response_bytes as f64 / self.requests.max(1) as f64,
            elapsed_s,
            rate_per_s: self.requests as f64 / elapsed_s.max(f64::MIN_POSITIVE),
            latency: Percentiles::of(&self.latency),
            send_lag: Percentiles::of(&self.send_lag),
            generator_cpu_s: generator_cpu_ns as f64 / NS_PER_S as f64,
        }
    }
}
