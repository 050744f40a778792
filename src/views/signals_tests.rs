//! Signals as the list and the snapshot show them.

use jiff::civil::Date;
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use crate::base::Symbol;
use crate::signals::list::TOP_MAX;
use crate::signals::{Direction, ListedSignal, ScanTime, SignalList};
use crate::views::signals as views;
use crate::views::values;

fn list(symbols: &[&str]) -> SignalList {
    let signals = symbols.iter().enumerate().map(|(rank, symbol)| ListedSignal {
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
        provisional: false,
    });
    SignalList::complete(Date::constant(2026, 11, 20), signals.collect())
}

fn top_json(list: &SignalList) -> String {
    String::from_utf8(values::to_vec(&*views::ShownSignals::of(list).top)).unwrap()
}

fn look() -> ScanTime {
    let at = "2026-11-23T11:05:07.4+05:30".parse().unwrap();
    ScanTime { date: Date::constant(2026, 11, 23), at }
}

fn provisional(symbol: &str, pattern: &str, confidence: f64) -> ListedSignal {
    let complete = list(&[symbol]).signals.remove(0);
    let pattern = pattern.to_owned();
    ListedSignal { pattern, confidence, provisional: true, simulated: false, ..complete }
}

#[test]
fn provisional_signals_are_ranked_with_the_others_and_marked() {
    let complete = list(&["NSE:A", "NSE:B"]);
    // One equal to the first except for its candle, one above all, one below all.
    let found = vec![
        provisional("NSE:A", "pattern_0", 0.541_781),
        provisional("NSE:C", "pattern_9", 0.55),
        provisional("NSE:B", "pattern_9", 0.44),
    ];
    let combined = complete.with_provisional(look(), found);
    let order: Vec<_> =
        combined.signals.iter().map(|s| (s.symbol.as_str(), s.provisional)).collect();
    let shown = true;
    let done = false;
    assert_eq!(
        order,
        [("NSE:C", shown), ("NSE:A", done), ("NSE:A", shown), ("NSE:B", done), ("NSE:B", shown)]
    );
    let top: Vec<sonic_rs::Value> = sonic_rs::from_str(&top_json(&combined)).unwrap();
    let of = |at: usize, name: &str| top[at].get(name).map(ToString::to_string);
    assert_eq!(top.len(), 3, "one a symbol");
    assert_eq!(of(0, "as_of").unwrap(), "\"2026-11-23\"");
    assert_eq!(of(0, "provisional").unwrap(), "true");
    assert_eq!(of(1, "as_of").unwrap(), "\"2026-11-20\"");
    assert_eq!(of(1, "provisional"), None);
    let text = |keep: fn(&ListedSignal) -> bool| {
        let mut out = Vec::new();
        views::SignalList::of(&combined, keep).write(&mut out);
        String::from_utf8(out).unwrap()
    };
    let members = "\"as_of\":\"2026-11-20\",\"provisional_as_of\":\"2026-11-23\",\
        \"provisional_at\":\"2026-11-23T11:05:07+05:30\",\"horizon_sessions\":5,\"count\":5";
    assert!(text(|_| true).contains(members), "{}", text(|_| true));
    assert!(!text(|signal| !signal.provisional).contains("provisional"));
    // A later look replaces an earlier one. A list without provisional signals is the original one.
    let later = combined.with_provisional(look(), vec![provisional("NSE:D", "p", 0.5)]);
    assert_eq!(later.signals.iter().filter(|signal| signal.provisional).count(), 1);
    assert_eq!(combined.without_provisional(), complete);
    assert_eq!(combined.with_provisional(look(), Vec::new()), complete);
}

fn row(symbol: &str, pattern: &str, direction: Direction, confidence: f64) -> ListedSignal {
    let one = list(&[symbol]).signals.remove(0);
    ListedSignal { pattern: pattern.to_owned(), direction, confidence, ..one }
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
    let complete = SignalList::complete(Date::constant(2026, 11, 20), signals.clone());
    let order: Vec<&str> = complete.signals.iter().map(|s| s.pattern.as_str()).collect();
    assert_eq!(order, ["a", "c", "b", "e", "d", "f"], "rows of one symbol stand together");
    let shown = |list: &SignalList| -> Vec<String> {
        let top: Vec<sonic_rs::Value> = sonic_rs::from_str(&top_json(list)).unwrap();
        top.iter().map(|row| row["pattern"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(shown(&complete), ["b", "d"]);
    let conflicts = |keep: fn(&ListedSignal) -> bool| -> Vec<String> {
        let mut out = Vec::new();
        views::SignalList::of(&complete, keep).write(&mut out);
        let json: sonic_rs::Value = sonic_rs::from_slice(&out).unwrap();
        let rows = json["signals"].as_array().unwrap().iter();
        let marked = rows.filter(|row| row["conflict"].as_bool() == Some(true));
        marked.map(|row| row["pattern"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(conflicts(|_| true), ["a", "c"]);
    assert_eq!(conflicts(|s| s.direction == Direction::Bearish), ["c"], "whoever is filtered");
    // A provisional signal of another date in the other direction also keeps its symbol out of the
    // snapshot.
    let found = vec![ListedSignal { provisional: true, ..row("NSE:C", "g", up, 0.52) }];
    let combined = complete.with_provisional(look(), found);
    assert_eq!(shown(&combined), ["b"]);
    let mut out = Vec::new();
    views::SignalList::of(&combined, |signal| signal.symbol.as_str() == "NSE:C").write(&mut out);
    assert!(!String::from_utf8(out).unwrap().contains("conflict"));
    signals.truncate(0);
    assert_eq!(top_json(&SignalList::complete(Date::constant(2026, 11, 20), signals)), "[]");
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
    let names: Vec<String> = (0..14).map(|n| format!("NSE:S{}", n / 2 + 4 * (n % 2))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let top: Vec<sonic_rs::Value> = sonic_rs::from_str(&top_json(&list(&names))).unwrap();
    let shown: Vec<&str> = top.iter().map(|row| row["symbol"].as_str().unwrap()).collect();
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
    for said in ["not investment advice", "the market's own drift", "five sessions later"] {
        assert!(text.contains(said), "{said}");
    }
}
