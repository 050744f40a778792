//! The liveness probe `/livez` and the readiness probe `/readyz`.
//!
//! Runs on the edge, so any response at all proves that the edge works. Reads published values
//! only.

use serde::Serialize;

use super::listener::Watched;

/// The scheduler reports every second. Without a report for this long it counts as hanging.
const HEARTBEAT_MS_MAX: u64 = 10_000;

/// The result of a probe.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// `ok`, `degraded`, or the reason for a 503.
    status: &'static str,
    /// Names of what is missing or failing.
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

/// Time since the scheduler last reported; `None` before its first report.
pub(super) fn heartbeat_age_ms(watched: &Watched) -> Option<u64> {
    let seen_mono_ms = watched.sources.readings.load().as_ref()?.seen_mono_ms;
    Some(watched.sources.clock.monotonic_ms().saturating_sub(seen_mono_ms))
}

/// Liveness: fails if the scheduler hangs. A restart helps then, as it does if the edge gives no
/// response.
pub(super) fn alive(heartbeat_age_ms: Option<u64>) -> Verdict {
    match heartbeat_age_ms {
        Some(age_ms) if age_ms > HEARTBEAT_MS_MAX => {
            Verdict::bad("hanging", vec!["scheduler heartbeat"])
        }
        _ => Verdict { status: "ok", missing: Vec::new(), good: true },
    }
}

/// Readiness: whether clients should be routed to this instance. It needs a snapshot, however old,
/// and must not be draining. Anything else that is missing only makes it `degraded`.
pub(super) fn ready(watched: &Watched) -> Verdict {
    let readings = watched.sources.readings.load_full();
    let mut missing = Vec::new();
    let snapshot = watched.edge.service.state().snapshot.load().is_some();
    if !snapshot {
        missing.push("snapshot");
    }
    if watched.edge.service.state().store.health().state != "ok" {
        missing.push("store");
    }
    if let Some(readings) = &readings {
        if readings.snapshot.is_none_or(|snapshot| snapshot.age.stale) {
            missing.push("fresh index data");
        }
        for feed in readings.feeds {
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
    fn liveness_fails_once_the_scheduler_stops_reporting() {
        assert!(alive(None).is_good(), "before the first report");
        assert!(alive(Some(HEARTBEAT_MS_MAX)).is_good());
        let verdict = alive(Some(HEARTBEAT_MS_MAX + 1));
        assert!(!verdict.is_good());
        assert_eq!((verdict.status, verdict.missing), ("hanging", vec!["scheduler heartbeat"]));
    }
}
