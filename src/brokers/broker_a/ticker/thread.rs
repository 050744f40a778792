//! The thread: when a connection is opened, and how long it waits after one that failed.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::link::OpenFailure;
use super::reading::{State, TickerReading};
use super::session::{self, Ended};
use super::subscriptions::Wanted;
use super::worker::{Shared, TickerParts, Worker};
use crate::base::{Clock, rng};
use crate::brokers::session::token::Token;
use crate::rt::threads;

/// After a connection that failed; doubles up to the longest, with a jitter. There is no last try
/// while the token is good.
const WAIT_FIRST_MS: u64 = 1_000;
const WAIT_MAX_MS: u64 = 30_000;
/// After the broker said that it is too busy.
const WAIT_BUSY_MS: u64 = 10_000;
/// A refused connection is not tried again sooner, whatever calls say.
const REFUSED_MS: u64 = 60_000;
/// Longest that the end of the service waits for the thread, which says goodbye in that time. One
/// that is just connecting is left behind.
const STOP_WAIT: Duration = Duration::from_millis(250);

/// The running ticker. Dropping it ends it.
pub struct Ticker {
    shared: Arc<Shared>,
    /// Dropped to stop the thread.
    running: Option<Sender<()>>,
    ended: Receiver<()>,
    clock: Clock,
}

impl Ticker {
    /// Starts the thread, which rests until something is [wanted](Self::want).
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(parts: TickerParts) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let (running, stop) = bounded(0);
        let (done, ended) = bounded(0);
        let clock = parts.clock.clone();
        let worker = Worker { parts, shared: Arc::clone(&shared), stop, _done: done };
        threads::spawn("ticker", move || worker.run())?;
        Ok(Self { shared, running: Some(running), ended, clock })
    }

    /// Says what is wanted from now on.
    pub fn want(&self, wanted: Wanted) {
        *self.shared.wanted.lock() = Arc::new(wanted);
    }

    /// Whether prices flow, so that quote calls need not hurry.
    pub fn is_live(&self) -> bool {
        self.shared.counters.is_live()
    }

    /// For health and metrics.
    pub fn reading(&self) -> TickerReading {
        self.shared.counters.read(self.clock.monotonic_ms())
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        drop(self.running.take());
        let _ = self.ended.recv_timeout(STOP_WAIT);
    }
}

/// A token that the broker refused, and what had become of it then.
struct Refused {
    token: Arc<Token>,
    at_mono_ms: u64,
    worked: u64,
}

impl Worker {
    fn run(self) {
        let (mut refused, mut wait_ms) = (None, WAIT_FIRST_MS);
        while !self.look() {
            let Some(token) = self.ready(refused.as_ref()) else { continue };
            refused = None;
            match session::run(&self, &token) {
                Ended::Stopped => return,
                Ended::Unwanted => wait_ms = WAIT_FIRST_MS,
                Ended::NotOpened(OpenFailure::Refused) => {
                    self.failed(OpenFailure::Refused.as_str());
                    let at_mono_ms = self.now_mono_ms();
                    refused = Some(Refused { worked: token.worked(), token, at_mono_ms });
                }
                Ended::NotOpened(failure) => {
                    self.failed(failure.as_str());
                    let least_ms = if failure == OpenFailure::Busy { WAIT_BUSY_MS } else { 0 };
                    wait_ms = self.wait(wait_ms.max(least_ms), &token);
                }
                Ended::Lost { reason, spoke } => {
                    self.failed(reason);
                    wait_ms = self.wait(if spoke { WAIT_FIRST_MS } else { wait_ms }, &token);
                }
            }
        }
    }

    /// The token to open a connection with, if one is wanted and may be tried.
    fn ready(&self, refused: Option<&Refused>) -> Option<Arc<Token>> {
        let token = self.token().filter(|_| self.wanted().awake);
        let Some(token) = token else {
            self.counters().set_state(State::Off);
            return None;
        };
        // A refusal may be of the token, the plan or the number of connections. Only a call tells
        // whether the token is dead.
        let waits = refused.is_some_and(|refused| {
            let since_ms = self.now_mono_ms().saturating_sub(refused.at_mono_ms);
            let same = Arc::ptr_eq(&refused.token, &token);
            same && (since_ms < REFUSED_MS || token.worked() == refused.worked)
        });
        if waits {
            self.counters().set_state(State::Refused);
        }
        (!waits).then_some(token)
    }

    fn failed(&self, reason: &'static str) {
        if self.counters().ended(reason) {
            tracing::warn!(reason, "broker A's ticker has no connection");
        }
    }

    /// Waits for the next try, unless the token becomes another; gives how long the wait after that
    /// is.
    fn wait(&self, wait_ms: u64, token: &Arc<Token>) -> u64 {
        self.counters().set_state(State::Waiting);
        let until_mono_ms = self.now_mono_ms() + rng::jittered_ms(wait_ms);
        while self.now_mono_ms() < until_mono_ms && !self.look() {
            let wanted = self.wanted().awake;
            let same = self.token().is_some_and(|usable| Arc::ptr_eq(&usable, token));
            if !wanted || !same {
                return WAIT_FIRST_MS;
            }
        }
        (wait_ms * 2).min(WAIT_MAX_MS)
    }
}
