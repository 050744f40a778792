//! The figures of an evaluation: as `--json` writes them, and as a short text.

use std::collections::BTreeMap;
use std::{array, iter};

use crate::cli::evaluate::candles::Folder;
use crate::config::settings::wrapped;
use crate::signals::backtest::{
    Cell, Judged, Performance, Scores, Signal as Found, Silence, Universe, edges_of, verdict,
};
use crate::signals::blocks::{Estimate, Place, SCORE_DATES_MIN};
use crate::signals::confidence::{WINDOW_DATES, Weight, prior};
use crate::signals::history::{HOLES_MAX, SESSIONS_KEPT, Suspected};
use crate::signals::patterns::Key;
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
        let (hit_rate, mean_confidence) = (cell.hit_rate(), cell.mean_confidence());
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

// ---- Text
//
// The report as text: counts of the folder, the scores against their baselines, and the reliability
// table. Rounded. Years, quarters, patterns and the last date's signals are only in `--json`.

/// Longest line of running text.
const LINE_CHARS_MAX: usize = 100;

/// The report as text.
pub(super) fn text(report: &Report) -> String {
    let Report { read, judged, .. } = report;
    let mut out = format!(
        "Read     {} candles of {} symbols, {} dates from {} to {}\n\
         Left out {} rows, and {} of {} files\n\
         Judged   {} signals on {} dates from {} to {}, {} sessions later; {} hits, \
         hit rate {:.5}\n",
        read.candles,
        read.symbols,
        read.dates,
        read.first_date,
        read.last_date,
        read.rows_left_out,
        read.files_left_out,
        read.files,
        judged.signals,
        judged.dates,
        judged.first_date,
        judged.last_date,
        report.horizon_sessions,
        judged.hits,
        judged.hit_rate
    );
    let prior = format!(
        "Each was made of the {} dates before it alone, counting only outcomes known by then; the \
         prior weighs {} dates.",
        report.window_dates, report.prior_dates
    );
    out += "\nWhat a confidence is:\n";
    for paragraph in [report.meaning, &prior] {
        out += &wrapped("", paragraph, LINE_CHARS_MAX);
        out.push('\n');
    }
    if !report.suspect.is_empty() {
        let title = format!(
            "Gaps and suspected splits (silent: dates without signals, for more than {HOLES_MAX} \
             missing sessions\nof {SESSIONS_KEPT}, or a suspected split among them)"
        );
        let columns = ["symbol", "missing", "silent", "suspected splits"];
        out += &table(&title, columns, report.suspect.iter().map(suspect_row));
    }
    let title = "Confidence and its baselines (lower scores are better)";
    let columns = ["", "Brier", "log loss", "calibration", "if perfect", "mean", "min", "max"];
    out += &table(title, columns, report.models.iter().map(model_row));
    if report.comparisons.is_empty() {
        let dates = judged.score_dates_min;
        out += &format!("\nWith fewer than {dates} dates nothing is scored.\n");
    } else {
        let title = "Brier score less another's (standard error over blocks of five dates)";
        let columns = ["than", "difference", "verdict"];
        out += &table(title, columns, report.comparisons.iter().map(comparison_row));
    }
    let title = "Same-day lift: hit rate less the share of all that moved so meanwhile";
    let columns = ["claims", "signals", "hits", "dates", "mean", "observed", "same day", "lift"];
    out += &table(title, columns, report.directions.iter().map(direction_row));
    let columns = [
        "predicted",
        "signals",
        "hits",
        "dates",
        "mean",
        "observed",
        "bullish",
        "observed less mean",
    ];
    out += &table("Reliability", columns, report.reliability.iter().map(bin_row));
    out + "\n" + &wrapped("", report.disclaimer, LINE_CHARS_MAX) + "\n"
}

/// A titled table. Each column is as wide as its longest cell. All columns but the first and the
/// last are numbers, aligned right.
fn table<const N: usize>(
    title: &str,
    columns: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    let rows: Vec<_> = iter::once(columns.map(str::to_owned)).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; N] = array::from_fn(|column| width(column).unwrap_or_default());
    let mut out = format!("\n{title}\n\n");
    for row in &rows {
        let mut line = format!("{:<1$}", row[0], widths[0]);
        for (cell, width) in row[1..N - 1].iter().zip(&widths[1..]) {
            line += &format!("  {cell:>width$}");
        }
        line += &format!("  {}", row[N - 1]);
        out += line.trim_end();
        out.push('\n');
    }
    out
}

fn suspect_row(suspect: &Suspect) -> [String; 4] {
    let split = |Split { date, new, old }: &Split| match new.zip(*old) {
        Some((new, old)) => format!("{date} {new}:{old}"),
        None => format!("{date} gap"),
    };
    let splits: Vec<String> = suspect.suspected_splits.iter().map(split).collect();
    let (missing, silent) = (suspect.missing.to_string(), suspect.silent.to_string());
    [suspect.symbol.clone(), missing, silent, splits.join("  ")]
}

fn model_row(model: &Model) -> [String; 8] {
    let name = match model.model {
        "half_shrunk_base_rate" => "base rate, half believed",
        "base_rate" => "base rate alone",
        other => other,
    };
    [
        name.to_owned(),
        digits(model.brier, 6),
        digits(model.log_loss, 6),
        digits(model.calibration_error, 4),
        digits(model.calibration_error_if_perfect, 4),
        format!("{:.5}", model.mean_confidence),
        format!("{:.4}", model.lowest),
        format!("{:.4}", model.highest),
    ]
}

fn comparison_row(Comparison { with, difference, verdict }: &Comparison) -> [String; 3] {
    [(*with).to_owned(), interval(Some(difference), 6), verdict.clone()]
}

fn direction_row(row: &OfDirection) -> [String; 8] {
    let [signals, hits, dates, mean, observed] = counts(&row.counts, 5);
    let (same_day, lift) = (digits(row.same_day_rate, 5), interval(row.lift.as_ref(), 4));
    [row.direction.to_owned(), signals, hits, dates, mean, observed, same_day, lift]
}

fn bin_row(bin: &Bin) -> [String; 8] {
    let edges = match (bin.above, bin.up_to) {
        (Some(above), Some(up_to)) => format!("{above:.2}-{up_to:.2}"),
        (None, Some(up_to)) => format!("up to {up_to:.2}"),
        (Some(above), None) => format!("over {above:.2}"),
        (None, None) => "all".into(),
    };
    let [signals, hits, dates, mean, observed] = counts(&bin.counts, 3);
    let bullish = digits(bin.bullish_share, 3);
    let difference = interval(bin.observed_minus_said.as_ref(), 4);
    [edges, signals, hits, dates, mean, observed, bullish, difference]
}

fn counts(counts: &Counts, places: usize) -> [String; 5] {
    let Counts { signals, hits, dates, hit_rate, mean_confidence } = counts;
    let [mean, observed] = [mean_confidence, hit_rate].map(|share| digits(*share, places));
    [signals.to_string(), hits.to_string(), dates.to_string(), mean, observed]
}

fn digits(number: Option<f64>, places: usize) -> String {
    number.map_or("-".into(), |number| format!("{number:.places$}"))
}

/// Value, error and 95 % interval; a dash if there are too few dates.
fn interval(interval: Option<&Interval>, places: usize) -> String {
    interval.map_or("-".into(), |Interval { value, standard_error, low, high }| {
        format!("{value:+.places$} ± {standard_error:.places$} [{low:+.places$}, {high:+.places$}]")
    })
}
