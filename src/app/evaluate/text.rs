//! The report as people read it. Rounded; `--json` has all digits.

use std::fmt::{self, Write};

use super::report::{Bin, Model, Report, Split};
use crate::signals::history::{HOLES_MAX, SESSIONS_KEPT};

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
    years(out, report)?;
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
        "Judged   {} signals from {} to {}, {} sessions later; hit rate {:.5}",
        judged.signals,
        judged.first_date,
        judged.last_date,
        report.horizon_sessions,
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
        "{:<24}{:>10}{:>10}{:>13}{:>10}{:>8}{:>8}",
        "", "Brier", "log loss", "calibration", "mean", "min", "max"
    )?;
    for Model { model, mean_confidence, lowest, highest, brier, log_loss, calibration_error } in
        &report.models
    {
        let name = match *model {
            "half_shrunk_base_rate" => "base rate, half believed",
            "base_rate" => "base rate alone",
            "coin" => "coin",
            other => other,
        };
        let log_loss = log_loss.map_or("infinite".into(), |loss| format!("{loss:.6}"));
        writeln!(
            out,
            "{name:<24}{brier:>10.6}{log_loss:>10}{calibration_error:>13.4}\
             {mean_confidence:>10.5}{lowest:>8.4}{highest:>8.4}"
        )?;
    }
    Ok(())
}

fn years(out: &mut String, report: &Report) -> fmt::Result {
    writeln!(out, "\nBy year\n")?;
    writeln!(out, "{:<6}{:>9}{:>10}{:>10}{:>10}", "year", "signals", "hit rate", "mean", "Brier")?;
    for year in &report.years {
        writeln!(
            out,
            "{:<6}{:>9}{:>10.5}{:>10.5}{:>10.6}",
            year.year, year.signals, year.hit_rate, year.mean_confidence, year.brier
        )?;
    }
    Ok(())
}

fn reliability(out: &mut String, report: &Report) -> fmt::Result {
    writeln!(out, "\nReliability\n")?;
    writeln!(
        out,
        "{:<13}{:>9}{:>11}{:>10}{:>15}",
        "predicted", "signals", "mean", "observed", "bullish share"
    )?;
    for bin in &report.reliability {
        let share = |share: Option<f64>| share.map_or("-".into(), |share| format!("{share:.3}"));
        writeln!(
            out,
            "{:<13}{:>9}{:>11}{:>10}{:>15}",
            range(bin),
            bin.signals,
            share(bin.mean_confidence),
            share(bin.hit_rate),
            share(bin.bullish_share)
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
            rate(row.hit_rate),
            row.dates,
            rate(row.date_hit_rate),
            row.confidence
        )?;
    }
    Ok(())
}

fn rate(rate: Option<f64>) -> String {
    rate.map_or("-".into(), |rate| format!("{rate:.5}"))
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
            rate(row.hit_rate),
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
