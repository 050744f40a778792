//! How long things took: histograms that any thread adds to and none waits for.
//!
//! Each thread adds to a shard of its own, so the hot path pays two additions to cache lines that
//! no other core writes. A reader sums the shards; relaxed, so a sum may miss what is being added.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::counter::{SHARDS, shard};

/// Upper bounds of the buckets in nanoseconds; one more bucket takes what is longer. Dense around
/// the 2 ms that answers from memory are promised in, then up to the deadlines of lanes.
pub const BOUNDS_NS: [u64; 16] = [
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

/// The bounds and the one above them.
pub const BUCKETS: usize = BOUNDS_NS.len() + 1;

/// One series on one shard, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Cell {
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
}

/// A fixed number of histograms with the same buckets.
#[derive(Debug)]
pub struct Durations {
    /// By shard, then by series.
    shards: Box<[Box<[Cell]>]>,
}

/// One histogram as it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationCounts {
    /// Not cumulative; the last holds what is above all bounds.
    pub buckets: [u64; BUCKETS],
    pub sum_ns: u64,
}

impl DurationCounts {
    /// How many were recorded.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

impl Durations {
    /// `series` empty histograms.
    pub fn new(series: usize) -> Self {
        let shard = || (0..series).map(|_| Cell::default()).collect();
        Self { shards: (0..SHARDS).map(|_| shard()).collect() }
    }

    /// Adds one duration. A series that does not exist is a fault of the caller and counts nothing.
    pub fn record(&self, series: usize, took_ns: u64) {
        let Some(cell) = self.shards[shard()].get(series) else { return };
        let bucket = BOUNDS_NS.iter().position(|bound| took_ns <= *bound);
        cell.buckets[bucket.unwrap_or(BOUNDS_NS.len())].fetch_add(1, Relaxed);
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

    /// How many were recorded in all histograms together.
    pub fn count(&self) -> u64 {
        let cells = self.shards.iter().flatten();
        cells.flat_map(|cell| &cell.buckets).map(|bucket| bucket.load(Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_duration_lands_in_the_first_bucket_that_holds_it() {
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
    fn nothing_is_lost_between_threads() {
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
