//! Frames: the pieces of which a stream consists, made once and sent to any number of clients.
//!
//! They are made on OS threads, when what they say changes. The edge clones an `Arc` of each.

use std::ops::Range;
use std::sync::Arc;

use super::owned::OwnedBody;
use crate::http::Shows;

/// Bytes before the payload: its length in at most eight hexadecimal digits, and a line end.
const CHUNK_HEAD_BYTES_MAX: usize = 10;

/// How a stream's frames are told apart on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Each frame is one chunk (RFC 9112 7.1).
    Chunked,
    /// The bare payload, for HTTP/1.0: the stream ends with the connection.
    UntilClose,
}

/// One piece of a stream. It is kept as a chunk, whose inside is the bare payload.
#[derive(Debug, Clone)]
pub struct Frame {
    chunk: Arc<[u8]>,
    payload: Range<usize>,
}

impl Frame {
    /// A frame of these bytes, of which there is at least one: an empty chunk would end the stream.
    pub fn of(payload: &[u8]) -> Self {
        assert!(!payload.is_empty(), "an empty frame would end the stream");
        let mut chunk = Vec::with_capacity(CHUNK_HEAD_BYTES_MAX + payload.len() + 2);
        chunk.extend_from_slice(format!("{:x}\r\n", payload.len()).as_bytes());
        let start = chunk.len();
        chunk.extend_from_slice(payload);
        let payload = start..chunk.len();
        chunk.extend_from_slice(b"\r\n");
        Self { chunk: chunk.into(), payload }
    }

    /// The bytes to send.
    pub fn bytes(&self, framing: Framing) -> &[u8] {
        &self.chunk[self.range(framing)]
    }

    /// What is left to send once `sent` bytes are written.
    pub(crate) fn rest(&self, framing: Framing, sent: usize) -> OwnedBody {
        let Range { start, end } = self.range(framing);
        OwnedBody::part(Arc::clone(&self.chunk), start + sent..end)
    }

    /// Number of bytes to send.
    pub(crate) fn length(&self, framing: Framing) -> usize {
        self.range(framing).len()
    }

    fn range(&self, framing: Framing) -> Range<usize> {
        match framing {
            Framing::Chunked => 0..self.chunk.len(),
            Framing::UntilClose => self.payload.clone(),
        }
    }
}

/// What is taken from a source: one frame, or two that are due together.
#[derive(Debug)]
pub struct Taken {
    pub frame: Frame,
    /// Sent behind `frame` in the same write.
    pub second: Option<Frame>,
    /// Frames published since the last one taken, which this client never gets.
    pub skipped: u64,
}

/// The source of one stream's frames. Called on an edge worker: it must neither park nor take long.
pub trait Frames: Send {
    /// What of the changes it shows.
    fn shows(&self) -> Shows {
        Shows::Common
    }

    /// The newest frames, as far as this client does not have them yet.
    fn newest(&mut self) -> Option<Taken>;

    /// What is sent when nothing else has been for a while, so that a quiet line differs from a
    /// dead one.
    fn heartbeat(&self) -> Frame;

    /// What is sent last when the server stops. Clients come back after `retry_ms`.
    fn farewell(&self, retry_ms: u64) -> Frame;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_a_whole_chunk_or_its_payload() {
        for payload in [&b"a"[..], &[b'x'; 15], &[b'x'; 16], &[b'\n'; 70_000]] {
            let frame = Frame::of(payload);
            let chunk = frame.bytes(Framing::Chunked);
            let line = chunk.iter().position(|byte| *byte == b'\r').unwrap();
            let length = std::str::from_utf8(&chunk[..line]).unwrap();
            assert_eq!(usize::from_str_radix(length, 16), Ok(payload.len()));
            assert_eq!(&chunk[line..line + 2], b"\r\n");
            assert_eq!(&chunk[line + 2..chunk.len() - 2], payload);
            assert!(chunk.ends_with(b"\r\n"));
            assert_eq!(frame.bytes(Framing::UntilClose), payload);
        }
    }

    #[test]
    fn the_rest_of_a_frame_continues_what_was_sent() {
        let frame = Frame::of(b"event: beat\n\n");
        for framing in [Framing::Chunked, Framing::UntilClose] {
            let whole = frame.bytes(framing);
            for sent in 0..whole.len() {
                assert_eq!(frame.rest(framing, sent).bytes(), &whole[sent..]);
            }
        }
    }

    #[test]
    #[should_panic(expected = "an empty frame would end the stream")]
    fn a_frame_of_nothing_cannot_be_made() {
        Frame::of(b"");
    }
}
