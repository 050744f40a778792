//! The days that every run of the suite plays. `examples/bhav-sim-days.rs` plays more.

use std::ops::RangeInclusive;

use super::day::{Length, play};

/// Plays the days of these seeds, which have a closing point each on average.
#[track_caller]
fn expect_kept(seeds: RangeInclusive<u64>) {
    let (mut failed, mut closes) = (Vec::new(), 0);
    for seed in seeds.clone() {
        match play(seed, Length::Short) {
            Ok(day) => closes += day.closes,
            Err(failure) => failed.push(failure),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let days = seeds.count();
    assert!(
        closes as usize >= days,
        "{closes} points of the close of {days} days were looked at"
    );
}

// Twenty days, in parts that run beside each other.

#[test]
fn days_1_to_5_keep_every_promise() {
    expect_kept(1..=5);
}

#[test]
fn days_6_to_10_keep_every_promise() {
    expect_kept(6..=10);
}

#[test]
fn days_11_to_15_keep_every_promise() {
    expect_kept(11..=15);
}

#[test]
fn days_16_to_20_keep_every_promise() {
    expect_kept(16..=20);
}

#[test]
fn a_whole_day_keeps_every_promise() {
    let day = play(1, Length::Long).unwrap_or_else(|failed| panic!("{failed}"));
    assert!(day.calls > 500 && day.refused > 0, "{day:?}");
}

#[test]
fn a_seed_plays_the_same_day_again() {
    let first = play(7, Length::Short).unwrap();
    assert!(first.prices > 100 && first.calls > 10 && first.acknowledged > 5, "{first:?}");
    assert_eq!(play(7, Length::Short).unwrap(), first);
    assert_ne!(play(8, Length::Short).unwrap().digest, first.digest);
}
