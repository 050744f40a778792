//! What the main thread does while the service runs: tells systemd when it is ready, pings its
//! watchdog while every subsystem makes progress, has it keep the tokens of the day, and keeps the
//! line that `systemctl status` shows. Waits for signals in between.

use std::time::Duration;

use super::start::App;
use super::watchdog::{Stuck, Watchdog};
use crate::ops::notify;
use crate::rt::unix_signals::{Signal, Signals};

/// Longest wait for a first snapshot before the service calls itself ready without one: a morning
/// without any feed must not end in a start that never succeeds.
const READY_WAIT_MS: u64 = 10_000;

/// Between two passes; less where the watchdog wants its pings sooner.
const PASS_MS: u64 = 1_000;
/// The same until the service is ready.
const READY_PASS_MS: u64 = 50;
/// Pings within the time that systemd waits for one.
const PINGS_PER_LIMIT: u32 = 3;

/// A status line in which only the age changes is sent again after this.
const STATUS_INTERVAL_MS: u64 = 10_000;

/// Runs until the process is asked to end; returns the signal's number.
pub fn until_end(app: &App, signals: &mut Signals, mut reload: impl FnMut()) -> i32 {
    let mut main = MainLoop::new(app);
    loop {
        match signals.wait(main.pause()) {
            Some(Signal::End(signal)) => return signal,
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
    /// The lasting part of the status line that was sent last, and when.
    sent: (String, u64),
}

impl<'a> MainLoop<'a> {
    fn new(app: &'a App) -> Self {
        Self {
            app,
            watchdog: app.watchdog(),
            watchdog_limit: notify::watchdog_limit(),
            started_mono_ms: app.clock().monotonic_ms(),
            ready: false,
            stuck: None,
            sent: (String::new(), 0),
        }
    }

    fn pause(&self) -> Duration {
        let pass = Duration::from_millis(if self.ready { PASS_MS } else { READY_PASS_MS });
        self.watchdog_limit.map_or(pass, |limit| pass.min(limit / PINGS_PER_LIMIT))
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
        self.app.server().shared().stats.refusal_lines.log_summaries(now_mono_ms);
        if let Some(admin) = self.app.admin() {
            admin.shared().stats.refusal_lines.log_summaries(now_mono_ms);
        }
        self.app.handover().go(self.app.state());
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
                Some(part) => tracing::error!(%part, "no progress; not pinging the watchdog"),
                None => tracing::info!("all subsystems healthy again"),
            }
            self.stuck = stuck;
        }
    }

    fn reload(&mut self, reload: &mut impl FnMut()) {
        // systemd knows a service as reloading only once it is ready.
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
