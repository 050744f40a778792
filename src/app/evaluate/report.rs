//! The numbers of an evaluation, as `--json` writes them.

use serde::Serialize;

use super::candles::Folder;
use super::outcomes::{
    Bin, Comparison, Model, OfDirection, Quarter, Year, bins, comparisons, directions, model,
    quarters, years,
};
use crate::signals::backtest::{Judged, Scores, Signal as Found, Universe};
use crate::signals::blocks::{Place, SCORE_DATES_MIN};
use crate::signals::confidence::{WINDOW_DATES, Weight, prior};
use crate::signals::history::Suspected;
use crate::signals::patterns::Key;
use crate::signals::performance::Performance;
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
    /// Empty with too few dates.
    pub comparisons: Vec<Comparison>,
    pub directions: Vec<OfDirection>,
    pub years: Vec<Year>,
    pub quarters: Vec<Quarter>,
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
    /// With such a signal.
    pub dates: u64,
    pub signals: u64,
    pub hits: u64,
    pub hit_rate: f64,
    /// With fewer dates nothing is scored, and nothing is said of how sure a number is.
    pub score_dates_min: u64,
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
        let mut performance = Performance::default();
        let places: Vec<Place> = judged.iter().map(|signal| performance.count(signal)).collect();
        let all = &performance.all;
        let scored = all.is_scored();
        let model = |name, said: fn(&Judged) -> f64| model(name, &Scores::of(judged, said), scored);
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
                dates: all.dates,
                signals: all.signals,
                hits: all.hits,
                hit_rate: all.hit_rate().unwrap_or_default(),
                score_dates_min: SCORE_DATES_MIN,
            },
            reliability: bins(&performance),
            models: vec![
                model("confidence", |s| s.confidence),
                model("half_shrunk_base_rate", |s| prior(s.base_rate)),
                model("base_rate", |s| s.base_rate),
                model("coin", |_| 0.5),
            ],
            comparisons: comparisons(&performance),
            directions: directions(&performance),
            years: years(judged),
            quarters: quarters(judged, &places),
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
