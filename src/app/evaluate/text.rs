//! The report as people read it. Rounded; `--json` has all digits.

use std::fmt::{self, Write};

use super::outcomes::{Bin, Comparison};
use super::report::{Report, Split};
use crate::signals::history::{HOLES_MAX, SESSIONS_KEPT};
use crate::views::signal_record::Interval;

/// Longest line of running text.
const LINE_CHARS_MAX: usize = 100;

/// The whole report.
pub fn write(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = sections(&mut out, report);
    out
}

fn sections(out: &mut String, report: &Report) -> fmt::Result {
    head(out, report)?;
    suspects(out, report)?;
    models(out, report)?;
    comparisons(out, report)?;
    directions(out, report)?;
    years(out, report)?;
    quarters(out, report)?;
    reliability(out, report)?;
    patterns(out, report)?;
    signals(out, report)?;
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

fn suspects(out: &mut String, report: &Report) -> fmt::Result {
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

fn comparisons(out: &mut String, report: &Report) -> fmt::Result {
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

fn directions(out: &mut String, report: &Report) -> fmt::Result {
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

fn years(out: &mut String, report: &Report) -> fmt::Result {
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

fn quarters(out: &mut String, report: &Report) -> fmt::Result {
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
pub fn range(bin: &Bin) -> String {
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

fn signals(out: &mut String, report: &Report) -> fmt::Result {
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
