//! Driver of the load test: measures the runs of a table and writes `RESULTS.md`.
//!
//! ```text
//! main ── table      the runs: servers, load, background, reads, lines, targets (run: types)
//!      ── execute    measures a run (generator: slices; background: logins, faults; wait)
//!      │   └─ harness  what runs share: programs, state folders, databases (servers, simulator)
//!      ── render     writes a run and its section as Markdown (figures: medians; lines: text)
//!      └─ document   puts a section into RESULTS.md
//! ```
//!
//! Runs with steps of their own are functions that the table names: `revaluation`, two of `crowd`,
//! `followers` and `engines`, which have servers of their own (`stores`).

mod background;
mod crowd;
mod databases;
mod document;
mod engines;
mod execute;
mod figures;
mod followers;
mod generator;
mod harness;
mod http;
mod lines;
mod nginx;
mod process;
mod render;
mod requests;
mod revaluation;
mod run;
mod servers;
mod simulator;
mod snapshot;
mod stores;
mod surroundings;
mod table;
mod ticker;
mod wait;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use crate::harness::Harness;
use crate::render::Circumstances;
use crate::run::{Run, Section};
use crate::table::SECTIONS;

/// Measures bhav and its peers in interleaved rounds and writes RESULTS.md.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// Print the table of runs and end
    #[arg(long)]
    list: bool,

    /// Measure one section or one run; a section replaces its own in the results, a run is printed
    /// and written nowhere
    #[arg(long, value_name = "NAME")]
    only: Option<String>,

    /// One round of short slices, to see that everything works
    #[arg(long)]
    quick: bool,

    /// Interleaved rounds, instead of 8 beside the peers and 5 of the accounts
    #[arg(long)]
    rounds: Option<usize>,

    /// bhav's program; otherwise it is built from the folder above
    #[arg(long)]
    bhav: Option<PathBuf>,

    /// Take the generator, the peers and the seeding program that are beside the driver
    #[arg(long)]
    no_build: bool,

    /// Where to write the results, instead of RESULTS.md
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if args.list {
        for Section {
            name,
            heading,
            is_on_request,
            runs,
            ..
        } in &SECTIONS
        {
            let aside = if *is_on_request {
                "only on request"
            } else {
                ""
            };
            println!("{name}: {} {aside}", heading.trim_start_matches(['#', ' ']));
            for run in *runs {
                let title = if run.heading.is_empty() {
                    run.text
                } else {
                    run.heading
                };
                println!("  {:<16} {}", run.name, title.trim_start_matches(['#', ' ']));
            }
        }
        return Ok(());
    }
    let chosen = chosen(args.only.as_deref())?;
    openloop::sys::raise_open_files_limit().context("raise the limit of open files")?;
    let output = args.output.unwrap_or_else(surroundings::results_file);
    let programs = surroundings::prepare(args.bhav, args.no_build)?;
    let harness = Harness::new(programs, args.quick);
    for (section, runs) in chosen {
        let is_whole = runs.len() == section.runs.len();
        let text = measure_section(&harness, section, &runs, args.rounds)?;
        println!("{text}");
        if !is_whole {
            continue;
        }
        let before = std::fs::read_to_string(&output);
        let before = before.unwrap_or_else(|_| document::INTRODUCTION.to_owned());
        let after = document::with_section(&before, section.name, &text);
        std::fs::write(&output, after).context("write the results")?;
        println!("{} written to {}", section.name, output.display());
    }
    Ok(())
}

fn measure_section(
    harness: &Harness,
    section: &Section,
    runs: &[&'static Run],
    rounds: Option<usize>,
) -> Result<String> {
    let mut effort = section.effort[usize::from(harness.is_quick)];
    effort.rounds = rounds.unwrap_or(effort.rounds).max(1);
    let busy_at_rest = surroundings::busy_share_at_rest()?;
    let began = Instant::now();
    let mut measured = Vec::new();
    for &run in runs {
        measured.push((run, execute::measure(harness, &effort, run)?));
    }
    let circumstances = Circumstances {
        busy_at_rest,
        elapsed_s: began.elapsed().as_secs_f64(),
    };
    render::section(harness, section, &effort, &measured, &circumstances)
}

/// The runs with this name or in the section with this name; without a name, all that are not
/// measured on request only.
fn chosen(name: Option<&str>) -> Result<Vec<(&'static Section, Vec<&'static Run>)>> {
    let chosen = SECTIONS.iter().map(|section| {
        let is_whole = name.map_or(!section.is_on_request, |name| name == section.name);
        let runs = section
            .runs
            .iter()
            .filter(|run| is_whole || Some(run.name) == name);
        (section, runs.collect::<Vec<_>>())
    });
    let chosen: Vec<_> = chosen.filter(|(_, runs)| !runs.is_empty()).collect();
    ensure!(
        !chosen.is_empty(),
        "no section or run is called {}; see --list",
        name.unwrap_or("")
    );
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::{Args, chosen};

    #[test]
    fn arguments_do_not_contradict_each_other() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_name_chooses_a_section_or_a_run() {
        let names = |name| -> Vec<(&str, usize)> {
            let chosen = chosen(name).expect("the name is known");
            chosen
                .iter()
                .map(|(section, runs)| (section.name, runs.len()))
                .collect()
        };
        assert_eq!(names(None), [("peers", 9), ("accounts", 5), ("streams", 4)]);
        assert_eq!(names(Some("engines")), [("engines", 1)]);
        assert_eq!(names(Some("hang")), [("peers", 1)]);
        assert!(chosen(Some("nothing")).is_err());
    }
}
