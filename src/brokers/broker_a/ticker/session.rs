//! One connection, from its opening to its end.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::dial::OpenFailure;
use super::link::{Heard, Link};
use super::reading::{BROKEN, Bad, State};
use super::subscriptions::{Changes, Subscriptions, Wanted};
use super::watch::{Verdict, Watch};
use super::window::Window;
use super::worker::{Way, Worker};
use crate::base::Symbol;
use crate::brokers::broker_a::ticks::{self, PacketFault};

/// Longest wait for a message: commands, deadlines and the end of the service are looked at this
/// often.
const READ_WAIT_MS: u64 = 100;
/// Between two looks at what is wanted.
const FOLLOW_MS: u64 = 1_000;
/// For the answer to a goodbye.
const CLOSE_WAIT: Duration = Duration::from_secs(1);
/// The same when the service ends.
const STOP_WAIT: Duration = Duration::from_millis(100);

/// How a connection ended, or that there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The service stops.
    Stopped,
    /// It is not wanted any more, or its place or the token is another.
    Unwanted,
    NotOpened(OpenFailure),
    /// It was open; `spoke`: and gave prices.
    Lost {
        reason: &'static str,
        spoke: bool,
    },
}

/// An open connection and all that belongs to it.
struct Session<'a> {
    worker: &'a Worker,
    link: Link,
    subscriptions: Subscriptions,
    watch: Watch,
    window: Window,
    followed_mono_ms: Option<u64>,
    spoke: bool,
}

/// Opens a connection and keeps it as long as it is good.
pub(super) fn run(worker: &Worker, way: &Way) -> Ended {
    worker.counters().set_state(State::Connecting);
    let link = match Link::open(&worker.dialer, &way.endpoint, &way.token) {
        Ok(link) => link,
        Err(failure) => return Ended::NotOpened(failure),
    };
    worker.counters().set_state(State::Subscribing);
    let mut session = Session {
        link,
        subscriptions: Subscriptions::default(),
        watch: Watch::new(&worker.parts.leads, worker.now_mono_ms()),
        window: Window::default(),
        followed_mono_ms: None,
        spoke: false,
        worker,
    };
    let ended = loop {
        if let Err(ended) = session.pass(way) {
            break ended;
        }
    };
    let wait = if ended == Ended::Stopped { STOP_WAIT } else { CLOSE_WAIT };
    session.link.close(wait);
    ended
}

impl Session<'_> {
    fn lost(&self, reason: &'static str) -> Ended {
        Ended::Lost { reason, spoke: self.spoke }
    }

    /// Looks once at everything that can have changed.
    fn pass(&mut self, way: &Way) -> Result<(), Ended> {
        if self.worker.is_stopping() {
            return Err(Ended::Stopped);
        }
        let view = self.worker.view();
        if !view.is_way(way) {
            return Err(Ended::Unwanted);
        }
        let wanted = &view.wanted;
        self.follow(wanted, view.settings.symbols_max)?;
        let now_mono_ms = self.worker.now_mono_ms();
        match self.watch.judge(wanted.moves, now_mono_ms) {
            Verdict::Fine => {}
            Verdict::Ping => self.link.ping().map_err(|_| self.lost(BROKEN))?,
            Verdict::Renew => self.send(&self.subscriptions.all())?,
            Verdict::GiveUp(why) => return Err(self.lost(why.as_str())),
        }
        let due_in_ms = self.window.due_in_ms(now_mono_ms);
        let wait_ms = due_in_ms.map_or(READ_WAIT_MS, |due| due.min(READ_WAIT_MS));
        let heard = self.link.read(Duration::from_millis(wait_ms));
        self.take(heard.map_err(|_| self.lost(BROKEN))?);
        self.tell(wanted);
        Ok(())
    }

    /// Subscribes what is wanted, once a second.
    fn follow(&mut self, wanted: &Wanted, symbols_max: usize) -> Result<(), Ended> {
        let now_mono_ms = self.worker.now_mono_ms();
        let since_ms = self.followed_mono_ms.map(|at| now_mono_ms.saturating_sub(at));
        if since_ms.is_some_and(|since_ms| since_ms < FOLLOW_MS) {
            return Ok(());
        }
        self.followed_mono_ms = Some(now_mono_ms);
        let known = &self.worker.parts.tokens;
        let changes = self.subscriptions.follow(wanted, known, symbols_max, now_mono_ms);
        self.worker.counters().set_subscribed(self.subscriptions.len());
        self.send(&changes)
    }

    fn send(&mut self, changes: &Changes) -> Result<(), Ended> {
        for request in changes.requests() {
            self.link.send_text(request).map_err(|_| self.lost(BROKEN))?;
        }
        Ok(())
    }

    fn take(&mut self, heard: Heard) {
        let now_mono_ms = self.worker.now_mono_ms();
        match heard {
            Heard::Nothing => return,
            Heard::Binary(bytes) => self.read(&bytes, now_mono_ms),
            Heard::Pong => self.watch.ponged(),
            // Unread: they may be the app owner's orders.
            Heard::Text | Heard::Other => {}
        }
        self.worker.counters().frames.fetch_add(1, Relaxed);
        self.watch.heard(now_mono_ms);
    }

    fn read(&mut self, message: &[u8], now_mono_ms: u64) {
        let counters = self.worker.counters();
        counters.bytes.fetch_add(message.len() as u64, Relaxed);
        let Ok(packets) = ticks::packets(message) else {
            counters.bad(Bad::Framing);
            self.watch.bad(now_mono_ms);
            return;
        };
        for packet in packets {
            match packet {
                Ok(tick) => {
                    counters.ticked(now_mono_ms);
                    self.window.add(tick, &self.worker.parts.clock);
                }
                Err(PacketFault::UnknownLength) => counters.bad(Bad::Length),
                Err(PacketFault::Segment) => counters.bad(Bad::Segment),
            }
        }
    }

    /// Hands on what was gathered, and how it stands.
    fn tell(&mut self, wanted: &Wanted) {
        let (worker, now_mono_ms) = (self.worker, self.worker.now_mono_ms());
        let counters = worker.counters();
        if self.window.due_in_ms(now_mono_ms) == Some(0) {
            let (clock, simulated) = (&worker.parts.clock, self.link.simulated);
            let Self { window, subscriptions, watch, .. } = self;
            // A price that cannot be true shows no more than silence does.
            let believed = |symbol: &Symbol, at_mono_ms| watch.ticked(symbol, at_mono_ms);
            let batch = window.batch(subscriptions, wanted.trades, simulated, clock, believed);
            match batch.map(|batch| (worker.parts.push)(Box::new(batch))) {
                Some(Err(_)) => {
                    if window.refused(now_mono_ms) {
                        counters.merged.fetch_add(1, Relaxed);
                    }
                }
                Some(Ok(())) | None => window.clear(),
            }
        }
        let live = self.watch.is_live(now_mono_ms);
        counters.set_live(live);
        if live && !self.spoke {
            self.spoke = true;
            tracing::info!(subscribed = self.subscriptions.len(), "broker A's ticker speaks");
        }
        let speaks = live || (self.watch.has_ticked() && !wanted.moves);
        counters.set_state(if speaks { State::Speaking } else { State::Subscribing });
    }
}
