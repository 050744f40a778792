//! Reads a stream of server-sent events from the bytes of a connection, however they were
//! fragmented: response head, chunks, events.
//!
//! Knows what the stream of a load test needs: chunked, without a content coding, one `data` line
//! for each event. Anything else is an error and never a guess.

use memchr::memchr;
use memchr::memmem::find;

use crate::scan::{self, MALFORMED, SURPLUS, ScanError};

/// Longest head, chunk or event, in bytes: many times what any server here sends.
const PIECE_BYTES_MAX: usize = 256 * 1024;

/// Where the snapshot has the time of its prices.
const AS_OF: &[u8] = b"\"as_of_ist\":\"";

/// Bytes of a time up to the second, which compare as the times do: the zone is always India's.
const AS_OF_BYTES: usize = "2026-10-14T11:00:00".len();

/// The body is not chunked, or it is compressed.
const NOT_CHUNKED: ScanError = ScanError::Broken("not a plain chunked stream");
/// A chunk without a length.
const BAD_CHUNK: ScanError = ScanError::Broken("malformed chunk");
/// A piece passed [`PIECE_BYTES_MAX`].
const TOO_LONG: ScanError = ScanError::Broken("a piece is too long");

/// The time in a snapshot up to the second, as text.
pub type AsOf = [u8; AS_OF_BYTES];

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its id; empty without one.
    pub id: &'a [u8],
    /// The time in its data.
    pub as_of: Option<AsOf>,
    /// Its data, if it is one line.
    pub data: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Expects {
    #[default]
    Head,
    ChunkLength,
    /// So many bytes and a line end.
    Chunk(usize),
    Nothing,
}

/// One connection's stream.
#[derive(Debug, Default)]
pub struct StreamParser {
    expects: Expects,
    /// The beginning of a piece; empty in the usual case.
    partial: Vec<u8>,
    /// The beginning of an event that did not end with its chunk.
    text: Vec<u8>,
    retry_ms: Option<u64>,
}

impl StreamParser {
    /// The head of a response 200 has been read.
    pub fn is_open(&self) -> bool {
        self.expects != Expects::Head
    }

    /// The last chunk has come.
    pub fn is_complete(&self) -> bool {
        self.expects == Expects::Nothing
    }

    /// The time after which the client is to come back, as the server said last.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// Takes the next bytes, and gives every event that they complete.
    ///
    /// # Errors
    /// [`ScanError`]; nothing more can be read then.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        mut event: impl FnMut(Event<'_>),
    ) -> Result<(), ScanError> {
        let joined = scan::joined(&mut self.partial, bytes);
        let mut rest = &*joined;
        while let Some(taken) = self.take_piece(rest, &mut event)? {
            rest = &rest[taken..];
        }
        if rest.len() + self.text.len() > PIECE_BYTES_MAX {
            return Err(TOO_LONG);
        }
        self.partial = rest.to_vec();
        Ok(())
    }

    /// Length of the piece at the beginning; `None` if more bytes must come.
    fn take_piece(
        &mut self,
        bytes: &[u8],
        event: &mut impl FnMut(Event<'_>),
    ) -> Result<Option<usize>, ScanError> {
        match self.expects {
            Expects::Head => {
                let Some(taken) = head(bytes)? else {
                    return Ok(None);
                };
                self.expects = Expects::ChunkLength;
                Ok(Some(taken))
            }
            Expects::ChunkLength => {
                let Some(end) = find(bytes, b"\r\n") else {
                    return Ok(None);
                };
                let digits = std::str::from_utf8(&bytes[..end]).map_err(|_| BAD_CHUNK)?;
                let length = usize::from_str_radix(digits, 16).map_err(|_| BAD_CHUNK)?;
                if length > PIECE_BYTES_MAX {
                    return Err(TOO_LONG);
                }
                self.expects = Expects::Chunk(length);
                Ok(Some(end + 2))
            }
            Expects::Chunk(length) => {
                let Some(chunk) = bytes.get(..length + 2) else {
                    return Ok(None);
                };
                let (payload, line_end) = chunk.split_at(length);
                if line_end != b"\r\n" {
                    return Err(BAD_CHUNK);
                }
                self.take_text(payload, event);
                self.expects = if length == 0 {
                    Expects::Nothing
                } else {
                    Expects::ChunkLength
                };
                Ok(Some(length + 2))
            }
            Expects::Nothing if bytes.is_empty() => Ok(None),
            Expects::Nothing => Err(SURPLUS),
        }
    }

    fn take_text(&mut self, payload: &[u8], event: &mut impl FnMut(Event<'_>)) {
        let joined = scan::joined(&mut self.text, payload);
        let mut rest = &*joined;
        while let Some(end) = find(rest, b"\n\n") {
            self.take_event(&rest[..end], event);
            rest = &rest[end + 2..];
        }
        self.text = rest.to_vec();
    }

    fn take_event(&mut self, text: &[u8], event: &mut impl FnMut(Event<'_>)) {
        let mut taken = Event {
            name: b"",
            id: b"",
            as_of: None,
            data: b"",
        };
        let mut has_data = false;
        let mut rest = text;
        while !rest.is_empty() {
            let end = memchr(b'\n', rest).unwrap_or(rest.len());
            let line = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or_default();
            if let Some(data) = line.strip_prefix(b"data: ") {
                has_data = true;
                (taken.as_of, taken.data) = (as_of(data), data);
            } else if let Some(name) = line.strip_prefix(b"event: ") {
                taken.name = name;
            } else if let Some(id) = line.strip_prefix(b"id: ") {
                taken.id = id;
            } else if let Some(ms) = line.strip_prefix(b"retry: ") {
                let ms = std::str::from_utf8(ms).ok().and_then(|ms| ms.parse().ok());
                self.retry_ms = ms.or(self.retry_ms);
            }
        }
        if has_data {
            event(taken);
        }
    }
}

/// Length of the head of a response 200.
fn head(bytes: &[u8]) -> Result<Option<usize>, ScanError> {
    let read = |head: &httparse::Response<'_, '_>| {
        let coded = scan::header(head, "content-encoding").is_some();
        (head.code, !coded && scan::header(head, "transfer-encoding") == Some(b"chunked"))
    };
    match scan::head(bytes, read).map_err(|_| MALFORMED)? {
        None => Ok(None),
        Some((length, (Some(200), true))) => Ok(Some(length)),
        Some((_, (Some(200), false))) => Err(NOT_CHUNKED),
        Some((_, (status, _))) => Err(status.map_or(MALFORMED, ScanError::Status)),
    }
}

fn as_of(data: &[u8]) -> Option<AsOf> {
    let from = find(data, AS_OF)? + AS_OF.len();
    data.get(from..from + AS_OF_BYTES)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::{BAD_CHUNK, MALFORMED, NOT_CHUNKED, SURPLUS, ScanError, StreamParser, TOO_LONG};

    const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

    fn chunk(text: &str) -> String {
        format!("{:x}\r\n{text}\r\n", text.len())
    }

    fn stream() -> String {
        let time = "{\"market\":{\"as_of_ist\":\"2026-10-14T11:00:07+05:30\"}}";
        [
            HEAD.to_owned(),
            chunk("retry: 3000\n: hello\n\n"),
            chunk(&format!("event: snapshot\nid: 9f2c\ndata: {time}\n\n")),
            // Two events of which the second goes on in the next chunk.
            chunk("event: beat\ndata: {}\n\nevent: be"),
            chunk("at\ndata: {}\n\n"),
            chunk("retry: 750\n\n"),
            chunk(""),
        ]
        .concat()
    }

    fn seen(parts: &[&[u8]]) -> (Vec<String>, StreamParser) {
        let (mut events, mut parser) = (Vec::new(), StreamParser::default());
        for part in parts {
            let fed = parser.feed(part, |event| {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let as_of = event.as_of.map(|time| text(&time)).unwrap_or_default();
                events.push(format!("{} {} {as_of}", text(event.name), text(event.id)));
            });
            assert_eq!(fed, Ok(()));
        }
        (events, parser)
    }

    #[test]
    fn every_split_into_two_reads_gives_the_same_events() {
        let stream = stream();
        let expected = ["snapshot 9f2c 2026-10-14T11:00:07", "beat  ", "beat  "];
        for at in 0..=stream.len() {
            let (first, second) = stream.as_bytes().split_at(at);
            let (events, parser) = seen(&[first, second]);
            assert_eq!(events, expected, "split at {at}");
            assert!(parser.is_complete(), "split at {at}");
            assert_eq!(parser.retry_ms(), Some(750));
        }
    }

    #[test]
    fn a_stream_that_breaks_is_open_and_not_complete() {
        let stream = stream();
        let (events, parser) = seen(&[&stream.as_bytes()[..HEAD.len() + 60]]);
        assert_eq!(events.len(), 0);
        assert!(parser.is_open() && !parser.is_complete());
        assert_eq!(parser.retry_ms(), Some(3000));
    }

    #[test]
    fn what_is_no_stream_is_an_error() {
        let coded = HEAD.replace("\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n");
        let long = format!("{HEAD}{:x}\r\n", 1 << 24);
        for (bytes, error) in [
            ("SSH-2.0-x\r\n\r\n", MALFORMED),
            ("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", ScanError::Status(503)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", NOT_CHUNKED),
            (&*coded, NOT_CHUNKED),
            (&*long, TOO_LONG),
            (&*format!("{HEAD}x\r\n"), BAD_CHUNK),
            (&*format!("{HEAD}1\r\nab\r\n"), BAD_CHUNK),
            (&*format!("{HEAD}0\r\n\r\nx"), SURPLUS),
        ] {
            assert_eq!(StreamParser::default().feed(bytes.as_bytes(), |_| {}), Err(error));
        }
    }
}
