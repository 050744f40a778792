//! Histograms of durations that any thread may add to without waiting.
//!
//! Each thread adds to its own shard, so the hot path pays two additions to cache lines that no
//! other core writes. A reader sums the shards and may miss additions that happen meanwhile.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::ops::counter::{SHARDS, shard};

/// Upper bounds of the buckets in nanoseconds; one more bucket counts longer durations. Dense up to
/// 2 ms, the promised limit for responses from memory, then wider up to the deadlines of lanes.
pub(crate) const BOUNDS_NS: [u64; 16] = [
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_000_000,
    4_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// Number of buckets: one for each bound, and one for longer durations.
pub(crate) const BUCKETS: usize = BOUNDS_NS.len() + 1;

/// One series in one shard, aligned so that it shares no cache line with another.
#[derive(Debug, Default)]
#[repr(align(64))]
struct HistogramCell {
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
}

/// A fixed number of histograms with the same buckets.
#[derive(Debug)]
pub struct Durations {
    /// Indexed by shard, then by series.
    shards: Box<[Box<[HistogramCell]>]>,
}

/// The counts of one histogram at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationCounts {
    /// Counts by bucket, not cumulative; the last bucket is above all bounds.
    pub buckets: [u64; BUCKETS],
    pub sum_ns: u64,
}

impl DurationCounts {
    /// Number of recorded durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// The bucket of `value`: the first whose upper bound it does not exceed, or one more than there
/// are bounds.
pub(crate) fn bucket_of(bounds: &[u64], value: u64) -> usize {
    bounds
        .iter()
        .position(|bound| value <= *bound)
        .unwrap_or(bounds.len())
}

impl Default for Durations {
    /// One empty histogram.
    fn default() -> Self {
        Self::new(1)
    }
}

impl Durations {
    /// `series` empty histograms.
    pub fn new(series: usize) -> Self {
        let shard = || (0..series).map(|_| HistogramCell::default()).collect();
        Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
        }
    }

    /// Records one duration. A `series` out of range is a bug of the caller and is ignored.
    pub fn record(&self, series: usize, took_ns: u64) {
        let Some(cell) = self.shards[shard()].get(series) else {
            return;
        };
        cell.buckets[bucket_of(&BOUNDS_NS, took_ns)].fetch_add(1, Relaxed);
        cell.sum_ns.fetch_add(took_ns, Relaxed);
    }

    /// One histogram, summed over all threads.
    pub fn read(&self, series: usize) -> DurationCounts {
        let mut counts = DurationCounts::default();
        for cell in self.shards.iter().filter_map(|shard| shard.get(series)) {
            for (sum, bucket) in counts.buckets.iter_mut().zip(&cell.buckets) {
                *sum += bucket.load(Relaxed);
            }
            counts.sum_ns += cell.sum_ns.load(Relaxed);
        }
        counts
    }

    /// Number of recorded durations in all histograms together.
    pub(crate) fn count(&self) -> u64 {
        let cells = self.shards.iter().flatten();
        cells
            .flat_map(|cell| &cell.buckets)
            .map(|bucket| bucket.load(Relaxed))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        assert!(BOUNDS_NS.is_sorted_by(|low, high| low < high));
        let durations = Durations::new(2);
        for bound in BOUNDS_NS {
            durations.record(1, bound);
            durations.record(1, bound + 1);
        }
        durations.record(1, 0);
        durations.record(2, 1);
        let counts = durations.read(1);
        assert_eq!(counts.buckets[0], 2);
        assert!(counts.buckets[1..16].iter().all(|count| *count == 2), "{counts:?}");
        assert_eq!((counts.buckets[16], counts.count()), (1, 33));
        assert_eq!(counts.sum_ns, BOUNDS_NS.iter().sum::<u64>() * 2 + 16);
        assert_eq!((durations.read(0), durations.count()), (DurationCounts::default(), 33));
    }

    #[test]
    fn a_histogram_loses_no_duration_of_concurrent_threads() {
        let durations = Durations::new(1);
        std::thread::scope(|scope| {
            for _ in 0..2 * SHARDS {
                scope.spawn(|| (0..1_000).for_each(|_| durations.record(0, 3)));
            }
        });
        let counts = durations.read(0);
        assert_eq!((counts.buckets[0], counts.sum_ns), (32_000, 96_000));
    }
}
