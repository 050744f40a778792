//! Means over signals that are not independent, with their standard errors. Pure.
//!
//! Signals of one day share the market's move, and outcomes over five sessions overlap, so a signal
//! is not an independent observation. Therefore dates with signals are grouped in order, five at a
//! time, into blocks. With S the sum of the values of a block, N their number, and m = ΣS / ΣN over
//! all B blocks, the variance of m is
//!
//! B / (B − 1) · Σ (S − m N)² / (ΣN)²
//!
//! This is the variance of a ratio of two sums over independent blocks. The interval is m ± t ·
//! √variance, where t is Student's 97.5 % quantile for B − 1 degrees of freedom. One pass collects
//! the three further sums Σ S², Σ S N and Σ N²; no random numbers are needed.
//!
//! Measured on three years of 50 large shares with a prior of 300 dates, the error of the
//! difference of the Brier score to a coin's is 0.00127 by this method, 0.00140 by a bootstrap of
//! blocks of twenty dates, and 0.00021 if signals were taken as independent.

use jiff::civil::Date;

/// Dates in a block. The outcomes of two signals this many dates apart do not overlap.
pub(crate) const BLOCK_DATES: u64 = 5;
/// Fewest blocks (ten weeks) with which a mean gets a standard error and a score. With fewer the
/// error itself is too uncertain.
pub(crate) const BLOCKS_MIN: u64 = 10;
/// Dates in that many blocks.
pub const SCORE_DATES_MIN: u64 = BLOCK_DATES * BLOCKS_MIN;

/// Numbers dates, which must come in ascending order, and their blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Numbering {
    last: Option<Date>,
    /// Dates so far.
    pub dates: u64,
}

impl Numbering {
    /// The number of `date`, counted from 1, and the number of its block.
    pub(crate) fn take(&mut self, date: Date) -> Place {
        if self.last != Some(date) {
            self.last = Some(date);
            self.dates += 1;
        }
        Place {
            date: self.dates,
            block: self.dates.div_ceil(BLOCK_DATES),
        }
    }
}

/// Number of a signal's date and of its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub date: u64,
    pub block: u64,
}

/// A mean with its standard error and interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub standard_error: f64,
    /// Ends of the 95 % interval.
    pub low: f64,
    pub high: f64,
}

impl Estimate {
    /// Whether the whole interval is below zero, above zero, or contains it.
    pub(crate) fn side(&self) -> std::cmp::Ordering {
        if self.low > 0.0 {
            std::cmp::Ordering::Greater
        } else if self.high < 0.0 {
            std::cmp::Ordering::Less
        } else {
            std::cmp::Ordering::Equal
        }
    }
}

/// Sums of values by block. Values must come in the order of their blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Blocks {
    /// Sum of the current block, and its number.
    sum: f64,
    count: f64,
    block: u64,
    /// Sums over the blocks before the current one.
    closed: Sums,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sums {
    blocks: u64,
    sum: f64,
    count: f64,
    sum_sum: f64,
    sum_count: f64,
    count_count: f64,
}

impl Blocks {
    /// Adds a value to the block of `place`.
    pub(crate) fn count(&mut self, place: Place, value: f64) {
        if place.block != self.block {
            self.closed = self.sums();
            (self.sum, self.count, self.block) = (0.0, 0.0, place.block);
        }
        self.sum += value;
        self.count += 1.0;
    }

    /// The sums including the current block.
    fn sums(&self) -> Sums {
        let Self {
            sum, count, closed, ..
        } = *self;
        if count == 0.0 {
            return closed;
        }
        Sums {
            blocks: closed.blocks + 1,
            sum: closed.sum + sum,
            count: closed.count + count,
            sum_sum: closed.sum_sum + sum * sum,
            sum_count: closed.sum_count + sum * count,
            count_count: closed.count_count + count * count,
        }
    }

    /// Mean of the values; `None` without any.
    pub(crate) fn mean(&self) -> Option<f64> {
        let sums = self.sums();
        (sums.count > 0.0).then(|| sums.sum / sums.count)
    }

    /// Number of blocks that have a value.
    pub(crate) fn blocks(&self) -> u64 {
        self.sums().blocks
    }

    /// Standard error of the mean; zero for a single block.
    pub(crate) fn standard_error(&self) -> f64 {
        let sums = self.sums();
        if sums.blocks < 2 {
            return 0.0;
        }
        let blocks = sums.blocks as f64;
        let mean = sums.sum / sums.count;
        let squared_deviation =
            sums.sum_sum - 2.0 * mean * sums.sum_count + mean * mean * sums.count_count;
        // Rounding may make it slightly negative.
        (squared_deviation.max(0.0) * blocks / (blocks - 1.0)).sqrt() / sums.count
    }

    /// Mean, error and interval; `None` with fewer than [`BLOCKS_MIN`] blocks.
    pub(crate) fn estimate(&self) -> Option<Estimate> {
        let value = self.mean()?;
        let standard_error = self.standard_error();
        let blocks = self.sums().blocks;
        let half = student(blocks.checked_sub(1)?) * standard_error;
        let low = value - half;
        let high = value + half;
        (blocks >= BLOCKS_MIN).then_some(Estimate {
            value,
            standard_error,
            low,
            high,
        })
    }
}

/// Student's 97.5 % quantile by its series in 1 / freedom. From 9 degrees of freedom on the error
/// is at most 0.004.
fn student(freedom: u64) -> f64 {
    const NORMAL: f64 = 1.959_963_984_540_054;
    let z = NORMAL;
    let nu = freedom.max(1) as f64;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    z + first / nu + second / nu.powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(block: u64) -> Place {
        Place {
            date: block * BLOCK_DATES,
            block,
        }
    }

    #[test]
    fn dates_are_numbered_in_blocks_of_five() {
        let mut numbering = Numbering::default();
        let first = Date::constant(2026, 1, 1);
        let dates = first
            .series(jiff::Span::new().days(2))
            .take(11)
            .flat_map(|date| [date, date]);
        let blocks: Vec<u64> = dates.map(|date| numbering.take(date).block).collect();
        assert_eq!(blocks[..10], [1; 10]);
        assert_eq!(blocks[10..], [[2; 10].as_slice(), [3; 2].as_slice()].concat());
        assert_eq!(numbering.dates, 11);
    }

    /// Compared with the formula in the module's comment, over blocks of unequal size.
    #[test]
    fn the_standard_error_equals_the_block_formula() {
        let blocks: Vec<Vec<f64>> = (1..=12_u32)
            .map(|block| {
                (0..1 + block % 4)
                    .map(|at| f64::from((block * 7 + at * 5) % 11) - 3.0)
                    .collect()
            })
            .collect();
        let mut sums = Blocks::default();
        for (values, block) in blocks.iter().zip(1..) {
            values
                .iter()
                .for_each(|value| sums.count(place(block), *value));
        }
        let count: f64 = blocks.iter().map(|values| values.len() as f64).sum();
        let mean = blocks.iter().flatten().sum::<f64>() / count;
        let squared_deviation =
            |values: &Vec<f64>| (values.iter().sum::<f64>() - mean * values.len() as f64).powi(2);
        let error =
            (blocks.iter().map(squared_deviation).sum::<f64>() * 12.0 / 11.0).sqrt() / count;
        let estimate = sums.estimate().unwrap();
        assert!((estimate.value - mean).abs() < 1e-12);
        assert!((estimate.standard_error - error).abs() < 1e-12, "{estimate:?} {error}");
        // The tabulated quantile for 11 degrees of freedom.
        let half = (estimate.high - estimate.low) / 2.0 / error;
        assert!((half - 2.201).abs() < 0.003, "{half}");
    }

    #[test]
    fn repeated_values_in_a_block_do_not_lower_the_error() {
        // The same value forty times a block is one observation, not forty.
        let of = |times: usize| {
            let mut sums = Blocks::default();
            for block in 1..=20 {
                let value = if block % 2 == 0 { 1.0 } else { 0.0 };
                (0..times).for_each(|_| sums.count(place(block), value));
            }
            sums.estimate().unwrap().standard_error
        };
        assert!((of(1) - of(40)).abs() < 1e-12);
        assert!((of(1) - 0.5 / 19_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn an_estimate_needs_enough_blocks() {
        let mut sums = Blocks::default();
        assert_eq!((sums.mean(), sums.estimate()), (None, None));
        for block in 1..BLOCKS_MIN {
            sums.count(place(block), 1.0);
            assert_eq!((sums.mean(), sums.estimate()), (Some(1.0), None));
        }
        sums.count(place(BLOCKS_MIN), 1.0);
        let estimate = sums.estimate().unwrap();
        assert_eq!((estimate.low, estimate.high), (1.0, 1.0));
        assert_eq!(estimate.side(), std::cmp::Ordering::Greater);
    }

    #[test]
    fn the_quantile_equals_the_tabulated_one() {
        for (freedom, quantile) in [
            (9, 2.262),
            (14, 2.145),
            (29, 2.045),
            (60, 2.000),
            (146, 1.976),
        ] {
            assert!((student(freedom) - quantile).abs() < 0.004, "{freedom}: {}", student(freedom));
        }
    }
}
