//! Signals as the list and the snapshot show them.

use jiff::civil::Date;
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use crate::base::Symbol;
use crate::signals::list::TOP_MAX;
use crate::signals::{Direction, ListedSignal, SignalList};
use crate::views::signals as views;
use crate::views::values;

fn list(symbols: &[&str]) -> SignalList {
    let signals = symbols
        .iter()
        .enumerate()
        .map(|(rank, symbol)| ListedSignal {
            symbol: Symbol::parse(symbol).unwrap(),
            pattern: format!("pattern_{rank}"),
            direction: Direction::Bullish,
            confidence: 0.541_781,
            prior_dates: 1_000,
            samples: 56,
            date_hit_rate: (rank > 0).then_some(0.57),
            past: (rank > 0).then_some((64, 38)),
            base_rate: 0.539_16,
            simulated: rank == 0,
        });
    SignalList::of(Date::constant(2026, 11, 20), signals.collect())
}

fn top_json(list: &SignalList) -> String {
    String::from_utf8(values::to_vec(&*views::ShownSignals::of(list).top)).unwrap()
}

fn row(symbol: &str, pattern: &str, direction: Direction, confidence: f64) -> ListedSignal {
    let one = list(&[symbol]).signals.remove(0);
    ListedSignal {
        pattern: pattern.to_owned(),
        direction,
        confidence,
        ..one
    }
}

#[test]
fn the_snapshot_leaves_out_low_confidence_and_conflicts() {
    let up = Direction::Bullish;
    let down = Direction::Bearish;
    let mut signals = vec![
        row("NSE:A", "a", up, 0.54),
        row("NSE:B", "b", up, 0.53),
        row("NSE:A", "c", down, 0.52),
        row("NSE:C", "d", down, 0.51),
        row("NSE:B", "e", up, 0.502),
        row("NSE:D", "f", up, 0.499_99),
    ];
    let complete = SignalList::of(Date::constant(2026, 11, 20), signals.clone());
    let order: Vec<&str> = complete
        .signals
        .iter()
        .map(|s| s.pattern.as_str())
        .collect();
    assert_eq!(order, ["a", "c", "b", "e", "d", "f"], "rows of one symbol stand together");
    let shown = |list: &SignalList| -> Vec<String> {
        let top: Vec<sonic_rs::Value> = sonic_rs::from_str(&top_json(list)).unwrap();
        top.iter()
            .map(|row| row["pattern"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(shown(&complete), ["b", "d"]);
    let conflicts = |keep: fn(&ListedSignal) -> bool| -> Vec<String> {
        let mut out = Vec::new();
        views::SignalList::of(&complete, keep).write(&mut out);
        let json: sonic_rs::Value = sonic_rs::from_slice(&out).unwrap();
        let rows = json["signals"].as_array().unwrap().iter();
        let marked = rows.filter(|row| row["conflict"].as_bool() == Some(true));
        marked
            .map(|row| row["pattern"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(conflicts(|_| true), ["a", "c"]);
    assert_eq!(conflicts(|s| s.direction == Direction::Bearish), ["c"], "whoever is filtered");
    signals.truncate(0);
    assert_eq!(top_json(&SignalList::of(Date::constant(2026, 11, 20), signals)), "[]");
}

#[test]
fn a_listed_signal_has_the_data_of_its_confidence() {
    let mut out = Vec::new();
    views::SignalList::of(&list(&["NSE:A", "NSE:B"]), |_| true).write(&mut out);
    let json: sonic_rs::Value = sonic_rs::from_slice(&out).unwrap();
    let row = &json["signals"][1];
    assert_eq!(row["hit_rate"].as_f64(), Some(0.5938), "38 of 64");
    assert_eq!((row["past_signals"].as_u64(), row["past_hits"].as_u64()), (Some(64), Some(38)));
    assert_eq!(row["date_hit_rate"].as_f64(), Some(0.57));
    assert_eq!(row["prior_dates"].as_u64(), Some(1_000));
    let unseen = &json["signals"][0];
    assert!(unseen["hit_rate"].is_null() && unseen["date_hit_rate"].is_null());
}

#[test]
fn the_snapshot_has_one_signal_per_symbol_and_at_most_ten() {
    let names: Vec<String> = (0..14)
        .map(|n| format!("NSE:S{}", n / 2 + 4 * (n % 2)))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let top: Vec<sonic_rs::Value> = sonic_rs::from_str(&top_json(&list(&names))).unwrap();
    let shown: Vec<&str> = top
        .iter()
        .map(|row| row["symbol"].as_str().unwrap())
        .collect();
    let mut once = shown.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!((shown.len(), once.len()), (TOP_MAX, TOP_MAX), "{shown:?}");
    assert_eq!(shown[..3], names[..3]);
}

#[test]
fn shares_are_written_with_four_places() {
    assert_eq!(top_json(&list(&[])), "[]");
    assert_eq!(
        top_json(&list(&["NSE:INFY"])),
        "[{\"symbol\":\"NSE:INFY\",\"pattern\":\"pattern_0\",\"direction\":\"bullish\",\
         \"confidence\":0.5418,\"as_of\":\"2026-11-20\",\"horizon_sessions\":5,\"samples\":56,\
         \"hit_rate\":null,\"base_rate\":0.5392,\"simulated\":true}]"
    );
    let mut out = Vec::new();
    views::SignalList::of(&list(&["NSE:A", "NSE:B"]), |signal| !signal.simulated).write(&mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("\"count\":1,\"signals\":[{\"symbol\":\"NSE:B\""), "{text}");
    for said in [
        "not investment advice",
        "the market's own drift",
        "five sessions later",
    ] {
        assert!(text.contains(said), "{said}");
    }
}
