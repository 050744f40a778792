//! The life of one connection: wait, read, take turns, write, and end well. One coroutine each, on
//! the worker that polls its descriptor.
//!
//! The usual request costs one wait, one read and one write. While it waits, a connection holds no
//! buffer: unconsumed input (a partial head) and unwritten output are kept in exact-sized vectors.

use std::io;
use std::sync::Arc;

use may::io::{CoIo, WaitIo};
use zeroize::Zeroizing;

use super::buffers::{Buffers, READ_BYTES};
use super::exchange::{Exchange, Next, Stage};
use crate::http::message::problem::Problem;
use crate::http::message::request::Peer;
use crate::http::serve::Serve;
use crate::http::server::connection_table::SlotGuard;
use crate::http::server::listener::{Descriptor, Socket};
use crate::http::server::shared::{AddressPlace, Shared};
use crate::http::settings::HttpSettings;

mod output;

/// epoll's bits as may hands them on, and the bit its waker adds.
const READABLE: usize = 0x1;
const ERROR_OR_GONE: usize = 0x8 | 0x10 | 0x2000;
pub(crate) const WOKEN: usize = 0x8000_0000;

/// After our last byte we read on for this long and this much, so that a reset caused by unread
/// input does not destroy the answer before the client has read it.
const LINGER_MS: u64 = 1_000;
const LINGER_BYTES: usize = 256 * 1024;

/// While draining, an idle connection may bring a last request: dashboards poll each second.
const DRAIN_IDLE_MS: u64 = 1_500;

/// A connection that has been accepted and admitted.
pub struct Connection<S> {
    /// Before `socket`, so that it is dropped first.
    io: CoIo<Descriptor>,
    socket: Socket,
    shared: Arc<Shared<S>>,
    settings: Arc<HttpSettings>,
    generation: u64,
    /// Before `slot`: who waits for that one must not be refused for this one.
    _place: AddressPlace<S>,
    slot: SlotGuard,
    peer: Peer,
    stage: Stage,
    /// Input that is not consumed yet; empty while idle.
    carry: Zeroizing<Vec<u8>>,
    readable: bool,
    hung_up: bool,
    drain_seen: bool,
    /// The idle time is over and a last read was tried: what had arrived by then is answered.
    last_look: bool,
    /// The deadline of the current head or body is set and is not moved by further bytes.
    timed: Timed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timed {
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
    /// When it cannot be polled.
    pub fn new(
        socket: Socket,
        peer: Peer,
        shared: Arc<Shared<S>>,
        place: AddressPlace<S>,
        slot: SlotGuard,
    ) -> io::Result<Self> {
        let io = CoIo::new(Descriptor::of(&socket)).map_err(io::Error::from)?;
        slot.register(io.waker());
        // A connection that never speaks is a slow head, not an idle client.
        let (generation, settings) = (shared.generation(), shared.settings());
        slot.set_deadline_in(settings.head_timeout_ms);
        Ok(Self {
            io,
            socket,
            shared,
            settings,
            generation,
            _place: place,
            slot,
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

    /// Serves the connection to its end.
    pub fn run(mut self) {
        let mut need_input = true;
        loop {
            if need_input && !self.readable {
                if let Event::Expired = self.wait() {
                    return self.expire();
                }
            } else {
                // A client that sent more than one turn handles waits for its neighbours.
                self.breathe();
            }
            let Some(turn) = self.turn(need_input) else { return };
            match turn {
                Next::NeedInput => need_input = true,
                Next::Flush => need_input = false,
                Next::Close { rude } => return self.close(rude),
            }
        }
    }

    /// Reads if asked to, answers what is complete, writes. `None` when the peer is gone.
    fn turn(&mut self, need_input: bool) -> Option<Next> {
        self.renew_settings();
        let mut buffers = Buffers::take(self.settings.head_bytes_max);
        let carried = self.carry.len();
        buffers.input[..carried].copy_from_slice(&self.carry);
        buffers.arrived(carried);
        // Not looked at yet, or not whole.
        buffers.holds_body = carried > 0;
        self.carry = Zeroizing::default();
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
        let turn = exchange.run(&mut buffers);
        let answered = exchange.answered;
        self.slot.count_requests(answered);
        if answered > 0 {
            // Each request has its own time: what is begun now does not inherit its predecessor's.
            self.timed = Timed::Idle;
        }
        self.keep_rest(&buffers);
        self.flush(buffers)?;
        self.set_deadline();
        Some(turn)
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

    fn keep_rest(&mut self, buffers: &Buffers) {
        if buffers.input_bytes > 0 {
            self.carry = Zeroizing::new(buffers.input[..buffers.input_bytes].to_vec());
        }
    }

    fn set_deadline(&mut self) {
        let settings = &self.settings;
        // Line ends that some clients send after a body do not begin a request (RFC 9112 2.2).
        let begun = self.carry.iter().any(|byte| !matches!(byte, b'\r' | b'\n'));
        let timed = match (&self.stage, begun) {
            (Stage::Body(_), _) => Timed::Body,
            (Stage::Head, true) => Timed::Head,
            (Stage::Head, false) => Timed::Idle,
        };
        match timed {
            Timed::Idle if self.shared.is_draining() => self.slot.set_deadline_in(DRAIN_IDLE_MS),
            Timed::Idle => self.slot.set_deadline_in(settings.idle_timeout_ms),
            Timed::Head if self.timed != Timed::Head => {
                self.slot.set_deadline_in(settings.head_timeout_ms);
            }
            Timed::Body if self.timed != Timed::Body => {
                self.slot.set_deadline_in(settings.body_timeout_ms);
            }
            Timed::Head | Timed::Body => {}
        }
        self.timed = timed;
    }

    /// Waits for input or the deadline.
    fn wait(&mut self) -> Event {
        loop {
            // Before every wait: the wake that announced the drain may have ended another one.
            self.note_drain();
            if self.last_look && self.slot.is_expired() {
                return Event::Expired;
            }
            let flags = self.io.wait_io();
            self.note(flags);
            if self.readable {
                return Event::Input;
            }
            if flags & WOKEN != 0 && self.slot.is_expired() {
                if self.timed == Timed::Idle && !self.last_look {
                    // A request of this instant is not in `flags` yet; closing would reset it.
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
                self.slot.set_deadline_in(DRAIN_IDLE_MS);
            }
        }
    }

    /// Keeps what epoll said: edges are reported once.
    fn note(&mut self, flags: usize) {
        self.readable |= flags & (READABLE | ERROR_OR_GONE) != 0;
        self.hung_up |= flags & ERROR_OR_GONE != 0;
    }

    fn read(&mut self, buffers: &mut Buffers) -> Read {
        let room = &mut buffers.input[buffers.input_bytes..];
        let room_bytes = room.len().min(READ_BYTES);
        loop {
            match self.socket.read(&mut room[..room_bytes]) {
                Ok(0) => return Read::End,
                Ok(count) => {
                    self.last_look = false;
                    // A short read has drained the socket; the next byte brings a new edge.
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

    /// Lets the worker poll its other descriptors. may runs a yielding coroutine again before it
    /// polls, so the wake has to come from another thread.
    ///
    /// Bytes that arrive meanwhile do not end it: where another worker polls this descriptor they
    /// are noted while we run, and a client that never stops sending would never let us wait.
    fn breathe(&mut self) {
        if !self.shared.slots.breathe(self.io.waker()) {
            return;
        }
        loop {
            let flags = self.io.wait_io();
            self.note(flags);
            if flags & WOKEN != 0 {
                return;
            }
        }
    }

    /// The deadline of what the connection was doing has passed.
    fn expire(mut self) {
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
        self.slot.count_requests(1);
        let written = self.write(&buffers.out).is_ok();
        buffers.give_back();
        if written {
            self.close(true);
        }
    }

    /// Ends the connection. Where the client may still be sending, its bytes are read and dropped
    /// for a while after our last one (RFC 9112 9.6).
    fn close(mut self, rude: bool) {
        self.socket.finish_writing();
        if !rude && self.carry.is_empty() {
            return;
        }
        self.slot.set_deadline_in(LINGER_MS);
        self.timed = Timed::Idle;
        let mut buffers = Buffers::take(self.settings.head_bytes_max);
        let mut dropped = 0;
        while dropped < LINGER_BYTES {
            buffers.input_bytes = 0;
            // What a refused client goes on sending is its body, as likely as not.
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
