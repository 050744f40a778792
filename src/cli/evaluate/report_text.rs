//! The report as text: counts of the folder, the scores against their baselines, and the
//! reliability table. Rounded. Years, quarters, patterns and the last date's signals are only in
//! `--json`.

use std::{array, iter};

use crate::cli::evaluate::report::{
    Bin, Comparison, Counts, Model, OfDirection, Report, Split, Suspect,
};
use crate::config::settings::wrapped;
use crate::signals::history::{HOLES_MAX, SESSIONS_KEPT};
use crate::views::signals::Interval;

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
    let missing = suspect.missing.to_string();
    let silent = suspect.silent.to_string();
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
    let same_day = digits(row.same_day_rate, 5);
    let lift = interval(row.lift.as_ref(), 4);
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
