//! How a handler answers: it appends one complete response to the connection's output buffer.
//!
//! Runs on the edge. Sending a [`Prepared`] document is a copy; anything else formats its head
//! here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::date::DateLine;
use super::problem::Problem;
use crate::http::document::owned::{LARGE_BYTES, OwnedBody};
use crate::http::document::prepared::{Prepared, reason};

/// JSON answers.
pub const JSON: &str = "application/json";

/// What the response says about the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionLine {
    /// Nothing: HTTP/1.1 stays open by itself.
    Silent,
    /// HTTP/1.0 that stays open.
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

/// One response in the making. A handler calls exactly one of the sending methods.
pub struct Response<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) body: &'a mut Vec<u8>,
    /// A body that follows `out` without being copied into it.
    pub(crate) owned: &'a mut Option<OwnedBody>,
    pub(crate) date_line: DateLine,
    pub(crate) own_request_id: Option<&'a [u8]>,
    /// The request was HEAD: the head goes out as for GET, the body does not.
    pub(crate) head_only: bool,
    pub(crate) connection: ConnectionLine,
    /// Asked when the answer is sent, since a handler may have waited for long.
    pub(crate) draining: &'a AtomicBool,
    /// With which every answer of the service begins.
    pub(crate) extra_lines: Option<Arc<[u8]>>,
    /// Status of what was sent; 0 until then.
    pub(crate) status: u16,
    /// What the service said of the request; 0 until then.
    pub(crate) kind: usize,
}

impl<'a> Response<'a> {
    /// Sends a document made ahead of time, at the present `Date`. No allocation, no formatting.
    pub fn send_document(&mut self, document: &Prepared) {
        self.open(document.status());
        self.out.extend_from_slice(document.status_line());
        self.out.extend_from_slice(self.extra_lines.as_deref().unwrap_or_default());
        self.out.extend_from_slice(self.connection.bytes());
        self.out.extend_from_slice(&self.date_line);
        self.out.extend_from_slice(match self.head_only {
            true => document.headers(),
            false => document.headers_and_body(),
        });
    }

    /// The buffer for a body made now; empty, with the capacity of earlier answers. Send it with
    /// [`send`](Self::send).
    pub fn body(&mut self) -> &mut Vec<u8> {
        self.body.clear();
        self.body
    }

    /// The same buffer with what was written to it so far.
    pub fn written(&mut self) -> &mut Vec<u8> {
        self.body
    }

    /// Sends what was written to [`body`](Self::body).
    pub fn send(&mut self, status: u16, content_type: &str, headers: &[(&str, &str)]) {
        if self.body.len() > LARGE_BYTES {
            let body = std::mem::take(self.body);
            return self.send_owned(status, content_type, headers, body);
        }
        self.describe(status, content_type, headers);
        self.finish();
    }

    /// Sends a body made elsewhere (`Vec<u8>` or `Arc<[u8]>`). A large one is never copied: it is
    /// written in pieces, with turns for other connections between them, and freed once written.
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

    /// Sends an error document (RFC 9457), with the request's id, which it also returns for the
    /// log.
    pub fn problem(&mut self, problem: &Problem) -> String {
        let id = match self.own_request_id {
            Some(own) => String::from_utf8_lossy(own).into_owned(),
            None => String::from_utf8_lossy(&crate::base::rng::request_id()).into_owned(),
        };
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

    /// Says which of the service's kinds the request is, for the statistics.
    pub fn is_of_kind(&mut self, kind: usize) {
        self.kind = kind;
    }

    /// Closes the connection after this response.
    pub fn close(&mut self) {
        self.connection = ConnectionLine::Close;
    }

    /// A second answer would be taken for the answer to the next request: a handler's panic.
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
        self.out.extend_from_slice(&self.date_line);
    }

    fn describe(&mut self, status: u16, content_type: &str, headers: &[(&str, &str)]) {
        self.begin(status);
        if !matches!(status, 204 | 304) {
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

    /// Whether a body of `body_bytes` follows.
    fn end_head(&mut self, status: u16, body_bytes: usize) -> bool {
        let has_body = !matches!(status, 204 | 304);
        if has_body {
            self.line("Content-Length", itoa::Buffer::new().format(body_bytes).as_bytes());
        }
        self.out.extend_from_slice(b"\r\n");
        has_body && !self.head_only
    }
}
