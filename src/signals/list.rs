//! The list of a date's signals as clients see it. Pure.
//!
//! Rows of one symbol and date stand together, in the place of the best of them. Made from the
//! ledger, so that what is shown is what is on record. Signals of a candle that is not finished may
//! stand among those of the last date, each marked and with its own date. Shares and probabilities
//! are binary floats here: they are statistics, no prices.

use std::cmp::Ordering;
use std::collections::HashMap;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::Serialize;

use super::direction::Direction;
use super::direction::HORIZON_SESSIONS;
use super::wording::DISCLAIMER;
use super::wording::MEANING;
use crate::base::{Symbol, ist};

/// Most signals in the snapshot.
pub const TOP_MAX: usize = 10;
/// A confidence below it calls the signal likelier wrong than right: nothing for the snapshot.
pub const TOP_CONFIDENCE_MIN: f64 = 0.5;

/// A published signal.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedSignal {
    pub symbol: Symbol,
    pub pattern: String,
    pub direction: Direction,
    pub confidence: f64,
    /// Weight of the prior in it, in dates.
    pub prior_dates: u32,
    /// Dates with such a signal in the window.
    pub samples: u32,
    /// Mean over those dates of the share of hits on each; `None` for one never seen.
    pub date_hit_rate: Option<f64>,
    /// Signals on those dates and how many of them hit; `None` where they were not counted.
    pub past: Option<(u32, u32)>,
    pub base_rate: f64,
    pub simulated: bool,
    /// Its candle is not finished.
    pub provisional: bool,
}

/// All signals of one date, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalList {
    /// The date of the candles that are finished.
    pub as_of: Date,
    pub signals: Vec<ListedSignal>,
    /// When the provisional ones among them were looked for; `None` where there are none.
    pub look: Option<Look>,
}

/// A look at the candles of a session that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    pub date: Date,
    pub at: Timestamp,
}

#[derive(Serialize)]
struct Row<'a> {
    symbol: &'a str,
    pattern: &'a str,
    direction: &'static str,
    confidence: f64,
    as_of: String,
    horizon_sessions: usize,
    samples: u32,
    hit_rate: Option<f64>,
    base_rate: f64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    simulated: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    provisional: bool,
    #[serde(flatten)]
    details: Option<Details>,
}

/// What the snapshot leaves out of a row.
#[derive(Serialize)]
struct Details {
    past_signals: Option<u32>,
    past_hits: Option<u32>,
    date_hit_rate: Option<f64>,
    prior_dates: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    conflict: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    as_of: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    provisional_as_of: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provisional_at: Option<String>,
    horizon_sessions: usize,
    count: usize,
    signals: Vec<Row<'a>>,
    meaning: &'static str,
    disclaimer: &'static str,
}

impl SignalList {
    /// Signals of finished candles, in their order but for those of one symbol, which are put
    /// together.
    pub fn complete(as_of: Date, mut signals: Vec<ListedSignal>) -> Self {
        put_together(&mut signals);
        Self { as_of, signals, look: None }
    }

    /// The same with `found` in a running candle, in place of what was found before: ranked
    /// together, of equals the complete one first.
    pub fn with_provisional(&self, look: Look, found: Vec<ListedSignal>) -> Self {
        let mut list = self.without_provisional();
        if !found.is_empty() {
            list.signals.extend(found);
            list.signals.sort_by(rank);
            put_together(&mut list.signals);
            list.look = Some(look);
        }
        list
    }

    /// Those of finished candles alone.
    pub fn without_provisional(&self) -> Self {
        let complete = self.signals.iter().filter(|signal| !signal.provisional);
        Self::complete(self.as_of, complete.cloned().collect())
    }

    /// The array of the snapshot: the best signal of each symbol, at most [`TOP_MAX`], none that is
    /// likelier wrong than right, and none of a symbol with signals of both directions.
    pub fn top_json(&self) -> String {
        let mut top: Vec<&ListedSignal> = Vec::with_capacity(TOP_MAX);
        let good = self.signals.iter().filter(|s| s.confidence >= TOP_CONFIDENCE_MIN);
        for signal in good {
            if top.len() == TOP_MAX {
                break;
            }
            let is_new = top.iter().all(|listed| listed.symbol != signal.symbol);
            if is_new && !self.signals.iter().any(|other| signal.is_contradicted_by(other)) {
                top.push(signal);
            }
        }
        let rows: Vec<Row<'_>> = top.into_iter().map(|signal| self.row(signal, None)).collect();
        sonic_rs::to_string(&rows).expect("plain text and finite numbers always have JSON")
    }

    /// The body of `GET /api/signals` with the signals that `keep` chooses.
    pub fn write_json(&self, out: &mut Vec<u8>, keep: impl Fn(&ListedSignal) -> bool) {
        let mut signals: Vec<Row<'_>> = Vec::with_capacity(self.signals.len());
        // Rows of one candle stand together.
        for rows in self.signals.chunk_by(ListedSignal::is_of_candle) {
            let conflict = rows.iter().any(|row| row.direction != rows[0].direction);
            let kept = rows.iter().filter(|signal| keep(signal));
            signals.extend(kept.map(|kept| self.row(kept, Some(kept.details(conflict)))));
        }
        let look = self.look.filter(|_| signals.iter().any(|row| row.provisional));
        let document = Document {
            as_of: self.as_of.to_string(),
            provisional_as_of: look.map(|look| look.date.to_string()),
            provisional_at: look.map(|look| ist::iso(look.at)),
            horizon_sessions: HORIZON_SESSIONS,
            count: signals.len(),
            signals,
            meaning: MEANING,
            disclaimer: DISCLAIMER,
        };
        sonic_rs::to_writer(out, &document).expect("finite numbers have JSON; a Vec takes it");
    }

    fn row<'a>(&self, signal: &'a ListedSignal, details: Option<Details>) -> Row<'a> {
        let of_look = self.look.filter(|_| signal.provisional);
        Row {
            symbol: signal.symbol.as_str(),
            pattern: &signal.pattern,
            direction: signal.direction.as_str(),
            confidence: four_places(signal.confidence),
            as_of: of_look.map_or(self.as_of, |look| look.date).to_string(),
            horizon_sessions: HORIZON_SESSIONS,
            samples: signal.samples,
            hit_rate: signal.hit_rate().map(four_places),
            base_rate: four_places(signal.base_rate),
            simulated: signal.simulated,
            provisional: signal.provisional,
            details,
        }
    }
}

impl ListedSignal {
    /// Share of hits among the pattern's past signals.
    fn hit_rate(&self) -> Option<f64> {
        let (signals, hits) = self.past.filter(|(signals, _)| *signals > 0)?;
        Some(f64::from(hits) / f64::from(signals))
    }

    /// Both are of one candle: complete and provisional ones are of different dates.
    fn is_of_candle(&self, other: &Self) -> bool {
        self.candle() == other.candle()
    }

    fn is_contradicted_by(&self, other: &Self) -> bool {
        self.symbol == other.symbol && self.direction != other.direction
    }

    fn details(&self, conflict: bool) -> Details {
        Details {
            past_signals: self.past.map(|(signals, _)| signals),
            past_hits: self.past.map(|(_, hits)| hits),
            date_hit_rate: self.date_hit_rate.map(four_places),
            prior_dates: self.prior_dates,
            conflict,
        }
    }
}

/// A row of a list of signals.
pub trait OfCandle {
    /// The candle: its symbol, and whether it is unfinished.
    fn candle(&self) -> (&str, bool);
}

impl OfCandle for ListedSignal {
    fn candle(&self) -> (&str, bool) {
        (self.symbol.as_str(), self.provisional)
    }
}

/// Puts rows of one candle together, in the place of the first of them; else nothing moves.
pub fn put_together<T: OfCandle>(rows: &mut Vec<T>) {
    let mut first = HashMap::new();
    let numbered = rows.iter().enumerate();
    let places: Vec<usize> =
        numbered.map(|(at, row)| *first.entry(row.candle()).or_insert(at)).collect();
    let mut placed: Vec<(usize, T)> = places.into_iter().zip(rows.drain(..)).collect();
    placed.sort_by_key(|(place, _)| *place);
    rows.extend(placed.into_iter().map(|(_, row)| row));
}

/// As [`evaluate::rank`](super::backtest::rank) has it.
pub fn rank(one: &ListedSignal, other: &ListedSignal) -> Ordering {
    other
        .confidence
        .total_cmp(&one.confidence)
        .then_with(|| other.samples.cmp(&one.samples))
        .then_with(|| one.pattern.cmp(&other.pattern))
        .then_with(|| one.symbol.cmp(&other.symbol))
        .then_with(|| one.provisional.cmp(&other.provisional))
}

/// More digits would pretend to more than is known.
pub fn four_places(share: f64) -> f64 {
    (share * 10_000.0).round() / 10_000.0
}

#[cfg(test)]
mod tests {
    use sonic_rs::{JsonContainerTrait, JsonValueTrait};

    use super::*;

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

    fn look() -> Look {
        let at = "2026-11-23T11:05:07.4+05:30".parse().unwrap();
        Look { date: Date::constant(2026, 11, 23), at }
    }

    fn provisional(symbol: &str, pattern: &str, confidence: f64) -> ListedSignal {
        let complete = list(&[symbol]).signals.remove(0);
        let pattern = pattern.to_owned();
        ListedSignal { pattern, confidence, provisional: true, simulated: false, ..complete }
    }

    #[test]
    fn provisional_ones_are_ranked_among_the_others_marked_and_dated() {
        let complete = list(&["NSE:A", "NSE:B"]);
        // Equal to the first but for its candle; above all; below all.
        let found = vec![
            provisional("NSE:A", "pattern_0", 0.541_781),
            provisional("NSE:C", "pattern_9", 0.55),
            provisional("NSE:B", "pattern_9", 0.44),
        ];
        let combined = complete.with_provisional(look(), found);
        let order: Vec<_> =
            combined.signals.iter().map(|s| (s.symbol.as_str(), s.provisional)).collect();
        let (shown, done) = (true, false);
        assert_eq!(
            order,
            [
                ("NSE:C", shown),
                ("NSE:A", done),
                ("NSE:A", shown),
                ("NSE:B", done),
                ("NSE:B", shown)
            ]
        );
        let top: Vec<sonic_rs::Value> = sonic_rs::from_str(&combined.top_json()).unwrap();
        let of = |at: usize, name: &str| top[at].get(name).map(ToString::to_string);
        assert_eq!(top.len(), 3, "one a symbol");
        assert_eq!(of(0, "as_of").unwrap(), "\"2026-11-23\"");
        assert_eq!(of(0, "provisional").unwrap(), "true");
        assert_eq!(of(1, "as_of").unwrap(), "\"2026-11-20\"");
        assert_eq!(of(1, "provisional"), None);
        let text = |keep: fn(&ListedSignal) -> bool| {
            let mut out = Vec::new();
            combined.write_json(&mut out, keep);
            String::from_utf8(out).unwrap()
        };
        let told = "\"as_of\":\"2026-11-20\",\"provisional_as_of\":\"2026-11-23\",\
            \"provisional_at\":\"2026-11-23T11:05:07+05:30\",\"horizon_sessions\":5,\"count\":5";
        assert!(text(|_| true).contains(told), "{}", text(|_| true));
        assert!(!text(|signal| !signal.provisional).contains("provisional"));
        // A later look takes the place of an earlier one; none leaves what there was.
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
    fn the_top_says_nothing_below_a_coin_and_of_no_symbol_two_things() {
        let (up, down) = (Direction::Bullish, Direction::Bearish);
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
            let top: Vec<sonic_rs::Value> = sonic_rs::from_str(&list.top_json()).unwrap();
            top.iter().map(|row| row["pattern"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(shown(&complete), ["b", "d"]);
        let conflicts = |keep: fn(&ListedSignal) -> bool| -> Vec<String> {
            let mut out = Vec::new();
            complete.write_json(&mut out, keep);
            let json: sonic_rs::Value = sonic_rs::from_slice(&out).unwrap();
            let rows = json["signals"].as_array().unwrap().iter();
            let marked = rows.filter(|row| row["conflict"].as_bool() == Some(true));
            marked.map(|row| row["pattern"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(conflicts(|_| true), ["a", "c"]);
        assert_eq!(conflicts(|s| s.direction == Direction::Bearish), ["c"], "whoever is filtered");
        // What a running candle says the other way is another date's, and yet no two things are
        // said of one symbol in the snapshot.
        let found = vec![ListedSignal { provisional: true, ..row("NSE:C", "g", up, 0.52) }];
        let combined = complete.with_provisional(look(), found);
        assert_eq!(shown(&combined), ["b"]);
        let mut out = Vec::new();
        combined.write_json(&mut out, |signal| signal.symbol.as_str() == "NSE:C");
        assert!(!String::from_utf8(out).unwrap().contains("conflict"));
        signals.truncate(0);
        assert_eq!(SignalList::complete(Date::constant(2026, 11, 20), signals).top_json(), "[]");
    }

    #[test]
    fn a_row_of_the_list_says_what_its_confidence_was_made_of() {
        let mut out = Vec::new();
        list(&["NSE:A", "NSE:B"]).write_json(&mut out, |_| true);
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
    fn the_words_name_the_constant_that_is_used() {
        let constant = crate::signals::confidence::PRIOR_DATES;
        assert!(MEANING.contains(&format!("samples/(samples+{constant})")));
    }

    #[test]
    fn the_top_has_one_row_a_symbol_and_ten_at_most() {
        let names: Vec<String> = (0..14).map(|n| format!("NSE:S{}", n / 2 + 4 * (n % 2))).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let top: Vec<sonic_rs::Value> = sonic_rs::from_str(&list(&names).top_json()).unwrap();
        let shown: Vec<&str> = top.iter().map(|row| row["symbol"].as_str().unwrap()).collect();
        let mut once = shown.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!((shown.len(), once.len()), (TOP_MAX, TOP_MAX), "{shown:?}");
        assert_eq!(shown[..3], names[..3]);
    }

    #[test]
    fn a_row_says_what_is_known_in_four_places() {
        assert_eq!(list(&[]).top_json(), "[]");
        assert_eq!(
            list(&["NSE:INFY"]).top_json(),
            "[{\"symbol\":\"NSE:INFY\",\"pattern\":\"pattern_0\",\"direction\":\"bullish\",\
             \"confidence\":0.5418,\"as_of\":\"2026-11-20\",\"horizon_sessions\":5,\"samples\":56,\
             \"hit_rate\":null,\"base_rate\":0.5392,\"simulated\":true}]"
        );
        let mut out = Vec::new();
        list(&["NSE:A", "NSE:B"]).write_json(&mut out, |signal| !signal.simulated);
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("\"count\":1,\"signals\":[{\"symbol\":\"NSE:B\""), "{text}");
        for said in ["not investment advice", "samples/(samples+1000)", "five sessions later"] {
            assert!(text.contains(said), "{said}");
        }
    }
}
