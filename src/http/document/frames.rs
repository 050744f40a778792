//! Frames: the pieces of which a stream consists, made once and sent to any number of clients.
//!
//! OS threads make them when their content changes, and clone an `Arc` for each client.

use std::ops::Range;
use std::sync::Arc;

use crate::http::document::owned_body::OwnedBody;

/// Bytes before the payload: its length in at most eight hexadecimal digits, and a line end.
const CHUNK_HEAD_BYTES_MAX: usize = 10;

/// How the wire separates the frames of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Each frame is one chunk (RFC 9112 7.1).
    Chunked,
    /// The bare payload, for HTTP/1.0: the stream ends with the connection.
    UntilClose,
}

/// One piece of a stream. It is kept as a chunk, whose inside is the bare payload.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    chunk: Arc<[u8]>,
    payload: Range<usize>,
}

impl Frame {
    /// A frame of these bytes, at least one: an empty chunk would end the stream.
    pub(crate) fn of(payload: &[u8]) -> Self {
        assert!(!payload.is_empty(), "an empty frame would end the stream");
        let mut chunk = Vec::with_capacity(CHUNK_HEAD_BYTES_MAX + payload.len() + 2);
        chunk.extend_from_slice(format!("{:x}\r\n", payload.len()).as_bytes());
        let start = chunk.len();
        chunk.extend_from_slice(payload);
        let payload = start..chunk.len();
        chunk.extend_from_slice(b"\r\n");
        Self {
            chunk: chunk.into(),
            payload,
        }
    }

    /// The bytes to send.
    pub(crate) fn bytes(&self, framing: Framing) -> &[u8] {
        &self.chunk[self.range(framing)]
    }

    /// The bytes left to send after the first `sent`.
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

/// The result of `Frames::newest`: one frame, or two that are due together.
#[derive(Debug)]
pub struct Taken {
    pub(crate) frame: Frame,
    /// Sent behind `frame` in the same write.
    pub(crate) second: Option<Frame>,
    /// Frames published since the last one taken, which this client never gets.
    pub skipped: u64,
}

/// Streams that are woken together: those that send only what every stream sends, or a part of
/// those that send more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group(u8);

impl Group {
    /// Number of groups. A set of them is a word, with a bit each.
    pub(crate) const COUNT: usize = 64;

    /// The streams that send only what every stream sends.
    pub(crate) const COMMON: Self = Self(0);

    /// The group of the streams with this content of their own. Contents are spread evenly.
    pub(crate) fn of_content(number: usize) -> Self {
        Self(1 + (number % (Self::COUNT - 1)) as u8)
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    pub(crate) fn bit(self) -> u64 {
        1 << self.0
    }
}

/// The source of one stream's frames. Called on the thread that writes the stream and many others,
/// so it must not wait.
pub(crate) trait Frames: Send {
    /// The streams with which this one is woken.
    fn group(&self) -> Group {
        Group::COMMON
    }

    /// Whether the client may not see more. `None` for a stream whose client may see all of it.
    fn has_ended(&self) -> Option<bool> {
        None
    }

    /// The newest frames, as far as this client does not have them yet.
    fn newest(&mut self) -> Option<Taken>;

    /// The frame sent when nothing else was sent for a while, so that clients can tell a quiet
    /// connection from a dead one.
    fn heartbeat(&self) -> Frame;

    /// The last frame when the server stops. Clients reconnect after `retry_ms`.
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
