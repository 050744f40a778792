//! `--list`: the table of runs as a reader sees it.

use std::fmt::Write;

use crate::table::SECTIONS;

/// A line for each run.
pub fn table() -> String {
    let mut out = String::new();
    for section in &SECTIONS {
        let when = if section.is_on_request { " (only on request)" } else { "" };
        let _ = writeln!(out, "section {}{when}", section.name);
        for run in section.runs {
            let titles = [run.heading, run.text, section.heading];
            let title = titles.into_iter().find(|title| !title.is_empty()).unwrap_or_default();
            let _ = writeln!(out, "  run {}: {}", run.name, title.trim_start_matches(['#', ' ']));
        }
    }
    out
}
