//! Parses the input of a connection and answers every complete request into the output buffer.
//!
//! Runs on the edge, and waits only where a handler waits.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use zeroize::{Zeroize, Zeroizing};

use crate::base::Clock;
use crate::http::Method;
use crate::http::connection::buffers::Buffers;
use crate::http::document::variants::OwnedBody;
use crate::http::message::chunked::{ChunkFault, Chunked};
use crate::http::message::head::{Framing, Head, KnownHeads, Parsed, Span};
use crate::http::message::head_fault::HeadFault;
use crate::http::message::problem::Problem;
use crate::http::message::request::{Peer, Request, accepts_pages};
use crate::http::message::response::{ConnectionLine, OpenStream, Response};
use crate::http::server::connection_table::ConnectionTable;
use crate::http::server::shared::{Serve, Shared};
use crate::http::settings::{BodyLimits, HttpSettings};

/// Output collected before it is written. Responses to pipelined requests share a write, but none
/// waits for too many others. The worker polls its other connections before it answers more
/// requests of this one. Sixteen snapshots take 56 KiB.
const FLUSH_BYTES: usize = 64 * 1024;

/// The connection's progress in its current request.
#[derive(Default)]
pub(crate) enum Stage {
    /// Reading a head, or idle.
    #[default]
    Head,
    /// Reading a body.
    Body(Box<PartialRequest>),
    /// Sending a stream. No further request follows.
    Stream(Box<OpenStream>),
}

impl Stage {
    /// The properties for refusing the arriving request. `carry` is the arrived part of its head.
    pub(crate) fn about(&self, carry: &[u8]) -> About {
        match self {
            Self::Head => About::of_partial(carry),
            Self::Body(partial) => partial.about.clone(),
            Self::Stream(_) => About::default(),
        }
    }
}

/// The properties of a request on which the response that refuses it depends.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    /// The method is HEAD: the refusal has no body either.
    head_only: bool,
    origin: Option<Box<[u8]>>,
    own_request_id: Option<Box<[u8]>>,
    /// A browser asks for a page to show to a person.
    wants_page: bool,
    /// Bytes of cookies in a head that was not read to its end.
    cookie_bytes: usize,
}

impl About {
    fn of(head: &Head, bytes: &[u8]) -> Self {
        let origin = head.origin.map(|span| Box::from(span.of(bytes)));
        let own_request_id = head.own_request_id(bytes).map(Box::from);
        let is_accept = |(name, _): &&(Span, Span)| name.of(bytes).eq_ignore_ascii_case(b"accept");
        let accept = match head.bytes {
            0 => head.glimpsed_accept,
            _ => head.headers.iter().find(is_accept).map(|(_, value)| *value),
        };
        Self {
            head_only: head.method == Method::Head,
            origin,
            own_request_id,
            wants_page: matches!(head.method, Method::Get | Method::Head)
                && accept.is_some_and(|accept| accepts_pages(accept.of(bytes))),
            cookie_bytes: if head.bytes == 0 { head.glimpsed_cookie_bytes } else { 0 },
        }
    }

    /// The refusal of a head with this fault. Where it is cookies that make it too large, a person
    /// who has never seen them has to know whose they are and what to do.
    fn problem(&self, fault: HeadFault, head_bytes_max: usize) -> Problem {
        let cookies = self.cookie_bytes;
        if fault != HeadFault::HeadTooLarge || cookies < head_bytes_max / 2 {
            return fault.into();
        }
        let (status, code, detail) = fault.told();
        let detail = format!(
            "{detail} {cookies} of its bytes, of which it may have {head_bytes_max}, are cookies \
             of this host name. Any service on this host name, on whatever port, or on a domain \
             above it can have set them. Delete the cookies of this host name in the browser, then \
             load the page again."
        );
        Problem::new(status, code, detail)
    }

    /// Reads the part of a head that has arrived.
    fn of_partial(bytes: &[u8]) -> Self {
        let mut head = Head::default();
        head.glimpse(bytes);
        Self::of(&head, bytes)
    }
}

/// A request whose body is still arriving. Wiped on drop, because bodies carry credentials.
#[derive(Debug)]
pub(crate) struct PartialRequest {
    head: Zeroizing<Vec<u8>>,
    body: Collected,
    reader: BodyReader,
    /// Those in force when the head had arrived.
    pub(super) limits: BodyLimits,
    about: About,
}

/// The part of a body that has arrived, in memory reserved for all of it. On drop only that part is
/// wiped: the rest was never written, and touching it would allocate its pages.
#[derive(Debug, Default)]
struct Collected(Vec<u8>);

impl Drop for Collected {
    fn drop(&mut self) {
        self.0.as_mut_slice().zeroize();
    }
}

#[derive(Debug)]
enum BodyReader {
    /// Number of bytes that have not arrived yet.
    Length(usize),
    Chunked(Chunked),
}

/// The connection's next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Reads more input; no complete request is left.
    NeedInput,
    /// Writes the output, which is full; complete requests may be left.
    Flush,
    /// Sends a stream. Further input of the client is not parsed.
    Stream,
    /// Ends once the output is written. `unread_input`: the client may still be sending.
    Close { unread_input: bool },
}

/// Everything that answering works on, except the buffers.
pub(crate) struct Exchange<'a, S> {
    pub shared: &'a Shared<S>,
    pub settings: &'a HttpSettings,
    pub peer: Peer,
    pub(crate) stage: &'a mut Stage,
    pub answered: u64,
}

impl<S: Serve> Exchange<'_, S> {
    /// Answers the complete requests in `buffers.input[..input_bytes]` and moves the rest to the
    /// front.
    #[inline]
    pub(crate) fn run(&mut self, buffers: &mut Buffers) -> Next {
        let mut at = 0;
        let next = loop {
            let full = buffers.out.len() >= FLUSH_BYTES.min(self.settings.unread_output_bytes_max);
            // An owned body is written after `out`, so no further response may be added to `out`.
            if full || buffers.owned.is_some() {
                break if at < buffers.input_bytes { Next::Flush } else { Next::NeedInput };
            }
            let step = match self.stage {
                Stage::Head => self.head(buffers, &mut at),
                Stage::Body(_) => self.body(buffers, &mut at),
                Stage::Stream(_) => Step::End(Next::Stream),
            };
            match step {
                Step::Again => {}
                Step::End(next) => break next,
            }
        };
        if at < buffers.input_bytes {
            buffers.input.copy_within(at..buffers.input_bytes, 0);
        }
        buffers.input_bytes -= at;
        // The rest was not parsed: it may contain a body.
        buffers.holds_body |= buffers.input_bytes > 0;
        next
    }

    fn head(&mut self, buffers: &mut Buffers, at: &mut usize) -> Step {
        let settings = self.settings;
        let Buffers { input, input_bytes, heads, holds_body, .. } = buffers;
        let arrived = &input[*at..*input_bytes];
        if arrived.is_empty() {
            return Step::End(Next::NeedInput);
        }
        let parsed = heads.parse(arrived, settings.headers_max, settings.head_bytes_max);
        let head = heads.head();
        match parsed {
            Parsed::Partial => return Step::End(Next::NeedInput),
            Parsed::Fault(fault) => {
                let about = About::of(head, arrived);
                let problem = about.problem(fault, settings.head_bytes_max);
                return self.refuse(buffers, &about, &problem);
            }
            // An https target over a connection without TLS, and not from a trusted proxy that ends
            // TLS for us (RFC 9110 7.4).
            Parsed::Complete if head.https && !self.peer.is_trusted(&settings.trusted_proxies) => {
                let about = About::of(head, arrived);
                let detail = "An https target came over a connection without TLS.";
                let problem = Problem::new(421, "misdirected_request", detail);
                return self.refuse(buffers, &about, &problem);
            }
            Parsed::Complete => {}
        }
        let head_start = *at;
        let body_start = *at + head.bytes;
        *at = body_start;
        let available = *input_bytes - body_start;
        // Set before anything can fail, so that the buffers are wiped in every case.
        *holds_body |= head.framing != Framing::None;
        let length = match head.framing {
            Framing::None => return self.serve(buffers, head_start..body_start, 0),
            Framing::Length(length) => Some(length),
            Framing::Chunked => None,
        };
        let limits = self.body_limits(head, &input[head_start..body_start]);
        let reader = match length {
            Some(length) if length > limits.bytes_max as u64 => {
                let about = About::of(head, &input[head_start..body_start]);
                return self.refuse(buffers, &about, &too_large(limits.bytes_max));
            }
            Some(length) => {
                let length = length as usize;
                if available >= length {
                    *at += length;
                    return self.serve(buffers, head_start..body_start, length);
                }
                BodyReader::Length(length)
            }
            None => BodyReader::Chunked(Chunked::default()),
        };
        if head.expects_continue && available == 0 {
            buffers.out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let about = About::of(head, &input[head_start..body_start]);
        let head = Zeroizing::new(buffers.input[head_start..body_start].to_vec());
        let partial = PartialRequest { head, body: Collected::default(), reader, limits, about };
        *self.stage = Stage::Body(Box::new(partial));
        Step::Again
    }

    /// Limits of the body of the request with this head. Apart, so that requests without a body,
    /// which are most, keep their registers.
    #[inline(never)]
    fn body_limits(&self, head: &Head, bytes: &[u8]) -> BodyLimits {
        let settings = self.settings;
        let trusted_proxies = &settings.trusted_proxies;
        let now_ms = self.shared.slots.now_ms();
        let request = Request::new(bytes, head, &[], self.peer, trusted_proxies, now_ms);
        self.shared.service.body_limits(&request, settings)
    }

    fn body(&mut self, buffers: &mut Buffers, at: &mut usize) -> Step {
        let Stage::Body(mut partial) = std::mem::take(self.stage) else { return Step::Again };
        buffers.holds_body = true;
        let arrived = &buffers.input[*at..buffers.input_bytes];
        let complete = match &mut partial.reader {
            BodyReader::Length(left) => {
                let take = arrived.len().min(*left);
                // Reserve all of it: a Vec that grows leaves an unwiped copy of its old content.
                partial.body.0.reserve_exact(*left);
                partial.body.0.extend_from_slice(&arrived[..take]);
                *at += take;
                *left -= take;
                *left == 0
            }
            BodyReader::Chunked(decoder) => {
                let max = partial.limits.bytes_max;
                let collected = partial.body.0.len();
                partial.body.0.reserve_exact(max.saturating_sub(collected));
                match decoder.decode(arrived, &mut partial.body.0, max) {
                    Ok((used, complete)) => {
                        *at += used;
                        complete
                    }
                    Err(ChunkFault::TooLarge) => {
                        return self.refuse(buffers, &partial.about, &too_large(max));
                    }
                    Err(ChunkFault::Malformed) => {
                        let detail = "The chunked request body is malformed.";
                        let problem = Problem::new(400, "malformed_request", detail);
                        return self.refuse(buffers, &partial.about, &problem);
                    }
                }
            }
        };
        if !complete {
            *self.stage = Stage::Body(partial);
            return Step::End(Next::NeedInput);
        }
        let settings = self.settings;
        // Cannot fail: the same bytes were parsed before.
        buffers.heads.parse(&partial.head, settings.headers_max, settings.head_bytes_max);
        let Buffers { out, body, owned, heads, .. } = buffers;
        self.answer(&partial.head, heads, &partial.body.0, Sink { out, body, owned })
    }

    /// Answers the request with this head, whose body follows it.
    fn serve(&mut self, buffers: &mut Buffers, head: Range<usize>, body_bytes: usize) -> Step {
        let Buffers { input, out, body, owned, heads, .. } = buffers;
        let (bytes, rest) = input[head.start..].split_at(head.len());
        self.answer(bytes, heads, &rest[..body_bytes], Sink { out, body, owned })
    }

    /// Calls the handler. A panic in it is answered 500 and ends the connection, nothing else.
    fn answer(
        &mut self,
        bytes: &[u8],
        heads: &mut KnownHeads,
        body: &[u8],
        sink: Sink<'_>,
    ) -> Step {
        let Sink { out, body: made, owned } = sink;
        let head = heads.head();
        let before = out.len();
        let stats = &self.shared.stats;
        stats.begin();
        let clock = &self.shared.slots.clock;
        let stopwatch = clock.stopwatch();
        let arrived_mono_ms = clock.started_mono_ms(stopwatch);
        let trusted_proxies = &self.settings.trusted_proxies;
        let request = Request::new(bytes, head, body, self.peer, trusted_proxies, arrived_mono_ms);
        let service = &self.shared.service;
        let mut response = Response {
            out,
            body: made,
            owned,
            date: &self.shared.slots.date,
            own_request_id: request.own_request_id(),
            head_only: head.method == Method::Head,
            connection: match (head.close, head.http_1_0) {
                (true, _) => ConnectionLine::Close,
                (false, true) => ConnectionLine::KeepAlive,
                (false, false) => ConnectionLine::Silent,
            },
            http_1_0: head.http_1_0,
            draining: &self.shared.draining,
            extra_lines: service.lines_for(request.origin()),
            status: 0,
            kind: 0,
            streams: &self.shared.streams,
            settings: self.settings,
            stream: None,
        };
        let handled = catch_unwind(AssertUnwindSafe(|| service.serve(&request, &mut response)));
        if handled.is_err() || response.status == 0 {
            stats.handler_panics.increment();
            response.out.truncate(before);
            *response.owned = None;
            response.stream = None;
            response.status = 0;
            response.close();
            let problem = Problem::internal();
            let id = response.problem(&problem);
            tracing::error!(request_id = id, "handler panicked or sent nothing");
        }
        if let (false, Some(owned)) = (body.is_empty(), &mut *response.owned) {
            owned.keep_secret();
        }
        self.answered += 1;
        let took_ns = stopwatch.elapsed_ns();
        stats.count(response.kind, response.status, took_ns);
        if let Some(open) = response.stream {
            *self.stage = Stage::Stream(open);
            return Step::Again;
        }
        if response.connection == ConnectionLine::Close {
            return Step::End(Next::Close { unread_input: !head.close });
        }
        heads.remember(bytes);
        Step::Again
    }

    /// Answers a violation of the protocol and ends the connection, because it is no longer known
    /// where the next request begins.
    pub(crate) fn refuse(
        &mut self,
        buffers: &mut Buffers,
        about: &About,
        problem: &Problem,
    ) -> Step {
        // The bytes that follow were not parsed and may be a body.
        buffers.holds_body = true;
        let mut response = Response {
            out: &mut buffers.out,
            body: &mut buffers.body,
            owned: &mut buffers.owned,
            date: &self.shared.slots.date,
            own_request_id: about.own_request_id.as_deref(),
            head_only: about.head_only,
            connection: ConnectionLine::Close,
            http_1_0: false,
            draining: &self.shared.draining,
            extra_lines: self.shared.service.lines_for(about.origin.as_deref()),
            status: 0,
            kind: 0,
            streams: &self.shared.streams,
            settings: self.settings,
            stream: None,
        };
        let id = match about.wants_page && self.shared.service.has_pages() {
            true => response.problem_page(problem),
            false => response.problem(problem),
        };
        let status = problem.status;
        let detail = &*problem.detail;
        let lines = &self.shared.stats.refusal_lines;
        if lines.admit(status, problem.code, self.shared.slots.now_ms()) {
            tracing::info!(request_id = id, status, detail, "request refused");
        }
        self.shared.stats.begin();
        self.shared.stats.count(0, status, 0);
        self.answered += 1;
        Step::End(Next::Close { unread_input: true })
    }
}

fn too_large(bytes_max: usize) -> Problem {
    const KIB: usize = 1024;
    const MIB: usize = 1024 * KIB;
    let most = match bytes_max {
        0 => "none is taken here".to_owned(),
        max if max.is_multiple_of(MIB) => format!("at most {} MiB are taken here", max / MIB),
        max if max.is_multiple_of(KIB) => format!("at most {} KiB are taken here", max / KIB),
        max => format!("at most {max} bytes are taken here"),
    };
    Problem::new(413, "body_too_large", format!("The request body is too large: {most}."))
}

/// The buffers that a response is written to.
struct Sink<'a> {
    out: &'a mut Vec<u8>,
    body: &'a mut Vec<u8>,
    owned: &'a mut Option<OwnedBody>,
}

/// Whether parsing goes on with the rest of the input.
pub(crate) enum Step {
    Again,
    /// Parsing stops, and the connection takes this step.
    End(Next),
}

// ---- Offline
//
// Requests without a socket: bytes in, bytes out, through the same parser and handlers as a
// connection.
//
// For benches and tests. Runs on the caller's thread; a handler that parks blocks it.

/// A connection without a socket.
pub struct Offline<S> {
    shared: Shared<S>,
    settings: HttpSettings,
    buffers: Box<Buffers>,
    stage: Stage,
}

impl<S: Serve> Offline<S> {
    /// Answers with `service` under `settings`.
    pub fn new(settings: &HttpSettings, clock: &Clock, service: S) -> Self {
        let slots = Arc::new(ConnectionTable::new(1, clock));
        Self {
            shared: Shared::new(service, settings, slots),
            settings: settings.clone(),
            buffers: Buffers::take(settings.head_bytes_max),
            stage: Stage::Head,
        }
    }

    /// Handles `input`, at most `READ_BYTES`, and returns all responses to it.
    pub fn exchange(&mut self, input: &[u8]) -> &[u8] {
        self.buffers.out.clear();
        let held = self.buffers.input_bytes;
        self.buffers.input[held..held + input.len()].copy_from_slice(input);
        self.buffers.input_bytes += input.len();
        let mut exchange = Exchange {
            shared: &self.shared,
            settings: &self.settings,
            peer: Peer::Unix,
            stage: &mut self.stage,
            answered: 0,
        };
        let next = exchange.run(&mut self.buffers);
        let Buffers { out, owned, .. } = &mut *self.buffers;
        match owned.take() {
            Some(body) => out.extend_from_slice(body.bytes()),
            None => debug_assert!(next != Next::Flush, "the output is full"),
        }
        &self.buffers.out
    }
}
