//! Confidence compared with its definition.

use proptest::prelude::*;

use super::*;

fn key(name: &str) -> Key {
    Key::from_name(name).unwrap()
}

/// Bars on these dates.
fn on_dates(closes: &[(usize, i64)]) -> Vec<Bar> {
    let bar = |(date, close_e4): &(usize, i64)| Bar {
        date: *date,
        close_e4: *close_e4,
        is_silent: false,
    };
    closes.iter().map(bar).collect()
}

/// Bars on consecutive dates.
fn bars(closes: &[i64]) -> Vec<Bar> {
    on_dates(&closes.iter().copied().enumerate().collect::<Vec<_>>())
}

#[test]
fn a_key_without_signals_gets_the_half_shrunk_base_rate() {
    // A share that rises every day.
    let rising = bars(&(1..=20).collect::<Vec<_>>());
    let mut outcomes = Outcomes::new(20);
    outcomes.add(&rising, &[]);
    let record = outcomes.finish(PRIOR_DATES);
    let up = record.weigh(key("hammer"), 19);
    assert_eq!((up.base_rate, up.confidence, up.hit_rate()), (1.0, 0.75, None));
    let down = record.weigh(key("hanging_man"), 19);
    assert_eq!((down.base_rate, down.confidence), (0.0, 0.25));
    assert_eq!(record.weigh(key("hammer"), 3).confidence, 0.5, "nothing known yet");
}

#[test]
fn a_date_counts_once_however_many_symbols_signal() {
    let dates = 10;
    let mut outcomes = Outcomes::new(dates);
    let hammer = key("hammer");
    // On date 0 three symbols have the signal and two hit. On date 1 one has it and hits.
    outcomes.add(&bars(&[1, 1, 1, 1, 1, 2, 2]), &[(0, hammer), (1, hammer)]);
    outcomes.add(&bars(&[1, 1, 1, 1, 1, 2, 1]), &[(0, hammer)]);
    outcomes.add(&bars(&[2, 1, 1, 1, 1, 1, 1]), &[(0, hammer)]);
    let record = outcomes.finish(300);
    let weight = record.weigh(hammer, 9);
    assert_eq!((weight.dates, weight.signals, weight.hits), (2, 4, 3));
    assert_eq!(weight.hit_rate(), Some(0.75), "of signals; the dates' mean is another number");
    let hit_rate = weight.date_hit_rate.unwrap();
    assert!((hit_rate - (2.0 / 3.0 + 1.0) / 2.0).abs() < 1e-12);
    // Six symbol-days have an outcome; three of them rose.
    let prior = 0.5 + 0.5 * (weight.base_rate - 0.5);
    let expected = (2.0 / 3.0 + 1.0 + 300.0 * prior) / 302.0;
    assert!((weight.confidence - expected).abs() < 1e-12);
}

#[test]
fn an_outcome_counts_from_the_date_on_which_it_is_known() {
    let mut outcomes = Outcomes::new(12);
    let hammer = key("hammer");
    outcomes.add(&bars(&[1; 12]), &[(4, hammer)]);
    let record = outcomes.finish(PRIOR_DATES);
    assert_eq!(record.weigh(hammer, 8).dates, 0);
    assert_eq!(record.weigh(hammer, 9).dates, 1);
}

/// A share that trades on one day in three is judged after fifteen dates. Until then its outcome is
/// unknown.
#[test]
fn an_outcome_of_a_share_with_gaps_counts_from_its_own_date() {
    let hammer = key("hammer");
    let gappy: Vec<(usize, i64)> = (0..10).map(|at| (at * 3, 10 + at as i64)).collect();
    let mut outcomes = Outcomes::new(30);
    outcomes.add(&on_dates(&gappy), &[(0, hammer), (1, hammer)]);
    outcomes.add(&bars(&[5; 30]), &[(0, hammer)]);
    let record = outcomes.finish(PRIOR_DATES);
    let known = |date: usize| {
        let weight = record.weigh(hammer, date);
        (weight.dates, weight.signals, weight.hits)
    };
    assert_eq!([known(4), known(5), known(14)], [(0, 0, 0), (1, 1, 0), (1, 1, 0)]);
    assert_eq!([known(15), known(17), known(18)], [(1, 2, 1), (1, 2, 1), (2, 3, 2)]);
    // Every day of the flat share counts, and those days of the other share that are judged.
    assert_eq!(record.weigh(hammer, 14).base_rate, 0.0);
    assert_eq!(record.weigh(hammer, 15).base_rate, 1.0 / 12.0);
    assert_eq!(record.weigh(hammer, 15).date_hit_rate, Some(0.5));
    assert_eq!(record.weigh(hammer, 18).date_hit_rate, Some(0.75));
}

proptest! {
    /// The confidence of a date must not change when later outcomes are added.
    #[test]
    fn later_outcomes_change_no_earlier_confidence(
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
            outcomes.finish(PRIOR_DATES).weigh(hammer, today)
        };
        prop_assert_eq!(weigh(&closes), weigh(&closes[..=today]));
    }

    #[test]
    fn confidence_is_a_probability_near_the_base_rate(
        closes in prop::collection::vec(1_i64..50, 8..200),
        every in 1_usize..9,
    ) {
        let known = bars(&closes);
        let mut outcomes = Outcomes::new(closes.len());
        let hammer = key("hammer");
        let signals: Vec<_> = (0..closes.len()).step_by(every).map(|at| (at, hammer)).collect();
        outcomes.add(&known, &signals);
        let weight = outcomes.finish(PRIOR_DATES).weigh(hammer, closes.len() - 1);
        prop_assert!((0.0..=1.0).contains(&weight.confidence));
        let prior = 0.5 + 0.5 * (weight.base_rate - 0.5);
        let hit_rate = weight.date_hit_rate.unwrap_or(prior);
        let low = prior.min(hit_rate) - 1e-12;
        let high = prior.max(hit_rate) + 1e-12;
        prop_assert!((low..=high).contains(&weight.confidence));
    }
}
