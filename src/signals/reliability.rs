//! The public record: how the published signals did. Pure sums, in one order.
//!
//! What was found in simulated candles is counted apart and told only where nothing else was
//! published.

use jiff::civil::Date;
use serde::Serialize;

use super::evaluate::{BIN_EDGES, Bin, Judged, Scores};
use super::list::four_places;
use super::provisional_record::{Part, ProvisionalRecord};
use super::{DISCLAIMER, HORIZON_SESSIONS, MEANING};

/// What a coin scores: one half, squared.
const COIN_BRIER: f64 = 0.25;

/// Counts of one kind of signals, real or simulated.
#[derive(Debug, Clone, Default)]
struct Kind {
    published: u64,
    since: Option<Date>,
    said: Scores,
    base: Scores,
}

/// Sums over the ledger, to be fed line by line.
#[derive(Debug, Clone, Default)]
pub struct Reliability {
    real: Kind,
    simulated: Kind,
    /// Of candles that were not finished.
    pub provisional: ProvisionalRecord,
}

#[derive(Serialize)]
struct Document<'a> {
    /// First date with a signal; null before that.
    since: Option<String>,
    as_of: Option<String>,
    horizon_sessions: usize,
    published: u64,
    judged: u64,
    pending: u64,
    hit_rate: Option<f64>,
    mean_confidence: Option<f64>,
    brier: Brier,
    reliability: Vec<Row<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    simulated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    provisional: Option<Part>,
    meaning: &'static str,
    disclaimer: &'static str,
}

/// Mean squared error: lower is better.
#[derive(Serialize)]
pub(super) struct Brier {
    confidence: Option<f64>,
    coin: f64,
    /// Of saying the market's own drift and nothing else.
    base_rate: Option<f64>,
}

impl Brier {
    pub(super) fn of(said: &Scores, base: &Scores) -> Self {
        let scored = |brier: f64| (said.signals > 0).then(|| (brier * 1e6).round() / 1e6);
        Self { confidence: scored(said.brier()), coin: COIN_BRIER, base_rate: scored(base.brier()) }
    }
}

#[derive(Serialize)]
struct Row<'a> {
    /// Confidence above this, and up to that; null where there is no such edge.
    over: Option<&'a f64>,
    up_to: Option<&'a f64>,
    judged: u64,
    mean_confidence: Option<f64>,
    hit_rate: Option<f64>,
    bullish_share: Option<f64>,
}

impl Reliability {
    /// Counts a published signal.
    pub fn count(&mut self, on: Date, simulated: bool, judged: Option<&Judged>) {
        let kind = if simulated { &mut self.simulated } else { &mut self.real };
        kind.published += 1;
        kind.since = Some(kind.since.map_or(on, |since| since.min(on)));
        if let Some(judged) = judged {
            kind.said.count(judged, judged.confidence);
            kind.base.count(judged, judged.base_rate);
        }
    }

    /// The body of `GET /api/signals/record`. `as_of`: the last published date.
    pub fn to_json(&self, as_of: Option<Date>) -> Vec<u8> {
        let simulated = self.real.published == 0 && self.simulated.published > 0;
        let Kind { published, since, said, base } =
            if simulated { &self.simulated } else { &self.real };
        let judged = said.signals;
        let if_any = |share: f64| (judged > 0).then(|| four_places(share));
        let document = Document {
            since: since.map(|date| date.to_string()),
            as_of: as_of.map(|date| date.to_string()),
            horizon_sessions: HORIZON_SESSIONS,
            published: *published,
            judged,
            pending: published - judged,
            hit_rate: if_any(said.hit_rate()),
            mean_confidence: if_any(said.mean_confidence()),
            brier: Brier::of(said, base),
            reliability: said.bins.iter().enumerate().map(|(at, bin)| row(at, bin)).collect(),
            simulated,
            provisional: self.provisional.part(),
            meaning: MEANING,
            disclaimer: DISCLAIMER,
        };
        sonic_rs::to_vec(&document).expect("finite numbers and text always have JSON")
    }
}

fn row(at: usize, bin: &Bin) -> Row<'static> {
    let if_any = |share: f64| (bin.signals > 0).then(|| four_places(share));
    Row {
        over: at.checked_sub(1).and_then(|below| BIN_EDGES.get(below)),
        up_to: BIN_EDGES.get(at),
        judged: bin.signals,
        mean_confidence: if_any(bin.mean_confidence()),
        hit_rate: if_any(bin.hit_rate()),
        bullish_share: if_any(bin.bullish_share()),
    }
}

#[cfg(test)]
mod tests {
    use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

    use super::*;
    use crate::signals::patterns::Key;

    const DAY: Date = Date::constant(2026, 11, 20);

    fn judged(confidence: f64, hit: bool) -> Judged {
        let key = Key::from_name("bullish_engulfing").unwrap();
        Judged { date: DAY, key, confidence, base_rate: 0.5, hit }
    }

    fn json(record: &Reliability) -> Value {
        sonic_rs::from_slice(&record.to_json(Some(DAY))).unwrap()
    }

    #[test]
    fn nothing_published_is_said_so() {
        let empty = json(&Reliability::default());
        assert!(empty["since"].is_null() && empty["brier"]["confidence"].is_null());
        assert_eq!(empty["reliability"].as_array().unwrap().len(), BIN_EDGES.len() + 1);
        assert_eq!(empty["brier"]["coin"].as_f64(), Some(0.25));
        assert!(empty.get("simulated").is_none());
    }

    #[test]
    fn counts_scores_and_bins() {
        let mut record = Reliability::default();
        record.count(DAY, false, Some(&judged(0.54, true)));
        record.count(DAY.yesterday().unwrap(), false, Some(&judged(0.54, false)));
        record.count(DAY, false, None);
        let json = json(&record);
        let count = |name: &str| json[name].as_u64().unwrap();
        assert_eq!((count("published"), count("judged"), count("pending")), (3, 2, 1));
        assert_eq!(json["since"], "2026-11-19");
        assert_eq!(json["hit_rate"].as_f64(), Some(0.5));
        // (0.46² + 0.54²) / 2
        assert_eq!(json["brier"]["confidence"].as_f64(), Some(0.2516));
        assert_eq!(json["brier"]["base_rate"].as_f64(), Some(0.25));
        let rows = json["reliability"].as_array().unwrap();
        let filled: Vec<&Value> =
            rows.iter().filter(|row| row["judged"].as_u64() != Some(0)).collect();
        assert_eq!(filled.len(), 1);
        assert_eq!(filled[0]["over"].as_f64(), Some(0.53));
        assert_eq!(filled[0]["up_to"].as_f64(), Some(0.54));
    }

    #[test]
    fn simulated_signals_never_join_real_ones() {
        let mut record = Reliability::default();
        record.count(DAY, true, Some(&judged(0.6, true)));
        assert_eq!(json(&record)["simulated"], true);
        assert_eq!(json(&record)["judged"].as_u64(), Some(1));
        record.count(DAY, false, None);
        assert!(json(&record).get("simulated").is_none());
        assert_eq!(json(&record)["judged"].as_u64(), Some(0));
    }
}
