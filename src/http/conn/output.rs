//! Writing what a turn has answered: at once where the socket takes it, else bit by bit.
//!
//! Runs in the connection's coroutine. No buffer set is held while it waits.

use std::io;

use may::io::WaitIo;

use super::{Connection, Timed, WOKEN};
use crate::http::Serve;
use crate::http::owned::{LARGE_BYTES, OwnedBody};
use crate::http::scratch::Scratch;
use crate::http::shared::UnreadOutput;

/// How much of a large output is written before the worker's other descriptors are polled. The
/// kernel copies this in some tens of microseconds.
const PIECE_BYTES: usize = 64 * 1024;

impl<S: Serve> Connection<S> {
    /// Writes the output of a turn and gives the buffers back. `None` when the connection is over.
    pub(super) fn flush(&mut self, mut scratch: Box<Scratch>) -> Option<()> {
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
    pub(super) fn write(&self, out: &[u8]) -> io::Result<usize> {
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
    /// read from it meanwhile, which is what bounds the output. False when it did not read in time,
    /// or everybody together holds too much.
    fn write_slowly(&mut self, rest: OwnedBody, owned: Option<OwnedBody>) -> bool {
        let bytes = rest.bytes().len() + owned.as_ref().map_or(0, |body| body.bytes().len());
        let Some(_held) = UnreadOutput::hold(&self.shared, bytes) else { return false };
        self.timed = Timed::Idle;
        self.slot.set_deadline_in(self.settings.unread_output_timeout_ms);
        // Each part is freed once it is written.
        self.write_part(&rest) && {
            drop(rest);
            owned.is_none_or(|body| self.write_part(&body))
        }
    }

    fn write_part(&mut self, part: &OwnedBody) -> bool {
        let mut rest = part.bytes();
        let mut in_a_row = 0;
        while !rest.is_empty() {
            match self.socket.write(&rest[..rest.len().min(PIECE_BYTES)]) {
                Ok(count) => {
                    rest = &rest[count..];
                    in_a_row += count;
                    if in_a_row >= PIECE_BYTES {
                        in_a_row = 0;
                        self.breathe();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    in_a_row = 0;
                    let flags = self.io.wait_io();
                    self.note(flags);
                    if flags & WOKEN != 0 && self.slot.is_expired() {
                        self.shared.stats.write_timeouts.increment();
                        return false;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}
