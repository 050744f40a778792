//! Parses a request head: one pass, strict framing, no allocation.
//!
//! Pure. httparse splits the lines. This module checks what RFC 9112 requires beyond that: exactly
//! one Host, exactly one indication of the body's length, known codings. An ambiguous head is
//! refused, because a proxy in front may read it differently, and then a request could be smuggled
//! past the proxy.

use std::cell::Cell;

use zeroize::Zeroizing;

use crate::base::words;
use crate::http::message::authority::Authority;
use crate::http::message::codings::Codings;
use crate::http::message::head_fault::HeadFault;

/// Highest limit of headers that can be configured; the parser's table has this size.
pub const HEADERS_MAX: usize = 128;

/// Longest request target. Fifty percent-encoded symbols take under 4 KiB.
pub(crate) const TARGET_BYTES_MAX: usize = 8 * 1024;

/// Highest limit of a head's length that can be configured: a [`Span`] reaches no further.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

words! {
    /// Methods that are recognised; any other token is answered 501.
    #[derive(Default)]
    pub enum Method {
        #[default]
        Get = "GET",
        Head = "HEAD",
        Post = "POST",
        Put = "PUT",
        Patch = "PATCH",
        Delete = "DELETE",
        Options = "OPTIONS",
        Trace = "TRACE",
        Connect = "CONNECT",
    }
}

impl Method {
    /// Parses a method token; methods are case-sensitive (RFC 9110 9.1).
    pub(crate) fn parse(token: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|method| method.as_str().as_bytes() == token)
    }
}

/// A range of the head's bytes, of which there are at most [`HEAD_BYTES_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    start: u16,
    end: u16,
}

impl Span {
    /// The bytes of this span. `head` is the buffer that was parsed.
    pub fn of<'a>(&self, head: &'a [u8]) -> &'a [u8] {
        &head[usize::from(self.start)..usize::from(self.end)]
    }

    /// A span over all of `value`.
    pub(crate) fn whole(value: &[u8]) -> Self {
        Self::within(value, value)
    }

    fn within(head: &[u8], part: &[u8]) -> Self {
        let start = part.as_ptr() as usize - head.as_ptr() as usize;
        Self {
            start: start as u16,
            end: (start + part.len()) as u16,
        }
    }
}

/// The lines of a header whose value is a list. Several lines form one list (RFC 9110 5.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lines {
    #[default]
    Absent,
    One(Span),
    /// Find them among all headers.
    Several,
}

impl Lines {
    fn and(self, value: Span) -> Self {
        match self {
            Self::Absent => Self::One(value),
            Self::One(_) | Self::Several => Self::Several,
        }
    }
}

/// How the end of the body is determined (RFC 9112 section 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// No body.
    #[default]
    None,
    Length(u64),
    Chunked,
}

/// A parsed head: spans into the input, and the properties that the connection needs.
#[derive(Debug, Default)]
pub struct Head {
    /// Length of the head, including the empty line.
    pub bytes: usize,
    pub method: Method,
    pub path: Span,
    pub query: Option<Span>,
    pub headers: Vec<(Span, Span)>,
    pub framing: Framing,
    /// The client wants the connection closed after this request.
    pub close: bool,
    /// HTTP/1.0: the response must say so if the connection stays open.
    pub http_1_0: bool,
    /// The target is an absolute `https` URI, meant for a connection with TLS.
    pub https: bool,
    pub expects_continue: bool,
    pub if_match: Lines,
    pub if_none_match: Lines,
    pub accept_encoding: Option<Span>,
    pub origin: Option<Span>,
    pub request_id: Option<Span>,
    /// `Accept` of a head that is not filled in; see [`Head::glimpse`].
    pub(crate) glimpsed_accept: Option<Span>,
    /// Bytes of the cookies in such a head.
    pub(crate) glimpsed_cookie_bytes: usize,
    /// The route that the service found for these bytes, see [`KnownHeads`].
    pub(crate) known_route: Cell<Option<u16>>,
    table: Table,
    valid_host: ValidHost,
}

/// The last well-formed value of `Host`. Nearly every request has the same one, which need not be
/// parsed again.
#[derive(Debug, Default)]
struct ValidHost(Vec<u8>);

impl ValidHost {
    /// Longer values are parsed each time.
    const BYTES_MAX: usize = 128;

    fn is(&self, value: &[u8]) -> bool {
        !self.0.is_empty() && self.0 == value
    }

    fn remember(&mut self, value: &[u8]) {
        self.0.clear();
        if value.len() <= Self::BYTES_MAX {
            self.0.extend_from_slice(value);
        }
    }
}

/// httparse's header table, reused by every parse. On the stack it would take 4 KiB, which every
/// idle connection's coroutine would keep as touched pages.
#[derive(Debug, Default)]
struct Table(Vec<httparse::Header<'static>>);

impl Table {
    /// Empties the vector and changes its lifetime parameter. Collecting an emptied vector into one
    /// of the same layout keeps the allocation.
    fn recycled<'to>(table: Vec<httparse::Header<'_>>) -> Vec<httparse::Header<'to>> {
        let empty = table.into_iter().take(0);
        empty
            .map(|_| -> httparse::Header<'to> { unreachable!("nothing is left") })
            .collect()
    }

    fn take<'to>(&mut self) -> Vec<httparse::Header<'to>> {
        let mut table = Self::recycled(std::mem::take(&mut self.0));
        table.reserve_exact(HEADERS_MAX);
        table
    }

    fn give_back(&mut self, table: Vec<httparse::Header<'_>>) {
        self.0 = Self::recycled(table);
    }
}

/// The result of parsing.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The head is complete, and [`Head`] describes it.
    Complete,
    /// More bytes are needed.
    Partial,
    Fault(HeadFault),
}

impl Head {
    /// Parses the head at the beginning of `input` into `self`.
    pub fn parse(&mut self, input: &[u8], headers_max: usize, head_bytes_max: usize) -> Parsed {
        let head_bytes_max = head_bytes_max.min(HEAD_BYTES_MAX);
        let window = &input[..input.len().min(head_bytes_max)];
        let is_full = input.len() >= head_bytes_max;
        let parsed = self.parse_window(window, headers_max, is_full);
        parsed.unwrap_or_else(|Newer { digit_at }| {
            // Parse a copy with the version HTTP/1.1. It is wiped, because a body may follow the
            // head.
            let mut known = Zeroizing::new(window.to_vec());
            known[digit_at] = b'1';
            let parsed = self.parse_window(&known, headers_max, is_full);
            parsed.unwrap_or(Parsed::Fault(HeadFault::Malformed))
        })
    }

    fn parse_window(
        &mut self,
        window: &[u8],
        headers_max: usize,
        is_full: bool,
    ) -> Result<Parsed, Newer> {
        self.bytes = 0;
        let mut table = self.table.take();
        let lines = &mut table.spare_capacity_mut()[..headers_max.min(HEADERS_MAX)];
        let mut request = httparse::Request::new(&mut []);
        let parsed = match request.parse_with_uninit_headers(window, lines) {
            Ok(httparse::Status::Complete(bytes)) => {
                self.bytes = bytes;
                match self.fill(window, &request) {
                    Ok(()) => Parsed::Complete,
                    Err(fault) => Parsed::Fault(fault),
                }
            }
            Ok(httparse::Status::Partial) => partial(window, is_full),
            Err(httparse::Error::TooManyHeaders) => Parsed::Fault(HeadFault::TooManyHeaders),
            Err(httparse::Error::Version) => match other(window) {
                Ok(Some(fault)) => Parsed::Fault(fault),
                Ok(None) => partial(window, is_full),
                Err(newer) => {
                    self.table.give_back(table);
                    return Err(newer);
                }
            },
            Err(_) => Parsed::Fault(HeadFault::Malformed),
        };
        if matches!(parsed, Parsed::Fault(_)) && self.bytes == 0 {
            self.glimpse(window);
        }
        self.table.give_back(table);
        Ok(parsed)
    }

    fn fill(&mut self, input: &[u8], request: &httparse::Request<'_, '_>) -> Result<(), HeadFault> {
        self.framing = Framing::None;
        self.http_1_0 = request.version == Some(0);
        self.https = false;
        self.expects_continue = false;
        (self.if_match, self.if_none_match) = (Lines::Absent, Lines::Absent);
        (self.accept_encoding, self.origin, self.request_id) = (None, None, None);
        (self.glimpsed_accept, self.glimpsed_cookie_bytes) = (None, 0);
        self.known_route.set(None);
        self.headers.clear();
        let mut fault = Ok(());
        match Method::parse(request.method.unwrap_or_default().as_bytes()) {
            Some(method) => self.method = method,
            None => {
                self.method = Method::default();
                fault = Err(HeadFault::UnknownMethod);
            }
        }
        fault = fault.and(self.set_target(input, request.path.unwrap_or_default()));
        fault = fault.and(expect_crlf(&input[..self.bytes], request));
        let mut seen = Seen::default();
        for header in request.headers.iter() {
            let value = Span::within(input, header.value);
            self.headers
                .push((Span::within(input, header.name.as_bytes()), value));
            // The first fault counts. The rest is still read, for the refusal's request id.
            fault = fault.and(self.note(header, value, &mut seen));
        }
        fault?;
        if seen.hosts > 1 || (seen.hosts == 0 && !self.http_1_0) {
            return Err(HeadFault::BadHost);
        }
        if seen.codings.are_there() {
            let alone = self.framing == Framing::None && !self.http_1_0;
            seen.codings.end_in_chunked(alone)?;
            self.framing = Framing::Chunked;
        }
        // RFC 9112 9.3: close overrides keep-alive, and HTTP/1.0 stays open only with keep-alive.
        self.close = seen.close || (self.http_1_0 && !seen.keep_alive);
        Ok(())
    }

    /// The request id that the client sent, if it is safe to repeat: 1 to 64 of `A-Za-z0-9._-`.
    /// An id that begins like an API key is not repeated: it would reach the log. `bytes` is the
    /// buffer that was parsed.
    pub(crate) fn own_request_id<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        self.request_id.map(|span| span.of(bytes)).filter(|id| {
            (1..=64).contains(&id.len())
                && id
                    .iter()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
                && !id.starts_with(b"bhav_")
        })
    }

    /// Splits the target into path and query. The scheme and authority of an absolute-form target
    /// are removed (RFC 9112 3.2.2).
    fn set_target(&mut self, input: &[u8], target: &str) -> Result<(), HeadFault> {
        if target.len() > TARGET_BYTES_MAX {
            return Err(HeadFault::TargetTooLong);
        }
        let whole_server = target == "*" && self.method == Method::Options;
        let local = if target.starts_with('/') || whole_server {
            target
        } else {
            let (https, rest) = strip_scheme(target).ok_or(HeadFault::BadTarget)?;
            self.https = https;
            let authority = rest.find(['/', '?']).unwrap_or(rest.len());
            if Authority::parse(&rest.as_bytes()[..authority]).is_none() {
                return Err(HeadFault::BadTarget);
            }
            &rest[authority..]
        }
        .as_bytes();
        let path_bytes = local.iter().position(|byte| ENDS_PATH[usize::from(*byte)]);
        let (path, query) = match path_bytes.map(|at| local.split_at(at)) {
            None => (local, None),
            Some((path, [b'?', query @ ..])) if query.is_ascii() && !query.contains(&b'#') => {
                (path, Some(query))
            }
            Some(_) => return Err(HeadFault::BadTarget),
        };
        self.path = Span::within(input, path);
        self.query = query.map(|query| Span::within(input, query));
        Ok(())
    }

    /// Handles one header. Comparing lengths first avoids most comparisons of names.
    fn note(
        &mut self,
        header: &httparse::Header<'_>,
        value: Span,
        seen: &mut Seen,
    ) -> Result<(), HeadFault> {
        let name = header.name;
        match name.len() {
            4 if name.eq_ignore_ascii_case("host") => {
                seen.hosts += 1;
                if !self.valid_host.is(header.value) {
                    Authority::parse(header.value).ok_or(HeadFault::BadHost)?;
                    self.valid_host.remember(header.value);
                }
            }
            6 if name.eq_ignore_ascii_case("expect") => {
                if !header.value.eq_ignore_ascii_case(b"100-continue") {
                    return Err(HeadFault::BadExpectation);
                }
                self.expects_continue = !self.http_1_0;
            }
            6 if name.eq_ignore_ascii_case("origin") => {
                self.origin = Some(only(self.origin, value));
            }
            8 if name.eq_ignore_ascii_case("if-match") => self.if_match = self.if_match.and(value),
            10 if name.eq_ignore_ascii_case("connection") => seen.note_connection(header.value),
            12 if name.eq_ignore_ascii_case("x-request-id") => self.request_id = Some(value),
            13 if name.eq_ignore_ascii_case("if-none-match") => {
                self.if_none_match = self.if_none_match.and(value);
            }
            14 if name.eq_ignore_ascii_case("content-length") => {
                if self.framing != Framing::None {
                    return Err(HeadFault::BadLength);
                }
                self.framing = Framing::Length(parse_length(header.value)?);
            }
            15 if name.eq_ignore_ascii_case("accept-encoding") => {
                self.accept_encoding = Some(only(self.accept_encoding, value));
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                seen.codings.note(header.value)?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Bytes that end a path or are not allowed in it, and that httparse lets through.
const ENDS_PATH: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 128;
    while byte < 256 {
        table[byte] = true;
        byte += 1;
    }
    table[b'?' as usize] = true;
    table[b'#' as usize] = true;
    table
};

/// State that is collected over several header lines.
#[derive(Default)]
struct Seen {
    hosts: usize,
    codings: Codings,
    close: bool,
    keep_alive: bool,
}

impl Seen {
    fn note_connection(&mut self, value: &[u8]) {
        for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }
}

fn partial(window: &[u8], full: bool) -> Parsed {
    match memchr::memchr(b'\n', window.strip_prefix(b"\r\n").unwrap_or(window)) {
        None if window.len() > TARGET_BYTES_MAX + 64 => Parsed::Fault(HeadFault::TargetTooLong),
        _ if full => Parsed::Fault(HeadFault::HeadTooLarge),
        _ => Parsed::Partial,
    }
}

/// Refuses a line that ends in a line feed alone, which httparse lets through (RFC 9112 2.2 leaves
/// that to the receiver). A program in front that takes it for a part of the value would see other
/// header lines than we do. Each line but the first begins where httparse found a name, so nothing
/// is searched.
fn expect_crlf(head: &[u8], request: &httparse::Request<'_, '_>) -> Result<(), HeadFault> {
    let mut begun = head;
    while let Some(rest) = begun.strip_prefix(b"\r\n") {
        begun = rest;
    }
    let follows_crlf = |header: &httparse::Header<'_>| {
        let at = header.name.as_ptr() as usize - head.as_ptr() as usize;
        head[..at].ends_with(b"\r\n")
    };
    let is_strict = begun.first() != Some(&b'\n')
        && head.ends_with(b"\r\n\r\n")
        && request.headers.iter().all(follows_crlf);
    if is_strict {
        Ok(())
    } else {
        Err(HeadFault::BareLineFeed)
    }
}

/// Parses a `Content-Length` of up to 19 digits. Whether it exceeds the limit of bodies (413) is
/// checked later.
fn parse_length(value: &[u8]) -> Result<u64, HeadFault> {
    if value.is_empty() || value.len() > 19 || !value.iter().all(u8::is_ascii_digit) {
        return Err(HeadFault::BadLength);
    }
    Ok(value
        .iter()
        .fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// Removes `http://` or `https://`; returns whether it was https, and the rest.
fn strip_scheme(target: &str) -> Option<(bool, &str)> {
    let (scheme, rest) = target.split_once("://")?;
    let https = scheme.eq_ignore_ascii_case("https");
    (https || scheme.eq_ignore_ascii_case("http")).then_some((https, rest))
}

/// The value of a header that is allowed once; an empty one if it came twice. An empty
/// `Accept-Encoding` is answered uncompressed, and an empty `Origin` is never allowed.
fn only(held: Option<Span>, value: Span) -> Span {
    if held.is_some() {
        Span::default()
    } else {
        value
    }
}

// ---- Known heads
//
// Heads that were parsed before. A client that polls sends the same bytes each time, and comparing
// them takes a tenth of the time of parsing them and of finding their route.

/// The heads that were answered last from one set of buffers. A head is remembered once the service
/// has named its route as one that anybody may read, and only if nothing in it can be a credential.
#[derive(Debug, Default)]
pub(crate) struct KnownHeads {
    /// Found by the length of the input modulo [`KNOWN_HEADS`].
    places: [KnownHead; KNOWN_HEADS],
    /// The place of the last parsed head.
    at: usize,
}

/// Several kinds of clients poll one worker, and their heads differ in length.
const KNOWN_HEADS: usize = 16;

/// Longer heads are parsed each time.
const KNOWN_HEAD_BYTES_MAX: usize = 1024;

#[derive(Debug, Default)]
struct KnownHead {
    /// The bytes of which `head` was parsed; empty if they are not remembered.
    bytes: Vec<u8>,
    head: Head,
}

impl KnownHeads {
    /// Same as [`Head::parse`]. The result is [`head`](Self::head).
    pub(crate) fn parse(
        &mut self,
        input: &[u8],
        headers_max: usize,
        head_bytes_max: usize,
    ) -> Parsed {
        self.at = input.len() % KNOWN_HEADS;
        let KnownHead { bytes, head } = &mut self.places[self.at];
        // Another server of this process, with other limits, may have used these buffers.
        let is_within = head.headers.len() <= headers_max && input.len() <= head_bytes_max;
        if is_within && !bytes.is_empty() && input == bytes.as_slice() {
            return Parsed::Complete;
        }
        bytes.clear();
        head.parse(input, headers_max, head_bytes_max)
    }

    /// The head that was parsed last.
    pub(crate) fn head(&self) -> &Head {
        &self.places[self.at].head
    }

    /// Remembers the head that was parsed last, from `input`, if its route is known.
    #[inline]
    pub(crate) fn remember(&mut self, input: &[u8]) {
        let known = &mut self.places[self.at];
        if known.bytes.is_empty() && known.head.known_route.get().is_some() {
            known.remember(input);
        }
    }
}

impl KnownHead {
    fn remember(&mut self, input: &[u8]) {
        let Self { bytes, head } = self;
        if input.len() <= KNOWN_HEAD_BYTES_MAX && head.is_plain(input) {
            bytes.extend_from_slice(input);
        }
    }
}

/// Parts of the names of headers that carry credentials.
const CREDENTIALS: [&[u8]; 5] = [b"auth", b"cookie", b"key", b"secret", b"token"];

impl Head {
    /// Whether the head has no body, no absolute target, no expectation, and no header that can be
    /// a credential.
    fn is_plain(&self, bytes: &[u8]) -> bool {
        // Browsers and programs send these two with each request: an answer without a search.
        let is_usual = |(name, _): &(Span, Span)| {
            let name = name.of(bytes);
            [&b"cookie"[..], b"authorization"]
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known))
        };
        let holds_credential = |(name, _): &(Span, Span)| {
            let name = name.of(bytes).to_ascii_lowercase();
            CREDENTIALS
                .iter()
                .any(|part| memchr::memmem::find(&name, part).is_some())
        };
        self.bytes == bytes.len()
            && self.framing == Framing::None
            && !self.expects_continue
            && bytes.get(usize::from(self.path.start).wrapping_sub(1)) == Some(&b' ')
            && !self.headers.iter().any(is_usual)
            && !self.headers.iter().any(holds_credential)
    }
}

// ---- Fault
//
// The reasons for refusing a head, each with its response. Pure data.

// ---- Version
//
// HTTP versions that httparse does not know. Pure.

/// A version of HTTP/1 above 1.1. It must be handled like HTTP/1.1 (RFC 9110 2.5).
pub(crate) struct Newer {
    /// Position of the minor version's digit in the window.
    pub digit_at: usize,
}

/// Judges a version other than `HTTP/1.0` and `HTTP/1.1`: another major version is 505, a malformed
/// version 400. `None` while the line is incomplete, so that the result does not depend on how the
/// bytes arrive.
pub(crate) fn other(window: &[u8]) -> Result<Option<HeadFault>, Newer> {
    const SHAPE: &[u8; 10] = b"HTTP/0.0\r\n";
    let start = window
        .iter()
        .position(|byte| !matches!(byte, b'\r' | b'\n'))
        .unwrap_or_default();
    let Some(version) = window[start..].splitn(3, |byte| *byte == b' ').nth(2) else {
        return Ok(None);
    };
    let fits = |(byte, shape): (&u8, &u8)| match shape {
        b'0' => byte.is_ascii_digit(),
        _ => byte == shape,
    };
    let known = version
        .iter()
        .zip(SHAPE)
        .take_while(|pair| fits(*pair))
        .count();
    let is_whole = known == SHAPE.len();
    match version.get(known) {
        _ if is_whole && version.starts_with(b"HTTP/1.") => {
            let version_at = version.as_ptr() as usize - window.as_ptr() as usize;
            Err(Newer {
                digit_at: version_at + b"HTTP/1.".len(),
            })
        }
        _ if is_whole => Ok(Some(HeadFault::Version)),
        Some(b'\n') if known == SHAPE.len() - 2 => Ok(Some(HeadFault::BareLineFeed)),
        Some(_) => Ok(Some(HeadFault::Malformed)),
        None => Ok(None),
    }
}

// ---- Glimpse
//
// Reads what it can from a head that is incomplete or malformed, for the response that refuses it.
// Pure.

impl Head {
    /// Sets what a refusal needs: the method, `Accept`, `Origin` and `X-Request-Id` from complete
    /// lines, and how many bytes of cookies have arrived.
    pub(crate) fn glimpse(&mut self, window: &[u8]) {
        (self.method, self.origin, self.request_id) = (Method::default(), None, None);
        (self.glimpsed_accept, self.glimpsed_cookie_bytes) = (None, 0);
        let start = window
            .iter()
            .position(|byte| !matches!(byte, b'\r' | b'\n'));
        let begun = &window[start.unwrap_or(window.len())..];
        let token = begun.split(|byte| *byte == b' ').next().unwrap_or_default();
        self.method = Method::parse(token).unwrap_or_default();
        self.glimpsed_cookie_bytes = cookie_bytes(begun);
        // The text after the last line end may be incomplete.
        let whole = memchr::memrchr(b'\n', begun).map_or(&begun[..0], |end| &begun[..end]);
        for line in whole.split(|byte| *byte == b'\n').skip(1) {
            let Some(colon) = memchr::memchr(b':', line) else {
                if line.trim_ascii().is_empty() {
                    return;
                }
                continue;
            };
            let value = Span::within(window, line[colon + 1..].trim_ascii());
            match &line[..colon] {
                name if name.eq_ignore_ascii_case(b"origin") => {
                    self.origin = Some(only(self.origin, value));
                }
                name if name.eq_ignore_ascii_case(b"x-request-id") => self.request_id = Some(value),
                name if name.eq_ignore_ascii_case(b"accept") => self.glimpsed_accept = Some(value),
                _ => {}
            }
        }
    }
}

/// Bytes of the header lines `Cookie`, of which the last may be cut off.
fn cookie_bytes(begun: &[u8]) -> usize {
    let lines = begun.split(|byte| *byte == b'\n').skip(1);
    let of_head = lines.take_while(|line| !matches!(*line, b"" | b"\r"));
    let is_cookie = |line: &&[u8]| {
        line.split_first_chunk::<7>()
            .is_some_and(|(name, _)| name.eq_ignore_ascii_case(b"cookie:"))
    };
    of_head.filter(is_cookie).map(<[u8]>::len).sum()
}

// ---- Token
//
// The characters of a token (RFC 9110 5.6.2), such as a header's name.

/// `bytes` without spaces and tabs at either end.
pub(crate) fn trimmed(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// The values of all headers of this name, in order.
pub(super) fn named<'a, 'n>(
    headers: &'a [(Span, Span)],
    bytes: &'a [u8],
    name: &'n str,
) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
    let named = move |(key, value): &(Span, Span)| {
        key.of(bytes)
            .eq_ignore_ascii_case(name.as_bytes())
            .then(|| value.of(bytes))
    };
    headers.iter().filter_map(named)
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
