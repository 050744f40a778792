//! The figures of a run, as printed in one line of JSON and read back by the driver.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Percentiles of a distribution, in microseconds.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Percentiles {
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Largest.
    pub max_us: f64,
}

impl Percentiles {
    /// Reads the percentiles of a histogram of nanoseconds.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1_000.0;
        Self {
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: histogram.max() as f64 / 1_000.0,
        }
    }
}

/// Result of the mode `load`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct LoadReport {
    /// Responses received, whatever their status.
    pub requests: u64,
    /// Requests lost to a closed connection, an unreadable answer or the end of the grace.
    pub errors: u64,
    /// Responses with another status than the expected one.
    pub other_status: u64,
    /// Connections opened anew during the run.
    pub reconnects: u64,
    /// Mean length of a response, its head included, in bytes.
    pub bytes_per_response: f64,
    /// From the start to the last response, in seconds.
    pub elapsed_s: f64,
    /// `requests / elapsed_s`.
    pub rate_per_s: f64,
    /// Open loop: from the due time to the last byte. Closed loop: from the send.
    pub latency: Percentiles,
    /// From the due time to the send, for requests whose connection was free: the generator's own
    /// lateness, and so the floor below which its latencies mean nothing. Zero in a closed loop.
    pub send_lag: Percentiles,
    /// CPU time of the generator during the run, in seconds.
    pub generator_cpu_s: f64,
}

/// Result of the mode `idle`, once every connection has settled or the deadline has passed. What it
/// prints when it is told to end is the number of answered connections that the server had still
/// not closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleReport {
    /// Connection attempts made.
    pub attempted: usize,
    /// Connections that the kernel completed.
    pub connected: usize,
    /// Connections whose first request was answered with 200.
    pub answered: usize,
    /// Connections whose first request was answered with another status.
    pub another_status: usize,
    /// Attempts that were refused, and connections that broke.
    pub failed: usize,
}

/// Result of the mode `readers`: what happened since it was told `go`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ReadersReport {
    /// Length of that time, in seconds.
    pub window_s: f64,
    /// Streams that are open now.
    pub open: usize,
    /// Streams that the server ended in good order.
    pub ended: usize,
    /// Streams that broke, whether an attempt was refused or a connection was lost.
    pub broken: usize,
    /// Attempts answered with another status than 200.
    pub refused: usize,
    /// Snapshots received.
    pub frames: u64,
    /// States of the snapshot that were published, and seen by who asks for it all the time.
    pub publications: usize,
    /// States that a reader did not get because it got a later one: the sum over all readers.
    pub skipped: u64,
    /// States that a reader got again, without having connected anew.
    pub repeated: u64,
    /// Snapshots older, by their place or their own time, than one that the reader had.
    pub went_back: u64,
    /// Snapshots that only the readers saw; they are not in `delay`.
    pub unknown: u64,
    /// From the publication to the reception, for each snapshot and reader that was connected then.
    pub delay: Percentiles,
    /// From the publication until the last of these readers had it, for each snapshot.
    pub all_served: Percentiles,
    /// From `go` until a reader was connected anew, by 500 ms.
    pub returns: Vec<u64>,
}
