//! Writing responses: in one write if the socket takes it, else in pieces as the client reads.
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

/// Bytes of a large output written before the worker polls its other descriptors. The kernel copies
/// this many in some tens of microseconds.
const PIECE_BYTES: usize = 64 * 1024;

impl<S: Serve> Connection<S> {
    /// Writes the output in `buffers` and gives them back. `None` if the connection is over.
    pub(crate) fn flush(&mut self, mut buffers: Box<Buffers>) -> Option<()> {
        let owned = buffers.owned.take();
        let is_large = buffers.out.len() > LARGE_BYTES;
        let written = if is_large { Ok(0) } else { self.write(&buffers.out) };
        let (mut rest, is_secret): (OwnedBody, bool) = match written {
            Ok(written) if written == buffers.out.len() && owned.is_none() => {
                buffers.give_back();
                return Some(());
            }
            Ok(_) if is_large => (std::mem::take(&mut buffers.out).into(), buffers.holds_body),
            Ok(written) => (buffers.out[written..].to_vec().into(), buffers.holds_body),
            Err(_) => {
                buffers.give_back();
                return None;
            }
        };
        buffers.give_back();
        if is_secret {
            rest.keep_secret();
        }
        self.write_slowly(rest, owned).ok()
    }

    /// Writes as much as the socket takes without waiting; returns how many bytes.
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

    /// Writes a large output, or the rest of an output that the socket did not take at once.
    /// Meanwhile nothing is read from the client, which bounds its output.
    ///
    /// # Errors
    /// [`Lost`]: the connection is over.
    pub(super) fn write_slowly(
        &mut self,
        rest: OwnedBody,
        owned: Option<OwnedBody>,
    ) -> Result<(), Lost> {
        let bytes = rest.bytes().len() + owned.as_ref().map_or(0, |body| body.bytes().len());
        self.timed = Timed::Idle;
        self.slot.set_deadline_in(self.settings.unread_output_timeout_ms);
        let shared = Arc::clone(&self.shared);
        let now_ms = shared.slots.now_ms();
        let held = shared.unread.hold(self.slot.index(), bytes, now_ms, self.readiness.waker());
        let mut pace = Pace { held, taken_bytes: 0 };
        // Each part is freed as soon as it is written.
        for part in [Some(rest), owned].into_iter().flatten() {
            match self.write_part(&part, &mut pace) {
                Ok(()) => {}
                Err(Lost::Client) => return Err(Lost::Client),
                Err(Lost::Cut(why)) => {
                    let stats = &shared.stats;
                    match why {
                        Cut::Slow => stats.write_timeouts.increment(),
                        Cut::Crowded => stats.unread_cuts.increment(),
                    }
                    shared.unread.log_cut(why, bytes, shared.slots.now_ms());
                    return Err(Lost::Cut(why));
                }
            }
        }
        Ok(())
    }

    fn write_part(&mut self, part: &OwnedBody, pace: &mut Pace<'_>) -> Result<(), Lost> {
        let mut rest = part.bytes();
        // Bytes written since the last suspension.
        let mut in_a_row = 0;
        // The deadline has passed, and one last write is tried: the kernel reports late that the
        // client has read something.
        let mut last_try = false;
        while !rest.is_empty() {
            if pace.held.is_cut() {
                return Err(Lost::Cut(Cut::Crowded));
            }
            match self.socket.write(&rest[..rest.len().min(PIECE_BYTES)]) {
                Ok(count) => {
                    rest = &rest[count..];
                    if pace.is_kept_up_by(count) {
                        pace.held.renew(self.shared.slots.now_ms());
                        self.slot.set_deadline_in(self.settings.unread_output_timeout_ms);
                        last_try = false;
                    }
                    in_a_row += count;
                    if in_a_row >= PIECE_BYTES {
                        in_a_row = 0;
                        self.yield_to_poll();
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

/// Checks that the client reads [`PACE_BYTES`] in each timeout.
struct Pace<'a> {
    held: Held<'a>,
    taken_bytes: usize,
}

impl Pace<'_> {
    /// Counts `bytes` read by the client; true if it has earned a new timeout.
    fn is_kept_up_by(&mut self, bytes: usize) -> bool {
        self.taken_bytes += bytes;
        let enough = self.taken_bytes >= PACE_BYTES;
        if enough {
            self.taken_bytes = 0;
        }
        enough
    }
}

/// Why writing ended early.
pub(super) enum Lost {
    /// The client has closed the connection.
    Client,
    /// The client was cut off.
    Cut(Cut),
}
