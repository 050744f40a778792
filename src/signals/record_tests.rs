//! Confidence by its definition.

use proptest::prelude::*;

use super::*;

fn key(name: &str) -> Key {
    Key::from_name(name).unwrap()
}

/// Bars on consecutive dates.
fn bars(closes: &[i64]) -> Vec<Bar> {
    closes.iter().enumerate().map(|(date, close_e4)| Bar { date, close_e4: *close_e4 }).collect()
}

#[test]
fn a_key_never_seen_gets_the_half_shrunk_base_rate() {
    // Up on every day.
    let rising = bars(&(1..=20).collect::<Vec<_>>());
    let mut outcomes = Outcomes::new(20);
    outcomes.add(&rising, &[]);
    let record = outcomes.finish();
    let up = record.weigh(key("hammer"), 19);
    assert_eq!((up.base_rate, up.confidence, up.hit_rate), (1.0, 0.75, None));
    let down = record.weigh(key("hanging_man"), 19);
    assert_eq!((down.base_rate, down.confidence), (0.0, 0.25));
    assert_eq!(record.weigh(key("hammer"), 3).confidence, 0.5, "nothing known yet");
}

#[test]
fn one_date_counts_once_however_many_symbols_signal() {
    let dates = 10;
    let mut outcomes = Outcomes::new(dates);
    let hammer = key("hammer");
    // Three symbols signal on date 0, two of them rightly; one signals on date 1, rightly.
    outcomes.add(&bars(&[1, 1, 1, 1, 1, 2, 2]), &[(0, hammer), (1, hammer)]);
    outcomes.add(&bars(&[1, 1, 1, 1, 1, 2, 1]), &[(0, hammer)]);
    outcomes.add(&bars(&[2, 1, 1, 1, 1, 1, 1]), &[(0, hammer)]);
    let weight = outcomes.finish().weigh(hammer, 9);
    assert_eq!((weight.dates, weight.signals), (2, 4));
    let hit_rate = weight.hit_rate.unwrap();
    assert!((hit_rate - (2.0 / 3.0 + 1.0) / 2.0).abs() < 1e-12);
    // Six symbol-days with an outcome: up on three of them.
    let prior = 0.5 + 0.5 * (weight.base_rate - 0.5);
    let expected = (2.0 / 3.0 + 1.0 + 300.0 * prior) / 302.0;
    assert!((weight.confidence - expected).abs() < 1e-12);
}

#[test]
fn an_outcome_counts_from_the_day_it_is_known() {
    let mut outcomes = Outcomes::new(12);
    let hammer = key("hammer");
    outcomes.add(&bars(&[1; 12]), &[(4, hammer)]);
    let record = outcomes.finish();
    assert_eq!(record.weigh(hammer, 8).dates, 0);
    assert_eq!(record.weigh(hammer, 9).dates, 1);
}

proptest! {
    /// What a date's confidence is made of cannot change by what comes after it.
    #[test]
    fn the_future_does_not_repaint(
        closes in prop::collection::vec(1_i64..50, 30..60),
        signals in prop::collection::vec(0_usize..25, 0..20),
        today in 10_usize..25,
    ) {
        let hammer = key("hammer");
        let weigh = |closes: &[i64]| {
            let known = bars(closes);
            let mut outcomes = Outcomes::new(60);
            let signals: Vec<_> = signals.iter()
                .filter(|at| **at < closes.len()).map(|at| (*at, hammer)).collect();
            outcomes.add(&known, &signals);
            outcomes.finish().weigh(hammer, today)
        };
        prop_assert_eq!(weigh(&closes), weigh(&closes[..=today]));
    }

    #[test]
    fn confidence_is_a_probability_near_the_base(
        closes in prop::collection::vec(1_i64..50, 8..200),
        every in 1_usize..9,
    ) {
        let known = bars(&closes);
        let mut outcomes = Outcomes::new(closes.len());
        let hammer = key("hammer");
        let signals: Vec<_> = (0..closes.len()).step_by(every).map(|at| (at, hammer)).collect();
        outcomes.add(&known, &signals);
        let weight = outcomes.finish().weigh(hammer, closes.len() - 1);
        prop_assert!((0.0..=1.0).contains(&weight.confidence));
        let prior = 0.5 + 0.5 * (weight.base_rate - 0.5);
        let hit_rate = weight.hit_rate.unwrap_or(prior);
        let (low, high) = (prior.min(hit_rate) - 1e-12, prior.max(hit_rate) + 1e-12);
        prop_assert!((low..=high).contains(&weight.confidence));
    }
}
