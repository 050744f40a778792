//! The main thread while the service runs: notifies systemd when it is ready, pings its watchdog
//! while every subsystem makes progress, stores the tokens of the day with it, and sends the line
//! that `systemctl status` shows. Waits for signals in between.

use std::sync::Arc;
use std::time::Duration;

use crate::api::Api;
use crate::app::start::App;
use crate::base::words;
use crate::http::server::shared::Shared;
use crate::ops::notify;
use crate::rt::EdgeLiveness;
use crate::rt::unix_signals::{Signal, Signals};
use crate::warmers::Heartbeat;

/// Longest wait for a first snapshot. After it the service is ready without one: a start in a
/// morning without feeds must succeed.
const READY_WAIT_MS: u64 = 10_000;

/// Time between two passes; less if the watchdog needs its pings sooner.
const PASS_MS: u64 = 1_000;
/// Time between two passes until the service is ready.
const READY_PASS_MS: u64 = 50;
/// Number of pings within the watchdog's limit.
const PINGS_PER_LIMIT: u32 = 3;

/// Interval at which a status line is sent again if only the age in it changes.
const STATUS_INTERVAL_MS: u64 = 10_000;

/// Runs until the process is asked to end, and returns the signal's number; or until the service's
/// monotonic time `last_mono_ms`.
pub(super) fn until_end(
    app: &App,
    signals: &mut Signals,
    last_mono_ms: Option<u64>,
    mut reload: impl FnMut(),
) -> Option<i32> {
    let mut main = MainLoop::new(app);
    loop {
        if last_mono_ms.is_some_and(|last_mono_ms| app.clock().monotonic_ms() >= last_mono_ms) {
            return None;
        }
        match signals.wait(main.pause()) {
            Some(Signal::End(signal)) => return Some(signal),
            Some(Signal::Reload) => main.reload(&mut reload),
            None => {}
        }
        main.pass();
    }
}

struct MainLoop<'a> {
    app: &'a App,
    watchdog: Watchdog,
    watchdog_limit: Option<Duration>,
    started_mono_ms: u64,
    ready: bool,
    stuck: Option<Stuck>,
    /// The lasting part of the last status line, and when it was sent.
    sent: (String, u64),
}

impl<'a> MainLoop<'a> {
    fn new(app: &'a App) -> Self {
        Self {
            app,
            watchdog: Watchdog::of(app),
            watchdog_limit: notify::watchdog_limit(),
            started_mono_ms: app.clock().monotonic_ms(),
            ready: false,
            stuck: None,
            sent: (String::new(), 0),
        }
    }

    fn pause(&self) -> Duration {
        let pass = Duration::from_millis(if self.ready { PASS_MS } else { READY_PASS_MS });
        self.watchdog_limit
            .map_or(pass, |limit| pass.min(limit / PINGS_PER_LIMIT))
    }

    fn pass(&mut self) {
        let now_mono_ms = self.app.clock().monotonic_ms();
        let line = self.app.status_line();
        if !self.ready {
            let waited = now_mono_ms.saturating_sub(self.started_mono_ms) >= READY_WAIT_MS;
            self.ready = line.serving.is_some() || waited;
            if self.ready {
                tracing::info!(snapshot = line.serving.is_some(), "ready");
                notify::ready(&line.text());
                self.sent = (line.lasting(), now_mono_ms);
            }
        }
        self.feed_watchdog();
        self.app.state().refusal_lines.log_summaries(now_mono_ms);
        self.app
            .server()
            .shared()
            .stats
            .refusal_lines
            .log_summaries(now_mono_ms);
        if let Some(admin) = self.app.admin() {
            admin
                .shared()
                .stats
                .refusal_lines
                .log_summaries(now_mono_ms);
        }
        self.app.handover.lock().go(self.app.state());
        self.app.state().trades.forget_unused(now_mono_ms);
        let due = now_mono_ms.saturating_sub(self.sent.1) >= STATUS_INTERVAL_MS;
        let lasting = line.lasting();
        if due || lasting != self.sent.0 {
            notify::status(&line.text());
            self.sent = (lasting, now_mono_ms);
        }
    }

    fn feed_watchdog(&mut self) {
        let stuck = self.watchdog.stuck();
        if stuck.is_none() && self.watchdog_limit.is_some() {
            notify::watchdog();
        }
        if stuck != self.stuck {
            match stuck {
                Some(part) => tracing::error!(
                    %part,
                    "a part of the service makes no progress; if that lasts, systemd restarts it"
                ),
                None => tracing::info!("every part of the service makes progress again"),
            }
            self.stuck = stuck;
        }
    }

    fn reload(&mut self, reload: &mut impl FnMut()) {
        // systemd accepts a reload only from a service that is ready.
        if self.ready {
            notify::reloading();
        }
        reload();
        if self.ready {
            let line = self.app.status_line();
            notify::ready(&line.text());
            self.sent = (line.lasting(), self.app.clock().monotonic_ms());
        }
    }
}

// ---- Watchdog
//
// Decides whether the watchdog is pinged: only while all subsystems that must never stall make
// progress.
//
// Main thread, about once a second. It only reads: nothing here waits for a subsystem.

/// Longest silence of a subsystem. The scheduler and the sweeper run five times a second or more,
/// the fan-out once a second, and an edge worker is free within milliseconds. Load does not explain
/// ten seconds.
const LIVELY_MS: u64 = 10_000;

/// Longest transaction of the writer. It waits for the disk, and at most five seconds for another
/// program's lock.
const WRITING_MS_MAX: u64 = 60_000;

words! {
    /// A subsystem that makes no progress, by the name of its threads.
    pub enum Stuck {
        Edge = "edge",
        /// The thread that enforces deadlines of connections.
        Sweeper = "http-sweep",
        /// The thread that wakes streams.
        FanOut = "fan-out",
        Scheduler = "warm",
        Writer = "store-writer",
    }
}

/// The first subsystem that makes no progress: one in `seen`, with the time of its last activity,
/// or the store's writer, which has been busy for `writing_ms`.
fn judged(seen: [(Stuck, u64); 4], writing_ms: Option<u64>, now_mono_ms: u64) -> Option<Stuck> {
    let stands = |seen_mono_ms: u64| now_mono_ms.saturating_sub(seen_mono_ms) > LIVELY_MS;
    let stuck = seen
        .into_iter()
        .find(|(_, seen_mono_ms)| stands(*seen_mono_ms));
    let writer = writing_ms.filter(|writing_ms| *writing_ms > WRITING_MS_MAX);
    stuck
        .map(|(part, _)| part)
        .or(writer.map(|_| Stuck::Writer))
}

/// Observes a running service.
pub struct Watchdog {
    shared: Arc<Shared<Api>>,
    heartbeat: Arc<Heartbeat>,
    edge: EdgeLiveness,
}

impl Watchdog {
    pub fn of(app: &App) -> Self {
        let shared = Arc::clone(app.server().shared());
        let edge = EdgeLiveness::new(app.clock());
        Self {
            shared,
            heartbeat: Arc::clone(&app.heartbeat),
            edge,
        }
    }

    /// The first subsystem that makes no progress. Sends the next probe through the edge.
    pub fn stuck(&self) -> Option<Stuck> {
        self.edge.send();
        let state = self.shared.service.state();
        let seen = [
            (Stuck::Edge, self.edge.passed_mono_ms()),
            (Stuck::Sweeper, self.shared.slots.now_ms()),
            (Stuck::FanOut, self.shared.streams.fan_out_mono_ms()),
            (Stuck::Scheduler, self.heartbeat.beat_mono_ms()),
        ];
        judged(seen, state.store.health().writer.busy_ms, state.clock.monotonic_ms())
    }
}

#[cfg(test)]
mod watchdog_tests {
    use super::*;

    #[test]
    fn a_stalled_subsystem_is_named_and_a_busy_writer_is_not() {
        let now = 1_000_000;
        let busy = Some(WRITING_MS_MAX);
        let parts = [Stuck::Edge, Stuck::Sweeper, Stuck::FanOut, Stuck::Scheduler];
        let [edge, others @ ..] = parts.map(|part| (part, now));
        let [sweeper, fan_out, (scheduler, _)] = others;
        let well = [
            (edge.0, now - LIVELY_MS),
            sweeper,
            fan_out,
            (scheduler, now + 1),
        ];
        assert_eq!(judged(well, busy, now), None);
        for (at, part) in parts.into_iter().enumerate() {
            let mut seen = well;
            seen[at].1 = now - LIVELY_MS - 1;
            assert_eq!(judged(seen, busy, now), Some(part));
        }
        // The value of a thread that has ended.
        for writing_ms in [WRITING_MS_MAX + 1, u64::MAX] {
            assert_eq!(judged(well, Some(writing_ms), now), Some(Stuck::Writer));
        }
    }
}
