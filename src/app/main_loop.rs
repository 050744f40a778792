//! The main thread while the service runs: notifies systemd when it is ready, pings its watchdog
//! while every subsystem makes progress, stores the tokens of the day with it, and sends the line
//! that `systemctl status` shows. Waits for signals in between.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use jiff::Timestamp;
use jiff::civil::{Date, Weekday, time};

use crate::admin::listener::AdminListen;
use crate::api::Api;
use crate::app::reload::Reloader;
use crate::app::start::App;
use crate::auth::keys::Registration;
use crate::base::{Clock, clock};
use crate::config::composed::Reread;
use crate::config::{Config, LISTEN_APART, LISTEN_BESIDE, SimSettings};
use crate::http::server::shared::Shared;
use crate::market::{MarketCalendar, Phase};
use crate::ops::{Exit, notify, panic};
use crate::rt::EdgeLiveness;
use crate::rt::unix_signals::{Hangup, Signal, Signals};
use crate::sim;
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

/// Runs until the process is asked to end; returns the signal's number.
pub(crate) fn until_end(app: &App, signals: &mut Signals, mut reload: impl FnMut()) -> i32 {
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
    /// The lasting part of the last status line, and when it was sent.
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
        self.app.handover.lock().go(self.app.state());
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

/// A subsystem that makes no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stuck {
    Edge,
    /// The thread that enforces deadlines of connections.
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

/// The first subsystem that makes no progress: one in `seen`, with the time of its last activity,
/// or the store's writer, which has been busy for `writing_ms`.
fn judged(seen: [(Stuck, u64); 4], writing_ms: Option<u64>, now_mono_ms: u64) -> Option<Stuck> {
    let stands = |seen_mono_ms: u64| now_mono_ms.saturating_sub(seen_mono_ms) > LIVELY_MS;
    let stuck = seen.into_iter().find(|(_, seen_mono_ms)| stands(*seen_mono_ms));
    let writer = writing_ms.filter(|writing_ms| *writing_ms > WRITING_MS_MAX);
    stuck.map(|(part, _)| part).or(writer.map(|_| Stuck::Writer))
}

/// Observes a running service.
pub struct Watchdog {
    shared: Arc<Shared<Api>>,
    heartbeat: Arc<Heartbeat>,
    edge: EdgeLiveness,
}

impl Watchdog {
    pub(crate) fn new(shared: Arc<Shared<Api>>, heartbeat: Arc<Heartbeat>) -> Self {
        let edge = EdgeLiveness::new(&shared.service.state().clock);
        Self { shared, heartbeat, edge }
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
        judged(seen, state.store.health().writing_ms, state.clock.monotonic_ms())
    }
}

// ---- Commands
//
// The commands: `serve` for the real feeds, `demo` for a simulated day, `sim` for the simulator
// alone.

/// Serves the real feeds until SIGTERM or SIGINT.
pub fn serve(config: &Config, reread: &Reread<'_>) -> ExitCode {
    guard_memory(config);
    let clock = clock_of(config.now);
    run(config, &clock, |_| String::new(), Some(reread))
}

/// Runs the simulator and the service against it, on one clock and on loopback.
pub fn demo(config: &Config, _: &Reread<'_>) -> ExitCode {
    guard_memory(config);
    let mut config = config.clone();
    let calendar = match MarketCalendar::load(config.market.calendar_file.as_deref()) {
        Ok(calendar) => Arc::new(calendar),
        Err(error) => return fail(&error, Exit::Usage),
    };
    let now = config.now.unwrap_or_else(|| lively_instant(&calendar, Clock::system().now()));
    let clock = Clock::starting_at(now);
    let settings = sim_settings(&config.sim, &calendar);
    let (app, app_b) = (settings.broker_a.clone(), settings.broker_b.clone());
    let sim = match start_simulator(settings, &clock) {
        Ok(sim) => sim,
        Err(error) => return fail(&no_simulator(&config.sim, &error), Exit::Unavailable),
    };
    config.broker_a.url = sim.broker_a_url();
    config.broker_a.ticker_url = sim.broker_a_ticker_url();
    config.broker_a.api_key = Some(app.api_key.into());
    config.broker_a.api_secret = Some(app.api_secret.into());
    config.broker_a.access_token = Some(app.access_token.into());
    config.broker_b.url = sim.broker_b_url();
    config.broker_b.api_key = Some(app_b.api_key.into());
    config.broker_b.api_secret = Some(app_b.secret_key.into());
    config.public.url = sim.public_url();
    if config.admin.listen == AdminListen::Default {
        // A free port, so that a demo can run next to a service.
        config.admin.listen = "127.0.0.1:0".into();
    }
    // Simulated prices must never be restored by a real run.
    config.state_dir = config.state_dir.join("demo");
    let greet = |url: &str| {
        let url = of_browser(url);
        sim.return_logins_to(&url);
        demo_notes(&sim, &clock, &url)
    };
    // A demo belongs to its terminal, so a hang-up ends it.
    let code = run(&config, &clock, greet, None);
    sim.stop();
    code
}

/// Runs the simulator alone, for another process.
pub fn sim(config: &Config, _: &Reread<'_>) -> ExitCode {
    let calendar = match MarketCalendar::load(config.market.calendar_file.as_deref()) {
        Ok(calendar) => Arc::new(calendar),
        Err(error) => return fail(&error, Exit::Usage),
    };
    let mut signals = match Signals::arm(Hangup::Ends) {
        Ok(signals) => signals,
        Err(error) => return fail(&error, Exit::Internal),
    };
    let settings = sim_settings(&config.sim, &calendar);
    let app = settings.broker_a.clone();
    let sim = match start_simulator(settings, &clock_of(config.now)) {
        Ok(sim) => sim,
        Err(error) => return fail(&no_simulator(&config.sim, &error), Exit::Unavailable),
    };
    // Both need one clock, or prices would come from another day.
    let now = config.now.map(|now| format!("BHAV_NOW={now} ")).unwrap_or_default();
    say(&format!(
        "simulator on http://{}\nTo serve its prices, in another shell:\n\
         {now}BROKERA_API_KEY={} BROKERA_API_SECRET={} BROKERA_ACCESS_TOKEN={} \\\n\
         BHAV_BROKERA_URL={} BHAV_BROKERA_TICKER_URL={} \\\n\
         BHAV_BROKERB_URL={} BHAV_PUBLIC_URL={} \\\n\
         bhav serve\n",
        sim.addr(),
        app.api_key,
        app.api_secret,
        app.access_token,
        sim.broker_a_url(),
        sim.broker_a_ticker_url(),
        sim.broker_b_url(),
        sim.public_url()
    ));
    signals.wait_for_end();
    sim.stop();
    Exit::Ok.into()
}

/// Starts the service, prints its address, waits for the end, drains. `greet` is given the
/// service's address and returns further text to print.
fn run(
    config: &Config,
    clock: &Clock,
    greet: impl FnOnce(&str) -> String,
    reread: Option<&Reread<'_>>,
) -> ExitCode {
    // Armed before anything starts, so that no signal is missed.
    let hangup = if reread.is_some() { Hangup::Reloads } else { Hangup::Ends };
    let mut signals = match Signals::arm(hangup) {
        Ok(signals) => signals,
        Err(error) => return fail(&error, Exit::Internal),
    };
    let app = match App::start(config, clock) {
        Ok(app) => app,
        Err(error) => return fail(&error, error.exit()),
    };
    let url = url_of(app.address());
    let admin = match (app.admin(), &app.admin_failure) {
        (Some(admin), _) => format!("metrics on {}/metrics\n", url_of(admin.address())),
        (None, Some(failure)) => format!("no metrics: {failure}\n"),
        (None, None) => String::new(),
    };
    say(&format!("{}{admin}listening on {url}\n", greet(&url)));
    tracing::info!(%url, "listening");
    if of_browser(&url) != url {
        tracing::warn!(
            "listening on all addresses of this machine or container: publishing the port is the \
             decision of its operator"
        );
    }
    match config.auth.registration {
        Registration::Open => tracing::warn!(
            "registration is open: whoever reaches this service can make an account; \
             BHAV_REGISTRATION=first or closed ends that"
        ),
        Registration::First => tracing::info!(
            "registration is open for the first account of the database, BHAV_REGISTRATION=first"
        ),
        Registration::Closed => {}
    }
    let mut reloader = reread.map(|reread| Reloader::new(&app, config, reread));
    let signal = until_end(&app, &mut signals, || {
        if let Some(reloader) = &mut reloader {
            reloader.reload();
        }
    });
    tracing::info!(signal, "draining");
    notify::stopping();
    let cut_off = app.stop();
    if cut_off > 0 {
        tracing::warn!(connections = cut_off, "cut off at the drain deadline");
    }
    tracing::info!("stopped");
    Exit::Ok.into()
}

/// The address as a URL. A Unix socket has none and stays as it is.
fn url_of(address: &str) -> String {
    match address.strip_prefix("unix:") {
        Some(_) => address.to_owned(),
        None => format!("http://{address}"),
    }
}

/// The URL that a browser on this machine can open: all addresses are none.
fn of_browser(url: &str) -> String {
    let all = ["http://0.0.0.0:", "http://[::]:"].iter().find_map(|all| url.strip_prefix(all));
    all.map_or_else(|| url.to_owned(), |port| format!("http://localhost:{port}"))
}

/// Closes the process's memory to debuggers, before anything starts and any secret arrives. If the
/// system refuses, that is logged and the service starts: the credentials still pass only through
/// wiped memory.
fn guard_memory(config: &Config) {
    if config.debuggable {
        panic::allow_debugging();
        tracing::warn!("debuggable: credentials in flight can be read by this user's programs");
    } else if let Err(error) = panic::close_memory() {
        tracing::error!(%error, "core files and debuggers cannot be switched off");
    }
}

fn clock_of(start: Option<Timestamp>) -> Clock {
    start.map_or_else(Clock::system, Clock::starting_at)
}

/// Now if the market is open, otherwise eleven o'clock of the last trading date, when prices move.
fn lively_instant(calendar: &MarketCalendar, now: Timestamp) -> Timestamp {
    let status = calendar.status(now);
    match status.trading_date {
        Some(date) if status.phase != Phase::Open => {
            clock::instant(date.to_datetime(time(11, 0, 0, 0)))
        }
        _ => now,
    }
}

/// Starts the simulator. If the default address is missing, as on systems with one loopback
/// address, it uses the service's.
fn start_simulator(settings: sim::SimSettings, clock: &Clock) -> io::Result<sim::Sim> {
    match sim::start(settings.clone(), clock.clone()) {
        Err(error) if settings.listen == LISTEN_APART => {
            tracing::warn!(
                %error,
                wanted = LISTEN_APART,
                "the simulator listens at the service's own address: browsers send it the login's \
                 cookie too"
            );
            sim::start(sim::SimSettings { listen: LISTEN_BESIDE.into(), ..settings }, clock.clone())
        }
        started => started,
    }
}

fn sim_settings(settings: &SimSettings, calendar: &Arc<MarketCalendar>) -> sim::SimSettings {
    let calendar = Arc::clone(calendar);
    sim::SimSettings {
        listen: settings.listen.clone(),
        seed: settings.seed,
        public_delay_s: settings.public_delay_s as i64,
        more_shares: settings.more_shares,
        prices_per_s: settings.prices_per_s as i64,
        sessions: sim::Sessions::new(move |date| trades(&calendar, date)),
        ..sim::SimSettings::default()
    }
}

/// Whether the simulated market trades on `date`: by the calendar, or on weekdays in years that it
/// does not cover.
fn trades(calendar: &MarketCalendar, date: Date) -> bool {
    if calendar.covers(date) {
        return calendar.is_trading_date(date);
    }
    !matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday)
}

fn no_simulator(settings: &SimSettings, error: &io::Error) -> String {
    format!("BHAV_SIM_LISTEN: no simulator on {}: {error}", settings.listen)
}

/// Suggestions for trying the demo, first in the browser.
fn demo_notes(sim: &sim::Sim, clock: &Clock, url: &str) -> String {
    const TRY: &str = r#"
Ask it:
  curl -i '{url}/api/index/snapshot'
  curl -i --compressed '{url}/api/index/snapshot'
  curl -s '{url}/api/portfolio/live-prices?symbols=NSE:INFY,NSE:M%26M,NSE:NOSUCH'
  curl -s '{url}/api/health'
  curl -s '{url}/brokera/status'
For an account and its portfolio by commands follow docs/api.md, with sim={sim}
Break broker A, watch its last prices stay, marked stale, until the public provider, a quarter
of an hour behind, has passed them (--sim-public-delay-s 60 is quicker); then mend it:
  curl -s -d '{"route":"broker_a","fault":{"kind":"refuse"}}' {control}/faults
  curl -s -X DELETE {control}/faults

Informational only, not investment advice.

Open {url}/ in a browser. To bring both brokers in: Log in, Create an account,
Sync broker A, Sync broker B. Their login pages are the simulator's, and so are the apps:
simkeya-1 with the secret simsecreta, sim+key=b&1-1 with the secret simsecretb.

"#;
    let now = clock::iso(clock.now());
    let notes = TRY
        .replace("{control}", &sim.control_url())
        .replace("{sim}", &format!("http://{}", sim.addr()))
        .replace("{url}", url);
    format!(
        "bhav demo: a simulated exchange day. Every price is made up and says so.\n\
         the clock reads {now}\nsimulator on http://{}\n{notes}",
        sim.addr(),
    )
}

/// Prints to standard output. A closed pipe is no fault.
fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn fail(error: &dyn fmt::Display, exit: Exit) -> ExitCode {
    tracing::error!(%error, "not started");
    exit.into()
}

#[cfg(test)]
mod watchdog_tests {
    use super::*;

    #[test]
    fn a_stalled_subsystem_is_named_and_a_busy_writer_is_not() {
        let (now, busy) = (1_000_000, Some(WRITING_MS_MAX));
        let parts = [Stuck::Edge, Stuck::Sweeper, Stuck::FanOut, Stuck::Scheduler];
        let [edge, others @ ..] = parts.map(|part| (part, now));
        let [sweeper, fan_out, (scheduler, _)] = others;
        let well = [(edge.0, now - LIVELY_MS), sweeper, fan_out, (scheduler, now + 1)];
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
