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
use crate::http::document::owned_body::OwnedBody;
use crate::http::message::chunked::{ChunkFault, Chunked};
use crate::http::message::head::{Framing, Head, KnownHeads, Parsed, Span};
use crate::http::message::head_fault::HeadFault;
use crate::http::message::problem::Problem;
use crate::http::message::request::{Peer, Request, accepts_pages};
use crate::http::message::response::{ConnectionLine, OpenStream, Response};
use crate::http::message::upload::{Crowded, Upload};
use crate::http::server::connection_table::ConnectionTable;
use crate::http::server::shared::{Serve, Shared};
use crate::http::settings::{BodyKind, BodyLimits, HttpSettings};

/// Output collected before it is written. Responses to pipelined requests share a write, but none
/// waits for too many others. The worker polls its other connections before it answers more
/// requests of this one. Sixteen snapshots take 56 KiB.
const FLUSH_BYTES: usize = 64 * 1024;

/// `Retry-After` where there is no room for an upload: most arrive and are read in less.
const BUSY_RETRY_S: u64 = 5;

/// The connection's progress in its current request.
#[derive(Default)]
pub(crate) enum Stage {
    /// Reading a head, or idle.
    #[default]
    Head,
    /// Reading a body.
    Body(Box<PartialRequest>),
    /// Reading a body that is a file.
    Upload(Box<PartialUpload>),
    /// Sending a stream. No further request follows.
    Stream(Box<OpenStream>),
}

impl Stage {
    /// The properties for refusing the arriving request. `carry` is the arrived part of its head.
    pub(crate) fn about(&self, carry: &[u8]) -> About {
        match self {
            Self::Head => About::of_partial(carry),
            Self::Body(partial) => partial.about.clone(),
            Self::Upload(partial) => partial.about.clone(),
            Self::Stream(_) => About::default(),
        }
    }

    /// Limits of the body that arrives.
    pub(super) fn body_limits(&self) -> Option<BodyLimits> {
        match self {
            Self::Body(partial) => Some(partial.limits),
            Self::Upload(partial) => Some(partial.limits),
            Self::Head | Self::Stream(_) => None,
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
            cookie_bytes: if head.bytes == 0 {
                head.glimpsed_cookie_bytes
            } else {
                0
            },
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
    limits: BodyLimits,
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

/// A request whose file is still arriving.
#[derive(Debug)]
pub(crate) struct PartialUpload {
    head: Zeroizing<Vec<u8>>,
    upload: Upload,
    reader: BodyReader,
    /// Those in force when the head had arrived.
    limits: BodyLimits,
    about: About,
}

/// Where in the body the next byte is.
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
                break if at < buffers.input_bytes {
                    Next::Flush
                } else {
                    Next::NeedInput
                };
            }
            let step = match self.stage {
                Stage::Head => self.head(buffers, &mut at),
                Stage::Body(_) => self.body(buffers, &mut at),
                Stage::Upload(_) => self.upload(buffers, &mut at),
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
        let Buffers {
            input,
            input_bytes,
            heads,
            holds_body,
            ..
        } = buffers;
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
                return self.refuse(buffers, &about, &without_tls());
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
                return self.refuse(buffers, &about, &too_large(limits));
            }
            _ if limits.kind == BodyKind::Upload => {
                return self.begin_upload(buffers, head_start..body_start, at, length, limits);
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
        self.begin_body(buffers, head_start..body_start, reader, limits)
    }

    /// Begins to collect the body that the head at `head` announces.
    fn begin_body(
        &mut self,
        buffers: &mut Buffers,
        head: Range<usize>,
        reader: BodyReader,
        limits: BodyLimits,
    ) -> Step {
        let parsed = buffers.heads.head();
        if parsed.expects_continue && buffers.input_bytes == head.end {
            buffers
                .out
                .extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let bytes = &buffers.input[head];
        let about = About::of(parsed, bytes);
        let head = Zeroizing::new(bytes.to_vec());
        let partial = PartialRequest {
            head,
            body: Collected::default(),
            reader,
            limits,
            about,
        };
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
        let Stage::Body(mut partial) = std::mem::take(self.stage) else {
            return Step::Again;
        };
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
                        return self.refuse(buffers, &partial.about, &too_large(partial.limits));
                    }
                    Err(ChunkFault::Malformed) => {
                        return self.refuse(buffers, &partial.about, &malformed_body());
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
        buffers
            .heads
            .parse(&partial.head, settings.headers_max, settings.head_bytes_max);
        let Buffers {
            out,
            body,
            owned,
            heads,
            ..
        } = buffers;
        self.answer(&partial.head, heads, &partial.body.0, Sink { out, body, owned })
    }

    /// Begins to collect the file that the head at `head` announces, if the service admits it.
    /// `length` is `None` for a chunked body. One that is refused is passed over at `at` if it has
    /// arrived whole.
    #[cold]
    fn begin_upload(
        &mut self,
        buffers: &mut Buffers,
        head: Range<usize>,
        at: &mut usize,
        length: Option<u64>,
        limits: BodyLimits,
    ) -> Step {
        let arrived = buffers.input_bytes - head.end;
        let has_arrived = arrived > 0;
        let bytes = &buffers.input[head.clone()];
        let parsed = buffers.heads.head();
        let about = About::of(parsed, bytes);
        let trusted_proxies = &self.settings.trusted_proxies;
        let now_ms = self.shared.slots.now_ms();
        let request = Request::new(bytes, parsed, &[], self.peer, trusted_proxies, now_ms);
        let begun = self.shared.service.admit(&request).and_then(|user| {
            let announced_bytes = length.unwrap_or(0);
            self.shared
                .uploads
                .begin(user, announced_bytes)
                .map_err(|Crowded| busy())
        });
        let upload = match begun {
            Ok(upload) => upload,
            Err(problem) => {
                let Some(passed) = length.filter(|length| *length <= arrived as u64) else {
                    return self.refuse(buffers, &about, &problem);
                };
                *at += passed as usize;
                let Buffers {
                    input,
                    out,
                    body,
                    owned,
                    heads,
                    ..
                } = buffers;
                let bytes = &input[head];
                let sink = Sink { out, body, owned };
                return self.answer_by(bytes, heads, &[], sink, |service, request, response| {
                    service.refuse_upload(request, &problem, response);
                });
            }
        };
        let reader = match length {
            // No more than `limits` allows.
            Some(length) => BodyReader::Length(length as usize),
            None => BodyReader::Chunked(Chunked::default()),
        };
        if parsed.expects_continue && !has_arrived {
            buffers
                .out
                .extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let head = Zeroizing::new(bytes.to_vec());
        *self.stage = Stage::Upload(Box::new(PartialUpload {
            head,
            upload,
            reader,
            limits,
            about,
        }));
        Step::Again
    }

    /// Collects what has arrived, and answers once the file is there.
    #[cold]
    fn upload(&mut self, buffers: &mut Buffers, at: &mut usize) -> Step {
        let Stage::Upload(mut partial) = std::mem::take(self.stage) else {
            return Step::Again;
        };
        let is_complete = match partial.take(&buffers.input[*at..buffers.input_bytes]) {
            Ok((used, is_complete)) => {
                *at += used;
                is_complete
            }
            Err(problem) => return self.refuse(buffers, &partial.about, &problem),
        };
        if !is_complete {
            *self.stage = Stage::Upload(partial);
            return Step::End(Next::NeedInput);
        }
        let settings = self.settings;
        let PartialUpload { head, upload, .. } = *partial;
        // Cannot fail: the same bytes were parsed before.
        buffers
            .heads
            .parse(&head, settings.headers_max, settings.head_bytes_max);
        let Buffers {
            out,
            body,
            owned,
            heads,
            ..
        } = buffers;
        self.answer_by(
            &head,
            heads,
            &[],
            Sink { out, body, owned },
            |service, request, response| {
                service.serve_upload(request, upload, response);
            },
        )
    }

    /// Answers the request with this head, whose body follows it.
    fn serve(&mut self, buffers: &mut Buffers, head: Range<usize>, body_bytes: usize) -> Step {
        let Buffers {
            input,
            out,
            body,
            owned,
            heads,
            ..
        } = buffers;
        let (bytes, rest) = input[head.start..].split_at(head.len());
        self.answer(bytes, heads, &rest[..body_bytes], Sink { out, body, owned })
    }

    /// Calls the handler.
    fn answer(
        &mut self,
        bytes: &[u8],
        heads: &mut KnownHeads,
        body: &[u8],
        sink: Sink<'_>,
    ) -> Step {
        self.answer_by(bytes, heads, body, sink, S::serve)
    }

    /// Calls `serve`. A panic in it is answered 500 and ends the connection, nothing else.
    ///
    /// Inlined, so that most requests, which are no uploads, pay nothing for those that are.
    #[inline(always)]
    fn answer_by(
        &mut self,
        bytes: &[u8],
        heads: &mut KnownHeads,
        body: &[u8],
        sink: Sink<'_>,
        serve: impl for<'s> FnOnce(&'s S, &Request<'_>, &mut Response<'s>),
    ) -> Step {
        let Sink {
            out,
            body: made,
            owned,
        } = sink;
        let head = heads.head();
        let before = out.len();
        self.shared.stats.begin();
        let clock = &self.shared.slots.clock;
        let stopwatch = clock.stopwatch();
        let arrived_mono_ms = clock.started_mono_ms(stopwatch);
        let trusted = &self.settings.trusted_proxies;
        let request = Request::new(bytes, head, body, self.peer, trusted, arrived_mono_ms);
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
        let handled = catch_unwind(AssertUnwindSafe(|| serve(service, &request, &mut response)));
        if handled.is_err() || response.status == 0 {
            self.shared.stats.handler_panics.increment();
            answer_failure(&mut response, before);
        }
        if let (false, Some(owned)) = (body.is_empty(), &mut *response.owned) {
            owned.keep_secret();
        }
        self.answered += 1;
        let took_ns = stopwatch.elapsed_ns();
        self.shared
            .stats
            .count(response.kind, response.status, took_ns);
        if let Some(open) = response.stream {
            *self.stage = Stage::Stream(open);
            return Step::Again;
        }
        if response.connection == ConnectionLine::Close {
            return Step::End(Next::Close {
                unread_input: !head.close,
            });
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

/// Answers in place of a handler that failed. What it wrote begins at `before` in the output.
#[cold]
fn answer_failure(response: &mut Response<'_>, before: usize) {
    response.out.truncate(before);
    *response.owned = None;
    response.stream = None;
    response.status = 0;
    response.close();
    let problem = Problem::internal();
    let id = response.problem(&problem);
    tracing::error!(
        request_id = id,
        "a request failed by a fault of this program (a panic, or no response)"
    );
}

fn without_tls() -> Problem {
    let detail = "An https target came over a connection without TLS.";
    Problem::new(421, "misdirected_request", detail)
}

fn malformed_body() -> Problem {
    Problem::new(400, "malformed_request", "The chunked request body is malformed.")
}

fn too_large(limits: BodyLimits) -> Problem {
    const KIB: usize = 1024;
    const MIB: usize = 1024 * KIB;
    let most = match limits.bytes_max {
        0 => "none is taken here".to_owned(),
        max if max.is_multiple_of(MIB) => format!("at most {} MiB are taken here", max / MIB),
        max if max.is_multiple_of(KIB) => format!("at most {} KiB are taken here", max / KIB),
        max => format!("at most {max} bytes are taken here"),
    };
    match limits.kind {
        BodyKind::Whole => {
            Problem::new(413, "body_too_large", format!("The request body is too large: {most}."))
        }
        BodyKind::Upload => {
            Problem::new(413, "file_too_large", format!("The file is too large: {most}."))
        }
    }
}

impl PartialUpload {
    /// Takes from what has arrived what is of the body. Returns how much that is, and whether the
    /// body is complete.
    fn take(&mut self, arrived: &[u8]) -> Result<(usize, bool), Problem> {
        match &mut self.reader {
            BodyReader::Length(left) => {
                let taken = arrived.len().min(*left);
                self.upload
                    .add(&arrived[..taken])
                    .map_err(|Crowded| busy())?;
                *left -= taken;
                Ok((taken, *left == 0))
            }
            BodyReader::Chunked(decoder) => {
                let mut decoded = Vec::with_capacity(arrived.len());
                let left = self.limits.bytes_max - self.upload.size();
                let done = decoder.decode(arrived, &mut decoded, left);
                let taken = done.map_err(|fault| match fault {
                    ChunkFault::TooLarge => too_large(self.limits),
                    ChunkFault::Malformed => malformed_body(),
                })?;
                self.upload.add(&decoded).map_err(|Crowded| busy())?;
                Ok(taken)
            }
        }
    }
}

/// There is no room for the file now.
fn busy() -> Problem {
    let detail = "Too many files are being uploaded. Nothing was changed.";
    Problem::unavailable("uploads_busy", detail, BUSY_RETRY_S)
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
