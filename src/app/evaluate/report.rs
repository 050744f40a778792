//! The numbers of an evaluation, as `--json` writes them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::candles::Folder;
use crate::signals::evaluate::{BIN_EDGES, Judged, Scores, Signal as Found, Universe};
use crate::signals::history::Suspected;
use crate::signals::patterns::Key;
use crate::signals::record::{WINDOW_DATES, Weight, prior};
use crate::signals::silence::Silence;
use crate::signals::{DISCLAIMER, Direction, HORIZON_SESSIONS, MEANING};

/// Keys with fewer dates than this are not listed: they say next to nothing.
pub const LISTED_DATES_MIN: u32 = 30;

/// Everything that is told of a universe.
#[derive(Debug, Serialize)]
pub struct Report {
    pub meaning: &'static str,
    pub disclaimer: &'static str,
    pub read: Read,
    /// Symbols with gaps or suspected splits, and what follows.
    pub suspect: Vec<Suspect>,
    pub horizon_sessions: usize,
    pub window_dates: usize,
    pub prior_dates: u32,
    pub judged: JudgedSignals,
    /// What is printed first, then what it must be compared with.
    pub models: Vec<Model>,
    pub years: Vec<Year>,
    pub reliability: Vec<Bin>,
    pub last_date: LastDate,
}

/// What the folder held.
#[derive(Debug, Serialize)]
pub struct Read {
    pub files: usize,
    pub files_left_out: usize,
    pub rows_left_out: usize,
    pub symbols: usize,
    pub candles: usize,
    pub dates: usize,
    pub first_date: String,
    pub last_date: String,
}

/// What is wrong with a symbol's candles.
#[derive(Debug, Serialize)]
pub struct Suspect {
    pub symbol: String,
    /// Sessions between its first and its last on which it has no candle.
    pub missing: usize,
    pub suspected_splits: Vec<Split>,
    /// Candles on whose dates it gives no signal.
    pub silent: usize,
}

/// A day that looks like a split that older candles are not adjusted for.
#[derive(Debug, Serialize)]
pub struct Split {
    pub date: String,
    /// Shares after it for so many before.
    pub new: i64,
    pub old: i64,
}

/// The signals with an outcome.
#[derive(Debug, Serialize)]
pub struct JudgedSignals {
    pub first_date: String,
    pub last_date: String,
    pub signals: u64,
    pub hits: u64,
    pub hit_rate: f64,
}

/// How one way to say a confidence did.
#[derive(Debug, Serialize)]
pub struct Model {
    pub model: &'static str,
    pub mean_confidence: f64,
    pub lowest: f64,
    pub highest: f64,
    pub brier: f64,
    /// Absent where it is infinite: something was called certain and did not come.
    pub log_loss: Option<f64>,
    pub calibration_error: f64,
}

/// How confidence did in one year.
#[derive(Debug, Serialize)]
pub struct Year {
    pub year: i16,
    pub signals: u64,
    pub hits: u64,
    pub hit_rate: f64,
    pub mean_confidence: f64,
    pub brier: f64,
}

/// A row of the reliability table; shares are absent where there is no signal.
#[derive(Debug, Serialize)]
pub struct Bin {
    pub above: Option<f64>,
    pub up_to: Option<f64>,
    pub signals: u64,
    pub hits: u64,
    pub mean_confidence: Option<f64>,
    pub hit_rate: Option<f64>,
    pub bullish_share: Option<f64>,
}

/// What would be printed on the last date.
#[derive(Debug, Serialize)]
pub struct LastDate {
    pub date: String,
    pub base_rate_up: f64,
    pub base_rate_down: f64,
    pub listed_dates_min: u32,
    pub patterns: Vec<Pattern>,
    pub signals: Vec<Signal>,
}

/// A pattern, its direction and its record.
#[derive(Debug, Serialize)]
pub struct Pattern {
    pub function: &'static str,
    pub pattern: &'static str,
    pub direction: &'static str,
    /// Signals in the window.
    pub signals: u32,
    pub hits: u32,
    /// Of the signals; each one counts.
    pub hit_rate: Option<f64>,
    /// Dates with such a signal.
    pub dates: u32,
    /// Mean over the dates of the share of hits on each, as confidence takes it.
    pub date_hit_rate: Option<f64>,
    pub base_rate: f64,
    pub confidence: f64,
}

/// A signal in its place.
#[derive(Debug, Serialize)]
pub struct Signal {
    pub symbol: String,
    /// Another signal of the symbol on this date claims the opposite.
    pub conflict: bool,
    #[serde(flatten)]
    pub pattern: Pattern,
}

impl Report {
    /// The numbers of `universe`; `judged` must not be empty.
    pub fn of(
        folder: &Folder,
        silences: &[Silence],
        universe: &Universe,
        judged: &[Judged],
    ) -> Self {
        let scores = Scores::of(judged, |signal| signal.confidence);
        Self {
            meaning: MEANING,
            disclaimer: DISCLAIMER,
            read: read(folder, universe),
            suspect: suspects(folder, silences),
            horizon_sessions: HORIZON_SESSIONS,
            window_dates: WINDOW_DATES,
            prior_dates: universe.prior_dates(),
            judged: JudgedSignals {
                first_date: date(judged.iter().map(|signal| signal.date).min()),
                last_date: date(judged.iter().map(|signal| signal.date).max()),
                signals: scores.signals,
                hits: scores.hits,
                hit_rate: scores.hit_rate(),
            },
            reliability: bins(&scores),
            models: vec![
                model("confidence", &scores),
                model("half_shrunk_base_rate", &Scores::of(judged, |s| prior(s.base_rate))),
                model("base_rate", &Scores::of(judged, |s| s.base_rate)),
                model("coin", &Scores::of(judged, |_| 0.5)),
            ],
            years: years(judged),
            last_date: last_date(universe),
        }
    }

    /// As one JSON document on one line.
    ///
    /// # Errors
    /// Where the library fails; nothing here gives it reason to.
    pub fn to_json(&self) -> Result<String, sonic_rs::Error> {
        sonic_rs::to_string(self).map(|json| json + "\n")
    }
}

fn date(date: Option<jiff::civil::Date>) -> String {
    date.map(|date| date.to_string()).unwrap_or_default()
}

fn read(folder: &Folder, universe: &Universe) -> Read {
    Read {
        files: folder.files,
        files_left_out: folder.files_left_out,
        rows_left_out: folder.rows_left_out,
        symbols: folder.histories.len(),
        candles: folder.histories.iter().map(|history| history.candles.len()).sum(),
        dates: universe.dates().len(),
        first_date: date(universe.dates().first().copied()),
        last_date: date(universe.dates().last().copied()),
    }
}

fn suspects(folder: &Folder, silences: &[Silence]) -> Vec<Suspect> {
    let symbols = folder.histories.iter().map(|history| &history.symbol).zip(silences);
    let suspect = |(symbol, silence): (&String, &Silence)| Suspect {
        symbol: symbol.clone(),
        missing: silence.missing,
        suspected_splits: silence.suspected.iter().map(split).collect(),
        silent: silence.dates(),
    };
    symbols.filter(|(_, silence)| !silence.is_clean()).map(suspect).collect()
}

fn split(suspected: &Suspected) -> Split {
    let Suspected { date, ratio: (new, old) } = *suspected;
    Split { date: date.to_string(), new, old }
}

fn model(model: &'static str, scores: &Scores) -> Model {
    Model {
        model,
        mean_confidence: scores.mean_confidence(),
        lowest: scores.lowest,
        highest: scores.highest,
        brier: scores.brier(),
        log_loss: Some(scores.log_loss()).filter(|loss| loss.is_finite()),
        calibration_error: scores.calibration_error,
    }
}

fn years(judged: &[Judged]) -> Vec<Year> {
    let mut years: BTreeMap<i16, Vec<Judged>> = BTreeMap::new();
    for signal in judged {
        years.entry(signal.date.year()).or_default().push(*signal);
    }
    let year = |(year, judged): (i16, Vec<Judged>)| {
        let scores = Scores::of(&judged, |signal| signal.confidence);
        Year {
            year,
            signals: scores.signals,
            hits: scores.hits,
            hit_rate: scores.hit_rate(),
            mean_confidence: scores.mean_confidence(),
            brier: scores.brier(),
        }
    };
    years.into_iter().map(year).collect()
}

fn bins(scores: &Scores) -> Vec<Bin> {
    let bin = |(at, bin): (usize, &crate::signals::evaluate::Bin)| {
        let known = |share: f64| (bin.signals > 0).then_some(share);
        Bin {
            above: at.checked_sub(1).map(|below| BIN_EDGES[below]),
            up_to: BIN_EDGES.get(at).copied(),
            signals: bin.signals,
            hits: bin.hits,
            mean_confidence: known(bin.mean_confidence()),
            hit_rate: known(bin.hit_rate()),
            bullish_share: known(bin.bullish_share()),
        }
    };
    scores.bins.iter().enumerate().map(bin).collect()
}

fn last_date(universe: &Universe) -> LastDate {
    let last = universe.dates().len().saturating_sub(1);
    let mut keys: Vec<Key> = Key::all().collect();
    // By function, bearish first.
    keys.sort_by_key(|key| (key.function_name(), key.direction() == Direction::Bullish));
    let patterns: Vec<Pattern> =
        keys.iter().map(|key| pattern(*key, &universe.weigh(*key, last))).collect();
    let base_rate = |direction: Direction| {
        let with = |pattern: &&Pattern| pattern.direction == direction.as_str();
        patterns.iter().find(with).map_or(0.5, |pattern| pattern.base_rate)
    };
    LastDate {
        date: date(universe.dates().last().copied()),
        base_rate_up: base_rate(Direction::Bullish),
        base_rate_down: base_rate(Direction::Bearish),
        listed_dates_min: LISTED_DATES_MIN,
        signals: signals(&universe.signals_on(last)),
        patterns: patterns.into_iter().filter(|row| row.dates >= LISTED_DATES_MIN).collect(),
    }
}

fn signals(found: &[Found<'_>]) -> Vec<Signal> {
    let of_symbol = found.chunk_by(|one, other| one.symbol == other.symbol);
    let rows = of_symbol.flat_map(|rows| {
        let direction = rows[0].key.direction();
        let conflict = rows.iter().any(|row| row.key.direction() != direction);
        rows.iter().map(move |row| Signal {
            symbol: row.symbol.to_owned(),
            conflict,
            pattern: pattern(row.key, &row.weight),
        })
    });
    rows.collect()
}

fn pattern(key: Key, weight: &Weight) -> Pattern {
    Pattern {
        function: key.function_name(),
        pattern: key.name(),
        direction: key.direction().as_str(),
        signals: weight.signals,
        hits: weight.hits,
        hit_rate: weight.hit_rate(),
        dates: weight.dates,
        date_hit_rate: weight.date_hit_rate,
        base_rate: weight.base_rate,
        confidence: weight.confidence,
    }
}
