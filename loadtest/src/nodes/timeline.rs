//! What clients of each node saw, a character a second.

use std::fmt::Write;

use super::calls::Call;
use super::seen::{Seen, What};

/// What the characters mean; stands above the first timeline.
pub const LEGEND: &str = "A character is a second, from the one before the fault. Prices: `f` fresh, \
    `s` marked as stale, `p` the public provider's, `5` an answer of 5xx, `x` none within two \
    seconds, `-` the node does not run. Leads: `L`, by its own word. Reads and writes of a journal: \
    `o` done, `5` refused with 5xx, `x` no answer within ten seconds. Calls: which node asked the \
    broker for quotes, `.` none, `!` two or more within the second; calls are 1,050 ms apart, so a \
    second without one comes every 21 s.\n";

/// A stretch of the run.
pub struct Stretch<'a> {
    pub from_ms: u64,
    pub until_ms: u64,
    pub names: &'a [String],
    pub seen: &'a [Seen],
    pub calls: &'a [Call],
}

/// What stands in the summary of a row.
#[derive(Debug, Default)]
pub struct Summary {
    /// Most seconds of one node with prices marked as stale, or by the public provider.
    pub stale_s: usize,
    pub public_s: usize,
    /// Seconds of living nodes with an answer of 5xx or none.
    pub failed_s: usize,
    pub refused: usize,
    pub calls_in_1s: usize,
    /// First and last epoch.
    pub epochs: (u64, u64),
}

impl Stretch<'_> {
    /// All lines, as a block of code.
    pub fn render(&self) -> String {
        let mut out = String::from("```text\n");
        for (what, line) in self.lines() {
            let _ = writeln!(out, "{what:<10} {line}");
        }
        out.push_str("```\n");
        out
    }

    pub fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        for node in 0..self.names.len() {
            let line = self.line(node, prices);
            let count = |wanted: &[char]| line.chars().filter(|at| wanted.contains(at)).count();
            summary.stale_s = summary.stale_s.max(count(&['s']));
            summary.public_s = summary.public_s.max(count(&['p']));
            summary.failed_s += count(&['5', 'x']);
        }
        let calls: Vec<&Call> = self.calls().collect();
        summary.refused = calls.iter().filter(|call| call.refused).count();
        let within = |from: &Call| {
            let end_ms = from.at_ms + 1_000;
            calls.iter().filter(|call| (from.at_ms..end_ms).contains(&call.at_ms)).count()
        };
        summary.calls_in_1s = calls.iter().map(|call| within(call)).max().unwrap_or(0);
        let epochs = self.seen().filter_map(|one| match one.what {
            What::Health { leads: true, epoch } => epoch,
            _ => None,
        });
        let epochs: Vec<u64> = epochs.collect();
        let ends = (epochs.iter().min(), epochs.iter().max());
        summary.epochs = (ends.0.copied().unwrap_or(0), ends.1.copied().unwrap_or(0));
        summary
    }

    fn lines(&self) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        let kinds: [(&str, fn(&What) -> Option<char>); 4] =
            [("prices", prices), ("leads", leads), ("reads", reads), ("writes", writes)];
        for (what, character) in kinds {
            for (node, name) in self.names.iter().enumerate() {
                let head = if node == 0 { what } else { "" };
                lines.push((format!("{head:<7} {name}"), self.line(node, character)));
            }
        }
        lines.push(("calls".to_owned(), self.callers()));
        lines
    }

    fn seen(&self) -> impl Iterator<Item = &Seen> {
        let within = self.from_ms..self.until_ms;
        self.seen.iter().filter(move |one| within.contains(&one.sent_ms))
    }

    fn calls(&self) -> impl Iterator<Item = &Call> {
        let within = self.from_ms..self.until_ms;
        self.calls.iter().filter(move |call| within.contains(&call.at_ms))
    }

    /// The worst of each second.
    fn line(&self, node: usize, character: fn(&What) -> Option<char>) -> String {
        let mut line = vec!['-'; self.seconds()];
        for one in self.seen().filter(|one| one.node == node && one.lived) {
            let Some(shown) = character(&one.what) else { continue };
            let at = &mut line[self.second(one.sent_ms)];
            if rank(shown) > rank(*at) {
                *at = shown;
            }
        }
        line.into_iter().collect()
    }

    fn callers(&self) -> String {
        let mut line = vec!['.'; self.seconds()];
        for call in self.calls() {
            let at = &mut line[self.second(call.at_ms)];
            let name = self.names[call.node].chars().next().unwrap_or('?');
            *at = if *at == '.' { name } else { '!' };
        }
        line.into_iter().collect()
    }

    fn seconds(&self) -> usize {
        usize::try_from((self.until_ms - self.from_ms).div_ceil(1_000)).unwrap_or(0)
    }

    fn second(&self, at_ms: u64) -> usize {
        usize::try_from((at_ms - self.from_ms) / 1_000).unwrap_or(0)
    }
}

/// How bad a character is.
fn rank(character: char) -> usize {
    "-.ofpsL5x".find(character).unwrap_or(0)
}

fn prices(what: &What) -> Option<char> {
    match what {
        What::Snapshot { status: 0, .. } => Some('x'),
        What::Snapshot { shown: Some(shown), .. } if shown.source == "public" => Some('p'),
        What::Snapshot { shown: Some(shown), .. } => Some(if shown.stale { 's' } else { 'f' }),
        What::Snapshot { .. } => Some('5'),
        _ => None,
    }
}

fn leads(what: &What) -> Option<char> {
    match what {
        What::Health { leads, .. } => Some(if *leads { 'L' } else { '.' }),
        _ => None,
    }
}

fn reads(what: &What) -> Option<char> {
    match what {
        What::Read { status } => Some(done(*status)),
        _ => None,
    }
}

fn writes(what: &What) -> Option<char> {
    match what {
        What::Write { status } => Some(done(*status)),
        _ => None,
    }
}

fn done(status: u16) -> char {
    match status {
        200..=299 => 'o',
        0 => 'x',
        _ => '5',
    }
}

#[cfg(test)]
mod tests {
    use super::super::seen::Shown;
    use super::{Call, Seen, Stretch, What};

    #[test]
    fn the_worst_of_each_second_is_shown() {
        let snapshot = |sent_ms, stale| {
            let (as_of, source) = (String::new(), "broker_a".to_owned());
            let what = What::Snapshot { status: 200, shown: Some(Shown { as_of, stale, source }) };
            Seen { node: 0, start: 1, lived: true, sent_ms, got_ms: sent_ms, what }
        };
        let seen = [snapshot(1_000, false), snapshot(2_100, true), snapshot(2_900, false)];
        let calls = [Call { at_ms: 1_500, node: 0, refused: true }];
        let names = ["a".to_owned()];
        let stretch =
            Stretch { from_ms: 1_000, until_ms: 4_000, names: &names, seen: &seen, calls: &calls };
        let lines = stretch.lines();
        assert_eq!(lines[0].1, "fs-");
        assert_eq!(lines.last().map(|(_, line)| line.as_str()), Some("a.."));
        let summary = stretch.summary();
        assert_eq!((summary.stale_s, summary.refused, summary.calls_in_1s), (1, 1, 1));
    }
}
