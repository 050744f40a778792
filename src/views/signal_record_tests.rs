//! Counts and scores of the record, and which signals it includes.

use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use super::*;
use crate::signals::Standing;
use crate::signals::backtest::{BIN_EDGES, Judged};
use crate::signals::patterns::Key;
use crate::views::values;

const DAY: Date = Date::constant(2026, 11, 20);

fn judged(confidence: f64, hit: bool) -> Judged {
    let key = Key::from_name("bullish_engulfing").unwrap();
    Judged {
        date: DAY,
        key,
        confidence,
        base_rate: 0.5,
        hit,
        same_day: Some(0.5),
    }
}

fn json(record: &Reliability) -> Value {
    sonic_rs::from_slice(&values::to_vec(&SignalRecord::of(record, Some(DAY)))).unwrap()
}

#[test]
fn a_record_without_signals_has_zero_counts() {
    let empty = json(&Reliability::default());
    assert!(empty["since"].is_null() && empty["brier"]["confidence"].is_null());
    assert_eq!(empty["reliability"].as_array().unwrap().len(), BIN_EDGES.len() + 1);
    assert_eq!(empty["brier"]["coin"].as_f64(), Some(0.25));
    assert!(empty.get("simulated").is_none());
}

#[test]
fn a_record_has_counts_scores_and_bins() {
    let mut record = Reliability::default();
    let before = Judged {
        date: DAY.yesterday().unwrap(),
        ..judged(0.54, false)
    };
    record
        .sums
        .count(before.date, false, &Standing::Judged(before));
    record
        .sums
        .count(DAY, false, &Standing::Judged(judged(0.54, true)));
    record.sums.count(DAY, false, &Standing::Due);
    record.sums.count(DAY, false, &Standing::Never);
    record.dates_published = vec![DAY.yesterday().unwrap(), DAY];
    record.dates_missed = vec![Date::constant(2026, 11, 5)];
    let json = json(&record);
    let count = |name: &str| json[name].as_u64().unwrap();
    assert_eq!((count("published"), count("judged"), count("pending")), (4, 2, 2));
    assert_eq!((count("due"), count("never")), (1, 1));
    assert_eq!((count("dates_published"), count("dates_missed")), (2, 0), "since the first");
    assert_eq!(json["since"], "2026-11-19");
    assert_eq!(json["hit_rate"].as_f64(), Some(0.5));
    assert_eq!((count("hits"), count("dates")), (1, 2));
    for absent in ["confidence", "base_rate", "from_coin", "from_base_rate"] {
        assert!(json["brier"][absent].is_null(), "{absent} of two signals");
    }
    let rows = json["reliability"].as_array().unwrap();
    let filled: Vec<&Value> = rows
        .iter()
        .filter(|row| row["judged"].as_u64() != Some(0))
        .collect();
    assert_eq!(filled.len(), 1);
    assert_eq!(filled[0]["over"].as_f64(), Some(0.53));
    assert_eq!(filled[0]["up_to"].as_f64(), Some(0.54));
}

/// Ten weeks with one signal a day. Every second one hits.
#[test]
fn scores_have_intervals_once_there_are_enough_dates() {
    let mut record = Reliability::default();
    let days = DAY.series(jiff::Span::new().days(1)).take(50);
    for (at, date) in days.enumerate() {
        let judged = Judged {
            date,
            ..judged(0.54, at % 2 == 0)
        };
        record.sums.count(date, false, &Standing::Judged(judged));
    }
    let json = json(&record);
    let brier = &json["brier"];
    // (0.46² + 0.54²) / 2
    assert_eq!(brier["confidence"].as_f64(), Some(0.2516));
    assert_eq!(brier["base_rate"].as_f64(), Some(0.25));
    let from = &brier["from_base_rate"];
    assert_eq!(from["difference"].as_f64(), Some(0.0016));
    assert_eq!(from["verdict"], "not distinguishable from the base rate");
    assert_eq!(brier["from_coin"]["verdict"], "not distinguishable from a coin");
    // Blocks of five have three and two hits alternately: 0.04 (N - 2 S) apart by 0.04 each.
    let error = (10.0_f64 / 9.0 * 10.0 * 0.04 * 0.04).sqrt() / 50.0;
    assert!((from["standard_error"].as_f64().unwrap() - error).abs() < 1e-6, "{error}");
    let bullish = &json["directions"][0];
    assert_eq!(
        (bullish["direction"].as_str(), bullish["hits"].as_u64()),
        (Some("bullish"), Some(25))
    );
    assert_eq!(bullish["lift"]["value"].as_f64(), Some(0.0));
    assert_eq!(json["directions"][1]["judged"].as_u64(), Some(0));
}

#[test]
fn simulated_signals_are_not_counted_beside_real_ones() {
    let mut record = Reliability::default();
    record
        .sums
        .count(DAY, true, &Standing::Judged(judged(0.6, true)));
    assert_eq!(json(&record)["simulated"], true);
    assert_eq!(json(&record)["judged"].as_u64(), Some(1));
    record.sums.count(DAY, false, &Standing::Due);
    assert!(json(&record).get("simulated").is_none());
    assert_eq!(json(&record)["judged"].as_u64(), Some(0));
}
