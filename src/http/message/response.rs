//! The response of a handler, which is appended to the connection's output buffer.
//!
//! Runs on the edge. Sending a [`Prepared`] document only copies it. Other responses format their
//! head here.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;

use crate::http::document::events::{CodedFrame, EVENT_STREAM};
use crate::http::document::frames::{Frames, Framing};
use crate::http::document::negotiate::Coding;
use crate::http::document::prepared::{DateLine, NO_SNIFFING, Prepared, reason};
use crate::http::document::variants::{LARGE_BYTES, OwnedBody};
use crate::http::message::problem::Problem;
use crate::http::server::places::{Place, Streams};
use crate::http::settings::HttpSettings;

/// The `Connection` header of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionLine {
    /// No line: HTTP/1.1 stays open by default.
    Silent,
    /// For an HTTP/1.0 connection that stays open.
    KeepAlive,
    Close,
}

impl ConnectionLine {
    fn bytes(self) -> &'static [u8] {
        match self {
            Self::Silent => b"",
            Self::KeepAlive => b"Connection: keep-alive\r\n",
            Self::Close => b"Connection: close\r\n",
        }
    }
}

/// No further stream may be opened: a limit of all streams or of this client's is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamsFull;

/// A stream that a handler wants to send.
#[derive(Clone, Copy)]
pub(crate) struct WantedStream<'a> {
    pub coding: Coding,
    /// The client's address.
    pub address: Option<IpAddr>,
    /// Places that it takes among all streams and among those of its address.
    pub places: usize,
    /// Sent first.
    pub(crate) opening: &'a CodedFrame,
}

/// A stream whose head is in the output buffer. The connection sends its frames.
pub(crate) struct OpenStream {
    pub(crate) frames: Box<dyn Frames>,
    pub(crate) framing: Framing,
    /// Its place among the open streams.
    pub(crate) place: Place,
}

/// A response being made. A handler calls exactly one of the sending methods.
pub struct Response<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) body: &'a mut Vec<u8>,
    /// A large body, written after `out` without being copied into it.
    pub(crate) owned: &'a mut Option<OwnedBody>,
    pub(crate) date: &'a DateCell,
    pub(crate) own_request_id: Option<&'a [u8]>,
    /// The request was HEAD: the head is sent as for GET, without the body.
    pub(crate) head_only: bool,
    pub(crate) connection: ConnectionLine,
    pub(crate) http_1_0: bool,
    /// Whether the server drains. Read when the response is sent, because the handler may have
    /// waited for long.
    pub(crate) draining: &'a AtomicBool,
    /// Header lines that the service adds to every response (CORS).
    pub(crate) extra_lines: Option<Arc<[u8]>>,
    /// Status of the sent response; 0 before.
    pub status: u16,
    /// Kind of the request for the statistics; 0 until the service sets it.
    pub(crate) kind: usize,
    pub(crate) streams: &'a Streams,
    pub(crate) settings: &'a HttpSettings,
    /// The stream that this response begins.
    pub(crate) stream: Option<Box<OpenStream>>,
}

impl<'a> Response<'a> {
    /// Sends a document made ahead of time, with the current `Date`. Does not allocate or format.
    pub fn send_document(&mut self, document: &Prepared) {
        self.open(document.status());
        let is_usual = self.connection == ConnectionLine::Silent && self.extra_lines.is_none();
        if is_usual && !self.head_only {
            let date = document.date_range();
            let start = self.out.len();
            self.out.extend_from_slice(document.bytes());
            self.out[start..][date].copy_from_slice(&self.date.line());
            return;
        }
        self.out.extend_from_slice(document.status_line());
        self.out.extend_from_slice(self.extra_lines.as_deref().unwrap_or_default());
        self.out.extend_from_slice(self.connection.bytes());
        self.out.extend_from_slice(&self.date.line());
        self.out.extend_from_slice(document.headers());
        if !self.head_only {
            self.out.extend_from_slice(document.body());
        }
    }

    /// The empty buffer for a body. It keeps the capacity of earlier responses. Send it with
    /// [`send`](Self::send).
    pub fn body(&mut self) -> &mut Vec<u8> {
        self.body.clear();
        self.body
    }

    /// The same buffer with the content written so far.
    pub(crate) fn written(&mut self) -> &mut Vec<u8> {
        self.body
    }

    /// Sends the content of [`body`](Self::body).
    pub fn send(&mut self, status: u16, content_type: &str, headers: &[(&str, &str)]) {
        if self.body.len() > LARGE_BYTES {
            let body = std::mem::take(self.body);
            return self.send_owned(status, content_type, headers, body);
        }
        self.describe(status, content_type, headers);
        self.finish();
    }

    /// Sends a body made elsewhere (`Vec<u8>` or `Arc<[u8]>`). A large one is not copied: it is
    /// written in pieces, between which the worker serves other connections, and freed once
    /// written.
    pub fn send_owned(
        &mut self,
        status: u16,
        content_type: &str,
        headers: &[(&str, &str)],
        body: impl Into<OwnedBody>,
    ) {
        let body = body.into();
        self.describe(status, content_type, headers);
        if !self.end_head(status, body.bytes().len()) {
            return;
        }
        if body.bytes().len() > LARGE_BYTES {
            *self.owned = Some(body);
        } else {
            self.out.extend_from_slice(body.bytes());
        }
    }

    /// Lets `run` answer, and takes the answer back: its body. For a handler that answers with what
    /// another one answers.
    pub(crate) fn taken_back<E>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<Vec<u8>, E> {
        let begin = self.out.len();
        let outcome = run(self);
        self.status = 0;
        let mut answer = self.out.split_off(begin);
        let owned = self.owned.take();
        outcome?;
        let head_bytes = memchr::memmem::find(&answer, b"\r\n\r\n").map_or(0, |at| at + 4);
        Ok(owned.map_or_else(|| answer.split_off(head_bytes), |owned| owned.bytes().to_vec()))
    }

    /// Begins a stream of events with `opening`. The connection then sends `frames` until the
    /// client leaves, the stream's life is over or the server stops, and serves no further request.
    /// A HEAD request gets only the head, and `frames` is not called.
    ///
    /// # Errors
    /// [`StreamsFull`], and nothing is sent.
    pub(crate) fn stream(
        &mut self,
        wanted: WantedStream<'_>,
        frames: impl FnOnce() -> Result<Box<dyn Frames>, StreamsFull>,
    ) -> Result<(), StreamsFull> {
        let WantedStream { coding, address, places, opening } = wanted;
        let begun = match self.head_only {
            true => None,
            false => {
                let place = self.streams.take(address, places, self.settings);
                let place = place.map_err(|_full| StreamsFull)?;
                let frames = frames().inspect_err(|_| self.streams.stats.refused.increment())?;
                Some((place, frames))
            }
        };
        let framing = match self.http_1_0 {
            true => Framing::UntilClose,
            false => Framing::Chunked,
        };
        if framing == Framing::UntilClose {
            self.close();
        }
        self.begin(200);
        self.line("Content-Type", EVENT_STREAM.as_bytes());
        self.line("Cache-Control", b"no-store, no-transform");
        self.line("Vary", b"Accept-Encoding");
        // Without this nginx would buffer events.
        self.line("X-Accel-Buffering", b"no");
        if coding == Coding::Gzip {
            self.line("Content-Encoding", b"gzip");
        }
        if framing == Framing::Chunked {
            self.line("Transfer-Encoding", b"chunked");
        }
        self.out.extend_from_slice(NO_SNIFFING);
        self.out.extend_from_slice(b"\r\n");
        if let Some((place, frames)) = begun {
            self.out.extend_from_slice(opening.of(coding).bytes(framing));
            self.stream = Some(Box::new(OpenStream { frames, framing, place }));
        }
        Ok(())
    }

    /// Sends an error document (RFC 9457) with the request id; returns that id for the log.
    pub fn problem(&mut self, problem: &Problem) -> String {
        let id = self.request_id();
        self.body.clear();
        problem.write(self.body);
        self.begin(problem.status);
        self.line("Content-Type", b"application/problem+json");
        self.line("X-Request-Id", id.as_bytes());
        self.line("Cache-Control", b"no-store");
        for (name, value) in &problem.headers {
            self.line(name, value.as_bytes());
        }
        self.finish();
        id
    }

    /// Sends the same to a person, as a page that loads nothing; returns the request id.
    pub(crate) fn problem_page(&mut self, problem: &Problem) -> String {
        let id = self.request_id();
        self.body.clear();
        problem.write_page(&id, self.body);
        self.begin(problem.status);
        self.line("Content-Type", b"text/html; charset=utf-8");
        self.line("X-Request-Id", id.as_bytes());
        self.line("Cache-Control", b"no-store");
        self.line("Content-Security-Policy", b"default-src 'none'; frame-ancestors 'none'");
        for (name, value) in &problem.headers {
            self.line(name, value.as_bytes());
        }
        self.finish();
        id
    }

    /// The request id that the client sent, or a new one.
    pub(crate) fn request_id(&self) -> String {
        match self.own_request_id {
            Some(own) => String::from_utf8_lossy(own).into_owned(),
            None => crate::base::rng::request_id(),
        }
    }

    /// Sets the kind of the request (its route) for the statistics.
    pub(crate) fn is_of_kind(&mut self, kind: usize) {
        self.kind = kind;
    }

    /// Closes the connection after this response.
    pub fn close(&mut self) {
        self.connection = ConnectionLine::Close;
    }

    /// Begins the response. A client would read a second one as the response to its next request,
    /// so a second call is a bug and panics.
    fn open(&mut self, status: u16) {
        assert!(self.status == 0, "a handler sent two answers: {} and {status}", self.status);
        self.status = status;
        if self.draining.load(Ordering::Relaxed) {
            self.connection = ConnectionLine::Close;
        }
    }

    fn begin(&mut self, status: u16) {
        self.open(status);
        self.out.extend_from_slice(b"HTTP/1.1 ");
        self.out.extend_from_slice(itoa::Buffer::new().format(status).as_bytes());
        self.out.push(b' ');
        self.out.extend_from_slice(reason(status).as_bytes());
        self.out.extend_from_slice(b"\r\n");
        self.out.extend_from_slice(self.extra_lines.as_deref().unwrap_or_default());
        self.out.extend_from_slice(self.connection.bytes());
        self.out.extend_from_slice(&self.date.line());
    }

    fn describe(&mut self, status: u16, content_type: &str, headers: &[(&str, &str)]) {
        self.begin(status);
        if !matches!(status, 202 | 204 | 304) {
            self.line("Content-Type", content_type.as_bytes());
        }
        for (name, value) in headers {
            self.line(name, value.as_bytes());
        }
    }

    fn line(&mut self, name: &str, value: &[u8]) {
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b": ");
        self.out.extend_from_slice(value);
        self.out.extend_from_slice(b"\r\n");
    }

    fn finish(&mut self) {
        if self.end_head(self.status, self.body.len()) {
            self.out.extend_from_slice(self.body);
        }
    }

    /// Ends the head; returns whether a body of `body_bytes` follows.
    fn end_head(&mut self, status: u16, body_bytes: usize) -> bool {
        // 202 answers a notification, which wants no body; unlike the others it may have one.
        let has_body = !matches!(status, 202 | 204 | 304);
        if has_body {
            self.out.extend_from_slice(NO_SNIFFING);
            self.line("Content-Length", itoa::Buffer::new().format(body_bytes).as_bytes());
        } else if status == 202 {
            self.line("Content-Length", b"0");
        }
        self.out.extend_from_slice(b"\r\n");
        has_body && !self.head_only
    }
}

// ---- Date
//
// The `Date` header's form of an instant.
//
// Pure functions on milliseconds, and a cell with the line of the current second for any thread.
// Nothing here reads a clock.

/// `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 5.6.7). Instants before 1970 or after the calendar's
/// end in 9999 count as the nearest one between.
pub fn imf_fixdate(unix_ms: i64) -> [u8; 29] {
    let unix_s = unix_ms.div_euclid(1_000).clamp(0, Timestamp::MAX.as_second());
    let at = Timestamp::from_second(unix_s).unwrap_or_default();
    let written = DateTimePrinter::new().timestamp_to_rfc9110_string(&at).unwrap_or_default();
    written.as_bytes().try_into().unwrap_or(*b"Thu, 01 Jan 1970 00:00:00 GMT")
}

/// The line of an instant; see [`imf_fixdate`].
pub(crate) fn date_line(unix_ms: i64) -> DateLine {
    let mut line = *b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n";
    line[6..35].copy_from_slice(&imf_fixdate(unix_ms));
    line
}

/// The line of the current second, written by one thread and read by all.
///
/// There are two copies: the writer overwrites the older one and then makes it the current one. A
/// reader takes no lock and never waits for the writer, even where that thread is not scheduled.
#[derive(Debug)]
pub(crate) struct DateCell {
    /// Number of lines written. The current copy is at this number modulo two.
    written: AtomicU64,
    copies: [[AtomicU64; WORDS]; 2],
}

const WORDS: usize = size_of::<DateLine>().div_ceil(8);

impl DateCell {
    /// A cell with the line of an instant.
    pub(crate) fn new(unix_ms: i64) -> Self {
        let cell = Self { written: AtomicU64::new(0), copies: Default::default() };
        cell.set(unix_ms);
        cell
    }

    /// Stores the line of another instant. Only one thread at a time may call it.
    pub(crate) fn set(&self, unix_ms: i64) {
        let mut bytes = [0; WORDS * 8];
        bytes[..size_of::<DateLine>()].copy_from_slice(&date_line(unix_ms));
        let next = self.written.load(Ordering::Relaxed) + 1;
        // A reader of one of the words below also sees that the line before is current.
        fence(Ordering::Release);
        for (word, bytes) in self.copy(next).iter().zip(bytes.as_chunks().0) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        self.written.store(next, Ordering::Release);
    }

    /// The line.
    pub(crate) fn line(&self) -> DateLine {
        let mut current = self.written.load(Ordering::Acquire);
        loop {
            let mut bytes = [0; WORDS * 8];
            for (word, bytes) in self.copy(current).iter().zip(bytes.as_chunks_mut().0) {
                *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            }
            fence(Ordering::Acquire);
            // The copy is overwritten only after the other one has become current.
            match self.written.load(Ordering::Acquire) {
                still if still == current => {
                    return *bytes.first_chunk().expect("the words hold a line");
                }
                newer => current = newer,
            }
        }
    }

    fn copy(&self, number: u64) -> &[AtomicU64; WORDS] {
        &self.copies[usize::from(!number.is_multiple_of(2))]
    }
}

#[cfg(test)]
mod date_tests {
    use super::*;
    use proptest::prelude::proptest;

    fn written(unix_ms: i64) -> String {
        String::from_utf8(imf_fixdate(unix_ms).to_vec()).unwrap()
    }

    #[test]
    fn known_dates() {
        for (unix_ms, expected) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777_000, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (784_111_777_999, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (1_709_164_800_000, "Thu, 29 Feb 2024 00:00:00 GMT"),
            (1_795_132_800_000, "Fri, 20 Nov 2026 00:00:00 GMT"),
            (i64::MAX, "Thu, 30 Dec 9999 22:00:00 GMT"),
            (i64::MIN, "Thu, 01 Jan 1970 00:00:00 GMT"),
        ] {
            assert_eq!(written(unix_ms), expected);
        }
    }

    #[test]
    fn readers_see_whole_lines() {
        let cell = DateCell::new(0);
        // Lines that differ in every word.
        let instants = [0, 1_795_132_800_000, i64::MAX];
        let lines = instants.map(date_line);
        assert_eq!(cell.line(), lines[0]);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        assert!(lines.contains(&cell.line()));
                    }
                });
            }
            (0..100_000).for_each(|turn| cell.set(instants[turn % 3]));
            stop.store(true, Ordering::Relaxed);
        });
    }

    proptest! {
        #[test]
        fn agrees_with_the_calendar_library(unix_ms in 0..Timestamp::MAX.as_millisecond()) {
            let at = Timestamp::from_millisecond(unix_ms).unwrap();
            let expected = at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
            assert_eq!(written(unix_ms), expected);
        }
    }
}
