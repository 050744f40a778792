//! Whether the service lives, and whether it can serve.
//!
//! Runs on the edge; that it runs is the proof that the edge does. Reads published values only.

use serde::Serialize;

use super::listener::Watched;

/// The scheduler reports each second; after this long it hangs.
const HEARTBEAT_MS_MAX: u64 = 10_000;

/// An answer to a probe.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// `ok`, `degraded`, or why not.
    status: &'static str,
    /// What is not as it should be, by name.
    missing: Vec<&'static str>,
    #[serde(skip)]
    good: bool,
}

impl Verdict {
    /// Whether the answer is 200.
    pub fn is_good(&self) -> bool {
        self.good
    }

    fn bad(status: &'static str, missing: Vec<&'static str>) -> Self {
        Self { status, missing, good: false }
    }
}

/// How long ago the scheduler reported last; `None` before the first time.
pub(super) fn heartbeat_age_ms(watched: &Watched) -> Option<u64> {
    let seen_mono_ms = watched.back.vitals.load().as_ref()?.seen_mono_ms;
    Some(watched.back.clock.monotonic_ms().saturating_sub(seen_mono_ms))
}

/// A restart would help if not: the edge does not answer, or the scheduler hangs.
pub(super) fn alive(heartbeat_age_ms: Option<u64>) -> Verdict {
    match heartbeat_age_ms {
        Some(age_ms) if age_ms > HEARTBEAT_MS_MAX => {
            Verdict::bad("hanging", vec!["scheduler heartbeat"])
        }
        _ => Verdict { status: "ok", missing: Vec::new(), good: true },
    }
}

/// Clients are to be sent here: there is something to serve, however old, and no drain. What else
/// is missing makes it degraded.
pub(super) fn ready(watched: &Watched) -> Verdict {
    let vitals = watched.back.vitals.load_full();
    let mut missing = Vec::new();
    let snapshot = watched.edge.service.state().snapshot.load().is_some();
    if !snapshot {
        missing.push("snapshot");
    }
    if watched.edge.service.state().store.health().state != "ok" {
        missing.push("store");
    }
    if let Some(vitals) = &vitals {
        if vitals.snapshot.is_none_or(|snapshot| snapshot.age.stale) {
            missing.push("fresh index data");
        }
        for feed in vitals.feeds {
            if !matches!(feed.state, "ok" | "standby" | "off") {
                missing.push(feed.source.as_str());
            }
        }
    }
    let hangs = heartbeat_age_ms(watched).is_none_or(|age_ms| age_ms > HEARTBEAT_MS_MAX);
    if hangs {
        missing.push("scheduler heartbeat");
    }
    match (watched.edge.is_draining(), snapshot, missing.is_empty()) {
        (true, _, _) => Verdict::bad("draining", missing),
        (_, false, _) => Verdict::bad("starting", missing),
        (_, true, true) => Verdict { status: "ok", missing, good: true },
        (_, true, false) => Verdict { status: "degraded", missing, good: true },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_that_no_longer_reports_is_not_alive() {
        assert!(alive(None).is_good(), "it starts");
        assert!(alive(Some(HEARTBEAT_MS_MAX)).is_good());
        let verdict = alive(Some(HEARTBEAT_MS_MAX + 1));
        assert!(!verdict.is_good());
        assert_eq!((verdict.status, verdict.missing), ("hanging", vec!["scheduler heartbeat"]));
    }
}
