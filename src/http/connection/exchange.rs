//! One turn of a connection: what has arrived is parsed, every complete request answered into the
//! output buffer. Runs on the edge; waits only where a handler waits.

use std::panic::{AssertUnwindSafe, catch_unwind};

use zeroize::{Zeroize, Zeroizing};

use super::buffers::Buffers;
use crate::http::Method;
use crate::http::document::owned::OwnedBody;
use crate::http::message::chunked::{ChunkFault, Chunked};
use crate::http::message::head::{Framing, Head, Parsed};
use crate::http::message::problem::Problem;
use crate::http::message::request::{Peer, Request};
use crate::http::message::response::{ConnectionLine, Response};
use crate::http::serve::Serve;
use crate::http::server::shared::Shared;
use crate::http::settings::HttpSettings;

/// Output gathered before it is written, so that answers to pipelined requests share a write but
/// none waits for too many others, and no neighbour for too many of one client: it is polled before
/// the next are answered. Sixteen snapshots take 56 KiB.
const FLUSH_BYTES: usize = 64 * 1024;

/// Where the connection is in its current request.
#[derive(Debug, Default)]
pub enum Stage {
    /// Reading a head, or idle.
    #[default]
    Head,
    Body(Box<Inbound>),
}

impl Stage {
    /// What is known of the request that is arriving, `carry` being what has come of its head.
    pub fn about(&self, carry: &[u8]) -> About {
        match self {
            Self::Head => About::of_begun(carry),
            Self::Body(inbound) => inbound.about.clone(),
        }
    }
}

/// What of a refused request its refusal depends on.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// It was HEAD: its refusal has no body either.
    head_only: bool,
    origin: Option<Box<[u8]>>,
    own_request_id: Option<Box<[u8]>>,
}

impl About {
    fn of(head: &Head, bytes: &[u8]) -> Self {
        let origin = head.origin.map(|span| Box::from(span.of(bytes)));
        let own_request_id = head.own_request_id(bytes).map(Box::from);
        Self { head_only: head.method == Method::Head, origin, own_request_id }
    }

    /// Of a head of which only this has arrived.
    fn of_begun(bytes: &[u8]) -> Self {
        let mut head = Head::default();
        head.glimpse(bytes);
        Self::of(&head, bytes)
    }
}

/// A request whose body is still arriving. Wiped when dropped: bodies carry credentials.
#[derive(Debug)]
pub struct Inbound {
    head: Zeroizing<Vec<u8>>,
    body: Collected,
    reader: BodyReader,
    about: About,
}

/// A body as far as it has arrived, in memory reserved for all of it. Only what was written is
/// wiped: most of a slow body's memory is never touched, and wiping the rest would make it real.
/// It only ever grows, so nothing was written behind its end.
#[derive(Debug, Default)]
struct Collected(Vec<u8>);

impl Drop for Collected {
    fn drop(&mut self) {
        self.0.as_mut_slice().zeroize();
    }
}

#[derive(Debug)]
enum BodyReader {
    /// Bytes still to come.
    Length(usize),
    Chunked(Chunked),
}

/// What the connection does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// What is left needs more input.
    NeedInput,
    /// Output is full; complete requests may be left.
    Flush,
    /// The connection ends once the output is written; `rude` if unread input is likely.
    Close { rude: bool },
}

/// What a turn works on beside the buffers.
pub struct Exchange<'a, S> {
    pub shared: &'a Shared<S>,
    pub settings: &'a HttpSettings,
    pub peer: Peer,
    pub stage: &'a mut Stage,
    pub answered: u64,
}

impl<S: Serve> Exchange<'_, S> {
    /// Handles what stands in `buffers.input[..input_bytes]`; what is left moves to its front.
    pub fn run(&mut self, buffers: &mut Buffers) -> Next {
        let mut at = 0;
        let turn = loop {
            let full = buffers.out.len() >= FLUSH_BYTES.min(self.settings.unread_output_bytes_max);
            // Behind a body that was handed over nothing may stand in `out`.
            if full || buffers.owned.is_some() {
                break if at < buffers.input_bytes { Next::Flush } else { Next::NeedInput };
            }
            let step = match std::mem::take(self.stage) {
                Stage::Head => self.head(buffers, &mut at),
                Stage::Body(inbound) => self.body(buffers, &mut at, inbound),
            };
            match step {
                Step::Again => {}
                Step::End(turn) => break turn,
            }
        };
        if at < buffers.input_bytes {
            buffers.input.copy_within(at..buffers.input_bytes, 0);
        }
        buffers.input_bytes -= at;
        // What is left has not been looked at: it may be a request with its body.
        buffers.holds_body |= buffers.input_bytes > 0;
        turn
    }

    fn head(&mut self, buffers: &mut Buffers, at: &mut usize) -> Step {
        let settings = self.settings;
        let Buffers { input, input_bytes, head, holds_body, .. } = buffers;
        let arrived = &input[*at..*input_bytes];
        if arrived.is_empty() {
            return Step::End(Next::NeedInput);
        }
        match head.parse(arrived, settings.headers_max, settings.head_bytes_max) {
            Parsed::Partial => return Step::End(Next::NeedInput),
            Parsed::Fault(fault) => {
                let about = About::of(head, arrived);
                return self.refuse(buffers, &about, &fault.into());
            }
            // Said over a connection without TLS, by nobody who ends TLS for us (RFC 9110 7.4).
            Parsed::Complete if head.https && !self.peer.is_trusted(&settings.trusted_proxies) => {
                let about = About::of(head, arrived);
                let detail = "An https target came over a connection without TLS.";
                let problem = Problem::new(421, "misdirected_request", detail);
                return self.refuse(buffers, &about, &problem);
            }
            Parsed::Complete => {}
        }
        let (head_start, body_start) = (*at, *at + head.bytes);
        *at = body_start;
        let available = *input_bytes - body_start;
        // Before anything can go wrong with it.
        *holds_body |= head.framing != Framing::None;
        let reader = match head.framing {
            Framing::None => {
                return self.serve(buffers, head_start..body_start, &[]);
            }
            Framing::Length(length) if length > settings.body_bytes_max as u64 => {
                let about = About::of(head, &input[head_start..body_start]);
                return self.refuse(buffers, &about, &too_large());
            }
            Framing::Length(length) => {
                let length = length as usize;
                if available >= length {
                    *at += length;
                    return self.serve_in_place(buffers, head_start, body_start, length);
                }
                BodyReader::Length(length)
            }
            Framing::Chunked => BodyReader::Chunked(Chunked::default()),
        };
        if head.expects_continue && available == 0 {
            buffers.out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let about = About::of(head, &input[head_start..body_start]);
        let head = Zeroizing::new(buffers.input[head_start..body_start].to_vec());
        let inbound = Inbound { head, body: Collected::default(), reader, about };
        *self.stage = Stage::Body(Box::new(inbound));
        Step::Again
    }

    fn body(&mut self, buffers: &mut Buffers, at: &mut usize, mut inbound: Box<Inbound>) -> Step {
        buffers.holds_body = true;
        let arrived = &buffers.input[*at..buffers.input_bytes];
        let complete = match &mut inbound.reader {
            BodyReader::Length(left) => {
                let take = arrived.len().min(*left);
                // Exact: a Vec that grows by copying would leave unwiped copies behind.
                inbound.body.0.reserve_exact(*left);
                inbound.body.0.extend_from_slice(&arrived[..take]);
                *at += take;
                *left -= take;
                *left == 0
            }
            BodyReader::Chunked(decoder) => {
                let max = self.settings.body_bytes_max;
                let collected = inbound.body.0.len();
                inbound.body.0.reserve_exact(max.saturating_sub(collected));
                match decoder.decode(arrived, &mut inbound.body.0, max) {
                    Ok((used, complete)) => {
                        *at += used;
                        complete
                    }
                    Err(ChunkFault::TooLarge) => {
                        return self.refuse(buffers, &inbound.about, &too_large());
                    }
                    Err(ChunkFault::Malformed) => {
                        let detail = "The chunked request body is malformed.";
                        let problem = Problem::new(400, "malformed_request", detail);
                        return self.refuse(buffers, &inbound.about, &problem);
                    }
                }
            }
        };
        if !complete {
            *self.stage = Stage::Body(inbound);
            return Step::End(Next::NeedInput);
        }
        let settings = self.settings;
        // The same bytes parsed before, so this cannot fail.
        buffers.head.parse(&inbound.head, settings.headers_max, settings.head_bytes_max);
        let Buffers { out, body, owned, head, .. } = buffers;
        self.answer(&inbound.head, head, &inbound.body.0, Sink { out, body, owned })
    }

    fn serve(&mut self, buffers: &mut Buffers, head: std::ops::Range<usize>, body: &[u8]) -> Step {
        let Buffers { input, out, body: made, owned, head: parsed, .. } = buffers;
        self.answer(&input[head], parsed, body, Sink { out, body: made, owned })
    }

    fn serve_in_place(
        &mut self,
        buffers: &mut Buffers,
        head_start: usize,
        body_start: usize,
        length: usize,
    ) -> Step {
        let Buffers { input, out, body, owned, head, .. } = buffers;
        let (bytes, rest) = input[head_start..].split_at(body_start - head_start);
        self.answer(bytes, head, &rest[..length], Sink { out, body, owned })
    }

    /// Calls the handler; a panic in it costs this request and the connection, nothing else.
    fn answer(&mut self, bytes: &[u8], head: &Head, body: &[u8], sink: Sink<'_>) -> Step {
        let Sink { out, body: made, owned } = sink;
        let before = out.len();
        let stats = &self.shared.stats;
        stats.begin();
        let begun_ns = self.shared.slots.now_ns();
        let request = Request::new(bytes, head, body, self.peer, &self.settings.trusted_proxies);
        let service = &self.shared.service;
        let mut reply = Response {
            out,
            body: made,
            owned,
            date_line: self.shared.slots.date_line(),
            own_request_id: request.own_request_id(),
            head_only: head.method == Method::Head,
            connection: match (head.close, head.http_1_0) {
                (true, _) => ConnectionLine::Close,
                (false, true) => ConnectionLine::KeepAlive,
                (false, false) => ConnectionLine::Silent,
            },
            draining: self.shared.draining(),
            extra_lines: service.lines_for(request.origin()),
            status: 0,
            kind: 0,
        };
        let handled = catch_unwind(AssertUnwindSafe(|| service.serve(&request, &mut reply)));
        if handled.is_err() || reply.status == 0 {
            stats.handler_panics.increment();
            reply.out.truncate(before);
            *reply.owned = None;
            reply.status = 0;
            reply.close();
            let problem = Problem::internal();
            let id = reply.problem(&problem);
            tracing::error!(request_id = id, "handler panicked or sent nothing");
        }
        if let (false, Some(owned)) = (body.is_empty(), &mut *reply.owned) {
            owned.keep_secret();
        }
        self.answered += 1;
        let took_ns = self.shared.slots.now_ns().saturating_sub(begun_ns);
        stats.count(reply.kind, reply.status, took_ns);
        if reply.connection == ConnectionLine::Close {
            return Step::End(Next::Close { rude: !head.close });
        }
        Step::Again
    }

    /// Answers a fault of the protocol and ends the connection, whose framing can no longer be
    /// trusted.
    pub fn refuse(&mut self, buffers: &mut Buffers, about: &About, problem: &Problem) -> Step {
        // Behind bytes that were not understood anything may stand.
        buffers.holds_body = true;
        let mut reply = Response {
            out: &mut buffers.out,
            body: &mut buffers.body,
            owned: &mut buffers.owned,
            date_line: self.shared.slots.date_line(),
            own_request_id: about.own_request_id.as_deref(),
            head_only: about.head_only,
            connection: ConnectionLine::Close,
            draining: self.shared.draining(),
            extra_lines: self.shared.service.lines_for(about.origin.as_deref()),
            status: 0,
            kind: 0,
        };
        let id = reply.problem(problem);
        let (status, detail) = (problem.status, &*problem.detail);
        let lines = &self.shared.stats.refusal_lines;
        if lines.admit(status, problem.code, self.shared.slots.now_ms()) {
            tracing::info!(request_id = id, status, detail, "request refused");
        }
        self.shared.stats.begin();
        self.shared.stats.count(0, status, 0);
        self.answered += 1;
        Step::End(Next::Close { rude: true })
    }
}

fn too_large() -> Problem {
    Problem::new(413, "body_too_large", "The request body is too large.")
}

/// Where an answer goes.
struct Sink<'a> {
    out: &'a mut Vec<u8>,
    body: &'a mut Vec<u8>,
    owned: &'a mut Option<OwnedBody>,
}

/// Whether the turn goes on.
pub enum Step {
    Again,
    End(Next),
}
