//! Sends a stream: the newest frame whenever there is one, else heartbeats.
//!
//! Runs in the connection's coroutine. At most one frame is being written, and the next one taken
//! is the newest at that time. A slow client misses frames and never gets old ones. No buffer set
//! is held while it waits.

use std::sync::Arc;
use std::time::Duration;

use super::{Connection, Read};
use crate::http::connection::backpressure::Cut;
use crate::http::connection::dispatch::Lost;
use crate::http::connection::exchange::{Buffers, Stage};
use crate::http::document::published::{Frame, Frames, Framing};
use crate::http::message::response::OpenStream;
use crate::http::serve::Serve;

/// Bytes that the kernel may hold unsent for a stream. By default it accepts four megabytes, about
/// two thousand frames of a snapshot, before it reports that a client does not read.
const UNSENT_BYTES_MAX: u32 = 16 * 1024;

/// A peer that acknowledges nothing for this long counts as gone.
const DEAD_PEER: Duration = Duration::from_secs(60);

/// Time without a frame after which a heartbeat is sent. Proxies close a connection that is quiet
/// for a minute.
const HEARTBEAT_MS: u64 = 15_000;

/// Maximum input of a client after its request. It is read and dropped; more ends the stream.
const DROPPED_BYTES_MAX: usize = 4 * 1024;

/// Clients of a stopping server reconnect after a delay in this range, not all at once.
const RETRY_MS: (u64, u64) = (500, 5_000);

/// The end of a chunked stream (RFC 9112 7.1).
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The reason why a stream ends.
enum End {
    /// Its life is over.
    Old,
    /// The server stops.
    Drain,
    /// The client sent too much.
    Input,
    /// The connection is over.
    Lost(Lost),
}

struct Stream {
    frames: Box<dyn Frames>,
    framing: Framing,
    ends_at_ms: u64,
    heartbeat_at_ms: u64,
    dropped_bytes: usize,
}

impl<S: Serve> Connection<S> {
    /// Sends the stream that the last response has begun, and ends the connection with it.
    pub(super) fn stream(mut self) {
        let Stage::Stream(open) = std::mem::take(&mut self.stage) else { return };
        let OpenStream { frames, framing, place } = *open;
        if let Err(error) = self.socket().limit_unsent(UNSENT_BYTES_MAX, DEAD_PEER) {
            tracing::debug!(%error, "cannot limit the unsent bytes of a stream");
        }
        self.slot().mark_stream(frames.shows());
        let now_ms = self.shared.slots.now_ms();
        let life_ms = self.settings.stream_life_ms;
        let spread_life_ms = spread(self.slot().index(), (life_ms * 9 / 10, life_ms * 11 / 10));
        let mut stream = Stream {
            frames,
            framing,
            ends_at_ms: now_ms + spread_life_ms,
            heartbeat_at_ms: now_ms + HEARTBEAT_MS,
            dropped_bytes: std::mem::take(&mut self.carry).len(),
        };
        let end = self.send_frames(&mut stream);
        // Released before the client sees the end, because it may reconnect at once.
        drop(place);
        let stats = &self.shared.streams.stats;
        match &end {
            End::Lost(Lost::Cut(Cut::Slow)) => stats.slow_cuts.increment(),
            End::Lost(Lost::Cut(Cut::Crowded)) => stats.crowded_cuts.increment(),
            End::Input => stats.input_cuts.increment(),
            End::Lost(Lost::Client) | End::Old | End::Drain => {}
        }
        if matches!(end, End::Old | End::Drain) {
            self.say_goodbye(&stream, matches!(end, End::Drain));
        }
    }

    fn send_frames(&mut self, stream: &mut Stream) -> End {
        let shared = Arc::clone(&self.shared);
        let (slots, stats) = (&shared.slots, &shared.streams.stats);
        loop {
            if stream.dropped_bytes > DROPPED_BYTES_MAX {
                return End::Input;
            }
            if shared.is_draining() {
                return End::Drain;
            }
            let now_ms = slots.now_ms();
            if now_ms >= stream.ends_at_ms {
                return End::Old;
            }
            let (frame, second) = if let Some(taken) = stream.frames.newest() {
                stats.frames.add(1 + u64::from(taken.second.is_some()));
                stats.conflated.add(taken.skipped);
                (taken.frame, taken.second)
            } else if now_ms >= stream.heartbeat_at_ms {
                stats.heartbeats.increment();
                (stream.frames.heartbeat(), None)
            } else {
                self.slot().set_deadline_at(stream.heartbeat_at_ms.min(stream.ends_at_ms));
                match self.wait_for_news(&mut stream.dropped_bytes) {
                    Some(()) => continue,
                    None => return End::Lost(Lost::Client),
                }
            };
            if let Err(lost) = self.send_together(&frame, second.as_ref(), stream.framing) {
                return End::Lost(lost);
            }
            stream.heartbeat_at_ms = slots.now_ms() + HEARTBEAT_MS;
        }
    }

    /// Sends one or two frames in one write, if the socket takes them at once.
    fn send_together(
        &mut self,
        frame: &Frame,
        second: Option<&Frame>,
        framing: Framing,
    ) -> Result<(), Lost> {
        let behind = second.map_or(&[][..], |second| second.bytes(framing));
        let length = frame.length(framing);
        self.shared.streams.stats.bytes.add((length + behind.len()) as u64);
        let sent = self.write_both(frame.bytes(framing), behind).map_err(|_| Lost::Client)?;
        if sent == length + behind.len() {
            return Ok(());
        }
        let Some(of_second) = sent.checked_sub(length) else {
            let second = second.map(|second| second.rest(framing, 0));
            return self.write_slowly(frame.rest(framing, sent), second);
        };
        match second {
            Some(second) => self.write_slowly(second.rest(framing, of_second), None),
            None => Ok(()),
        }
    }

    /// Waits for a wake-up or input, which is dropped and counted. `None`: the client is gone.
    fn wait_for_news(&mut self, dropped_bytes: &mut usize) -> Option<()> {
        if !self.readable {
            let flags = self.readiness.wait();
            self.note(flags);
        }
        if !self.readable {
            return Some(());
        }
        let mut buffers = Buffers::take(self.settings.head_bytes_max);
        // The input may be a body.
        buffers.holds_body = true;
        let read = self.read(&mut buffers);
        *dropped_bytes += buffers.input_bytes;
        buffers.give_back();
        (!matches!(read, Read::End)).then_some(())
    }

    /// Ends the stream properly, if the socket takes the bytes at once.
    fn say_goodbye(self, stream: &Stream, is_draining: bool) {
        let mut last = Vec::new();
        if is_draining {
            let farewell = stream.frames.farewell(spread(self.slot().index(), RETRY_MS));
            last.extend_from_slice(farewell.bytes(stream.framing));
        }
        if stream.framing == Framing::Chunked {
            last.extend_from_slice(LAST_CHUNK);
        }
        if self.write(&last).is_ok() {
            self.close(false);
        }
    }
}

/// A number between the two limits, far from those of neighbouring connections.
fn spread(connection: u32, (least, most): (u64, u64)) -> u64 {
    // Knuth's multiplicative hash: multiples of the golden ratio are spread evenly.
    let hash = u64::from(connection.wrapping_mul(2_654_435_769));
    least + (((most - least) * hash) >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_spread_evenly_over_the_whole_range() {
        let (least, most) = RETRY_MS;
        for count in [9, 100, 10_000] {
            let mut all: Vec<u64> = (0..count).map(|number| spread(number, RETRY_MS)).collect();
            all.sort_unstable();
            let gap = (most - least) / u64::from(count);
            let steps: Vec<u64> = all.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(all[0] >= least && all[all.len() - 1] <= most);
            assert!(steps.iter().all(|step| *step <= 3 * gap + 1), "{count}: {steps:?}");
        }
    }
}
