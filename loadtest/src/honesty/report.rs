//! The section of RESULTS.md.

use std::fmt::Write;

use super::Honesty;

impl Honesty {
    /// The section.
    pub fn render(&self) -> String {
        let mut out = String::from("## How old a price is\n\n");
        for (name, value) in &self.surroundings {
            let _ = writeln!(out, "- {name}: {value}");
        }
        let looks: u64 = self.episodes.iter().map(|seen| seen.looks).sum();
        let unanswered: u64 = self.episodes.iter().map(|seen| seen.unanswered).sum();
        let findings = &self.findings;
        let violations: u64 = findings.violations.values().map(|(count, _)| count).sum();
        let _ = write!(
            out,
            "- a simulated session of {:.0} min, looked at every 200 ms: each feed broken in each \
             way in turn, {} restarts of the service between; the public provider {} s behind\n\
             - **{looks} samples** ({unanswered} of them while the service was stopped or had \
             nothing to show), **{} prices** in them, {} marked as stale\n\
             - **violations: {violations}**\n\n",
            self.elapsed.as_secs_f64() / 60.0,
            self.restarts,
            self.pace.public_delay.as_secs(),
            findings.prices,
            findings.stale,
        );
        out.push_str(
            "A violation is a price whose time is not the one at which the exchange had it; one \
             that is older than its source's interval and delay allow and not marked; a delay that \
             is not the source's; a time that goes back, over restarts too; a snapshot and a quote \
             that disagree about the same price; health that is ok while prices are old; a quote \
             that nobody kept fresh and that comes old while a feed is well.\n\n",
        );
        for (kind, (count, examples)) in &findings.violations {
            let _ = writeln!(out, "- {kind}: {count}");
            for example in examples {
                let _ = writeln!(out, "  - {example}");
            }
        }
        out.push_str("| what was wrong | samples | fresh | marked after |\n|---|---|---|---|\n");
        for seen in &self.episodes {
            let after = seen
                .marked_after
                .map_or("-".to_owned(), |after| format!("{:.1} s", after.as_secs_f64()));
            let _ = writeln!(out, "| {} | {} | {} | {after} |", seen.name, seen.looks, seen.fresh);
        }
        out.push('\n');
        out
    }
}
