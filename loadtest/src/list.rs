//! `--list`: the table of runs as a reader sees it.

use std::fmt::Write;

use crate::run::{Background, Run, Section, Work};
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
    let titles = [run.heading, run.text, section.heading];
    let title = titles.into_iter().find(|title| !title.is_empty()).unwrap_or_default();
    let _ = writeln!(out, "  run {}: {}", run.name, title.trim_start_matches(['#', ' ']));
    let Work::Slices(slices) = run.work else {
        out.push_str("    bhav, in steps of its own\n");
        return;
    };
    let _ = writeln!(out, "    servers, {:?}:", slices.order);
    for server in slices.servers {
        let _ = writeln!(out, "      {} on {:?} {:?}", server.name, server.state, server.settings);
    }
    for case in slices.cases {
        let _ = writeln!(out, "    load {}: {:?}", case.name, case.load);
        if case.background != Background::None {
            let _ = writeln!(out, "      beside {:?}", case.background);
        }
    }
    if !slices.reads.is_empty() {
        let _ = writeln!(out, "    also read: {:?}", slices.reads);
    }
}
