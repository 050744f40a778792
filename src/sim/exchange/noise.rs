//! Seeded noise in whole numbers: the same on every machine, with no state and no binary floats.
//! Pure functions; any thread.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

/// Spreads the bits of `x` (the finaliser of the splitmix64 generator).
fn spread(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A stream of noise of its own for `name` under `seed`.
pub(crate) fn key(seed: u64, name: &str) -> u64 {
    // FNV-1a, then mixed with the seed.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    spread(hash ^ spread(seed))
}

/// The stream's value number `at`.
pub(crate) fn draw(key: u64, at: i64) -> u64 {
    spread(key ^ spread(at as u64))
}

/// The stream's value number `at`, in `0..below`.
pub(crate) fn pick(key: u64, at: i64, below: i64) -> i64 {
    (draw(key, at) % below.unsigned_abs().max(1)) as i64
}

/// A continuous line through random points in `-amplitude..=amplitude`, `period` steps apart.
pub(crate) fn line(key: u64, at: i64, period: i64, amplitude: i64) -> i64 {
    // Each scale draws from a stream of its own.
    let stream = key ^ (period as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let (cell, within) = (at.div_euclid(period), at.rem_euclid(period));
    let from = pick(stream, cell, 2 * amplitude + 1) - amplitude;
    if within == 0 {
        return from;
    }
    let to = pick(stream, cell + 1, 2 * amplitude + 1) - amplitude;
    from + (to - from) * within / period
}

/// Adds [`line`] at `at` and the steps after it to `out`, at two draws per `period`.
pub(crate) fn add_line(key: u64, at: i64, period: i64, amplitude: i64, out: &mut [i64]) {
    let stream = key ^ (period as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let end = |cell| pick(stream, cell, 2 * amplitude + 1) - amplitude;
    let (mut cell, mut within) = (at.div_euclid(period), at.rem_euclid(period));
    let (mut from, mut to) = (end(cell), end(cell + 1));
    for value in out {
        *value += from + (to - from) * within / period;
        within += 1;
        if within == period {
            (cell, within, from) = (cell + 1, 0, to);
            to = end(cell + 1);
        }
    }
}

/// Rupees as whole paise; 0 if it does not fit.
pub(crate) fn paise(rupees: Decimal) -> i64 {
    (rupees * Decimal::ONE_HUNDRED).to_i64().unwrap_or(0)
}

/// Paise as rupees, exact.
pub(crate) fn rupees(paise: i64) -> Decimal {
    Decimal::new(paise, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_in_its_band_and_is_continuous() {
        let key = key(7, "test");
        let mut last = line(key, -500, 20, 900);
        for at in -499..500 {
            let next = line(key, at, 20, 900);
            assert!(next.abs() <= 900);
            assert!((next - last).abs() <= 91, "jump at {at}");
            last = next;
        }
    }

    #[test]
    fn a_run_of_a_line_is_the_line() {
        for (at, period) in [(-37, 5), (0, 1), (1_234, 75), (7, 20)] {
            let mut run = [3; 200];
            add_line(key(7, "test"), at, period, 900, &mut run);
            let one = |step| 3 + line(key(7, "test"), step, period, 900);
            assert!((at..).zip(run).all(|(step, value)| value == one(step)), "{at} {period}");
        }
    }

    #[test]
    fn streams_differ_by_name_and_by_seed() {
        let draws = |key| (0..4).map(|at| draw(key, at)).collect::<Vec<_>>();
        assert_ne!(draws(key(1, "a")), draws(key(1, "b")));
        assert_ne!(draws(key(1, "a")), draws(key(2, "a")));
        assert_eq!(draws(key(1, "a")), draws(key(1, "a")));
    }
}
