//! Writing what a turn has answered: at once where the socket takes it, else bit by bit.
//!
//! Runs in the connection's coroutine. No buffer set is held while it waits.

use std::io;
use std::sync::Arc;

use super::{Connection, Timed};
use crate::http::connection::backpressure::{Cut, Held, PACE_BYTES};
use crate::http::connection::buffers::Buffers;
use crate::http::document::owned::{LARGE_BYTES, OwnedBody};
use crate::http::serve::Serve;
use crate::rt::readiness::WOKEN;

/// How much of a large output is written before the worker's other descriptors are polled. The
/// kernel copies this in some tens of microseconds.
const PIECE_BYTES: usize = 64 * 1024;

impl<S: Serve> Connection<S> {
    /// Writes the output of a turn and gives the buffers back. `None` when the connection is over.
    pub(crate) fn flush(&mut self, mut scratch: Box<Buffers>) -> Option<()> {
        let owned = scratch.owned.take();
        let is_large = scratch.out.len() > LARGE_BYTES;
        let written = if is_large { Ok(0) } else { self.write(&scratch.out) };
        let (mut rest, is_secret): (OwnedBody, bool) = match written {
            Ok(written) if written == scratch.out.len() && owned.is_none() => {
                scratch.give_back();
                return Some(());
            }
            Ok(_) if is_large => (std::mem::take(&mut scratch.out).into(), scratch.holds_body),
            Ok(written) => (scratch.out[written..].to_vec().into(), scratch.holds_body),
            Err(_) => {
                scratch.give_back();
                return None;
            }
        };
        scratch.give_back();
        if is_secret {
            rest.keep_secret();
        }
        self.write_slowly(rest, owned).then_some(())
    }

    /// Writes what the socket takes now; gives how much that was.
    pub(crate) fn write(&self, out: &[u8]) -> io::Result<usize> {
        let mut at = 0;
        while at < out.len() {
            match self.socket.write(&out[at..]) {
                Ok(count) => at += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(at)
    }

    /// Writes what is large, or goes to a client that reads slower than it asks. Nothing more is
    /// read from it meanwhile, which is what bounds the output. False when the connection is over:
    /// the client is gone, or reads too slowly for the memory that it holds.
    fn write_slowly(&mut self, rest: OwnedBody, owned: Option<OwnedBody>) -> bool {
        let bytes = rest.bytes().len() + owned.as_ref().map_or(0, |body| body.bytes().len());
        self.timed = Timed::Idle;
        self.slot.set_deadline_in(self.settings.unread_output_timeout_ms);
        let shared = Arc::clone(&self.shared);
        let now_ms = shared.slots.now_ms();
        let held = shared.unread.hold(self.slot.index(), bytes, now_ms, self.readiness.waker());
        let mut pace = Pace { held, taken_bytes: 0 };
        // Each part is freed once it is written.
        for part in [Some(rest), owned].into_iter().flatten() {
            match self.write_part(&part, &mut pace) {
                Ok(()) => {}
                Err(Lost::Client) => return false,
                Err(Lost::Cut(why)) => {
                    let stats = &shared.stats;
                    match why {
                        Cut::Slow => stats.write_timeouts.increment(),
                        Cut::Crowded => stats.unread_cuts.increment(),
                    }
                    shared.unread.note_cut(why, bytes, shared.slots.now_ms());
                    return false;
                }
            }
        }
        true
    }

    fn write_part(&mut self, part: &OwnedBody, pace: &mut Pace<'_>) -> Result<(), Lost> {
        let mut rest = part.bytes();
        let mut in_a_row = 0;
        // The time is over and a last write was tried: the kernel reports room late, so what the
        // client has taken by then is not known before.
        let mut last_try = false;
        while !rest.is_empty() {
            if pace.held.is_cut() {
                return Err(Lost::Cut(Cut::Crowded));
            }
            match self.socket.write(&rest[..rest.len().min(PIECE_BYTES)]) {
                Ok(count) => {
                    rest = &rest[count..];
                    if pace.takes(count) {
                        pace.held.renew(self.shared.slots.now_ms());
                        self.slot.set_deadline_in(self.settings.unread_output_timeout_ms);
                        last_try = false;
                    }
                    in_a_row += count;
                    if in_a_row >= PIECE_BYTES {
                        in_a_row = 0;
                        self.breathe();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if last_try && self.slot.is_expired() {
                        return Err(Lost::Cut(Cut::Slow));
                    }
                    in_a_row = 0;
                    let flags = self.readiness.wait();
                    self.note(flags);
                    last_try = flags & WOKEN != 0 && self.slot.is_expired();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Lost::Client),
            }
        }
        Ok(())
    }
}

/// How fast the client takes what it asked for.
struct Pace<'a> {
    held: Held<'a>,
    taken_bytes: usize,
}

impl Pace<'_> {
    /// Whether it has now taken enough for a new term.
    fn takes(&mut self, bytes: usize) -> bool {
        self.taken_bytes += bytes;
        let enough = self.taken_bytes >= PACE_BYTES;
        if enough {
            self.taken_bytes = 0;
        }
        enough
    }
}

enum Lost {
    /// It has gone.
    Client,
    Cut(Cut),
}
