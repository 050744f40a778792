//! Requests and replies of the simulator's server: parsing one, framing the other. Pure functions
//! over bytes; connection threads call them.

use std::collections::BTreeMap;
use std::fmt::Write;

use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use rust_decimal::Decimal;

use crate::base::{BoundedMap, CallWindow};
use crate::sim::broker_a::ticker::Ticker;

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
    /// A request that did not come over a socket.
    pub(crate) fn of(
        method: &str,
        target: &str,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self { method: method.into(), path: path.into(), query: query.into(), headers, body }
    }

    /// The first header of that name, in any case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The query's pairs, decoded. A bare `&` ends a value, whatever the sender meant by it.
    pub(crate) fn query_pairs(&self) -> Vec<(String, String)> {
        pairs(&self.query)
    }

    /// The first value of that name in the query.
    pub(crate) fn query_value(&self, name: &str) -> Option<String> {
        self.query_pairs().into_iter().find(|(given, _)| given == name).map(|(_, value)| value)
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
pub(crate) struct Delivery {
    /// Reset the connection instead of answering.
    pub(crate) refuse: bool,
    /// Wait before answering.
    pub(crate) delay_ms: u64,
    /// Send no faster than this.
    pub(crate) bytes_per_s: Option<u32>,
    /// Promise the whole body, send half, close.
    pub(crate) truncate: bool,
}

/// A finished reply.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) delivery: Delivery,
    /// Sends on the connection once the reply is sent.
    pub(crate) ticker: Option<Ticker>,
}

/// The header that marks every answer of the simulator.
pub(crate) const MARK_HEADER: &str = "X-Bhav-Simulator";

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
    let target = parsed.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        ..Request::default()
    };
    for header in parsed.headers.iter() {
        let value = String::from_utf8_lossy(header.value).into_owned();
        request.headers.push((header.name.to_owned(), value));
    }
    let count = |name: &str| {
        request.headers.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name)).count()
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
    let Some(body) = bytes.get(head_bytes..head_bytes + length) else { return Ok(None) };
    request.body = body.to_vec();
    let close = request.header("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"));
    Ok(Some((request, parsed.version == Some(1) && !close, head_bytes + length)))
}

/// Status line and headers, with the length of the whole body.
pub(crate) fn head(reply: &Reply, mark: &str, keep_alive: bool, now: Timestamp) -> Vec<u8> {
    let mut head = String::with_capacity(256);
    let date = now.to_zoned(jiff::tz::TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S GMT");
    // Writing to a String cannot fail.
    let _ = write!(head, "HTTP/1.1 {} {}\r\nDate: {date}\r\n", reply.status, reason(reply.status));
    if reply.ticker.is_none() {
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

fn reason(status: u16) -> &'static str {
    match status {
        101 => "Switching Protocols",
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        status if status >= 500 => "Internal Server Error",
        _ => "Unspecified",
    }
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
    let spaced = if plus_is_space { text.replace('+', " ") } else { text.to_owned() };
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

// ---- Stats
//
// Counters and rate limits of the simulator: requests received and requests rejected. Plain values
// behind the world's locks.

/// Most API keys whose calls are counted. If there are more, some are forgotten.
const KEYS_MAX: usize = 4_096;

/// The documented rate limits. Those of the brokers are per API key, whoever uses it.
#[derive(Debug)]
pub(crate) struct Limits {
    keys: BoundedMap<String, OfKey>,
    pub(crate) public: CallWindow,
}

/// The limits of one API key.
#[derive(Debug)]
pub(crate) struct OfKey {
    /// Broker A's three quote calls together.
    pub(crate) quotes: CallWindow,
    /// Broker A's candles.
    pub(crate) candles: CallWindow,
    /// Everything else of broker A.
    pub(crate) broker_a: CallWindow,
    pub(crate) broker_b_minute: CallWindow,
    pub(crate) broker_b_day: CallWindow,
}

impl Default for Limits {
    fn default() -> Self {
        // No number is published; this is the figure that users report.
        Self {
            keys: BoundedMap::evicting_in_batches(KEYS_MAX),
            public: CallWindow::new(360, 3_600_000),
        }
    }
}

impl Default for OfKey {
    fn default() -> Self {
        Self {
            quotes: CallWindow::new(1, 1_000),
            candles: CallWindow::new(3, 1_000),
            broker_a: CallWindow::new(10, 1_000),
            broker_b_minute: CallWindow::new(100, 60_000),
            broker_b_day: CallWindow::new(5_000, 24 * 3_600_000),
        }
    }
}

impl Limits {
    /// The limits of an API key, known or not.
    pub(crate) fn of(&mut self, api_key: &str) -> &mut OfKey {
        self.keys.or_insert_with(api_key.to_owned(), |_| Some(()), OfKey::default)
    }
}

/// Counters of requests since the start.
#[derive(Debug)]
pub(crate) struct Stats {
    /// Requests by route.
    pub(crate) requests: BTreeMap<&'static str, i64>,
    /// Requests rejected for a mistake of the caller, not by a fault, by route.
    pub(crate) rejected: BTreeMap<&'static str, i64>,
    /// Most quote calls of broker A that ever came within one second, answered or not.
    pub(crate) quote_calls_in_1s_max: i64,
    quotes: CallWindow,
}

impl Default for Stats {
    fn default() -> Self {
        Self {
            requests: BTreeMap::new(),
            rejected: BTreeMap::new(),
            quote_calls_in_1s_max: 0,
            quotes: CallWindow::new(usize::MAX, 1_000),
        }
    }
}

impl Stats {
    /// Counts a request that came in at `now_ms`.
    pub(crate) fn asked(&mut self, route: &'static str, is_quote: bool, now_ms: u64) {
        *self.requests.entry(route).or_default() += 1;
        if !is_quote {
            return;
        }
        self.quotes.count(1, now_ms);
        let within = self.quotes.calls(now_ms) as i64;
        self.quote_calls_in_1s_max = self.quote_calls_in_1s_max.max(within);
    }

    /// Counts a rejected request.
    pub(crate) fn turned_away(&mut self, route: &'static str) {
        *self.rejected.entry(route).or_default() += 1;
    }
}

// ---- Json
//
// The JSON that the simulator writes: a small tree with members in a chosen order and numbers with
// exactly the digits that were put in, because digits and order are part of the wire formats, and
// because faults rewrite a finished answer. Pure values; any thread.

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Int(i64),
    /// Written in its shortest form, so that `1075.00` goes out as `1075`.
    Num(Decimal),
    /// A binary float with its noise (`2436.199951171875`), as one upstream sends them.
    Float(f64),
    Text(String),
    List(Vec<Json>),
    Map(Vec<(String, Json)>),
}

/// An object with these members in this order.
pub(crate) fn map<N: Into<String>>(members: impl IntoIterator<Item = (N, Json)>) -> Json {
    Json::Map(members.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

impl Json {
    /// The document as bytes, without white space.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = String::new();
        self.write(&mut out);
        out.into_bytes()
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(true) => out.push_str("true"),
            Self::Bool(false) => out.push_str("false"),
            Self::Int(value) => out.push_str(&value.to_string()),
            Self::Num(value) => out.push_str(&value.normalize().to_string()),
            Self::Float(value) => out.push_str(&value.to_string()),
            Self::Text(text) => write_text(out, text),
            Self::List(items) => {
                out.push('[');
                for (position, item) in items.iter().enumerate() {
                    if position > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Self::Map(members) => {
                out.push('{');
                for (position, (name, value)) in members.iter().enumerate() {
                    if position > 0 {
                        out.push(',');
                    }
                    write_text(out, name);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// Calls `visit` on every member of every object, deepest first; a member is dropped if `visit`
    /// returns false.
    pub(crate) fn retain_members(&mut self, visit: &mut dyn FnMut(&str, &mut Json) -> bool) {
        match self {
            Self::List(items) => items.iter_mut().for_each(|item| item.retain_members(visit)),
            Self::Map(members) => members.retain_mut(|(name, value)| {
                value.retain_members(visit);
                visit(name, value)
            }),
            _ => {}
        }
    }
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", control as u32)),
            other => out.push(other),
        }
    }
    out.push('"');
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Json {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<Decimal> for Json {
    fn from(value: Decimal) -> Self {
        Self::Num(value)
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Json {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<Vec<Json>> for Json {
    fn from(value: Vec<Json>) -> Self {
        Self::List(value)
    }
}

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
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
    Json(Json),
    /// Media type and bytes.
    Text(&'static str, Vec<u8>),
    /// A redirect to this URL.
    Moved(String),
    /// Media type and bytes, always compressed, whatever the request accepts.
    Gzipped(&'static str, Vec<u8>),
    /// The key that accepts a WebSocket, and the ticker that sends on it.
    Ticker(String, Ticker),
}

impl Answer {
    pub(crate) fn ok(json: Json) -> Self {
        Self { status: 200, content: Content::Json(json), rejected: false }
    }

    pub(crate) fn rejected(status: u16, json: Json) -> Self {
        Self { status, content: Content::Json(json), rejected: true }
    }

    pub(crate) fn text(status: u16, media_type: &'static str, text: &str) -> Self {
        let content = Content::Text(media_type, text.as_bytes().to_vec());
        Self { status, content, rejected: status >= 400 }
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
        let values: Vec<_> = request.query_pairs().into_iter().filter(|(n, _)| n == "i").collect();
        let values: Vec<_> = values.iter().map(|(_, v)| v.as_str()).collect();
        assert_eq!(values, ["NSE:M&M", "NSE:NIFTY 50", "NSE:M"], "a bare & ends the symbol");
    }

    #[test]
    fn refuses_what_is_broken_or_too_large() {
        let big = format!("GET /{} HTTP/1.1\r\n", "x".repeat(2000));
        for (text, status) in [
            ("GET\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 65\r\n\r\n", 413),
            ("GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
            (big.as_str(), 431),
        ] {
            assert_eq!(parse_all(text).err(), Some(status), "{text}");
        }
    }
}

#[cfg(test)]
mod stats_tests {
    use super::*;

    #[test]
    fn each_key_has_limits_of_its_own() {
        let mut limits = Limits::default();
        assert!(limits.of("one").quotes.admit(0) && !limits.of("one").quotes.admit(0));
        assert!(limits.of("two").quotes.admit(0));
        for number in 0..2 * KEYS_MAX {
            limits.of(&number.to_string());
        }
        assert!(limits.keys.len() <= KEYS_MAX);
    }
}

#[cfg(test)]
mod json_tests {
    use super::*;

    #[test]
    fn keeps_digits_order_and_escapes() {
        let json = map([
            ("b", Decimal::new(107_500, 2).into()),
            ("a", Json::List(vec![Json::Null, true.into(), 7.into(), Json::Float(0.5)])),
            ("t", "say \"x\\y\"\n".into()),
        ]);
        let text = String::from_utf8(json.to_bytes()).unwrap();
        assert_eq!(text, r#"{"b":1075,"a":[null,true,7,0.5],"t":"say \"x\\y\"\u000a"}"#);
    }
}
