//! `--list`: the table of runs as a reader sees it.

use std::fmt::{Debug, Write};

use crate::run::{Run, Section, Work};
use crate::table::SECTIONS;

/// A few lines for each run, as the table has it.
pub fn table() -> String {
    let mut out = String::new();
    for section in &SECTIONS {
        let when = if section.is_on_request { " (only on request)" } else { "" };
        let _ = writeln!(out, "section {}{when}", section.name);
        section.runs.iter().for_each(|run| append(&mut out, section, run));
    }
    out
}

fn append(out: &mut String, section: &Section, run: &Run) {
    let heading = if run.heading.is_empty() { section.heading } else { run.heading };
    let _ = writeln!(out, "  run {}: {}", run.name, heading.trim_start_matches(['#', ' ']));
    let mut line = |what: &str, value: &dyn Debug| {
        let _ = writeln!(out, "    {what}: {value:?}");
    };
    let Work::Slices(slices) = run.work else {
        return line("servers", &"bhav, in steps of its own");
    };
    let names: Vec<&str> = slices.servers.iter().map(|server| server.name).collect();
    line("servers", &names);
    for case in slices.cases {
        line("load", &(case.name, case.load, case.background));
    }
    if !slices.reads.is_empty() {
        line("also read", &slices.reads);
    }
}
