//! One connection, from its opening to its end.

use std::time::Duration;

use tungstenite::{Bytes, Message};

use crate::base::Symbol;
use crate::brokers::broker_a::ticker::link::Link;
use crate::brokers::broker_a::ticker::reading::{Reason, State};
use crate::brokers::broker_a::ticker::subscriptions::{Changes, Subscriptions, Wanted};
use crate::brokers::broker_a::ticker::ticks::packets;
use crate::brokers::broker_a::ticker::watch::{Verdict, Watch};
use crate::brokers::broker_a::ticker::window::Window;
use crate::brokers::broker_a::ticker::worker::{Way, Worker};

/// Longest wait for a message. Commands, deadlines and the end of the service are checked this
/// often.
const READ_WAIT_MS: u64 = 100;
/// Interval between two checks of the wanted symbols.
const FOLLOW_MS: u64 = 1_000;
/// Longest wait for the answer to a close.
const CLOSE_WAIT: Duration = Duration::from_secs(1);
/// The same at the end of the service.
const STOP_WAIT: Duration = Duration::from_millis(100);

/// The end of a connection, or the reason why there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The service stops.
    Stopped,
    /// It is no longer wanted, or the endpoint or the token has changed.
    Unwanted,
    NotOpened(Reason),
    /// It was open. `spoke`: prices flowed.
    Lost {
        reason: Reason,
        spoke: bool,
    },
}

/// An open connection and its state.
struct Session<'a> {
    worker: &'a Worker,
    link: Link,
    subscriptions: Subscriptions,
    watch: Watch,
    window: Window,
    followed_mono_ms: Option<u64>,
    spoke: bool,
}

/// Opens a connection and runs it until it ends.
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
    let wait = if ended == Ended::Stopped {
        STOP_WAIT
    } else {
        CLOSE_WAIT
    };
    session.link.close(wait);
    ended
}

impl Session<'_> {
    fn lost(&self, reason: Reason) -> Ended {
        Ended::Lost {
            reason,
            spoke: self.spoke,
        }
    }

    /// One pass: subscribes, checks the connection, reads one message, pushes a batch that is due.
    fn pass(&mut self, way: &Way) -> Result<(), Ended> {
        if self.worker.stop.is_set() {
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
            Verdict::Ping => {
                self.link
                    .send(Message::Ping(Bytes::new()))
                    .map_err(|broken| self.lost(broken))?;
            }
            Verdict::Renew => self.send(&self.subscriptions.all())?,
            Verdict::GiveUp(why) => return Err(self.lost(why)),
        }
        let due_in_ms = self.window.due_in_ms(now_mono_ms);
        let wait_ms = due_in_ms.map_or(READ_WAIT_MS, |due| due.min(READ_WAIT_MS));
        let heard = self.link.read(Duration::from_millis(wait_ms));
        if let Some(message) = heard.map_err(|broken| self.lost(broken))? {
            self.take(&message);
        }
        self.tell(wanted);
        Ok(())
    }

    /// Updates the subscriptions, once a second.
    fn follow(&mut self, wanted: &Wanted, symbols_max: usize) -> Result<(), Ended> {
        let now_mono_ms = self.worker.now_mono_ms();
        let since_ms = self
            .followed_mono_ms
            .map(|at| now_mono_ms.saturating_sub(at));
        if since_ms.is_some_and(|since_ms| since_ms < FOLLOW_MS) {
            return Ok(());
        }
        self.followed_mono_ms = Some(now_mono_ms);
        let known = &self.worker.parts.tokens;
        let changes = self
            .subscriptions
            .follow(wanted, known, symbols_max, now_mono_ms);
        self.worker
            .counters()
            .update(|reading| reading.subscribed = self.subscriptions.len());
        self.send(&changes)
    }

    fn send(&mut self, changes: &Changes) -> Result<(), Ended> {
        for request in changes.requests() {
            self.link
                .send(Message::text(request))
                .map_err(|broken| self.lost(broken))?;
        }
        Ok(())
    }

    fn take(&mut self, message: &Message) {
        let now_mono_ms = self.worker.now_mono_ms();
        match message {
            Message::Binary(bytes) => self.read(bytes, now_mono_ms),
            Message::Pong(_) => self.watch.ponged(),
            // Text is not read or kept, because it may be an order of the app's owner.
            _ => {}
        }
        self.worker.counters().update(|reading| reading.frames += 1);
        self.watch.heard(now_mono_ms);
    }

    fn read(&mut self, message: &[u8], now_mono_ms: u64) {
        let counters = self.worker.counters();
        counters.update(|reading| reading.bytes += message.len() as u64);
        let packets = match packets(message) {
            Ok(packets) => packets,
            Err(bad) => {
                counters.bad.increment(bad);
                return self.watch.bad(now_mono_ms);
            }
        };
        for packet in packets {
            match packet {
                Ok(tick) => {
                    counters.ticked(now_mono_ms);
                    self.window.add(tick, &self.worker.parts.clock);
                }
                Err(bad) => counters.bad.increment(bad),
            }
        }
    }

    /// Pushes the gathered ticks if they are due, and updates the state.
    fn tell(&mut self, wanted: &Wanted) {
        let worker = self.worker;
        let now_mono_ms = self.worker.now_mono_ms();
        let counters = worker.counters();
        if self.window.due_in_ms(now_mono_ms) == Some(0) {
            let clock = &worker.parts.clock;
            let simulated = self.link.simulated;
            let Self {
                window,
                subscriptions,
                watch,
                ..
            } = self;
            // An implausible price does not count as a tick.
            let believed = |symbol: &Symbol, at_mono_ms| watch.ticked(symbol, at_mono_ms);
            let batch = window.batch(subscriptions, wanted.trades, simulated, clock, believed);
            match batch.map(|batch| (worker.parts.push)(Box::new(batch))) {
                Some(Err(_)) => {
                    let is_first = window.refused(now_mono_ms);
                    counters.update(|reading| reading.merged += u64::from(is_first));
                }
                Some(Ok(())) | None => window.clear(),
            }
        }
        let live = self.watch.is_live(now_mono_ms);
        counters.update(|reading| reading.live = live);
        if live && !self.spoke {
            self.spoke = true;
            tracing::info!(subscribed = self.subscriptions.len(), "ticker connected");
        }
        let speaks = live || (self.watch.has_ticked() && !wanted.moves);
        counters.set_state(if speaks {
            State::Speaking
        } else {
            State::Subscribing
        });
    }
}
