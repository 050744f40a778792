//! The liveness probe `/livez` and the readiness probe `/readyz`.
//!
//! Runs on the edge, so any response at all proves that the edge works. Reads published values
//! only.

use serde::Serialize;

use super::listener::Watched;
use crate::views::health::FeedWord;

/// The scheduler and the thread that wakes streams report every second. Without a report for this
/// long they count as hanging.
const HEARTBEAT_MS_MAX: u64 = 10_000;

const HEARTBEAT: &str = "scheduler heartbeat";
const FAN_OUT: &str = "fan-out heartbeat";

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

/// Time since the thread that wakes streams was last seen.
pub(super) fn fan_out_age_ms(watched: &Watched) -> u64 {
    let seen_mono_ms = watched.edge.streams.fan_out_mono_ms();
    watched.sources.clock.monotonic_ms().saturating_sub(seen_mono_ms)
}

/// Liveness: fails if the scheduler or the thread that wakes streams hangs. A restart helps then,
/// as it does if the edge gives no response. Before its first report the scheduler has no
/// heartbeat.
pub(super) fn alive(heartbeat_age_ms: Option<u64>, fan_out_age_ms: u64) -> Verdict {
    let ages = [(HEARTBEAT, heartbeat_age_ms.unwrap_or(0)), (FAN_OUT, fan_out_age_ms)];
    let hanging = ages.into_iter().filter(|(_, age_ms)| *age_ms > HEARTBEAT_MS_MAX);
    let missing: Vec<_> = hanging.map(|(name, _)| name).collect();
    if missing.is_empty() {
        return Verdict { status: "ok", missing, good: true };
    }
    Verdict::bad("hanging", missing)
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
            use FeedWord::{Off, Ok, Relayed, Standby};
            if !matches!(feed.state, Ok | Standby | Off | Relayed) {
                missing.push(feed.source.as_str());
            }
        }
    }
    let hangs = heartbeat_age_ms(watched).is_none_or(|age_ms| age_ms > HEARTBEAT_MS_MAX);
    if hangs {
        missing.push(HEARTBEAT);
    }
    if fan_out_age_ms(watched) > HEARTBEAT_MS_MAX {
        missing.push(FAN_OUT);
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
    fn liveness_fails_once_a_thread_stops_reporting() {
        assert!(alive(None, 0).is_good(), "before the first report");
        assert!(alive(Some(HEARTBEAT_MS_MAX), HEARTBEAT_MS_MAX).is_good());
        for (age_ms, fan_out_age_ms, missing) in [
            (HEARTBEAT_MS_MAX + 1, 0, vec![HEARTBEAT]),
            (0, HEARTBEAT_MS_MAX + 1, vec![FAN_OUT]),
            (HEARTBEAT_MS_MAX + 1, HEARTBEAT_MS_MAX + 1, vec![HEARTBEAT, FAN_OUT]),
        ] {
            let verdict = alive(Some(age_ms), fan_out_age_ms);
            assert_eq!((verdict.is_good(), verdict.status), (false, "hanging"));
            assert_eq!(verdict.missing, missing);
        }
    }
}
