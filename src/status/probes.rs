//! The results of the liveness probe `/livez` and the readiness probe `/readyz`.
//!
//! Pure: the probes' listener reads published values only, so any response at all proves that the
//! edge works.

use serde::Serialize;

use crate::base::Source;
use crate::status::Report;
use crate::views::states::{FeedState, StoreState};

/// The scheduler and the thread that wakes streams report every second. Without a report for this
/// long they count as hanging.
const HEARTBEAT_MS_MAX: u64 = 10_000;

const HEARTBEAT: &str = "scheduler heartbeat";
const FAN_OUT: &str = "fan-out heartbeat";

/// The result of a probe.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Verdict {
    /// `ok`, `degraded`, or the reason for a 503.
    status: &'static str,
    /// Names of the missing or failing parts.
    missing: Vec<&'static str>,
    #[serde(skip)]
    pub(crate) is_good: bool,
}

/// Published values of the edge that the probes judge.
pub(crate) struct EdgeSeen {
    pub is_draining: bool,
    pub has_snapshot: bool,
    pub store: StoreState,
    /// Time since the thread that wakes streams was last seen.
    pub fan_out_age_ms: u64,
}

/// Liveness: fails if the scheduler or the thread that wakes streams hangs, because a restart helps
/// then. Before its first report the scheduler has no heartbeat and counts as alive.
pub(crate) fn alive(heartbeat_age_ms: Option<u64>, fan_out_age_ms: u64) -> Verdict {
    let ages = [
        (HEARTBEAT, heartbeat_age_ms.unwrap_or(0)),
        (FAN_OUT, fan_out_age_ms),
    ];
    let hanging = ages
        .into_iter()
        .filter(|(_, age_ms)| *age_ms > HEARTBEAT_MS_MAX);
    let missing: Vec<_> = hanging.map(|(name, _)| name).collect();
    let is_good = missing.is_empty();
    Verdict {
        status: if is_good { "ok" } else { "hanging" },
        missing,
        is_good,
    }
}

/// Readiness: whether clients should be routed to this instance. It needs a snapshot, however old,
/// and must not be draining. Anything else that is missing only makes it `degraded`.
pub(crate) fn ready(
    report: Option<&Report>,
    heartbeat_age_ms: Option<u64>,
    edge: &EdgeSeen,
) -> Verdict {
    use FeedState::{Off, Ok, Relayed, Standby};
    let mut missing = Vec::new();
    let mut unless = |holds: bool, name| {
        if !holds {
            missing.push(name);
        }
    };
    unless(edge.has_snapshot, "snapshot");
    unless(edge.store == StoreState::Ok, "store");
    if let Some(report) = report {
        unless(report.health.market.stale == Some(false), "fresh index data");
        for source in Source::ALL {
            let state = report.health.feeds.of(source).state;
            unless(matches!(state, Ok | Standby | Off | Relayed), source.as_str());
        }
    }
    unless(heartbeat_age_ms.is_some_and(|age_ms| age_ms <= HEARTBEAT_MS_MAX), HEARTBEAT);
    unless(edge.fan_out_age_ms <= HEARTBEAT_MS_MAX, FAN_OUT);
    let (status, is_good) = match (edge.is_draining, edge.has_snapshot, missing.is_empty()) {
        (true, _, _) => ("draining", false),
        (_, false, _) => ("starting", false),
        (_, true, true) => ("ok", true),
        (_, true, false) => ("degraded", true),
    };
    Verdict {
        status,
        missing,
        is_good,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn liveness_fails_once_a_thread_stops_reporting() {
        assert!(alive(None, 0).is_good, "before the first report");
        assert!(alive(Some(HEARTBEAT_MS_MAX), HEARTBEAT_MS_MAX).is_good);
        for (age_ms, fan_out_age_ms, missing) in [
            (HEARTBEAT_MS_MAX + 1, 0, vec![HEARTBEAT]),
            (0, HEARTBEAT_MS_MAX + 1, vec![FAN_OUT]),
            (HEARTBEAT_MS_MAX + 1, HEARTBEAT_MS_MAX + 1, vec![HEARTBEAT, FAN_OUT]),
        ] {
            let verdict = alive(Some(age_ms), fan_out_age_ms);
            assert_eq!((verdict.is_good, verdict.status), (false, "hanging"));
            assert_eq!(verdict.missing, missing);
        }
    }
}
