//! A complete response, made ahead of time.
//!
//! OS threads make them; the edge copies them into its output. Sending one does not allocate,
//! format or compress.

use std::ops::Range;

use ureq::http::StatusCode;

/// Keeps browsers from guessing another content type. Sent with every body.
pub(crate) const NO_SNIFFING: &[u8] = b"X-Content-Type-Options: nosniff\r\n";

/// A `Date` line including CR LF.
pub(crate) type DateLine = [u8; 37];

/// Status line, headers and body as the client gets them, with room for the `Date` of sending.
#[derive(Debug, Clone)]
pub struct Prepared {
    status: u16,
    bytes: Box<[u8]>,
    /// Length of the status line, after which the line `Date` is to be written.
    status_line_bytes: usize,
    /// Length of the head including its empty line, after which the body begins.
    head_bytes: usize,
}

impl Prepared {
    /// Makes the response. `headers` are written in order, then `Content-Length`. A 304 gets
    /// neither a body nor `Content-Length`, which RFC 9110 8.6 leaves optional.
    pub fn new(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(256 + body.len());
        bytes.extend_from_slice(b"HTTP/1.1 ");
        bytes.extend_from_slice(itoa::Buffer::new().format(status).as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(reason(status).as_bytes());
        bytes.extend_from_slice(b"\r\n");
        let status_line_bytes = bytes.len();
        bytes.extend_from_slice(&[0; size_of::<DateLine>()]);
        for (name, value) in headers {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        if status != 304 {
            bytes.extend_from_slice(NO_SNIFFING);
            bytes.extend_from_slice(b"Content-Length: ");
            bytes.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        let head_bytes = bytes.len();
        if status != 304 {
            bytes.extend_from_slice(body);
        }
        Self {
            status,
            bytes: bytes.into_boxed_slice(),
            status_line_bytes,
            head_bytes,
        }
    }

    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// `HTTP/1.1 200 OK\r\n`.
    pub(crate) fn status_line(&self) -> &[u8] {
        &self.bytes[..self.status_line_bytes]
    }

    /// The headers but `Date`, including the empty line at their end.
    pub fn headers(&self) -> &[u8] {
        &self.bytes[self.date_range().end..self.head_bytes]
    }

    /// The part of [`bytes`](Self::bytes) that the line `Date` is to be written to.
    pub(crate) fn date_range(&self) -> Range<usize> {
        self.status_line_bytes..self.status_line_bytes + size_of::<DateLine>()
    }

    /// Everything, with zeros in the place of the line `Date`.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The body.
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.head_bytes..]
    }
}

/// The reason phrase of a status.
pub(crate) fn reason(status: u16) -> &'static str {
    match StatusCode::from_u16(status) {
        // The library has the phrase of before RFC 9110.
        Ok(StatusCode::PAYLOAD_TOO_LARGE) => "Content Too Large",
        Ok(known) => known.canonical_reason().unwrap_or("Unknown"),
        Err(_) => "Unknown",
    }
}
