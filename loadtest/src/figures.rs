//! What the slices of a run found, and the statistics over them.
//!
//! The machine drifts by more in an hour than the differences that matter. Within a round the
//! servers run seconds apart, so a ratio is taken there, and the median is over these ratios.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter, Result};

use openloop::report::LoadReport;

/// One slice: one server under one load for a few seconds.
#[derive(Debug, Clone, Default)]
pub struct Slice {
    /// The generator's figures.
    pub load: LoadReport,
    /// CPU time of the server per response, in microseconds.
    pub cpu_us_per_request: f64,
    /// Share of all cores that was used by neither the server nor the generator: other programs,
    /// and the kernel's work that it charges to nobody.
    pub foreign_share: f64,
    /// Whatever else was read, by name: growth of counters, memory, answers to background load.
    pub read: BTreeMap<String, f64>,
}

impl Slice {
    /// A value of [`Self::read`]; not a number if it was not read.
    pub fn value(&self, name: &str) -> f64 {
        self.read.get(name).copied().unwrap_or(f64::NAN)
    }

    /// Values whose names begin with `prefix`, with the rest of the name.
    pub fn values<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        let found = self
            .read
            .iter()
            .map(move |(name, &value)| (name.strip_prefix(prefix), value));
        found.filter_map(|(rest, value)| Some((rest?, value)))
    }
}

/// For the progress of a run.
impl Display for Slice {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.load.requests == 0 {
            return write!(f, "{:.2?}", self.read);
        }
        let (per_s, p999_us) = (self.load.rate_per_s, self.load.latency.p999_us);
        let (cpu_us, others) = (self.cpu_us_per_request, self.foreign_share * 100.0);
        write!(
            f,
            "{per_s:.0} req/s, {cpu_us:.2} µs CPU, p99.9 {p999_us:.0} µs, others {others:.1} %"
        )
    }
}

/// A figure of a slice.
pub type Figure = fn(&Slice) -> f64;

/// A server and a case of a run, by their names.
pub type Key = (&'static str, &'static str);

/// All slices of a run, in the order of measurement.
#[derive(Debug, Default)]
pub struct Figures(Vec<(Key, Slice)>);

impl Figures {
    /// Adds one slice.
    pub fn push(&mut self, key: Key, slice: Slice) {
        self.0.push((key, slice));
    }

    /// Slices of one server and case, one per round.
    pub fn of(&self, key: Key) -> Vec<&Slice> {
        self.0
            .iter()
            .filter(|(other, _)| *other == key)
            .map(|(_, slice)| slice)
            .collect()
    }

    /// Every slice with its key.
    pub fn all(&self) -> impl Iterator<Item = &(Key, Slice)> {
        self.0.iter()
    }

    /// One value per round.
    pub fn values(&self, key: Key, figure: Figure) -> Vec<f64> {
        self.of(key).into_iter().map(figure).collect()
    }

    /// Median over the rounds.
    pub fn median(&self, key: Key, figure: Figure) -> Option<f64> {
        median(&self.values(key, figure))
    }

    /// One ratio per round.
    pub fn ratios(&self, key: Key, base: Key, figure: Figure) -> Vec<f64> {
        let (values, bases) = (self.values(key, figure), self.values(base, figure));
        let pairs = values.iter().zip(&bases).filter(|&(_, &base)| base > 0.0);
        pairs.map(|(value, base)| value / base).collect()
    }

    /// Median of the ratios.
    pub fn ratio(&self, key: Key, base: Key, figure: Figure) -> Option<f64> {
        median(&self.ratios(key, base, figure))
    }
}

/// Median; `None` of nothing or of what was not read.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let median = match (sorted.len(), sorted.len() % 2) {
        (0, _) => return None,
        (_, 1) => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    };
    (!median.is_nan()).then_some(median)
}

/// Smallest and largest; `None` of nothing.
pub fn spread(values: &[f64]) -> Option<(f64, f64)> {
    let first = *values.first()?;
    Some(
        values
            .iter()
            .fold((first, first), |(low, high), &value| (low.min(value), high.max(value))),
    )
}

#[cfg(test)]
mod tests {
    use super::{Figures, Slice, median, spread};

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[f64::NAN]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine halved its speed in the second round; the ratio did not move.
        let mut figures = Figures::default();
        for (ours, theirs) in [(9.0, 10.0), (18.0, 20.0), (1.0, 0.0)] {
            for (server, cpu) in [("ours", ours), ("theirs", theirs)] {
                let slice = Slice {
                    cpu_us_per_request: cpu,
                    ..Slice::default()
                };
                figures.push((server, "case"), slice);
            }
        }
        let cpu = |slice: &Slice| slice.cpu_us_per_request;
        let (ours, theirs) = (("ours", "case"), ("theirs", "case"));
        assert_eq!(figures.ratios(ours, theirs, cpu), [0.9, 0.9]);
        assert_eq!(figures.ratio(ours, theirs, cpu), Some(0.9));
        assert_eq!(figures.ratio(theirs, ("other", "case"), cpu), None);
    }

    #[test]
    fn spread_is_smallest_and_largest() {
        assert_eq!(spread(&[2.0, 3.0, 1.0]), Some((1.0, 3.0)));
        assert_eq!(spread(&[]), None);
    }
}
