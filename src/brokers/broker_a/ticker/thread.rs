//! The ticker's thread: when it opens a connection, and how long it waits after a failed one.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::base::Clock;
use crate::brokers::broker_a::ticker::dial::Dialer;
use crate::brokers::broker_a::ticker::reading::{Reason, State, TickerReading};
use crate::brokers::broker_a::ticker::session;
use crate::brokers::broker_a::ticker::session::Ended;
use crate::brokers::broker_a::ticker::subscriptions::Wanted;
use crate::brokers::broker_a::ticker::worker::{Shared, TickerParts, TickerSettings, Way, Worker};
use crate::rt::News;
use crate::rt::outbound::BackOff;
use crate::rt::threads::Stoppable;

/// Wait after a failed connection. It doubles up to the longest, with a jitter. Tries never end
/// while the token is good.
const WAIT_FIRST_MS: u64 = 1_000;
const WAIT_MAX_MS: u64 = 30_000;
/// Wait after the broker reported overload.
const WAIT_BUSY_MS: u64 = 10_000;
/// A refused connection is not tried again sooner, even if calls succeed.
const REFUSED_MS: u64 = 60_000;
/// Longest wait of a stopping service for the thread, which closes its connection meanwhile. A
/// thread that is connecting is not waited for.
const STOP_WAIT: Duration = Duration::from_millis(250);
/// Interval at which the thread checks for changes while it waits for its next try.
const LOOK: Duration = Duration::from_millis(200);
/// Longest sleep while no connection is wanted. Changes wake the thread, but a missing permission
/// is retried after a minute without any news.
const REST: Duration = Duration::from_secs(60);

/// The running ticker. Dropping it ends it.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    settings: Arc<ArcSwap<TickerSettings>>,
    /// Wakes the thread while it wants no connection.
    news: News,
    thread: Stoppable,
    clock: Clock,
}

impl Ticker {
    /// Starts the thread, which rests until something is [wanted](Self::want).
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(parts: TickerParts) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        shared.counters.set_state(State::Off);
        let clock = parts.clock.clone();
        let news = parts.token.news().clone();
        let settings = Arc::clone(&parts.settings);
        let dialer = Dialer::start()?;
        let thread_shared = Arc::clone(&shared);
        let thread = Stoppable::spawn("ticker", STOP_WAIT, move |stop| {
            Worker {
                parts,
                shared: thread_shared,
                dialer,
                stop,
            }
            .run();
        })?;
        Ok(Self {
            shared,
            settings,
            news,
            thread,
            clock,
        })
    }

    /// Whether the settings want it.
    pub(crate) fn is_on(&self) -> bool {
        self.settings.load().endpoint.is_some()
    }

    /// Maximum number of instruments subscribed at once.
    pub(crate) fn symbols_max(&self) -> usize {
        self.settings.load().symbols_max
    }

    /// Sets the scheduler's wishes.
    pub(crate) fn want(&self, wanted: Wanted) {
        let awake = wanted.awake;
        let before = std::mem::replace(&mut *self.shared.wanted.lock(), Arc::new(wanted));
        // An open connection checks the other wishes by itself.
        if before.awake != awake {
            self.news.tell();
        }
    }

    /// Whether prices flow, so that quote calls may be rare.
    pub(crate) fn is_live(&self) -> bool {
        self.shared.counters.is_live()
    }

    /// Counts a batch that requests can read now. Its first tick arrived at `ticked_mono_ms`.
    pub(crate) fn published(&self, ticked_mono_ms: u64) {
        let took_ms = self.clock.monotonic_ms().saturating_sub(ticked_mono_ms);
        self.shared
            .counters
            .published
            .record(0, took_ms * 1_000_000);
    }

    /// A reading for health and metrics.
    pub(crate) fn reading(&self) -> TickerReading {
        self.shared.counters.read(self.clock.monotonic_ms())
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        // The thread, whose end is waited for after this, may wait for news.
        self.thread.stop();
        self.news.tell();
    }
}

/// A refused endpoint and token, with the number of calls that the token had served then.
struct Refused {
    way: Way,
    at_mono_ms: u64,
    worked: u64,
}

impl Worker {
    fn run(self) {
        let mut refused = None;
        let mut back_off = BackOff::of(WAIT_FIRST_MS, WAIT_MAX_MS);
        let mut is_over = self.stop.is_set();
        while !is_over {
            let Some(way) = self.view().way() else {
                self.counters().set_state(State::Off);
                self.parts.token.news().wait(REST);
                is_over = self.stop.is_set();
                continue;
            };
            if self.is_refused(&way, refused.as_ref()) {
                self.counters().set_state(State::Refused);
                is_over = self.stop.wait(LOOK);
                continue;
            }
            refused = None;
            match session::run(&self, &way) {
                Ended::Stopped => return,
                Ended::Unwanted => back_off.succeeded(),
                Ended::NotOpened(Reason::Refused) => {
                    self.failed(Reason::Refused);
                    let worked = way.token.worked();
                    let at_mono_ms = self.now_mono_ms();
                    refused = Some(Refused {
                        way,
                        at_mono_ms,
                        worked,
                    });
                }
                Ended::NotOpened(failure) => {
                    self.failed(failure);
                    let least_ms = if failure == Reason::Busy {
                        WAIT_BUSY_MS
                    } else {
                        0
                    };
                    self.wait(&mut back_off, least_ms, &way);
                }
                Ended::Lost { reason, spoke } => {
                    self.failed(reason);
                    if spoke {
                        back_off.succeeded();
                    }
                    self.wait(&mut back_off, 0, &way);
                }
            }
            is_over = self.stop.is_set();
        }
    }

    /// Whether the broker refused this way, and no call with its token has worked since. A refusal
    /// may be of the token, the plan or the number of connections. Only a call shows whether the
    /// token is dead.
    fn is_refused(&self, way: &Way, refused: Option<&Refused>) -> bool {
        refused.is_some_and(|refused| {
            let since_ms = self.now_mono_ms().saturating_sub(refused.at_mono_ms);
            let no_news = since_ms < REFUSED_MS || way.token.worked() == refused.worked;
            refused.way.is(way) && no_news
        })
    }

    fn failed(&self, reason: Reason) {
        if self.counters().ended(reason) {
            tracing::warn!(reason = reason.as_str(), "ticker disconnected");
        }
    }

    /// Waits for the next try, unless the endpoint or token changes.
    fn wait(&self, back_off: &mut BackOff, least_ms: u64, way: &Way) {
        self.counters().set_state(State::Waiting);
        back_off.failed(self.now_mono_ms(), least_ms);
        while back_off.wait_ms(self.now_mono_ms()) > 0 && !self.stop.wait(LOOK) {
            if !self.view().is_way(way) {
                return back_off.succeeded();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::brokers::broker_a::ticker::Endpoint;
    use crate::brokers::session::token::SharedToken;

    #[test]
    fn waits_double_to_half_a_minute_and_have_no_last_try() {
        let mut back_off = BackOff::of(WAIT_FIRST_MS, WAIT_MAX_MS);
        // The jitter takes or adds a fifth at most.
        let is_about = |back_off: &mut BackOff, least_ms: u64, expected_ms: u64| {
            back_off.failed(0, least_ms);
            back_off.wait_ms(0).abs_diff(expected_ms) <= expected_ms / 5
        };
        for expected_ms in [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000] {
            assert!(is_about(&mut back_off, 0, expected_ms), "{expected_ms}");
        }
        back_off.succeeded();
        assert!(is_about(&mut back_off, WAIT_BUSY_MS, 10_000));
        assert!(is_about(&mut back_off, 0, 20_000));
    }

    /// Number of voluntary sleeps of the threads with this name.
    fn sleeps(name: &str) -> u64 {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let of = |task: std::path::PathBuf| {
            let comm = std::fs::read_to_string(task.join("comm")).ok()?;
            let status = std::fs::read_to_string(task.join("status")).ok()?;
            let count = status
                .lines()
                .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            (comm.trim_end() == name).then(|| count.unwrap().trim().parse::<u64>().unwrap())
        };
        tasks.filter_map(|task| of(task.unwrap().path())).sum()
    }

    fn until(what: &str, holds: impl Fn() -> bool) {
        let patience = Clock::system();
        let never = crossbeam_channel::never::<()>();
        while !holds() {
            assert!(patience.monotonic_ms() < REST.as_millis() as u64 / 2, "{what}");
            let _ = never.recv_timeout(Duration::from_millis(1));
        }
    }

    #[test]
    fn without_a_way_it_sleeps_until_what_it_lacks_is_there() {
        // Nothing listens there any more.
        let nowhere = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let endpoint = Endpoint::parse(&format!("ws://{nowhere}")).unwrap();
        for last in ["endpoint", "token", "wanted"] {
            let token = Arc::<SharedToken>::default();
            let off = TickerSettings {
                endpoint: None,
                symbols_max: 10,
            };
            let settings = Arc::new(ArcSwap::from_pointee(off.clone()));
            let ticker = Ticker::start(TickerParts {
                settings: Arc::clone(&settings),
                leads: Vec::new(),
                clock: Clock::starting_at("2026-11-20T11:00:00+05:30".parse().unwrap()),
                token: Arc::clone(&token),
                tokens: Arc::default(),
                push: Box::new(Err),
            })
            .unwrap();
            let give = |what: &str| match what {
                "endpoint" => {
                    let endpoint = Some(endpoint.clone());
                    settings.store(Arc::new(TickerSettings {
                        endpoint,
                        ..off.clone()
                    }));
                    token.news().tell();
                }
                "token" => token.set("t".into(), "k".into(), ticker.clock.now()),
                _ => ticker.want(Wanted {
                    awake: true,
                    ..Wanted::default()
                }),
            };
            let others = ["endpoint", "token", "wanted"]
                .into_iter()
                .filter(|what| *what != last);
            others.for_each(give);
            until("the news to be heard", || token.news().is_heard());
            // A thread that polls five times a second would sleep as often in two seconds.
            let before = sleeps("ticker");
            let second = Clock::system();
            until("two seconds", || {
                // The scheduler repeats its wishes each second.
                ticker.want(Wanted {
                    awake: last != "wanted",
                    ..Wanted::default()
                });
                second.monotonic_ms() > 2_000
            });
            let after = sleeps("ticker");
            assert!(after > 0 && after - before <= 3, "{last}: {before} {after}");
            assert_eq!(ticker.reading().state, State::Off);
            give(last);
            until(last, || ticker.reading().failure == Some("unreachable"));
            drop(ticker);
            until("its end", || sleeps("ticker") == 0);
        }
    }

    /// A connection with heartbeats but without a first tick ends after ten seconds.
    #[test]
    fn an_hour_of_connections_without_ticks_is_little_more_than_a_hundred() {
        let mut back_off = BackOff::of(WAIT_FIRST_MS, WAIT_MAX_MS);
        let mut passed_ms = 0;
        let mut opened = 0;
        while passed_ms < 3_600_000 {
            back_off.failed(passed_ms, 0);
            passed_ms += 10_000 + back_off.wait_ms(passed_ms);
            opened += 1;
        }
        assert!(opened <= 110, "{opened}");
    }
}
