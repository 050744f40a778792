//! The list of a date's signals as clients see it. Pure.
//!
//! Made from the ledger, so that what is shown is what is on record. Shares and probabilities are
//! binary floats here: they are statistics, no prices.

use jiff::civil::Date;
use serde::Serialize;

use super::{DISCLAIMER, Direction, HORIZON_SESSIONS, MEANING};
use crate::base::Symbol;

/// Most signals in the snapshot.
pub const TOP_MAX: usize = 10;

/// A published signal.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedSignal {
    pub symbol: Symbol,
    pub pattern: String,
    pub direction: Direction,
    pub confidence: f64,
    /// Dates with such a signal in the window.
    pub samples: u32,
    /// Share of hits, each date counted once; `None` for one never seen.
    pub hit_rate: Option<f64>,
    pub base_rate: f64,
    pub simulated: bool,
}

/// All signals of one date, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalList {
    /// The date of the candles.
    pub as_of: Date,
    pub signals: Vec<ListedSignal>,
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
}

#[derive(Serialize)]
struct Document<'a> {
    as_of: String,
    horizon_sessions: usize,
    count: usize,
    signals: Vec<Row<'a>>,
    meaning: &'static str,
    disclaimer: &'static str,
}

impl SignalList {
    /// The array of the snapshot: the best signal of each symbol, at most [`TOP_MAX`].
    pub fn top_json(&self) -> String {
        let mut top: Vec<&ListedSignal> = Vec::with_capacity(TOP_MAX);
        for signal in &self.signals {
            if top.len() == TOP_MAX {
                break;
            }
            if top.iter().all(|listed| listed.symbol != signal.symbol) {
                top.push(signal);
            }
        }
        let rows: Vec<Row<'_>> = top.into_iter().map(|signal| self.row(signal)).collect();
        sonic_rs::to_string(&rows).expect("plain text and finite numbers always have JSON")
    }

    /// The body of `GET /api/signals` with the signals that `keep` chooses.
    pub fn write_json(&self, out: &mut Vec<u8>, keep: impl Fn(&ListedSignal) -> bool) {
        let kept = self.signals.iter().filter(|signal| keep(signal));
        let signals: Vec<Row<'_>> = kept.map(|signal| self.row(signal)).collect();
        let document = Document {
            as_of: self.as_of.to_string(),
            horizon_sessions: HORIZON_SESSIONS,
            count: signals.len(),
            signals,
            meaning: MEANING,
            disclaimer: DISCLAIMER,
        };
        sonic_rs::to_writer(out, &document).expect("finite numbers have JSON; a Vec takes it");
    }

    fn row<'a>(&self, signal: &'a ListedSignal) -> Row<'a> {
        Row {
            symbol: signal.symbol.as_str(),
            pattern: &signal.pattern,
            direction: signal.direction.as_str(),
            confidence: four_places(signal.confidence),
            as_of: self.as_of.to_string(),
            horizon_sessions: HORIZON_SESSIONS,
            samples: signal.samples,
            hit_rate: signal.hit_rate.map(four_places),
            base_rate: four_places(signal.base_rate),
            simulated: signal.simulated,
        }
    }
}

/// More digits would pretend to more than is known.
pub fn four_places(share: f64) -> f64 {
    (share * 10_000.0).round() / 10_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(symbols: &[&str]) -> SignalList {
        let signals = symbols.iter().enumerate().map(|(rank, symbol)| ListedSignal {
            symbol: Symbol::parse(symbol).unwrap(),
            pattern: format!("pattern_{rank}"),
            direction: Direction::Bullish,
            confidence: 0.541_781,
            samples: 56,
            hit_rate: (rank > 0).then_some(0.57),
            base_rate: 0.539_16,
            simulated: rank == 0,
        });
        SignalList { as_of: Date::constant(2026, 11, 20), signals: signals.collect() }
    }

    #[test]
    fn the_top_has_one_row_a_symbol_and_ten_at_most() {
        let names: Vec<String> = (0..14).map(|n| format!("NSE:S{}", n / 2 + 4 * (n % 2))).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let top: Vec<sonic_rs::Value> = sonic_rs::from_str(&list(&names).top_json()).unwrap();
        let shown: Vec<&str> = top
            .iter()
            .map(|row| sonic_rs::JsonValueTrait::as_str(&row["symbol"]).unwrap())
            .collect();
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
        for said in ["not investment advice", "0.50 means a coin", "five sessions later"] {
            assert!(text.contains(said), "{said}");
        }
    }
}
