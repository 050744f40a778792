//! Finds the status and the end of each response in a byte stream, however it was fragmented.
//!
//! One scanner per connection. It knows no more HTTP than a load generator needs: Content-Length
//! framing, one response at a time. Anything else is an error, never a guess, because a wrong
//! frame would show as a wrong figure.

use std::borrow::Cow;

use thiserror::Error;

/// Longest response head accepted, in bytes; several times what any of the servers sends.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Most response headers accepted.
const HEADERS_MAX: usize = 64;

/// Why a response cannot be framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ScanError {
    /// A stream was answered with another status than 200.
    #[error("status {0}")]
    Status(u16),
    /// Something else.
    #[error("{0}")]
    Broken(&'static str),
}

/// Not an HTTP/1.x response head.
pub const MALFORMED: ScanError = ScanError::Broken("malformed response head");
/// The head passed [`HEAD_BYTES_MAX`].
const HEAD_TOO_LONG: ScanError = ScanError::Broken("response head too long");
/// Neither a Content-Length nor a status without a body.
const NO_LENGTH: ScanError = ScanError::Broken("response without Content-Length");
/// Bytes after the end of a response while nothing more was asked.
pub const SURPLUS: ScanError = ScanError::Broken("bytes after the end of the response");

/// What a response was, once it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// The server announced that it closes the connection.
    pub closes: bool,
    /// Length of head and body.
    pub bytes: usize,
}

/// The state of one connection's response stream.
#[derive(Debug, Default)]
pub struct Scanner {
    /// Start of a head that did not arrive in one piece; empty in the usual case.
    partial: Vec<u8>,
    /// A parsed head and the body bytes still to come.
    body: Option<(Response, usize)>,
}

impl Scanner {
    /// Takes the next bytes of the stream; returns the response that they complete, if they do.
    ///
    /// # Errors
    /// The stream cannot be framed; the connection is of no further use.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Option<Response>, ScanError> {
        if let Some((response, missing)) = self.body.take() {
            return self.take_body(response, missing, bytes.len());
        }
        let arrived = joined(&mut self.partial, bytes);
        match parse_head(&arrived)? {
            Some((response, head_bytes)) => {
                let missing = response.bytes - head_bytes;
                self.take_body(response, missing, arrived.len() - head_bytes)
            }
            None => {
                self.partial = arrived.into_owned();
                Ok(None)
            }
        }
    }

    fn take_body(
        &mut self,
        response: Response,
        missing: usize,
        received: usize,
    ) -> Result<Option<Response>, ScanError> {
        if received > missing {
            return Err(SURPLUS);
        }
        if received == missing {
            return Ok(Some(response));
        }
        self.body = Some((response, missing - received));
        Ok(None)
    }
}

/// What was kept with the next bytes behind it; in the usual case nothing was, and nothing is
/// copied.
pub fn joined<'a>(kept: &mut Vec<u8>, bytes: &'a [u8]) -> Cow<'a, [u8]> {
    if kept.is_empty() {
        return Cow::Borrowed(bytes);
    }
    kept.extend_from_slice(bytes);
    Cow::Owned(std::mem::take(kept))
}

/// Parses the head of a response, if it is all there: its length, and what `read` takes of it.
///
/// # Errors
/// It is no head of HTTP/1.x, or it is too long.
pub fn head<T>(
    bytes: &[u8],
    read: impl FnOnce(&httparse::Response<'_, '_>) -> T,
) -> Result<Option<(usize, T)>, ScanError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Response::new(&mut headers);
    match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => Ok(Some((length, read(&parsed)))),
        Ok(httparse::Status::Partial) if bytes.len() <= HEAD_BYTES_MAX => Ok(None),
        Ok(httparse::Status::Partial) => Err(HEAD_TOO_LONG),
        Err(_) => Err(MALFORMED),
    }
}

/// The last value of a header.
pub fn header<'a>(head: &httparse::Response<'_, 'a>, name: &str) -> Option<&'a [u8]> {
    let found = head
        .headers
        .iter()
        .rfind(|header| header.name.eq_ignore_ascii_case(name));
    found.map(|header| header.value)
}

/// A response and the length of its head.
fn parse_head(bytes: &[u8]) -> Result<Option<(Response, usize)>, ScanError> {
    let read = |head: &httparse::Response<'_, '_>| {
        let says_close = |value: &[u8]| value.eq_ignore_ascii_case(b"close");
        let closes = header(head, "connection").map_or(head.version == Some(0), says_close);
        let status = head.code.ok_or(MALFORMED)?;
        let body_bytes = match (status, header(head, "content-length")) {
            (204 | 304, _) => 0,
            (_, Some(length)) => {
                let length = std::str::from_utf8(length)
                    .ok()
                    .and_then(|text| text.parse().ok());
                length.ok_or(MALFORMED)?
            }
            (_, None) => return Err(NO_LENGTH),
        };
        Ok((status, closes, body_bytes))
    };
    let Some((head_bytes, read)) = head(bytes, read)? else {
        return Ok(None);
    };
    let (status, closes, body_bytes) = read?;
    Ok(Some((
        Response {
            status,
            closes,
            bytes: head_bytes + body_bytes,
        },
        head_bytes,
    )))
}

#[cfg(test)]
mod tests {
    use super::{
        HEAD_BYTES_MAX, HEAD_TOO_LONG, MALFORMED, NO_LENGTH, Response, SURPLUS, ScanError, Scanner,
    };

    const OK: &[u8] = b"HTTP/1.1 200 Ok\r\nServer: M\r\ncontent-length: 5\r\n\r\nhello";

    fn response(status: u16, bytes: usize) -> Response {
        Response {
            status,
            closes: false,
            bytes,
        }
    }

    #[test]
    fn every_split_into_two_reads_gives_the_same_response() {
        for at in 1..OK.len() {
            let mut scanner = Scanner::default();
            assert_eq!(scanner.feed(OK), Ok(Some(response(200, OK.len()))), "whole");
            assert_eq!(scanner.feed(&OK[..at]), Ok(None), "split at {at}");
            assert_eq!(scanner.feed(&OK[at..]), Ok(Some(response(200, OK.len()))), "{at}");
        }
    }

    #[test]
    fn large_body_over_many_reads() {
        let mut scanner = Scanner::default();
        let head = b"HTTP/1.1 503 Busy\r\nContent-Length: 300000\r\n\r\n";
        assert_eq!(scanner.feed(head), Ok(None));
        for _ in 0..2 {
            assert_eq!(scanner.feed(&[b'x'; 100_000]), Ok(None));
        }
        assert_eq!(scanner.feed(&[b'x'; 100_000]), Ok(Some(response(503, head.len() + 300_000))));
    }

    #[test]
    fn empty_body_and_not_modified() {
        let mut scanner = Scanner::default();
        let empty = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(scanner.feed(empty), Ok(Some(response(404, empty.len()))));
        let not_modified = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 1900\r\n\r\n";
        assert_eq!(scanner.feed(not_modified), Ok(Some(response(304, not_modified.len()))));
    }

    #[test]
    fn close_is_noticed() {
        let mut scanner = Scanner::default();
        let bytes = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx";
        let closes = scanner.feed(bytes).map(|done| done.map(|r| r.closes));
        assert_eq!(closes, Ok(Some(true)));
    }

    #[test]
    fn what_cannot_be_framed_is_an_error() {
        let cases: [(&[u8], ScanError); 4] = [
            (b"SSH-2.0-x\r\n\r\n", MALFORMED),
            (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", MALFORMED),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", NO_LENGTH),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy", SURPLUS),
        ];
        for (bytes, error) in cases {
            assert_eq!(Scanner::default().feed(bytes), Err(error));
        }
    }

    #[test]
    fn endless_head_is_refused() {
        let mut scanner = Scanner::default();
        assert_eq!(scanner.feed(b"HTTP/1.1 200 OK\r\nX: "), Ok(None));
        let line = [b'x'; 1_000];
        let refused = (0..=HEAD_BYTES_MAX / line.len())
            .find_map(|_| scanner.feed(&line).err())
            .expect("refused within the limit");
        assert_eq!(refused, HEAD_TOO_LONG);
    }
}
