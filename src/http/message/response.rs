//! The response of a handler, which is appended to the connection's output buffer.
//!
//! Runs on the edge. Sending a [`Prepared`] document only copies it. Other responses format their
//! head here.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::http::document::events::{CodedFrame, EVENT_STREAM};
use crate::http::document::frames::{Frames, Framing};
use crate::http::document::negotiate::Coding;
use crate::http::document::owned_body::{LARGE_BYTES, OwnedBody};
use crate::http::document::prepared::{NO_SNIFFING, Prepared, reason};
use crate::http::message::date::DateCell;
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
        self.out
            .extend_from_slice(self.extra_lines.as_deref().unwrap_or_default());
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
        let WantedStream {
            coding,
            address,
            places,
            opening,
        } = wanted;
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
            self.out
                .extend_from_slice(opening.of(coding).bytes(framing));
            self.stream = Some(Box::new(OpenStream {
                frames,
                framing,
                place,
            }));
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
        self.out
            .extend_from_slice(itoa::Buffer::new().format(status).as_bytes());
        self.out.push(b' ');
        self.out.extend_from_slice(reason(status).as_bytes());
        self.out.extend_from_slice(b"\r\n");
        self.out
            .extend_from_slice(self.extra_lines.as_deref().unwrap_or_default());
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
