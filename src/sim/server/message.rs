//! Requests and replies of the simulator's server: parsing one, framing the other, and the answers
//! of routes before faults are applied. Pure functions over bytes; connection threads call them.

use std::fmt::{Debug, Write};
use std::net::TcpStream;

use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use rust_decimal::Decimal;
use serde_json::{Map, Number, Value};
use ureq::http::StatusCode;

/// A whole request.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path as sent, percent-encoded, without the query.
    pub(crate) path: String,
    /// The query as sent, without the question mark.
    pub(crate) query: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// A request with these parts.
    pub(crate) fn of(
        method: &str,
        target: &str,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self {
            method: method.into(),
            path: path.into(),
            query: query.into(),
            headers,
            body,
        }
    }

    /// The first header of that name, in any case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(given, _)| given.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The query's pairs, decoded. A bare `&` ends a value, whatever the sender meant by it.
    pub(crate) fn query_pairs(&self) -> Vec<(String, String)> {
        pairs(&self.query)
    }

    /// The first value of that name in the query.
    pub(crate) fn query_value(&self, name: &str) -> Option<String> {
        self.query_pairs()
            .into_iter()
            .find(|(given, _)| given == name)
            .map(|(_, value)| value)
    }

    /// The body's pairs, if it is a form.
    pub(crate) fn form_pairs(&self) -> Option<Vec<(String, String)>> {
        let kind = self.header("content-type")?;
        let form = kind.split(';').next()?.trim();
        if !form.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return None;
        }
        std::str::from_utf8(&self.body).ok().map(pairs)
    }
}

/// The faults in sending a reply.
#[derive(Debug, Default, Clone, Copy)]
pub struct Delivery {
    /// Reset the connection instead of answering.
    pub refuse: bool,
    /// Wait before answering.
    pub delay_ms: u64,
    /// Send no faster than this.
    pub bytes_per_s: Option<u32>,
    /// Promise the whole body, send half, close.
    pub truncate: bool,
}

/// A finished reply.
#[derive(Debug, Default)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    pub delivery: Delivery,
    /// Takes the connection over once the reply is sent.
    pub(crate) upgrade: Option<Box<dyn Upgrade>>,
}

/// What a connection becomes after a reply that switches protocols.
pub(crate) trait Upgrade: Debug + Send {
    /// Speaks until the client leaves or `stopping`. True if the connection is to be reset.
    fn run(self: Box<Self>, stream: &TcpStream, stopping: &dyn Fn() -> bool) -> bool;
}

/// The header that marks every answer of the simulator.
pub const MARK_HEADER: &str = "X-Bhav-Simulator";

/// A plain-text reply.
pub(crate) fn plain(status: u16, text: &str) -> Reply {
    Reply {
        status,
        headers: vec![("Content-Type", "text/plain; charset=utf-8".to_owned())],
        body: text.as_bytes().to_vec(),
        ..Reply::default()
    }
}

/// Parses the request at the start of `bytes`: the request, whether the connection stays open, and
/// how many bytes it took; `None` if it is not all there yet.
///
/// # Errors
/// The status to refuse with.
pub(crate) fn parse(
    bytes: &[u8],
    head_bytes_max: usize,
    headers_max: usize,
    body_bytes_max: usize,
) -> Result<Option<(Request, bool, usize)>, u16> {
    let mut storage = vec![httparse::EMPTY_HEADER; headers_max];
    let mut parsed = httparse::Request::new(&mut storage);
    let head_bytes = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(used)) if used <= head_bytes_max => used,
        Ok(httparse::Status::Partial) if bytes.len() <= head_bytes_max => return Ok(None),
        Ok(_) => return Err(431),
        Err(httparse::Error::TooManyHeaders) => return Err(431),
        Err(_) => return Err(400),
    };
    let method = parsed.method.unwrap_or_default();
    let target = parsed.path.unwrap_or_default();
    let headers = parsed
        .headers
        .iter()
        .map(|header| (header.name.to_owned(), String::from_utf8_lossy(header.value).into_owned()));
    let mut request = Request::of(method, target, headers.collect(), Vec::new());
    let count = |name: &str| {
        request
            .headers
            .iter()
            .filter(|(given, _)| given.eq_ignore_ascii_case(name))
            .count()
    };
    if count("host") != 1 && parsed.version == Some(1) || count("content-length") > 1 {
        return Err(400);
    }
    if count("transfer-encoding") > 0 {
        return Err(411); // every real client states the length
    }
    let length = match request.header("content-length") {
        None => 0,
        Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse::<usize>().map_err(|_| 413_u16)?
        }
        Some(_) => return Err(400),
    };
    if length > body_bytes_max {
        return Err(413);
    }
    let Some(body) = bytes.get(head_bytes..head_bytes + length) else {
        return Ok(None);
    };
    request.body = body.to_vec();
    let close = request
        .header("connection")
        .is_some_and(|v| v.eq_ignore_ascii_case("close"));
    Ok(Some((request, parsed.version == Some(1) && !close, head_bytes + length)))
}

/// Status line and headers, with the length of the whole body.
pub(crate) fn head(reply: &Reply, mark: &str, keep_alive: bool, now: Timestamp) -> Vec<u8> {
    let mut head = String::with_capacity(256);
    let date = now
        .to_zoned(jiff::tz::TimeZone::UTC)
        .strftime("%a, %d %b %Y %H:%M:%S GMT");
    let status = StatusCode::from_u16(reply.status).ok();
    let reason = status
        .and_then(|status| status.canonical_reason())
        .unwrap_or("Unspecified");
    // Writing to a String cannot fail.
    let _ = write!(head, "HTTP/1.1 {} {reason}\r\nDate: {date}\r\n", reply.status);
    if reply.upgrade.is_none() {
        let _ = write!(head, "Content-Length: {}\r\n", reply.body.len());
    }
    let _ = write!(head, "{MARK_HEADER}: {mark}\r\n");
    if !keep_alive {
        head.push_str("Connection: close\r\n");
    }
    for (name, value) in &reply.headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head.push_str("\r\n");
    head.into_bytes()
}

/// Splits `a=1&b=2` and decodes both sides.
pub(crate) fn pairs(text: &str) -> Vec<(String, String)> {
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name, true), decoded(value, true))
        })
        .collect()
}

/// Percent-decoding; in a form or query a plus sign is a space. A broken escape stays as it is.
pub(crate) fn decoded(text: &str, plus_is_space: bool) -> String {
    let spaced = if plus_is_space {
        text.replace('+', " ")
    } else {
        text.to_owned()
    };
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

// ---- Json
//
// Members in a chosen order, because the order is part of the wire formats.

/// An object with these members in this order.
pub(crate) fn map<N: Into<String>>(members: impl IntoIterator<Item = (N, Value)>) -> Value {
    let members = members
        .into_iter()
        .map(|(name, value)| (name.into(), value));
    Value::Object(members.collect::<Map<String, Value>>())
}

/// A number in its shortest form, so that `1075.00` goes out as `1075`.
pub(crate) fn number(value: Decimal) -> Value {
    let number = value.normalize().to_string().parse::<Number>();
    number.map_or(Value::Null, Value::Number)
}

/// A price of so many paise, in rupees.
pub(crate) fn price(paise: i64) -> Value {
    number(Decimal::new(paise, 2))
}

// ---- Answer
//
// The answer of a route, before faults are applied and it becomes a reply.

/// The answer of a route, before faults are applied.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content: Content,
    /// The caller did something wrong.
    pub(crate) rejected: bool,
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum Content {
    Json(Value),
    /// Media type and bytes.
    Text(&'static str, Vec<u8>),
    /// A redirect to this URL.
    Moved(String),
    /// Media type and bytes, always compressed, whatever the request accepts.
    Gzipped(&'static str, Vec<u8>),
    /// The key that accepts a WebSocket, and what speaks on it.
    Upgrade(String, Box<dyn Upgrade>),
}

impl Answer {
    pub(crate) fn ok(json: Value) -> Self {
        Self {
            status: 200,
            content: Content::Json(json),
            rejected: false,
        }
    }

    pub(crate) fn rejected(status: u16, json: Value) -> Self {
        Self {
            status,
            content: Content::Json(json),
            rejected: true,
        }
    }

    pub(crate) fn text(status: u16, media_type: &'static str, text: &str) -> Self {
        let content = Content::Text(media_type, text.as_bytes().to_vec());
        Self {
            status,
            content,
            rejected: status >= 400,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_all(text: &str) -> Result<Option<(Request, bool, usize)>, u16> {
        parse(text.as_bytes(), 1024, 4, 64)
    }

    #[test]
    fn reads_a_request_whole_or_not_at_all() {
        let text = "GET /a/quote?i=NSE%3AM%26M&i=NSE:NIFTY+50&i=NSE:M&M HTTP/1.1\r\nHost: x\r\n\
                    Content-Length: 2\r\n\r\n{}";
        for cut in 1..text.len() {
            assert!(parse_all(&text[..cut]).unwrap().is_none(), "at {cut}");
        }
        let (request, keep_alive, used) = parse_all(text).unwrap().unwrap();
        assert!(keep_alive);
        assert_eq!((used, request.body.as_slice()), (text.len(), b"{}".as_slice()));
        let values: Vec<_> = request
            .query_pairs()
            .into_iter()
            .filter(|(n, _)| n == "i")
            .collect();
        let values: Vec<_> = values.iter().map(|(_, v)| v.as_str()).collect();
        assert_eq!(values, ["NSE:M&M", "NSE:NIFTY 50", "NSE:M"], "a bare & ends the symbol");
    }

    #[test]
    fn refuses_what_is_broken_or_too_large() {
        let big = format!("GET /{} HTTP/1.1\r\n", "x".repeat(2000));
        for (text, status) in [
            ("GET\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\n\r\n", 400),
            (
                "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
                400,
            ),
            ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 65\r\n\r\n", 413),
            ("GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
            (big.as_str(), 431),
        ] {
            assert_eq!(parse_all(text).err(), Some(status), "{text}");
        }
    }
}
