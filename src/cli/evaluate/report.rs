//! The figures of an evaluation: as `--json` writes them, and as a short text.

use std::collections::BTreeMap;

use crate::cli::evaluate::candles::Folder;
use crate::signals::backtest::{Judged, Scores, Signal as Found, Silence, Universe, edges_of};
use crate::signals::blocks::{Estimate, Place, SCORE_DATES_MIN};
use crate::signals::confidence::{WINDOW_DATES, Weight, prior};
use crate::signals::history::Suspected;
use crate::signals::patterns::Key;
use crate::signals::performance::{Cell, Performance, verdict};
use crate::signals::{DISCLAIMER, Direction, HORIZON_SESSIONS, MEANING};
use crate::views::signals::Interval;
use crate::views::values::documents;

/// Keys with fewer dates than this are not listed: their figures mean next to nothing.
const LISTED_DATES_MIN: u32 = 30;

documents! {
    /// The whole evaluation, as `--json` writes it.
    pub(super) struct Report {
        pub meaning: &'static str,
        pub disclaimer: &'static str,
        pub read: Read,
        pub suspect: Vec<Suspect>,
        pub horizon_sessions: usize,
        pub window_dates: usize,
        pub prior_dates: u32,
        pub judged: JudgedSignals,
        /// The confidence that is published, then its baselines.
        pub models: Vec<Model>,
        /// Empty with too few dates.
        pub comparisons: Vec<Comparison>,
        pub directions: Vec<OfDirection>,
        pub years: Vec<Year>,
        pub quarters: Vec<Quarter>,
        pub reliability: Vec<Bin>,
        pub last_date: LastDate,
    }

    /// Counts of the folder.
    pub(super) struct Read {
        pub files: usize,
        pub files_left_out: usize,
        pub rows_left_out: usize,
        pub symbols: usize,
        pub candles: usize,
        pub dates: usize,
        pub first_date: String,
        pub last_date: String,
    }

    /// A symbol whose candles have gaps or suspected splits.
    pub(super) struct Suspect {
        pub symbol: String,
        /// Sessions between its first and its last on which it has no candle.
        pub missing: usize,
        pub suspected_splits: Vec<Split>,
        /// Candles on whose dates it gives no signal.
        pub silent: usize,
    }

    /// A day that looks like a split that older candles are not adjusted for.
    pub(super) struct Split {
        pub date: String,
        /// Shares after the split for `old` shares before; null if the gap is no such ratio, as
        /// after a demerger.
        pub new: Option<i64>,
        pub old: Option<i64>,
    }

    /// The signals with an outcome.
    pub(super) struct JudgedSignals {
        pub first_date: String,
        pub last_date: String,
        /// Dates with a judged signal.
        pub dates: u64,
        pub signals: u64,
        pub hits: u64,
        pub hit_rate: f64,
        /// Fewest dates for a score or an interval.
        pub score_dates_min: u64,
    }

    /// Scores of one way to derive a confidence.
    pub(super) struct Model {
        pub model: &'static str,
        pub mean_confidence: f64,
        pub lowest: f64,
        pub highest: f64,
        pub brier: Option<f64>,
        /// Absent also if infinite: a signal with confidence 1 did not hit.
        pub log_loss: Option<f64>,
        pub calibration_error: Option<f64>,
        /// The error that chance alone makes if all confidences are right.
        pub calibration_error_if_perfect: Option<f64>,
    }

    /// Brier score of the confidence minus another's; below zero is better.
    pub(super) struct Comparison {
        pub with: &'static str,
        #[serde(flatten)]
        pub difference: Interval,
        pub verdict: String,
    }

    /// Counts of some of the judged signals. Shares are absent without signals.
    pub(super) struct Counts {
        pub signals: u64,
        pub hits: u64,
        pub dates: u64,
        pub hit_rate: Option<f64>,
        pub mean_confidence: Option<f64>,
    }

    /// The signals of one direction.
    pub(super) struct OfDirection {
        pub direction: &'static str,
        #[serde(flatten)]
        pub counts: Counts,
        /// Share of the universe that moved in this direction over the same sessions.
        pub same_day_rate: Option<f64>,
        /// Hit rate minus the same-day rate.
        pub lift: Option<Interval>,
        pub observed_minus_said: Option<Interval>,
    }

    /// The signals of one year.
    pub(super) struct Year {
        pub year: i16,
        #[serde(flatten)]
        pub counts: Counts,
        pub brier: Option<f64>,
    }

    /// The signals of one direction in a quarter of a year.
    pub(super) struct Quarter {
        pub quarter: String,
        pub direction: &'static str,
        #[serde(flatten)]
        pub counts: Counts,
        pub observed_minus_said: Option<Interval>,
    }

    /// The signals whose confidence lies between two edges.
    pub(super) struct Bin {
        pub above: Option<f64>,
        pub up_to: Option<f64>,
        #[serde(flatten)]
        pub counts: Counts,
        pub observed_minus_said: Option<Interval>,
        pub bullish_share: Option<f64>,
    }

    /// The list that the service would publish on the last date.
    pub(super) struct LastDate {
        pub date: String,
        pub base_rate_up: f64,
        pub base_rate_down: f64,
        pub listed_dates_min: u32,
        pub patterns: Vec<Pattern>,
        pub signals: Vec<Signal>,
    }

    /// A pattern, its direction and its record.
    pub(super) struct Pattern {
        pub function: &'static str,
        pub pattern: &'static str,
        pub direction: &'static str,
        /// Signals in the window.
        pub signals: u32,
        pub hits: u32,
        /// Share of hits among the signals, each counted once.
        pub hit_rate: Option<f64>,
        /// Dates with such a signal.
        pub dates: u32,
        /// Mean over the dates of the share of hits on each, which the confidence uses.
        pub date_hit_rate: Option<f64>,
        pub base_rate: f64,
        pub confidence: f64,
    }

    /// A signal with its symbol and its record.
    pub(super) struct Signal {
        pub symbol: String,
        /// Another signal of the symbol on this date claims the opposite.
        pub conflict: bool,
        #[serde(flatten)]
        pub pattern: Pattern,
    }
}

impl Counts {
    fn of(cell: &Cell) -> Self {
        let Cell { signals, hits, dates, .. } = *cell;
        let hit_rate = cell.hit_rate();
        let mean_confidence = cell.mean_confidence();
        Self { signals, hits, dates, hit_rate, mean_confidence }
    }
}

impl Report {
    /// The report on `universe`; `judged` must not be empty.
    pub(super) fn of(
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
            reliability: performance.bins.iter().enumerate().map(bin).collect(),
            models: vec![
                model("confidence", |s| s.confidence),
                model("half_shrunk_base_rate", |s| prior(s.base_rate)),
                model("base_rate", |s| s.base_rate),
                model("coin", |_| 0.5),
            ],
            comparisons: comparisons(&performance),
            directions: performance.directions().into_iter().map(direction).collect(),
            years: judged.chunk_by(|a, b| a.date.year() == b.date.year()).map(year).collect(),
            quarters: quarters(judged, &places),
            last_date: last_date(universe),
        }
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
    let Suspected { date, ratio } = *suspected;
    let (new, old) = ratio.unzip();
    Split { date: date.to_string(), new, old }
}

fn observed_minus_said(cell: &Cell) -> Option<Interval> {
    cell.observed_minus_said().map(Interval::exact)
}

fn model(model: &'static str, scores: &Scores, scored: bool) -> Model {
    let if_scored = |score: f64| (scored && score.is_finite()).then_some(score);
    Model {
        model,
        mean_confidence: scores.mean_confidence(),
        lowest: scores.lowest,
        highest: scores.highest,
        brier: if_scored(scores.brier()),
        log_loss: if_scored(scores.log_loss()),
        calibration_error: if_scored(scores.calibration_error),
        calibration_error_if_perfect: if_scored(scores.calibration_error_if_perfect),
    }
}

fn comparisons(performance: &Performance) -> Vec<Comparison> {
    let compared = [
        ("coin", "a coin", performance.against_coin()),
        ("base_rate", "the base rate", performance.against_base()),
    ];
    let comparison = |(with, named, difference): (_, _, Option<Estimate>)| {
        let difference = difference?;
        let verdict = verdict(&difference, named);
        Some(Comparison { with, difference: Interval::exact(difference), verdict })
    };
    compared.into_iter().filter_map(comparison).collect()
}

fn direction((direction, cell): (Direction, &Cell)) -> OfDirection {
    OfDirection {
        direction: direction.as_str(),
        counts: Counts::of(cell),
        same_day_rate: cell.same_day_rate(),
        lift: cell.lift().map(Interval::exact),
        observed_minus_said: observed_minus_said(cell),
    }
}

fn year(judged: &[Judged]) -> Year {
    let mut performance = Performance::default();
    for signal in judged {
        performance.count(signal);
    }
    let all = &performance.all;
    Year {
        year: judged[0].date.year(),
        counts: Counts::of(all),
        brier: all.is_scored().then(|| performance.confidence.brier()),
    }
}

/// `places` are the signals' places in `judged`, so that a quarter has the blocks of the whole.
fn quarters(judged: &[Judged], places: &[Place]) -> Vec<Quarter> {
    let mut cells: BTreeMap<(i16, i8, Direction), Cell> = BTreeMap::new();
    for (signal, place) in judged.iter().zip(places) {
        let quarter = (signal.date.month() - 1) / 3 + 1;
        let key = (signal.date.year(), quarter, signal.key.direction());
        cells.entry(key).or_default().count(*place, signal);
    }
    let quarter = |((year, quarter, direction), cell): ((i16, i8, Direction), Cell)| Quarter {
        quarter: format!("{year}-Q{quarter}"),
        direction: direction.as_str(),
        counts: Counts::of(&cell),
        observed_minus_said: observed_minus_said(&cell),
    };
    cells.into_iter().map(quarter).collect()
}

fn bin((at, cell): (usize, &Cell)) -> Bin {
    let (above, up_to) = edges_of(at);
    Bin {
        above,
        up_to,
        counts: Counts::of(cell),
        observed_minus_said: observed_minus_said(cell),
        bullish_share: cell.bullish_share(),
    }
}

fn last_date(universe: &Universe) -> LastDate {
    let last = universe.dates().len().saturating_sub(1);
    let mut keys: Vec<Key> = Key::all().collect();
    // Sorted by function, bearish first.
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
