//! The public record: how the published signals did. Pure sums, in one order.
//!
//! What was found in simulated candles is counted apart and told only where nothing else was
//! published.

use jiff::civil::Date;
use serde::Serialize;

use super::backtest::{Judged, edges_of};
use super::blocks::{Estimate, SCORE_DATES_MIN};
use super::direction::HORIZON_SESSIONS;
use super::list::four_places;
use super::performance::{Cell, Performance, verdict};
use super::provisional_record::{Part, ProvisionalRecord};
use super::wording::DISCLAIMER;
use super::wording::MEANING;

/// What a coin scores: one half, squared.
const COIN_BRIER: f64 = 0.25;

/// What has become of a published signal.
#[derive(Debug, Clone, Copy)]
pub enum Standing {
    Judged(Judged),
    /// Its outcome is still to come.
    Due,
    /// None will come: the share has left the universe, its history has not the date any more, or
    /// it has hardly traded since. Should it come back, the signal is judged all the same.
    Never,
}

/// Counts of one kind of signals, real or simulated.
#[derive(Debug, Clone, Default)]
struct Kind {
    published: u64,
    since: Option<Date>,
    outcomes: Outcomes,
}

/// What became of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcomes {
    pub never: u64,
    pub done: Performance,
}

impl Outcomes {
    pub fn count(&mut self, standing: &Standing) {
        match standing {
            Standing::Judged(judged) => drop(self.done.count(judged)),
            Standing::Due => {}
            Standing::Never => self.never += 1,
        }
    }

    /// Those of so many that are still to be judged.
    pub fn due(&self, published: u64) -> u64 {
        published - self.done.all.signals - self.never
    }
}

/// Sums over the ledger, to be fed line by line.
#[derive(Debug, Clone, Default)]
pub struct Reliability {
    real: Kind,
    simulated: Kind,
    /// Dates that were published, oldest first.
    pub dates_published: Vec<Date>,
    /// Trading dates between them that were not.
    pub dates_missed: Vec<Date>,
    /// Of candles that were not finished.
    pub provisional: ProvisionalRecord,
}

#[derive(Serialize)]
struct Document {
    /// First date with a signal; null before that.
    since: Option<String>,
    as_of: Option<String>,
    horizon_sessions: usize,
    /// From `since` on.
    dates_published: usize,
    dates_missed: usize,
    published: u64,
    judged: u64,
    pending: u64,
    due: u64,
    never: u64,
    hits: u64,
    /// With a judged signal.
    dates: u64,
    hit_rate: Option<f64>,
    mean_confidence: Option<f64>,
    /// With fewer dates nothing is scored.
    score_dates_min: u64,
    brier: Brier,
    directions: [OfDirection; 2],
    reliability: Vec<Row>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    simulated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    provisional: Option<Part>,
    meaning: &'static str,
    disclaimer: &'static str,
}

/// Mean squared error: lower is better.
#[derive(Serialize)]
pub(crate) struct Brier {
    confidence: Option<f64>,
    coin: f64,
    /// Of saying the market's own drift and nothing else.
    base_rate: Option<f64>,
    from_coin: Option<Comparison>,
    from_base_rate: Option<Comparison>,
}

/// Brier score of confidence less another's; below zero is better.
#[derive(Serialize)]
struct Comparison {
    difference: f64,
    standard_error: f64,
    low: f64,
    high: f64,
    verdict: String,
}

/// A mean, its standard error over blocks of five dates, and its 95 % interval.
#[derive(Serialize)]
struct Interval {
    value: f64,
    standard_error: f64,
    low: f64,
    high: f64,
}

/// Signals of one direction.
#[derive(Serialize)]
pub(crate) struct OfDirection {
    direction: &'static str,
    judged: u64,
    hits: u64,
    dates: u64,
    hit_rate: Option<f64>,
    mean_confidence: Option<f64>,
    same_day_rate: Option<f64>,
    lift: Option<Interval>,
    observed_minus_said: Option<Interval>,
}

impl Brier {
    pub(crate) fn of(done: &Performance) -> Self {
        let scored = |brier: f64| done.all.is_scored().then(|| six_places(brier));
        Self {
            confidence: scored(done.said.brier()),
            coin: COIN_BRIER,
            base_rate: scored(done.base.brier()),
            from_coin: done.from_coin().map(|from| comparison(from, "a coin")),
            from_base_rate: done.from_base().map(|from| comparison(from, "the base rate")),
        }
    }
}

fn comparison(difference: Estimate, with: &str) -> Comparison {
    Comparison {
        verdict: verdict(&difference, with),
        difference: six_places(difference.value),
        standard_error: six_places(difference.standard_error),
        low: six_places(difference.low),
        high: six_places(difference.high),
    }
}

fn interval(estimate: Estimate) -> Interval {
    let Estimate { value, standard_error, low, high } = estimate;
    let [value, standard_error, low, high] = [value, standard_error, low, high].map(four_places);
    Interval { value, standard_error, low, high }
}

fn six_places(score: f64) -> f64 {
    (score * 1e6).round() / 1e6
}

/// Both directions.
pub(crate) fn directions(done: &Performance) -> [OfDirection; 2] {
    done.directions().map(|(direction, cell)| OfDirection {
        direction: direction.as_str(),
        judged: cell.signals,
        hits: cell.hits,
        dates: cell.dates,
        hit_rate: cell.hit_rate().map(four_places),
        mean_confidence: cell.mean_confidence().map(four_places),
        same_day_rate: cell.same_day_rate().map(four_places),
        lift: cell.lift().map(interval),
        observed_minus_said: cell.observed_minus_said().map(interval),
    })
}

#[derive(Serialize)]
struct Row {
    /// Confidence above this, and up to that; null where there is no such edge.
    over: Option<f64>,
    up_to: Option<f64>,
    judged: u64,
    hits: u64,
    dates: u64,
    mean_confidence: Option<f64>,
    hit_rate: Option<f64>,
    observed_minus_said: Option<Interval>,
    bullish_share: Option<f64>,
}

impl Reliability {
    /// Counts a published signal, of the date of the one before or a later one.
    pub fn count(&mut self, on: Date, simulated: bool, standing: &Standing) {
        let kind = if simulated { &mut self.simulated } else { &mut self.real };
        kind.published += 1;
        kind.since = Some(kind.since.map_or(on, |since| since.min(on)));
        kind.outcomes.count(standing);
    }

    /// The body of `GET /api/signals/record`. `as_of`: the last published date.
    pub fn to_json(&self, as_of: Option<Date>) -> Vec<u8> {
        let simulated = self.real.published == 0 && self.simulated.published > 0;
        let Kind { published, since, outcomes } =
            if simulated { &self.simulated } else { &self.real };
        let Outcomes { never, done } = outcomes;
        let all = &done.all;
        let from_since =
            |dates: &[Date]| dates.iter().filter(|date| Some(**date) >= *since).count();
        let document = Document {
            since: since.map(|date| date.to_string()),
            as_of: as_of.map(|date| date.to_string()),
            horizon_sessions: HORIZON_SESSIONS,
            dates_published: from_since(&self.dates_published),
            dates_missed: from_since(&self.dates_missed),
            published: *published,
            judged: all.signals,
            pending: published - all.signals,
            due: outcomes.due(*published),
            never: *never,
            hits: all.hits,
            dates: all.dates,
            hit_rate: all.hit_rate().map(four_places),
            mean_confidence: all.mean_confidence().map(four_places),
            score_dates_min: SCORE_DATES_MIN,
            brier: Brier::of(done),
            directions: directions(done),
            reliability: done.bins.iter().enumerate().map(|(at, bin)| row(at, bin)).collect(),
            simulated,
            provisional: self.provisional.part(),
            meaning: MEANING,
            disclaimer: DISCLAIMER,
        };
        sonic_rs::to_vec(&document).expect("finite numbers and text always have JSON")
    }
}

fn row(at: usize, bin: &Cell) -> Row {
    let (over, up_to) = edges_of(at);
    Row {
        over,
        up_to,
        judged: bin.signals,
        hits: bin.hits,
        dates: bin.dates,
        mean_confidence: bin.mean_confidence().map(four_places),
        hit_rate: bin.hit_rate().map(four_places),
        observed_minus_said: bin.observed_minus_said().map(interval),
        bullish_share: bin.bullish_share().map(four_places),
    }
}

#[cfg(test)]
mod tests {
    use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

    use super::*;
    use crate::signals::backtest::BIN_EDGES;
    use crate::signals::patterns::Key;

    const DAY: Date = Date::constant(2026, 11, 20);

    fn judged(confidence: f64, hit: bool) -> Judged {
        let key = Key::from_name("bullish_engulfing").unwrap();
        Judged { date: DAY, key, confidence, base_rate: 0.5, hit, same_day: Some(0.5) }
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
        let before = Judged { date: DAY.yesterday().unwrap(), ..judged(0.54, false) };
        record.count(before.date, false, &Standing::Judged(before));
        record.count(DAY, false, &Standing::Judged(judged(0.54, true)));
        record.count(DAY, false, &Standing::Due);
        record.count(DAY, false, &Standing::Never);
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
        let filled: Vec<&Value> =
            rows.iter().filter(|row| row["judged"].as_u64() != Some(0)).collect();
        assert_eq!(filled.len(), 1);
        assert_eq!(filled[0]["over"].as_f64(), Some(0.53));
        assert_eq!(filled[0]["up_to"].as_f64(), Some(0.54));
    }

    /// Ten weeks of a signal a day, every second of them right.
    #[test]
    fn scores_come_with_dates_enough_and_say_how_sure_they_are() {
        let mut record = Reliability::default();
        let days = DAY.series(jiff::Span::new().days(1)).take(50);
        for (at, date) in days.enumerate() {
            let judged = Judged { date, ..judged(0.54, at % 2 == 0) };
            record.count(date, false, &Standing::Judged(judged));
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
        // Blocks of five have three and two hits in turn: 0.04 (N - 2 S) apart by 0.04 each.
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
    fn simulated_signals_never_join_real_ones() {
        let mut record = Reliability::default();
        record.count(DAY, true, &Standing::Judged(judged(0.6, true)));
        assert_eq!(json(&record)["simulated"], true);
        assert_eq!(json(&record)["judged"].as_u64(), Some(1));
        record.count(DAY, false, &Standing::Due);
        assert!(json(&record).get("simulated").is_none());
        assert_eq!(json(&record)["judged"].as_u64(), Some(0));
    }
}
