//! Prices made of noise: a day's closing level and the minutes that lead to it. Pure functions; any
//! thread.

use jiff::Timestamp;
use jiff::civil::Date;

use crate::base::clock;
use crate::sim::exchange::scale::Scale;
use crate::sim::exchange::universe;
use crate::sim::exchange::universe::Instrument;

/// The price at each full minute of a trading date, with the extremes up to there.
#[derive(Debug)]
pub(crate) struct Minutes {
    pub(crate) price: Vec<i64>,
    pub(crate) high: Vec<i64>,
    pub(crate) low: Vec<i64>,
}

/// The close of `date`, in paise.
pub(crate) fn close_of(instrument: &Instrument, date: Date, scale: Scale) -> i64 {
    let number = day_number(date);
    let factors = instrument.factors.iter();
    let level = factors
        .map(|&(key, weight)| daily_level(key, number) * weight / 100)
        .sum();
    priced(instrument, level, scale)
}

/// The minutes of `date`, of which there are `count`, where `before` is the trading date before.
pub(super) fn minutes_of(
    instrument: &Instrument,
    date: Date,
    before: Date,
    scale: Scale,
    count: i64,
) -> Minutes {
    let number = day_number(date);
    let number_before = day_number(before);
    let mut levels = vec![0; count as usize + 1];
    let mut wobble = vec![0; levels.len()];
    for &(key, weight) in &instrument.factors {
        let previous = daily_level(key, number_before);
        let close = daily_level(key, number);
        // The opening price contains part of the night's move.
        let gap = universe::line(key ^ 0x6a09, number, 1, 1_500);
        let open = previous + (close - previous) * 3 / 10 + gap;
        wobble_of(key, number, &mut wobble);
        for (minute, (level, wobble)) in (0..).zip(levels.iter_mut().zip(&wobble)) {
            let drift = (close - open) * minute / count;
            *level += (open + drift + wobble) * weight / 100;
        }
    }
    let price: Vec<i64> = levels
        .into_iter()
        .map(|level| priced(instrument, level, scale))
        .collect();
    let running = |choose: fn(i64, i64) -> i64| {
        price.iter().scan(price[0], move |so_far, &next| {
            *so_far = choose(*so_far, next);
            Some(*so_far)
        })
    };
    let high = running(i64::max).collect();
    let low = running(i64::min).collect();
    Minutes { price, high, low }
}

/// A factor's level at the close of day `number`: slow and fast noise added up, which looks enough
/// like a random walk and needs no history.
fn daily_level(key: u64, number: i64) -> i64 {
    [
        (1, 6_000),
        (5, 8_000),
        (21, 20_000),
        (89, 45_000),
        (377, 100_000),
    ]
    .iter()
    .map(|&(period, amplitude)| universe::line(key, number, period, amplitude))
    .sum()
}

/// Replaces `out` with a factor's noise within the day, nought at the open and at the close. It is
/// computed as one run, because years of days are made of it.
fn wobble_of(key: u64, number: i64, out: &mut [i64]) {
    let count = out.len() as i64 - 1;
    out.fill(0);
    for (period, amplitude) in [(1, 150), (5, 400), (20, 900), (75, 1_800)] {
        universe::add_line(key ^ 0xbb67, number * 1_000, period, amplitude, out);
    }
    for (minute, value) in (0..).zip(out) {
        let ramp = (40 * minute).min(40 * (count - minute)).min(1_000);
        *value = *value * ramp / 1_000;
    }
}

fn priced(instrument: &Instrument, level_ppm: i64, scale: Scale) -> i64 {
    let price = instrument.base_paise * (1_000_000 + level_ppm) / 1_000_000;
    on_tick(scale.price(price), instrument.tick_paise).max(instrument.tick_paise)
}

/// The nearest price that can be traded at.
pub(crate) fn on_tick(paise: i64, tick_paise: i64) -> i64 {
    (paise + tick_paise / 2) / tick_paise * tick_paise
}

pub(crate) fn day_number(date: Date) -> i64 {
    instant(date, 0).as_second().div_euclid(86_400)
}

/// The instant `second` seconds after midnight IST of `date`.
pub(crate) fn instant(date: Date, second: i64) -> Timestamp {
    let midnight = clock::instant(date.at(0, 0, 0, 0)).as_second();
    Timestamp::from_second(midnight + second).unwrap_or(Timestamp::UNIX_EPOCH)
}
