//! What one engine counts while it runs; the engines of a run are merged into one report.

use hdrhistogram::Histogram;

/// Largest latency told apart, in nanoseconds.
const LATENCY_NS_MAX: u64 = 120_000_000_000;

/// What was counted in one run of one engine.
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

impl Tally {
    /// Nothing counted yet.
    pub fn new() -> Self {
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

    /// Adds the counts of another engine of the same run.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.errors += other.errors;
        self.unanswered += other.unanswered;
        self.other_status += other.other_status;
        self.reconnects += other.reconnects;
        self.response_bytes += other.response_bytes;
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        self.latency.add(&other.latency).expect("all histograms have the same bounds");
        self.send_lag.add(&other.send_lag).expect("all histograms have the same bounds");
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self::new()
    }
}
