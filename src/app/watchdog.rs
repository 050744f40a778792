//! Judges whether the subsystems that must never stall make progress, which the watchdog's pings
//! depend on.
//!
//! Main thread, about once a second. It only reads: nothing here waits for the subsystem it judges.

use std::fmt;
use std::sync::Arc;

use crate::api::Api;
use crate::health::Heartbeat;
use crate::http::server::shared::Shared;
use crate::rt::EdgeLiveness;

/// The scheduler and the sweeper run five times a second or more, the fan-out once a second, and an
/// edge worker is free within milliseconds. Ten seconds are not explained by load.
const LIVELY_MS: u64 = 10_000;

/// A transaction waits for the disk, and for another program's lock at most five seconds.
const WRITING_MS_MAX: u64 = 60_000;

/// A subsystem that makes no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stuck {
    Edge,
    /// The thread that notices deadlines of connections.
    Sweeper,
    /// The thread that wakes streams.
    FanOut,
    Scheduler,
    Writer,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Edge => "edge",
            Self::Sweeper => "http-sweep",
            Self::FanOut => "fan-out",
            Self::Scheduler => "warm",
            Self::Writer => "store-writer",
        })
    }
}

/// When each subsystem was last seen at work.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    edge_mono_ms: u64,
    sweeper_mono_ms: u64,
    fan_out_mono_ms: u64,
    scheduler_mono_ms: u64,
    writing_ms: Option<u64>,
}

fn judged(progress: &Progress, now_mono_ms: u64) -> Option<Stuck> {
    let stands = |seen_mono_ms: u64| now_mono_ms.saturating_sub(seen_mono_ms) > LIVELY_MS;
    if stands(progress.edge_mono_ms) {
        Some(Stuck::Edge)
    } else if stands(progress.sweeper_mono_ms) {
        Some(Stuck::Sweeper)
    } else if stands(progress.fan_out_mono_ms) {
        Some(Stuck::FanOut)
    } else if stands(progress.scheduler_mono_ms) {
        Some(Stuck::Scheduler)
    } else if progress.writing_ms.is_some_and(|writing_ms| writing_ms > WRITING_MS_MAX) {
        Some(Stuck::Writer)
    } else {
        None
    }
}

/// Looks at a running service.
pub struct Watchdog {
    shared: Arc<Shared<Api>>,
    heartbeat: Arc<Heartbeat>,
    edge: EdgeLiveness,
}

impl Watchdog {
    pub fn new(shared: Arc<Shared<Api>>, heartbeat: Arc<Heartbeat>) -> Self {
        let edge = EdgeLiveness::new(&shared.service.state().clock);
        Self { shared, heartbeat, edge }
    }

    /// The first subsystem that makes no progress. Sends the next probe through the edge.
    pub fn stuck(&self) -> Option<Stuck> {
        self.edge.send();
        let state = self.shared.service.state();
        let progress = Progress {
            edge_mono_ms: self.edge.passed_mono_ms(),
            sweeper_mono_ms: self.shared.slots.now_ms(),
            fan_out_mono_ms: self.shared.streams.fan_out_mono_ms(),
            scheduler_mono_ms: self.heartbeat.beat_mono_ms(),
            writing_ms: state.store.health().writing_ms,
        };
        judged(&progress, state.clock.monotonic_ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stalled_subsystem_is_named_and_a_busy_writer_is_not() {
        let now = 1_000_000;
        let well = Progress {
            edge_mono_ms: now - LIVELY_MS,
            sweeper_mono_ms: now,
            fan_out_mono_ms: now,
            scheduler_mono_ms: now + 1,
            writing_ms: Some(WRITING_MS_MAX),
        };
        assert_eq!(judged(&well, now), None);
        let long_ago = now - LIVELY_MS - 1;
        for (stuck, progress) in [
            (Stuck::Edge, Progress { edge_mono_ms: long_ago, ..well }),
            (Stuck::Sweeper, Progress { sweeper_mono_ms: long_ago, ..well }),
            (Stuck::FanOut, Progress { fan_out_mono_ms: long_ago, ..well }),
            (Stuck::Scheduler, Progress { scheduler_mono_ms: long_ago, ..well }),
            (Stuck::Writer, Progress { writing_ms: Some(WRITING_MS_MAX + 1), ..well }),
            // Its thread has ended.
            (Stuck::Writer, Progress { writing_ms: Some(u64::MAX), ..well }),
        ] {
            assert_eq!(judged(&progress, now), Some(stuck));
        }
    }
}
