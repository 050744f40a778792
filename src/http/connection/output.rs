//! Writing responses: in one write if the socket takes it, else in pieces as the client reads.
//!
//! Runs in the connection's coroutine. No buffer set is held while it waits.

use std::io;
use std::sync::Arc;

use crate::http::connection::backpressure::{Cut, Held};
use crate::http::connection::buffers::Buffers;
use crate::http::connection::dispatch::{Connection, Timed};
use crate::http::document::owned_body::{LARGE_BYTES, OwnedBody};
use crate::http::server::connection_table::Waker;
use crate::http::server::shared::Serve;
use crate::rt::readiness::WOKEN;

/// Bytes of a large output written before the worker polls its other descriptors. The kernel copies
/// this many in some tens of microseconds.
const PIECE_BYTES: usize = 64 * 1024;

impl<S: Serve> Connection<S> {
    /// Writes the output in `buffers` and gives them back. `None` if the connection is over.
    pub(crate) fn flush(&mut self, mut buffers: Box<Buffers>) -> Option<()> {
        let owned = buffers.owned.take();
        let is_large = buffers.out.len() > LARGE_BYTES;
        let written = if is_large {
            Ok(0)
        } else {
            self.socket().write_ready(&buffers.out)
        };
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

    /// Writes a large output, or the rest of an output that the socket did not take at once.
    /// Meanwhile nothing is read from the client, which bounds its output.
    ///
    /// # Errors
    /// [`Lost`]: the connection is over.
    fn write_slowly(&mut self, rest: OwnedBody, owned: Option<OwnedBody>) -> Result<(), Lost> {
        let bytes = rest.bytes().len() + owned.as_ref().map_or(0, |body| body.bytes().len());
        self.timed = Timed::Idle;
        self.slot()
            .set_deadline_in(self.settings.unread_output_timeout_ms);
        let shared = Arc::clone(&self.shared);
        let now_ms = shared.slots.now_ms();
        let waker = Waker::Coroutine(self.readiness.waker());
        let mut held = shared.unread.hold(self.slot().index, bytes, now_ms, waker);
        // Each part is freed as soon as it is written.
        for part in [Some(rest), owned].into_iter().flatten() {
            match self.write_part(&part, &mut held) {
                Ok(()) => {}
                Err(Lost::Client) => return Err(Lost::Client),
                Err(Lost::Cut(why)) => {
                    shared.count_cut(why, bytes);
                    return Err(Lost::Cut(why));
                }
            }
        }
        Ok(())
    }

    fn write_part(&mut self, part: &OwnedBody, held: &mut Held) -> Result<(), Lost> {
        let mut rest = part.bytes();
        // Bytes written since the last suspension.
        let mut in_a_row = 0;
        // The deadline has passed, and one last write is tried, because the kernel reports late
        // that the client has read.
        let mut last_try = false;
        while !rest.is_empty() {
            if held.is_cut() {
                return Err(Lost::Cut(Cut::Crowded));
            }
            match self.socket().write(&rest[..rest.len().min(PIECE_BYTES)]) {
                Ok(count) => {
                    rest = &rest[count..];
                    if held.is_kept_up_by(count, self.shared.slots.now_ms()) {
                        self.slot()
                            .set_deadline_in(self.settings.unread_output_timeout_ms);
                        last_try = false;
                    }
                    in_a_row += count;
                    if in_a_row >= PIECE_BYTES {
                        in_a_row = 0;
                        self.yield_to_poll();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if last_try && self.slot().is_expired() {
                        return Err(Lost::Cut(Cut::Slow));
                    }
                    in_a_row = 0;
                    let flags = self.readiness.wait();
                    self.note(flags);
                    last_try = flags & WOKEN != 0 && self.slot().is_expired();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Lost::Client),
            }
        }
        Ok(())
    }
}

/// The reason why writing ended early.
enum Lost {
    /// The client has closed the connection.
    Client,
    /// The client was cut off.
    Cut(Cut),
}
