//! What must never have happened, whatever failed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::calls::Call;
use super::seen::{Seen, What};

/// Between two calls of different nodes, so that none is refused.
const APART_MS: u64 = 1_000;
/// How late health may be, which is published once a second.
const HEALTH_LATE_MS: u64 = 2_000;

/// What was counted, with the first examples.
#[derive(Debug, Default)]
pub struct Verdict {
    pub counts: BTreeMap<&'static str, u64>,
    pub faults: BTreeMap<&'static str, Vec<String>>,
    /// Of each epoch its node and when it was first seen.
    pub epochs: BTreeMap<u64, (usize, u64)>,
}

impl Verdict {
    pub fn fault(&mut self, kind: &'static str, what: String) {
        self.faults.entry(kind).or_default().push(what);
    }

    pub fn count(&mut self, kind: &'static str, by: u64) {
        *self.counts.entry(kind).or_default() += by;
    }

    /// Lines that name all that is judged, with how often it happened and the first examples.
    pub fn render(&self) -> String {
        let mut out = String::new();
        for (kind, count) in &self.counts {
            let _ = writeln!(out, "- {kind}: {count}");
        }
        for kind in KINDS {
            let found = self.faults.get(kind).map_or(&[][..], Vec::as_slice);
            let _ = writeln!(out, "- **{kind}: {}**", found.len());
            for example in found.iter().take(5) {
                let _ = writeln!(out, "  - {example}");
            }
        }
        out
    }
}

/// Everything that is judged.
const KINDS: [&str; 8] = [LOST, TWICE, TWO_CALL, REFUSED, BACK, FAILED, SILENT, UNEQUAL];
pub const LOST: &str = "acknowledged writes lost";
const TWICE: &str = "two nodes that led in one epoch, or at one time by their own word";
const TWO_CALL: &str = "calls of a node after another had taken its place";
pub const REFUSED: &str = "calls refused by the broker beyond one for each takeover";
const BACK: &str = "times of prices that went back at one node";
/// Only what no other node and no server had heard of can be lost with a node that is killed.
const BACK_OVER_START: &str =
    "times of prices that went back over a restart, since only the killed node knew them";
const FAILED: &str = "market routes that answered 5xx on a living node after its first snapshot";
const SILENT: &str = "market routes of a living node without an answer within two seconds";
pub const UNEQUAL: &str = "different snapshots of two nodes at rest";

/// Judges everything that was seen, in any order.
pub fn judge(mut seen: Vec<Seen>, calls: &[Call]) -> Verdict {
    seen.sort_by_key(|one| one.got_ms);
    let mut verdict = Verdict::default();
    leaders(&mut verdict, &seen);
    times(&mut verdict, &seen);
    answers(&mut verdict, &seen);
    callers(&mut verdict, calls);
    verdict
}

fn leaders(verdict: &mut Verdict, seen: &[Seen]) {
    let mut highest = 0;
    // Of each node that says it leads in an epoch that is over: since when.
    let mut outlived: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for one in seen {
        let What::Health { leads, epoch } = one.what else { continue };
        let Some(epoch) = epoch.filter(|_| leads) else {
            outlived.remove(&one.node);
            continue;
        };
        let known = verdict.epochs.entry(epoch).or_insert((one.node, one.got_ms));
        if known.0 != one.node {
            let what = format!("epoch {epoch}: nodes {} and {}", known.0, one.node);
            verdict.fault(TWICE, what);
        }
        highest = epoch.max(highest);
        if epoch == highest || !one.lived {
            outlived.remove(&one.node);
            continue;
        }
        // One that was stopped shows what it last knew for a moment.
        let (of, since_ms) = *outlived.entry(one.node).or_insert((epoch, one.sent_ms));
        let late_ms = one.sent_ms - since_ms.min(one.sent_ms);
        if of == epoch && late_ms > HEALTH_LATE_MS {
            let what = format!(
                "node {} leads in epoch {epoch} for {late_ms} ms, and another in {highest}",
                one.node
            );
            verdict.fault(TWICE, what);
        }
    }
    verdict.count("epochs", verdict.epochs.len() as u64);
}

fn times(verdict: &mut Verdict, seen: &[Seen]) {
    let mut last: BTreeMap<(usize, String), (String, u32)> = BTreeMap::new();
    for one in seen {
        let shown: Vec<(String, String)> = match &one.what {
            What::Snapshot { shown: Some(shown), .. } => {
                vec![("snapshot".to_owned(), shown.as_of.clone())]
            }
            What::Prices { as_of, .. } => as_of.clone(),
            _ => continue,
        };
        for (what, as_of) in shown {
            verdict.count("times of prices read", 1);
            let kept = last.entry((one.node, what.clone())).or_default();
            if as_of < kept.0 {
                if kept.1 == one.start {
                    let (node, at_s, before) = (one.node, one.got_ms / 1_000, &kept.0);
                    let what = format!("{what} of node {node} at {at_s} s: {as_of} after {before}");
                    verdict.fault(BACK, what);
                } else {
                    verdict.count(BACK_OVER_START, 1);
                }
            }
            *kept = (as_of, one.start);
        }
    }
}

fn answers(verdict: &mut Verdict, seen: &[Seen]) {
    let mut began: BTreeSet<(usize, u32, bool)> = BTreeSet::new();
    for one in seen {
        let (status, is_snapshot) = match &one.what {
            What::Snapshot { status, .. } => (*status, true),
            What::Prices { status, .. } => (*status, false),
            What::Write { status } => {
                verdict.count(write_of(*status), 1);
                continue;
            }
            _ => continue,
        };
        let key = (one.node, one.start, is_snapshot);
        if !one.lived {
            continue;
        }
        verdict.count("answers of market routes", 1);
        if status == 200 {
            began.insert(key);
        }
        let what = || {
            let route = if is_snapshot { "snapshot" } else { "live-prices" };
            format!("{route} of node {} at {} ms: {status}", one.node, one.sent_ms)
        };
        if status >= 500 && began.contains(&key) {
            verdict.fault(FAILED, what());
        } else if status == 0 && began.contains(&key) {
            verdict.fault(SILENT, what());
        }
    }
}

fn write_of(status: u16) -> &'static str {
    match status {
        201 => "writes acknowledged",
        0 => "writes without an answer",
        500.. => "writes refused with 5xx",
        _ => "writes answered otherwise",
    }
}

/// Calls in the order in which they passed: whoever calls after another node has, leads anew or
/// should not have called.
fn callers(verdict: &mut Verdict, calls: &[Call]) {
    verdict.count("calls for quotes", calls.len() as u64);
    verdict.count(
        "calls refused by the broker",
        calls.iter().filter(|call| call.refused).count() as u64,
    );
    let takeovers = verdict.epochs.len().saturating_sub(1);
    let mut refused_in: BTreeMap<usize, u64> = BTreeMap::new();
    let epochs: Vec<(usize, u64)> = verdict.epochs.values().copied().collect();
    let mut changes = 0;
    for pair in calls.windows(2) {
        let [before, call] = pair else { continue };
        if before.node != call.node {
            changes += 1;
            if call.at_ms < before.at_ms + APART_MS && !call.refused {
                let what = format!("{} ms apart, not refused", call.at_ms - before.at_ms);
                verdict.fault(TWO_CALL, what);
            }
        }
    }
    if changes > takeovers {
        // Each such call changes the caller there and back.
        for _ in 0..(changes - takeovers).div_ceil(2) {
            verdict.fault(TWO_CALL, format!("{changes} changes, {takeovers} takeovers"));
        }
    }
    for call in calls.iter().filter(|call| call.refused) {
        let epoch = epochs.iter().filter(|(_, since_ms)| *since_ms <= call.at_ms + HEALTH_LATE_MS);
        let number = epoch.count();
        let refused = refused_in.entry(number).or_default();
        *refused += 1;
        if *refused > 1 {
            let what = format!("node {} at {} ms, epoch {number}", call.node, call.at_ms);
            verdict.fault(REFUSED, what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::seen::Shown;
    use super::{BACK, FAILED, REFUSED, TWICE, TWO_CALL, Verdict, judge};
    use crate::nodes::calls::Call;
    use crate::nodes::seen::{Seen, What};

    fn seen(node: usize, at_ms: u64, what: What) -> Seen {
        Seen { node, start: 1, lived: true, sent_ms: at_ms, got_ms: at_ms, what }
    }

    fn leads(node: usize, at_ms: u64, epoch: u64) -> Seen {
        seen(node, at_ms, What::Health { leads: true, epoch: Some(epoch) })
    }

    fn shows(as_of: &str, at_ms: u64, status: u16) -> Seen {
        let (as_of, source) = (as_of.to_owned(), "broker_a".to_owned());
        let shown = (status == 200).then_some(Shown { as_of, stale: false, source });
        seen(0, at_ms, What::Snapshot { status, shown })
    }

    fn of(verdict: &Verdict, kind: &str) -> usize {
        verdict.faults.get(kind).map_or(0, Vec::len)
    }

    #[test]
    fn two_leaders_are_found() {
        let good = vec![leads(0, 0, 1), leads(1, 5_000, 2), leads(1, 9_000, 2)];
        assert_eq!(of(&judge(good, &[]), TWICE), 0);
        let shared = vec![leads(0, 0, 1), leads(1, 5_000, 1)];
        assert_eq!(of(&judge(shared, &[]), TWICE), 1);
        let thawed = vec![leads(0, 0, 1), leads(1, 5_000, 2), leads(0, 8_000, 1)];
        assert_eq!(of(&judge(thawed.clone(), &[]), TWICE), 0);
        let late = [thawed, vec![leads(0, 10_500, 1)]].concat();
        assert_eq!(of(&judge(late, &[]), TWICE), 1);
    }

    #[test]
    fn times_that_go_back_and_answers_that_fail_are_found() {
        let later = "2026-11-20T11:00:05+05:30";
        let all = vec![
            shows("", 0, 503),
            shows(later, 100, 200),
            shows("2026-11-20T11:00:04+05:30", 200, 200),
            shows(later, 300, 503),
        ];
        let verdict = judge(all, &[]);
        assert_eq!((of(&verdict, BACK), of(&verdict, FAILED)), (1, 1));
    }

    #[test]
    fn callers_that_overlap_and_refusals_are_found() {
        let call = |node, at_ms, refused| Call { at_ms, node, refused };
        let epochs = || vec![leads(0, 0, 1), leads(1, 7_000, 2)];
        let good = [call(0, 1_000, false), call(1, 7_000, true), call(1, 9_000, false)];
        let verdict = judge(epochs(), &good);
        assert_eq!((of(&verdict, TWO_CALL), of(&verdict, REFUSED)), (0, 0));
        let bad = [
            call(0, 1_000, false),
            call(1, 7_000, true),
            call(0, 7_500, true),
            call(1, 9_000, false),
        ];
        let verdict = judge(epochs(), &bad);
        assert_eq!((of(&verdict, TWO_CALL), of(&verdict, REFUSED)), (1, 1));
    }
}
