//! Writes what a section and its runs found as Markdown.

use std::fmt::Write;

use anyhow::Result;

use crate::execute::Outcome;
use crate::figures::{Figures, Slice, median, spread};
use crate::harness::{Effort, Harness};
use crate::lines;
use crate::run::{
    Base, Case, Column, Label, Lines, Run, Section, Show, Slices, Target, Wanted, Work,
};
use crate::surroundings;

/// Runs of a section with what they found.
pub type Measured = [(&'static Run, Outcome)];

/// What the head of a section says beside the figures.
pub struct Circumstances {
    /// Busy share of the machine before the section.
    pub busy_at_rest: f64,
    /// Length of the section, in seconds.
    pub elapsed_s: f64,
}

/// A number with fixed decimals, or a dash.
pub fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
}

/// A whole section.
pub fn section(
    harness: &Harness,
    section: &Section,
    effort: &Effort,
    measured: &Measured,
    circumstances: &Circumstances,
) -> Result<String> {
    let mut out = String::new();
    if !section.heading.is_empty() {
        let _ = write!(out, "{}\n\n", section.heading);
    }
    let mut facts: Vec<(&str, String)> = surroundings::date_and_commit().into();
    if section.beside.is_some() {
        facts.extend(surroundings::describe(&harness.programs));
    }
    for (name, value) in facts {
        let _ = writeln!(out, "- {name}: {value}");
    }
    if let Some(head) = head_of_slices(effort, measured, circumstances) {
        out.push_str(&head);
        if section.beside.is_some() {
            out.push_str(&head_of_peers(harness, measured)?);
        } else {
            out.push_str(harness.described_databases());
        }
    }
    beside_peers(harness, section, measured, &mut out);
    let level = if section.heading.is_empty() {
        "##"
    } else {
        "###"
    };
    targets(harness, level, measured, &mut out);
    // What has no heading would otherwise run on from the list of facts.
    if measured
        .first()
        .is_some_and(|(run, _)| run.heading.is_empty() && run.text.is_empty())
    {
        out.push('\n');
    }
    for (run, outcome) in measured {
        out.push_str(&lines_of(harness, run, outcome));
    }
    Ok(out)
}

fn head_of_slices(
    effort: &Effort,
    measured: &Measured,
    circumstances: &Circumstances,
) -> Option<String> {
    let quiet = measured
        .iter()
        .flat_map(|(run, outcome)| match (&run.work, outcome) {
            (Work::Slices(slices), Outcome::Figures(figures)) => {
                without_background(slices, figures)
            }
            _ => Vec::new(),
        });
    let quiet: Vec<&Slice> = quiet.collect();
    let head = format!(
        "- {} rounds ({} of the settings beside the default) of {} ms a slice, requests evenly \
         spaced, {:.0} s in all\n- machine used by others: {:.1} % before the run; in slices \
         without logins and readers {}\n",
        effort.rounds,
        effort.rounds_aside,
        effort.slice_ms,
        circumstances.elapsed_s,
        circumstances.busy_at_rest * 100.0,
        lines::foreign(quiet.iter().copied()),
    );
    (!quiet.is_empty()).then_some(head)
}

fn without_background<'a>(slices: &Slices, figures: &'a Figures) -> Vec<&'a Slice> {
    let busy = |name: &str| {
        let case = slices.cases.iter().find(|case| case.name == name);
        case.is_some_and(|case| !case.background.is_quiet())
    };
    figures
        .all()
        .filter(|((_, case), _)| !busy(case))
        .map(|(_, slice)| slice)
        .collect()
}

/// What every server sent, and what was left out.
fn head_of_peers(harness: &Harness, measured: &Measured) -> Result<String> {
    let snapshot = harness.snapshot()?;
    let mut bytes: Vec<String> = Vec::new();
    if let Some((
        Run {
            work: Work::Slices(slices),
            ..
        },
        Outcome::Figures(figures),
    )) = measured.first()
    {
        for server in slices
            .servers
            .iter()
            .filter(|server| harness.has(server.kind))
        {
            let own = figures.all().filter(|((name, _), _)| *name == server.name);
            let own: Vec<f64> = own
                .map(|(_, slice)| slice.load.bytes_per_response)
                .collect();
            bytes.push(format!("{} {}", server.name, number(median(&own), 0)));
        }
    }
    let mut out = format!(
        "- body of {} bytes with {} signals; bytes of a response with its head: {}\n",
        snapshot.body.len(),
        snapshot.signals(),
        bytes.join(", "),
    );
    if harness.programs.nginx.is_none() {
        out.push_str("- left out: nginx, which is not installed (package nginx-light)\n");
    }
    Ok(out)
}

/// bhav's figures as ratios to each of the others, taken within a round.
fn beside_peers(harness: &Harness, section: &Section, measured: &Measured, out: &mut String) {
    let Some((first, others)) = section.beside.and_then(|servers| servers.split_first()) else {
        return;
    };
    let others = others.iter().filter(|server| harness.has(server.kind));
    let others: Vec<&str> = others.map(|server| server.name).collect();
    let _ = write!(out, "\n## {} beside the others, on equal bytes\n\n", first.name);
    let names: String = others.iter().map(|name| format!(" to {name} |")).collect();
    let _ = writeln!(out, "| what | connections | {} |{names}", first.name);
    let _ = writeln!(out, "|---|---|---|{}", "---|".repeat(others.len()));
    for (run, outcome) in measured {
        let (Work::Slices(slices), Outcome::Figures(figures)) = (&run.work, outcome) else {
            continue;
        };
        let Some(Column(what, _, figure, decimals)) = &slices.beside else {
            continue;
        };
        for case in slices.cases {
            let own = (first.name, case.name);
            let value = number(figures.median(own, *figure), *decimals);
            let ratios = slices
                .servers
                .iter()
                .filter(|server| others.contains(&server.name));
            let ratios = ratios.map(|server| {
                let ratio = figures.ratio(own, (server.name, case.name), *figure);
                format!(" {} |", number(ratio, 3))
            });
            let _ =
                writeln!(out, "| {what} | {} | {value} |{}", case.name, ratios.collect::<String>());
        }
    }
}

/// The targets of the measured runs, with verdicts.
fn targets(harness: &Harness, level: &str, measured: &Measured, out: &mut String) {
    let mut rows = String::new();
    for (run, outcome) in measured {
        let Outcome::Figures(figures) = outcome else {
            continue;
        };
        for (what, wanted, value) in run.targets.iter().flat_map(|t| values(run, t, figures)) {
            let (bound, is_met) = match wanted {
                Wanted::AtMost(most) => (format!("≤ {most}"), value.map(|value| value <= most)),
                Wanted::AtLeast(least) => (format!("≥ {least}"), value.map(|value| value >= least)),
            };
            let verdict = match is_met {
                Some(true) => "met",
                Some(false) => "**missed**",
                None => "**not measured**",
            };
            let what = harness.filled(&what);
            let _ = writeln!(rows, "| {what} | {bound} | {} | {verdict} |", number(value, 3));
        }
    }
    if !rows.is_empty() {
        let _ = write!(
            out,
            "\n{level} Targets\n\n| what | wanted | measured | |\n|---|---|---|---|\n{rows}"
        );
    }
}

/// What one target of a run asks for, and the measured values.
fn values(run: &Run, target: &Target, figures: &Figures) -> Vec<(String, Wanted, Option<f64>)> {
    let (Target::ToServers(what, figure, others), Work::Slices(slices)) = (target, &run.work)
    else {
        let Target::Value(what, wanted, value) = target else {
            return Vec::new();
        };
        return vec![((*what).to_owned(), *wanted, value(figures))];
    };
    let mut values = Vec::new();
    for case in slices.cases {
        for (other, wanted) in *others {
            let own = (slices.servers[0].name, case.name);
            let ratio = figures.ratio(own, (other, case.name), *figure);
            values.push((format!("{what} to {other}, {} connections", case.name), *wanted, ratio));
        }
    }
    values
}

/// What one run writes.
pub fn lines_of(harness: &Harness, run: &Run, outcome: &Outcome) -> String {
    let mut out = String::new();
    for part in [run.heading, run.text]
        .into_iter()
        .filter(|part| !part.is_empty())
    {
        let _ = write!(out, "\n{}\n", harness.filled(part));
    }
    if !out.is_empty() {
        out.push('\n');
    }
    match (&run.work, outcome) {
        (Work::Slices(slices), Outcome::Figures(figures)) => match slices.lines {
            Lines::Text(text) => out.push_str(&text(harness, figures)),
            Lines::Table(labels, columns, below) => {
                table(harness, slices, labels, columns, figures, &mut out);
                if let Some(below) = below {
                    let _ = write!(out, "\n{}", below(figures));
                }
            }
        },
        (_, Outcome::Text(text)) => out.push_str(text),
        (Work::Steps(_), Outcome::Figures(_)) => {}
    }
    out
}

/// The first two lines of a table.
pub fn head_of_table(labels: &[Label], columns: &[Column]) -> String {
    let labels = labels.iter().map(|label| match label {
        Label::Server(head) | Label::Case(head) => *head,
    });
    let heads: Vec<&str> = labels
        .chain(columns.iter().map(|column| column.0))
        .collect();
    format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len()))
}

fn table(
    harness: &Harness,
    slices: &Slices,
    labels: &[Label],
    columns: &[Column],
    figures: &Figures,
    out: &mut String,
) {
    out.push_str(&head_of_table(labels, columns));
    let is_base = |case: &Case| {
        slices
            .cases
            .iter()
            .any(|other| matches!(other.base, Base::Case(name) if name == case.name))
    };
    for case in slices.cases.iter().filter(|case| !is_base(case)) {
        for server in slices
            .servers
            .iter()
            .filter(|server| harness.has(server.kind))
        {
            let names = labels.iter().map(|label| match label {
                Label::Server(_) => harness.filled(server.name),
                Label::Case(_) => case.name.to_owned(),
            });
            let cells = columns
                .iter()
                .map(|column| cell(figures, case, server.name, column));
            let cells: Vec<String> = names.chain(cells).collect();
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
    }
}

fn cell(figures: &Figures, case: &Case, server: &'static str, column: &Column) -> String {
    let Column(_, show, figure, decimals) = *column;
    let key = (server, case.name);
    let base = case.base_of(server);
    let values = figures.values(key, figure);
    let base_values = || {
        base.map(|base| figures.values(base, figure))
            .unwrap_or_default()
    };
    let ratios = || {
        base.map(|base| figures.ratios(key, base, figure))
            .unwrap_or_default()
    };
    let sum = |values: &[f64]| (!values.is_empty()).then(|| values.iter().sum::<f64>());
    let range = |values: &[f64]| {
        let text = |(low, high)| format!("{low:.decimals$}–{high:.decimals$}");
        spread(values).map_or_else(|| number(None, 0), text)
    };
    let value = match show {
        Show::Median => median(&values),
        Show::BaseMedian => median(&base_values()),
        Show::Lowest => spread(&values).map(|(lowest, _)| lowest),
        Show::Largest => spread(&values).map(|(_, largest)| largest),
        Show::Sum => sum(&values),
        Show::SumWithBase => sum(&values)
            .zip(sum(&base_values()))
            .map(|(own, base)| own + base),
        Show::Last => values.last().copied(),
        Show::Ratio => median(&ratios()),
        Show::Per(other) => {
            let others = sum(&figures.values(key, other));
            sum(&values).zip(others).map(|(own, other)| own / other)
        }
        Show::Spread => return range(&values),
        Show::RatioSpread => return range(&ratios()),
    };
    number(value.filter(|value| value.is_finite()), decimals)
}

#[cfg(test)]
mod tests {
    use openloop::report::LoadReport;

    use super::{Outcome, head_of_table, lines_of, values};
    use crate::figures::{Figures, Slice};
    use crate::harness::{Harness, Programs};
    use crate::run::{Lines, Run, Work};
    use crate::table::SECTIONS;

    fn harness() -> Harness {
        let programs = Programs {
            folder: "".into(),
            bhav: "".into(),
            nginx: None,
            work_folder: "".into(),
        };
        Harness::new(programs, false)
    }

    #[test]
    fn a_table_has_ratios_to_the_base_of_each_round_and_no_line_for_the_base() {
        let mut figures = Figures::default();
        for (per_s, failed) in [(50.0, 1), (90.0, 0), (160.0, 2)] {
            for (case, rate_per_s) in [("snapshot", 100.0), ("200, identity", per_s)] {
                let load = LoadReport {
                    rate_per_s,
                    errors: failed,
                    ..LoadReport::default()
                };
                let read = [("body bytes".to_owned(), 7.0)].into();
                figures.push(
                    ("bhav", case),
                    Slice {
                        load,
                        read,
                        ..Slice::default()
                    },
                );
            }
        }
        let is_kept = |run: &&Run| run.name == "kept";
        let runs = SECTIONS.iter().flat_map(|section| section.runs);
        let kept = runs.into_iter().find(is_kept).expect("a run of that name");
        let text = lines_of(&harness(), kept, &Outcome::Figures(figures));
        let row = "| 200, identity | 7 | 90 | 100 | 0.900 | 0.50–1.60 | 0.00 | 0.00 | 6 |\n";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("| 304 | – | – | – | – | – | – | – | – |\n"), "{text}");
        assert!(!text.contains("\n| snapshot"), "{text}");
    }

    #[test]
    fn the_results_have_every_heading_table_and_target_of_the_table_of_runs() {
        let harness = harness();
        let results = include_str!("../RESULTS.md");
        let mut rest = results;
        for section in &SECTIONS {
            let begin = format!("<!-- {}: begin -->\n{}", section.name, section.heading);
            rest = rest.split_once(&begin).expect(&begin).1;
            for run in section.runs {
                for part in [run.heading, run.text]
                    .into_iter()
                    .filter(|part| !part.is_empty())
                {
                    let part = format!("{}\n\n", harness.filled(part));
                    rest = rest.split_once(&part).expect(&part).1;
                }
                if let Work::Slices(slices) = run.work
                    && let Lines::Table(labels, columns, _) = slices.lines
                {
                    let head = head_of_table(labels, columns);
                    rest = rest.strip_prefix(&*head).expect(&head);
                }
                for target in run.targets {
                    for (what, ..) in values(run, target, &Figures::default()) {
                        let row = format!("\n| {} | ", harness.filled(&what));
                        assert!(results.contains(&row), "{row}");
                    }
                }
            }
        }
    }
}
