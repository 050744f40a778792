//! The days that every run of the suite plays. `examples/bhav-sim-days.rs` plays more.

use super::day::{Length, play};

/// Seeds that the suite plays.
const DAYS: u64 = 50;

#[test]
fn fifty_days_keep_every_promise() {
    let (mut failed, mut closes) = (Vec::new(), 0);
    for seed in 1..=DAYS {
        match play(seed, Length::Short) {
            Ok(day) => closes += day.closes,
            Err(failure) => failed.push(failure),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(u64::from(closes) > DAYS, "{closes} points of the close were looked at");
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
