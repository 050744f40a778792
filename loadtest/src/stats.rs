//! Medians, and ratios taken within a round.
//!
//! The machine drifts by more in an hour than the differences that matter. Within a round the
//! servers run seconds apart, so a ratio is taken there, and the median is over these ratios.

/// Median; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.len(), sorted.len() % 2) {
        (0, _) => None,
        (_, 1) => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// Median of `values[round] / yardstick[round]`.
pub fn median_ratio(values: &[f64], yardstick: &[f64]) -> Option<f64> {
    let ratios: Vec<f64> = values
        .iter()
        .zip(yardstick)
        .filter(|&(_, &base)| base > 0.0)
        .map(|(value, base)| value / base)
        .collect();
    median(&ratios)
}

/// Smallest and largest; `None` of nothing.
pub fn spread(values: &[f64]) -> Option<(f64, f64)> {
    let first = *values.first()?;
    Some(
        values.iter().fold((first, first), |(low, high), &value| (low.min(value), high.max(value))),
    )
}

#[cfg(test)]
mod tests {
    use super::{median, median_ratio, spread};

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine halved its speed in the second round; the ratio did not move.
        assert_eq!(median_ratio(&[9.0, 18.0], &[10.0, 20.0]), Some(0.9));
        assert_eq!(median_ratio(&[1.0], &[0.0]), None);
    }

    #[test]
    fn spread_is_smallest_and_largest() {
        assert_eq!(spread(&[2.0, 3.0, 1.0]), Some((1.0, 3.0)));
        assert_eq!(spread(&[]), None);
    }
}
