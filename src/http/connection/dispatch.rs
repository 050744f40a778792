//! The loop of one connection: wait for input, read, answer the complete requests, write; at the
//! end, close without losing the last response. One coroutine for each connection, on the worker
//! that polls its descriptor.
//!
//! A usual request costs one wait, one read and one write. While a connection waits it holds no
//! buffer set: unhandled input (a partial head) and unwritten output are kept in vectors of exactly
//! their size.

use std::io;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::http::connection::buffers::{Buffers, READ_BYTES};
use crate::http::connection::exchange::{Exchange, Next, Stage};
use crate::http::message::problem::Problem;
use crate::http::message::request::Peer;
use crate::http::message::response::OpenStream;
use crate::http::server::connection_table::{SlotGuard, Waker};
use crate::http::server::handover::{Accepted, NewStream};
use crate::http::server::listener::Socket;
use crate::http::server::places::Place;
use crate::http::server::shared::{Serve, Shared};
use crate::http::settings::HttpSettings;
use crate::rt::readiness::{ERROR_OR_GONE, READABLE, Readiness, WOKEN};

/// After our last byte we read and drop input for this long and up to this much. Closing with
/// unread input would send a reset, which can destroy the response before the client reads it.
const LINGER_MS: u64 = 1_000;
const LINGER_BYTES: usize = 256 * 1024;

/// While draining, an idle connection may send a last request within this time. Dashboards poll
/// every second.
const DRAIN_IDLE_MS: u64 = 1_500;

/// An accepted connection.
pub(crate) struct Connection<S> {
    /// Given back as soon as the connection ends, so that the client's next one is not refused.
    pub(crate) place: Place,
    pub(super) readiness: Readiness<Arc<Accepted>>,
    pub(super) shared: Arc<Shared<S>>,
    pub(super) settings: Arc<HttpSettings>,
    pub(crate) generation: u64,
    pub(crate) peer: Peer,
    pub(crate) stage: Stage,
    /// Input that is not handled yet; empty while idle.
    pub(crate) carry: Zeroizing<Vec<u8>>,
    /// The socket may have input to read.
    pub(crate) readable: bool,
    /// epoll reported an error or the end of input. Read until the socket reports it too.
    pub(crate) hung_up: bool,
    pub(crate) drain_seen: bool,
    /// The idle timeout has passed, and one last read is tried before closing.
    pub(crate) last_look: bool,
    /// The kind of the deadline that is set. Further bytes do not extend that of a head or body.
    pub(super) timed: Timed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timed {
    Idle,
    Head,
    Body,
}

enum Event {
    Input,
    Expired,
}

enum Read {
    Some,
    Nothing,
    End,
}

impl<S: Serve> Connection<S> {
    /// Takes over an accepted socket.
    ///
    /// # Errors
    /// If the socket cannot be polled.
    pub(crate) fn new(
        socket: Socket,
        peer: Peer,
        shared: Arc<Shared<S>>,
        place: Place,
        slot: SlotGuard,
    ) -> io::Result<Self> {
        let accepted = Arc::new(Accepted { socket, slot });
        let readiness = Readiness::of(Arc::clone(&accepted))?;
        let slot = &accepted.slot;
        slot.register(Waker::Coroutine(readiness.waker()));
        // A client that sends nothing after connecting gets the timeout of a head, which is shorter
        // than the idle timeout.
        let generation = shared.generation();
        let settings = shared.settings();
        slot.set_deadline_in(settings.head_timeout_ms);
        Ok(Self {
            readiness,
            shared,
            settings,
            generation,
            place,
            peer,
            stage: Stage::Head,
            carry: Zeroizing::default(),
            readable: false,
            hung_up: false,
            drain_seen: false,
            last_look: false,
            timed: Timed::Idle,
        })
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.readiness.owner().socket
    }

    pub(super) fn slot(&self) -> &SlotGuard {
        &self.readiness.owner().slot
    }

    /// Serves the connection until it ends.
    pub(crate) fn run(mut self) {
        let mut need_input = true;
        loop {
            if need_input && !self.readable {
                if let Event::Expired = self.wait() {
                    return self.expire();
                }
            } else {
                // More input is already there. The worker's other connections run first.
                self.yield_to_poll();
            }
            let Some(next) = self.serve_arrived(need_input) else {
                return;
            };
            match next {
                Next::NeedInput => need_input = true,
                Next::Flush => need_input = false,
                Next::Stream => return self.hand_over(),
                Next::Close { unread_input } => return self.close(unread_input),
            }
        }
    }

    /// Reads if `need_input`, answers every complete request, writes. `None` if the connection is
    /// over.
    fn serve_arrived(&mut self, need_input: bool) -> Option<Next> {
        self.renew_settings();
        let mut buffers = Buffers::take(self.settings.head_bytes_max);
        let carried = self.carry.len();
        if carried > 0 {
            buffers.input[..carried].copy_from_slice(&self.carry);
            buffers.arrived(carried);
            // Carried input may be the beginning of a body.
            buffers.holds_body = true;
            self.carry = Zeroizing::default();
        }
        if need_input {
            match self.read(&mut buffers) {
                Read::Some => {}
                Read::Nothing => {
                    self.keep_rest(&buffers);
                    buffers.give_back();
                    return Some(Next::NeedInput);
                }
                Read::End => {
                    buffers.give_back();
                    return None;
                }
            }
        }
        let mut exchange = self.exchange();
        let next = exchange.run(&mut buffers);
        let answered = exchange.answered;
        self.slot().count_requests(answered);
        if answered > 0 {
            // Each request has its own deadline; the next one does not inherit this one's.
            self.timed = Timed::Idle;
        }
        self.keep_rest(&buffers);
        self.flush(buffers)?;
        self.set_deadline();
        Some(next)
    }

    fn exchange(&mut self) -> Exchange<'_, S> {
        Exchange {
            shared: &self.shared,
            settings: &self.settings,
            peer: self.peer,
            stage: &mut self.stage,
            answered: 0,
        }
    }

    fn renew_settings(&mut self) {
        if self.generation != self.shared.generation() {
            self.generation = self.shared.generation();
            self.settings = self.shared.settings();
        }
    }

    #[inline]
    fn keep_rest(&mut self, buffers: &Buffers) {
        if buffers.input_bytes > 0 {
            self.carry = kept(&buffers.input[..buffers.input_bytes]);
        }
    }

    fn set_deadline(&mut self) {
        let settings = &self.settings;
        // Some clients send an empty line after a body. It does not begin a request (RFC 9112 2.2).
        let begun = self.carry.iter().any(|byte| !matches!(byte, b'\r' | b'\n'));
        let timed = match (&self.stage, begun) {
            (Stage::Body(_) | Stage::Upload(_), _) => Timed::Body,
            (Stage::Head, true) => Timed::Head,
            (Stage::Head, false) | (Stage::Stream(_), _) => Timed::Idle,
        };
        match timed {
            Timed::Idle if self.shared.is_draining() => self.slot().set_deadline_in(DRAIN_IDLE_MS),
            Timed::Idle => self.slot().set_deadline_in(settings.idle_timeout_ms),
            Timed::Head if self.timed != Timed::Head => {
                self.slot().set_deadline_in(settings.head_timeout_ms);
            }
            Timed::Body if self.timed != Timed::Body => {
                if let Some(limits) = self.stage.body_limits() {
                    self.slot().set_deadline_in(limits.timeout_ms);
                }
            }
            Timed::Head | Timed::Body => {}
        }
        self.timed = timed;
    }

    /// Waits for input or the deadline.
    fn wait(&mut self) -> Event {
        loop {
            // Check before every wait: the wake-up that announced the drain may have ended another
            // wait.
            self.note_drain();
            if self.last_look && self.slot().is_expired() {
                return Event::Expired;
            }
            let flags = self.readiness.wait();
            self.note(flags);
            if self.readable {
                return Event::Input;
            }
            if flags & WOKEN != 0 && self.slot().is_expired() {
                if self.timed == Timed::Idle && !self.last_look {
                    // A request may have arrived just now and not be in `flags` yet. Closing would
                    // reset it, so try one last read.
                    self.last_look = true;
                    return Event::Input;
                }
                return Event::Expired;
            }
        }
    }

    fn note_drain(&mut self) {
        if !self.drain_seen && self.shared.is_draining() {
            self.drain_seen = true;
            if self.timed == Timed::Idle {
                self.slot().set_deadline_in(DRAIN_IDLE_MS);
            }
        }
    }

    /// Remembers epoll's events, which are edge-triggered and reported only once.
    pub(super) fn note(&mut self, flags: usize) {
        self.readable |= flags & (READABLE | ERROR_OR_GONE) != 0;
        self.hung_up |= flags & ERROR_OR_GONE != 0;
    }

    #[inline]
    fn read(&mut self, buffers: &mut Buffers) -> Read {
        let room = &mut buffers.input[buffers.input_bytes..];
        let room_bytes = room.len().min(READ_BYTES);
        loop {
            match self.socket().read(&mut room[..room_bytes]) {
                Ok(0) => return Read::End,
                Ok(count) => {
                    self.last_look = false;
                    // A short read has emptied the socket; the next byte is reported anew.
                    self.readable = count == room_bytes || self.hung_up;
                    buffers.arrived(count);
                    return Read::Some;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.readable = false;
                    return Read::Nothing;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Read::End,
            }
        }
    }

    /// Suspends until the worker has polled its other descriptors, so that one busy client does not
    /// starve the others. may would run a yielding coroutine again before it polls, so the wake-up
    /// comes from another thread, the sweeper.
    ///
    /// Input that arrives meanwhile does not end the wait, because a client that never stops
    /// sending would otherwise never let it happen.
    pub(super) fn yield_to_poll(&mut self) {
        if !self.shared.slots.wake_after_poll(self.readiness.waker()) {
            return;
        }
        loop {
            let flags = self.readiness.wait();
            self.note(flags);
            if flags & WOKEN != 0 {
                return;
            }
        }
    }

    /// Hands the stream that the last response has begun over to the thread that writes it.
    fn hand_over(self) {
        let Self {
            readiness,
            shared,
            place: connection_place,
            stage,
            carry,
            ..
        } = self;
        let Stage::Stream(open) = stage else { return };
        let accepted = Arc::clone(readiness.owner());
        // It polls the socket; the other thread polls it from now on.
        drop(readiness);
        let OpenStream {
            frames,
            framing,
            place,
        } = *open;
        let dropped_bytes = carry.len();
        let Some(mailbox) = shared.mailboxes.of(accepted.slot.index) else {
            return;
        };
        mailbox.hand_over(NewStream {
            accepted,
            frames,
            framing,
            place,
            connection_place,
            dropped_bytes,
        });
    }

    /// Ends a connection whose deadline has passed: silently if idle or if another one needs its
    /// place, else with 408.
    fn expire(mut self) {
        if self.slot().is_evicted() {
            return;
        }
        if self.timed == Timed::Idle {
            self.shared.stats.idle_closed.increment();
            return;
        }
        self.shared.stats.read_timeouts.increment();
        let mut buffers = Buffers::take(self.settings.head_bytes_max);
        let about = self.stage.about(&self.carry);
        let detail = "The request did not arrive in time.";
        let problem = Problem::new(408, "request_timeout", detail);
        let mut exchange = self.exchange();
        exchange.refuse(&mut buffers, &about, &problem);
        self.slot().count_requests(1);
        let written = self.socket().write_ready(&buffers.out).is_ok();
        buffers.give_back();
        if written {
            self.close(true);
        }
    }

    /// Ends the connection. If the client may still be sending, its input is read and dropped for a
    /// while after our last byte (RFC 9112 9.6).
    fn close(mut self, unread_input: bool) {
        self.socket().finish_writing();
        if !unread_input && self.carry.is_empty() {
            return;
        }
        self.slot().set_deadline_in(LINGER_MS);
        self.timed = Timed::Idle;
        let mut buffers = Buffers::take(self.settings.head_bytes_max);
        let mut dropped = 0;
        while dropped < LINGER_BYTES {
            buffers.input_bytes = 0;
            // Further input of a refused client is probably its body.
            buffers.holds_body = true;
            match self.read(&mut buffers) {
                Read::Some => dropped += buffers.input_bytes,
                Read::End => break,
                Read::Nothing => {
                    buffers.give_back();
                    if let Event::Expired = self.wait() {
                        return;
                    }
                    buffers = Buffers::take(self.settings.head_bytes_max);
                }
            }
        }
        buffers.give_back();
    }
}

#[cold]
fn kept(rest: &[u8]) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(rest.to_vec())
}
