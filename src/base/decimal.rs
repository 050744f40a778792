//! Exact decimal arithmetic and its written form.
//!
//! Money never passes through a binary float. The brokers' digits are parsed into [`Decimal`] and
//! rounded only when written out, half away from zero.

use rust_decimal::{Decimal, RoundingStrategy};

/// Digits after the point in everything the API writes.
pub const WRITTEN_PLACES: u32 = 2;

/// Rounds for output: two places, half away from zero.
pub fn rounded(value: Decimal) -> Decimal {
    value.round_dp_with_strategy(WRITTEN_PLACES, RoundingStrategy::MidpointAwayFromZero)
}

/// Percent change of `last` from `previous_close`; `None` if the previous close is not positive or
/// the result does not fit.
pub fn percent_change(last: Decimal, previous_close: Decimal) -> Option<Decimal> {
    if previous_close <= Decimal::ZERO {
        return None;
    }
    last.checked_sub(previous_close)?.checked_mul(Decimal::ONE_HUNDRED)?.checked_div(previous_close)
}

/// Appends `value`, rounded, as a JSON number in its shortest form (`1412.95`, `1075`, `-0.5`).
pub fn write_json(out: &mut Vec<u8>, value: Decimal) {
    use std::io::Write;
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{}", shortest(rounded(value)));
}

/// The same number without trailing zeros; negative zero becomes `0`.
pub fn shortest(value: Decimal) -> Decimal {
    if value.is_zero() { Decimal::ZERO } else { value.normalize() }
}

/// Parses the text of a JSON number, plain or with an exponent; `None` if it does not fit.
pub fn parse(text: &str) -> Option<Decimal> {
    let text = text.trim();
    if text.contains(['e', 'E']) { Decimal::from_scientific(text).ok() } else { text.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        write_json(&mut out, parse(text).unwrap());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn writes_the_shortest_form_rounded_half_away_from_zero() {
        for (given, expected) in [
            ("1412.95", "1412.95"),
            ("1075", "1075"),
            ("1075.00", "1075"),
            ("0.125", "0.13"),
            ("-0.125", "-0.13"),
            ("-0.001", "0"),
            ("2436.199951171875", "2436.2"),
            ("1e3", "1000"),
        ] {
            assert_eq!(written(given), expected, "for {given}");
        }
    }

    #[test]
    fn percent_change_from_a_zero_close_is_none() {
        let ten = Decimal::TEN;
        assert_eq!(percent_change(ten, Decimal::ZERO), None);
        assert_eq!(percent_change(Decimal::from(11), ten), Some(ten));
    }
}
