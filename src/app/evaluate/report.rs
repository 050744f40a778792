//! The numbers of an evaluation, as `--json` writes them.

use std::fmt;
use std::fmt::Write;

use plotters::backend::SVGBackend;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::types::RangedCoordf64;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{BLACK, Color, IntoFont, RGBColor, TextStyle, WHITE};
use serde::Serialize;

use crate::app::evaluate::outcomes::{
    Bin, Comparison, Model, OfDirection, Quarter, Year, bins, comparisons, directions, model,
    quarters, years,
};
use crate::app::evaluate::run::Folder;
use crate::signals::backtest::{Judged, Performance, Scores, Signal as Found, Silence, Universe};
use crate::signals::blocks::{Place, SCORE_DATES_MIN};
use crate::signals::confidence::{WINDOW_DATES, Weight, prior};
use crate::signals::history::{HOLES_MAX, SESSIONS_KEPT, Suspected};
use crate::signals::patterns::Key;
use crate::signals::{DISCLAIMER, Direction, HORIZON_SESSIONS, MEANING};
use crate::views::signals::Interval;

/// Keys with fewer dates than this are not listed: they say next to nothing.
pub(crate) const LISTED_DATES_MIN: u32 = 30;

/// Everything that is told of a universe.
#[derive(Debug, Serialize)]
pub(super) struct Report {
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

/// What is wrong with a symbol's candles.
#[derive(Debug, Serialize)]
pub(crate) struct Suspect {
    pub symbol: String,
    /// Sessions between its first and its last on which it has no candle.
    pub missing: usize,
    pub suspected_splits: Vec<Split>,
    /// Candles on whose dates it gives no signal.
    pub silent: usize,
}

/// A day that looks like a split that older candles are not adjusted for.
#[derive(Debug, Serialize)]
pub(crate) struct Split {
    pub date: String,
    /// Shares after it for so many before.
    pub new: i64,
    pub old: i64,
}

/// The signals with an outcome.
#[derive(Debug, Serialize)]
pub(crate) struct JudgedSignals {
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
pub(crate) struct LastDate {
    pub date: String,
    pub base_rate_up: f64,
    pub base_rate_down: f64,
    pub listed_dates_min: u32,
    pub patterns: Vec<Pattern>,
    pub signals: Vec<Signal>,
}

/// A pattern, its direction and its record.
#[derive(Debug, Serialize)]
pub(crate) struct Pattern {
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
pub(super) struct Signal {
    pub symbol: String,
    /// Another signal of the symbol on this date claims the opposite.
    pub conflict: bool,
    #[serde(flatten)]
    pub pattern: Pattern,
}

impl Report {
    /// The numbers of `universe`; `judged` must not be empty.
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
    pub(super) fn to_json(&self) -> Result<String, sonic_rs::Error> {
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

// ---- Text
//
// The report as people read it. Rounded; `--json` has all digits.

/// Longest line of running text.
const LINE_CHARS_MAX: usize = 100;

/// The whole report.
pub(super) fn write(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = sections(&mut out, report);
    out
}

fn sections(out: &mut String, report: &Report) -> fmt::Result {
    head(out, report)?;
    suspects_text(out, report)?;
    models(out, report)?;
    comparisons_text(out, report)?;
    directions_text(out, report)?;
    years_text(out, report)?;
    quarters_text(out, report)?;
    reliability(out, report)?;
    patterns(out, report)?;
    signals_text(out, report)?;
    writeln!(out)?;
    paragraph(out, report.disclaimer)
}

fn head(out: &mut String, report: &Report) -> fmt::Result {
    let (read, judged) = (&report.read, &report.judged);
    writeln!(
        out,
        "Read     {} candles of {} symbols, {} dates from {} to {}",
        read.candles, read.symbols, read.dates, read.first_date, read.last_date
    )?;
    writeln!(
        out,
        "Left out {} rows, and {} of {} files",
        read.rows_left_out, read.files_left_out, read.files
    )?;
    writeln!(
        out,
        "Judged   {} signals on {} dates from {} to {}, {} sessions later; {} hits, hit rate {:.5}",
        judged.signals,
        judged.dates,
        judged.first_date,
        judged.last_date,
        report.horizon_sessions,
        judged.hits,
        judged.hit_rate
    )?;
    writeln!(out)?;
    writeln!(out, "What a confidence is:")?;
    paragraph(out, report.meaning)?;
    let from = format!(
        "Each was made of the {} dates before it alone, counting only outcomes known by then; the \
         prior weighs {} dates.",
        report.window_dates, report.prior_dates
    );
    paragraph(out, &from)
}

fn suspects_text(out: &mut String, report: &Report) -> fmt::Result {
    if report.suspect.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\nGaps and suspected splits (silent: dates without signals, for more than {HOLES_MAX} \
         missing sessions\nof {SESSIONS_KEPT}, or a suspected split among them)\n"
    )?;
    writeln!(out, "{:<16}{:>9}{:>8}  suspected splits", "symbol", "missing", "silent")?;
    for suspect in &report.suspect {
        write!(out, "{:<16}{:>9}{:>8}", suspect.symbol, suspect.missing, suspect.silent)?;
        for Split { date, new, old } in &suspect.suspected_splits {
            write!(out, "  {date} {new}:{old}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn models(out: &mut String, report: &Report) -> fmt::Result {
    writeln!(out, "\nConfidence, and what it must be compared with (lower scores are better)\n")?;
    writeln!(
        out,
        "{:<24}{:>10}{:>10}{:>13}{:>12}{:>10}{:>8}{:>8}",
        "", "Brier", "log loss", "calibration", "if perfect", "mean", "min", "max"
    )?;
    for model in &report.models {
        let name = match model.model {
            "half_shrunk_base_rate" => "base rate, half believed",
            "base_rate" => "base rate alone",
            "coin" => "coin",
            other => other,
        };
        writeln!(
            out,
            "{name:<24}{:>10}{:>10}{:>13}{:>12}{:>10.5}{:>8.4}{:>8.4}",
            places(model.brier, 6),
            places(model.log_loss, 6),
            places(model.calibration_error, 4),
            places(model.calibration_error_if_perfect, 4),
            model.mean_confidence,
            model.lowest,
            model.highest
        )?;
    }
    Ok(())
}

fn places(number: Option<f64>, places: usize) -> String {
    number.map_or("-".into(), |number| format!("{number:.places$}"))
}

/// Value, error and interval, or that there are too few dates.
fn interval(interval: Option<&Interval>) -> String {
    interval.map_or("-".into(), |interval| {
        let Interval { value, standard_error, low, high } = interval;
        format!("{value:+.4} ± {standard_error:.4} [{low:+.4}, {high:+.4}]")
    })
}

fn comparisons_text(out: &mut String, report: &Report) -> fmt::Result {
    if report.comparisons.is_empty() {
        let dates = report.judged.score_dates_min;
        return writeln!(out, "\nWith fewer than {dates} dates nothing is scored.");
    }
    writeln!(out, "\nBrier score less another's (standard error over blocks of five dates)\n")?;
    for Comparison { with, difference, verdict } in &report.comparisons {
        let Interval { value, standard_error, low, high } = difference;
        writeln!(
            out,
            "{with:<12}{value:>+10.6} ± {standard_error:.6} [{low:+.6}, {high:+.6}]  {verdict}"
        )?;
    }
    Ok(())
}

fn directions_text(out: &mut String, report: &Report) -> fmt::Result {
    writeln!(out, "\nSame-day lift: hit rate less the share of all that moved so meanwhile\n")?;
    writeln!(
        out,
        "{:<9}{:>9}{:>8}{:>7}{:>10}{:>10}{:>10}  lift",
        "claims", "signals", "hits", "dates", "hit rate", "mean", "same day"
    )?;
    for row in &report.directions {
        writeln!(
            out,
            "{:<9}{:>9}{:>8}{:>7}{:>10}{:>10}{:>10}  {}",
            row.direction,
            row.signals,
            row.hits,
            row.dates,
            places(row.hit_rate, 5),
            places(row.mean_confidence, 5),
            places(row.same_day_rate, 5),
            interval(row.lift.as_ref())
        )?;
    }
    Ok(())
}

fn years_text(out: &mut String, report: &Report) -> fmt::Result {
    writeln!(out, "\nBy year\n")?;
    writeln!(
        out,
        "{:<6}{:>9}{:>8}{:>7}{:>10}{:>10}{:>10}",
        "year", "signals", "hits", "dates", "hit rate", "mean", "Brier"
    )?;
    for year in &report.years {
        writeln!(
            out,
            "{:<6}{:>9}{:>8}{:>7}{:>10.5}{:>10.5}{:>10}",
            year.year,
            year.signals,
            year.hits,
            year.dates,
            year.hit_rate,
            year.mean_confidence,
            places(year.brier, 6)
        )?;
    }
    Ok(())
}

fn quarters_text(out: &mut String, report: &Report) -> fmt::Result {
    writeln!(out, "\nBy quarter and direction\n")?;
    writeln!(
        out,
        "{:<9}{:<9}{:>8}{:>7}{:>7}{:>7}{:>10}  observed less mean",
        "quarter", "claims", "signals", "hits", "dates", "mean", "observed"
    )?;
    for row in &report.quarters {
        writeln!(
            out,
            "{:<9}{:<9}{:>8}{:>7}{:>7}{:>7}{:>10}  {}",
            row.quarter,
            row.direction,
            row.signals,
            row.hits,
            row.dates,
            places(row.mean_confidence, 3),
            places(row.hit_rate, 3),
            interval(row.observed_minus_said.as_ref())
        )?;
    }
    Ok(())
}

fn reliability(out: &mut String, report: &Report) -> fmt::Result {
    writeln!(out, "\nReliability\n")?;
    writeln!(
        out,
        "{:<13}{:>8}{:>7}{:>7}{:>7}{:>10}{:>9}  observed less mean",
        "predicted", "signals", "hits", "dates", "mean", "observed", "bullish"
    )?;
    for bin in &report.reliability {
        writeln!(
            out,
            "{:<13}{:>8}{:>7}{:>7}{:>7}{:>10}{:>9}  {}",
            range(bin),
            bin.signals,
            bin.hits,
            bin.dates,
            places(bin.mean_confidence, 3),
            places(bin.hit_rate, 3),
            places(bin.bullish_share, 3),
            interval(bin.observed_minus_said.as_ref())
        )?;
    }
    Ok(())
}

/// The edges of a bin in words.
pub(super) fn range(bin: &Bin) -> String {
    match (bin.above, bin.up_to) {
        (Some(above), Some(up_to)) => format!("{above:.2}-{up_to:.2}"),
        (None, Some(up_to)) => format!("up to {up_to:.2}"),
        (Some(above), None) => format!("over {above:.2}"),
        (None, None) => "all".into(),
    }
}

fn patterns(out: &mut String, report: &Report) -> fmt::Result {
    let last = &report.last_date;
    writeln!(
        out,
        "\nPatterns on {}, with at least {} dates in the window; base rate {:.5} up, {:.5} down\n",
        last.date, last.listed_dates_min, last.base_rate_up, last.base_rate_down
    )?;
    writeln!(
        out,
        "{:<21}{:<9}{:>8}{:>7}{:>10}{:>7}{:>11}{:>12}",
        "function", "claims", "signals", "hits", "hit rate", "dates", "by date", "confidence"
    )?;
    for row in &last.patterns {
        writeln!(
            out,
            "{:<21}{:<9}{:>8}{:>7}{:>10}{:>7}{:>11}{:>12.6}",
            row.function,
            row.direction,
            row.signals,
            row.hits,
            places(row.hit_rate, 5),
            row.dates,
            places(row.date_hit_rate, 5),
            row.confidence
        )?;
    }
    Ok(())
}

fn signals_text(out: &mut String, report: &Report) -> fmt::Result {
    let last = &report.last_date;
    writeln!(out, "\nSignals on {}: {}\n", last.date, last.signals.len())?;
    writeln!(
        out,
        "{:<16}{:<32}{:<9}{:>12}{:>7}{:>11}{:>11}",
        "symbol", "pattern", "claims", "confidence", "dates", "hit rate", "base rate"
    )?;
    for signal in &last.signals {
        let row = &signal.pattern;
        writeln!(
            out,
            "{:<16}{:<32}{:<9}{:>12.6}{:>7}{:>11}{:>11.5}{}",
            signal.symbol,
            row.pattern,
            row.direction,
            row.confidence,
            row.dates,
            places(row.hit_rate, 5),
            row.base_rate,
            if signal.conflict { "  conflict" } else { "" }
        )?;
    }
    Ok(())
}

fn paragraph(out: &mut String, text: &str) -> fmt::Result {
    let mut chars = 0;
    for word in text.split_whitespace() {
        let long = word.chars().count();
        if chars > 0 && chars + 1 + long > LINE_CHARS_MAX {
            out.write_char('\n')?;
            chars = 0;
        }
        if chars > 0 {
            out.write_char(' ')?;
            chars += 1;
        }
        out.write_str(word)?;
        chars += long;
    }
    out.write_char('\n')
}

// ---- Plot
//
// The reliability plot: what was predicted against what came, and how many signals stand behind.

const SIZE: (u32, u32) = (900, 860);
/// Pixels from the top that the upper chart has.
const UPPER_HEIGHT: u32 = 640;
const LABEL_AREA: u32 = 50;
const FONT: &str = "sans-serif";
const BLUE: RGBColor = RGBColor(31, 89, 158);
const GREY: RGBColor = RGBColor(120, 120, 120);
/// Radius of the largest circle; areas are proportional to signals.
const RADIUS_MAX: f64 = 16.0;
const RADIUS_MIN: f64 = 2.0;
/// Edges of the axes are multiples of this.
const GRID: f64 = 0.02;
/// Half the width of a bin, and of its bar.
const BIN_HALF: f64 = 0.005;
const BAR_HALF: f64 = 0.004;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type PlotError = DrawingAreaErrorKind<std::io::Error>;

/// A bin with signals in it.
struct Point {
    predicted: f64,
    observed: f64,
    /// Middle of the bin; an open one is drawn as wide as the others.
    middle: f64,
    signals: u64,
}

/// The plot of `report` as an SVG document.
///
/// # Errors
/// Where the library fails; nothing here gives it reason to.
pub(super) fn svg(report: &Report) -> Result<String, PlotError> {
    let points: Vec<Point> = report.reliability.iter().filter_map(point).collect();
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let (upper, lower) = area.split_vertically(UPPER_HEIGHT);
        let (low, high) = plot_range(&points);
        shares(&upper, report, &points, low, high)?;
        counts(&lower, report, &points, low, high)?;
        area.present()?;
    }
    Ok(svg)
}

fn point(bin: &Bin) -> Option<Point> {
    let (predicted, observed) = (bin.mean_confidence?, bin.hit_rate?);
    let middle = bin.up_to.map(|edge| edge - BIN_HALF).or(bin.above.map(|edge| edge + BIN_HALF))?;
    Some(Point { predicted, observed, middle, signals: bin.signals })
}

/// One range for both axes, so that the diagonal is one. A coin is always inside.
fn plot_range(points: &[Point]) -> (f64, f64) {
    let all = points.iter().flat_map(|point| [point.predicted, point.observed, point.middle]);
    let (low, high) = all.fold((0.5, 0.5), |(low, high): (f64, f64), x| (low.min(x), high.max(x)));
    let margin = GRID / 4.0;
    (((low - margin) / GRID).floor() * GRID, ((high + margin) / GRID).ceil() * GRID)
}

fn font(size: u32) -> TextStyle<'static> {
    (FONT, size).into_font().color(&BLACK)
}

fn shares(
    area: &Area<'_>,
    report: &Report,
    points: &[Point],
    low: f64,
    high: f64,
) -> Result<(), PlotError> {
    let judged = &report.judged;
    let caption = format!(
        "Predicted and observed, {} signals, {} to {}",
        judged.signals, judged.first_date, judged.last_date
    );
    let mut chart = ChartBuilder::on(area)
        .caption(caption, font(22))
        .margin(14)
        .x_label_area_size(LABEL_AREA)
        .y_label_area_size(LABEL_AREA + 24)
        .build_cartesian_2d(low..high, low..high)?;
    mesh(&mut chart, "predicted: mean confidence of the bin", ("observed: share of hits", 2))?;
    let diagonal = PathElement::new(vec![(low, low), (high, high)], GREY.stroke_width(1));
    let coin = PathElement::new(vec![(low, 0.5), (high, 0.5)], GREY.mix(0.6).stroke_width(1));
    chart.draw_series([diagonal, coin])?;
    let aside = |vertical| font(14).color(&GREY).pos(Pos::new(HPos::Right, vertical));
    let near = (high - low) / 100.0;
    chart.draw_series([
        Text::new("as predicted", (high - 6.0 * near, high - 5.0 * near), aside(VPos::Bottom)),
        Text::new("a coin: 0.50", (high - near, 0.5 + near / 2.0), aside(VPos::Bottom)),
    ])?;
    let most = points.iter().map(|point| point.signals).max().unwrap_or(1) as f64;
    chart.draw_series(points.iter().map(|point| {
        let radius = RADIUS_MAX * (point.signals as f64 / most).sqrt();
        let size = radius.max(RADIUS_MIN).round() as u32;
        Circle::new((point.predicted, point.observed), size, BLUE.mix(0.75).filled())
    }))?;
    Ok(())
}

fn counts(
    area: &Area<'_>,
    report: &Report,
    points: &[Point],
    low: f64,
    high: f64,
) -> Result<(), PlotError> {
    let most = points.iter().map(|point| point.signals).max().unwrap_or(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .margin(14)
        .x_label_area_size(LABEL_AREA)
        .y_label_area_size(LABEL_AREA + 24)
        .build_cartesian_2d(low..high, 0.0..most * 1.2)?;
    let note = format!(
        "predicted. Outcome {} sessions later. Information, not investment advice.",
        report.horizon_sessions
    );
    mesh(&mut chart, &note, ("signals in the bin", 0))?;
    let bar = |point: &Point| {
        let (from, to) = (point.middle - BAR_HALF, point.middle + BAR_HALF);
        Rectangle::new([(from, 0.0), (to, point.signals as f64)], BLUE.mix(0.5).filled())
    };
    chart.draw_series(points.iter().map(bar))?;
    let above = font(12).pos(Pos::new(HPos::Center, VPos::Bottom));
    chart.draw_series(points.iter().map(|point| {
        let at = (point.middle, point.signals as f64 + most * 0.02);
        Text::new(point.signals.to_string(), at, above.clone())
    }))?;
    Ok(())
}

/// Axes; `y` is the description and the places after the point.
fn mesh(chart: &mut Chart<'_, '_>, x: &str, y: (&str, usize)) -> Result<(), PlotError> {
    let (y, places) = y;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.08))
        .label_style(font(14))
        .axis_desc_style(font(16))
        .x_desc(x)
        .y_desc(y)
        .y_labels(if places == 0 { 5 } else { 10 })
        .x_label_formatter(&|share| format!("{share:.2}"))
        .y_label_formatter(&|value| format!("{value:.places$}"))
        .draw()
}
