//! The state that handlers use: one value, made at the start and shared by all workers.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::{ArcSwap, ArcSwapOption};
use jiff::Timestamp;
use serde::Serialize;

use crate::api::activation::Administration;
use crate::api::body::Fields;
use crate::api::cors::CorsInForce;
use crate::api::errors;
use crate::api::kept_candles::KeptCandles;
use crate::api::mcp::Tools;
use crate::api::portfolio::PortfolioState;
use crate::api::stream::EventStreams;
use crate::auth::throttle::{Key, Throttle};
use crate::auth::{ApiKey, Auth, Caller};
use crate::base::{Clock, MarketDay, Scope};
use crate::brokers::{BrokerA, BrokerB, SharedToken};
use crate::cache::{L1, Movers, Pending};
use crate::http::document::coding::etag;
use crate::http::document::variants::JSON;
use crate::http::{EntityTag, Named, Prepared, Problem, PublishedJson, Request, Response, Verdict};
use crate::market::{IndexList, InstrumentList, MarketCalendar, Sectors, Universe};
use crate::ops::RefusalLines;
use crate::rt::Lane;
use crate::signals::SignalList;
use crate::store::{Expected, Revision, States, Store};
use crate::views::values;
use crate::web::{File, Site};

/// The state that handlers use: cheap handles, put together by `app`.
pub struct State {
    pub clock: Clock,
    pub calendar: ArcSwap<MarketCalendar>,
    /// The indices and sectors of the snapshot.
    pub indices: Arc<IndexList>,
    pub auth: Arc<Auth>,
    pub store: Arc<Store>,
    pub snapshot: Arc<PublishedJson>,
    pub event_streams: Arc<EventStreams>,
    /// The prepared documents of the list and of the record of signals, and the list itself for
    /// filters.
    pub signals: Arc<PublishedJson>,
    pub signals_record: Arc<PublishedJson>,
    pub signal_list: Arc<ArcSwapOption<SignalList>>,
    /// Daily candles that clients asked for.
    pub(crate) candles: KeptCandles,
    pub l1: Arc<L1>,
    pub(crate) movers: Arc<Movers>,
    /// Symbols missing from L1, and the requests that wait for them.
    pub pending: Pending,
    pub instruments: Arc<ArcSwap<InstrumentList>>,
    /// The shares of which signals are made.
    pub(crate) universe: ArcSwap<Universe>,
    /// The sectors of companies.
    pub(crate) sectors: ArcSwap<Sectors>,
    pub health: Arc<ArcSwapOption<Prepared>>,
    pub broker_a: Arc<BrokerA>,
    /// Lane for users' syncs and activations. The shared feed has threads of its own.
    pub broker_a_lane: Arc<Lane>,
    /// Lane that ends the broker sessions which syncs opened, separate from the syncs.
    pub broker_a_sessions_lane: Arc<Lane>,
    pub broker_a_token: Arc<SharedToken>,
    pub broker_b: Arc<BrokerB>,
    pub broker_b_lane: Arc<Lane>,
    pub(crate) administration: Administration,
    /// Limits each user's changes to stored data.
    pub writes: Throttle,
    /// 0 while some feed can answer a miss within a request's wait. Otherwise the milliseconds
    /// until a feed may be asked again. Set by the scheduler.
    pub answer_in_ms: Arc<AtomicU64>,
    pub miss_wait_ms: u64,
    pub(crate) cors: CorsInForce,
    pub portfolio: PortfolioState,
    /// Limits the log lines about refused requests.
    pub refusal_lines: RefusalLines,
    /// Addresses of broker A's and broker B's login pages, to which the API key is appended.
    /// `None` in a public demo.
    pub login_pages: Option<[String; 2]>,
    /// The dashboard; `None` if it is switched off.
    pub site: Option<&'static Site>,
    /// Whether no request changes what is stored, as in a public demo.
    pub is_read_only: bool,
    /// The OpenAPI description.
    pub description: &'static File,
    /// The tools of `POST /mcp`.
    pub(crate) tools: &'static Tools,
}

impl State {
    /// The trading date and last close that prices are compared with at `now`.
    #[inline(never)]
    pub(super) fn market_day(&self, now: Timestamp) -> MarketDay {
        self.calendar.load().market_day(now)
    }

    /// The current calendar, for computations elsewhere. A reload may replace it.
    #[inline(never)]
    pub(super) fn calendar(&self) -> Arc<MarketCalendar> {
        self.calendar.load_full()
    }

    /// Counts one change that `caller` is about to make.
    ///
    /// # Errors
    /// 429 if the caller has made too many changes lately.
    pub(super) fn admit_write(&self, caller: &Caller) -> Result<(), Problem> {
        self.writes.admit(&[Key::User(caller.id.0)]).map_err(errors::too_many_writes)
    }
}

// ---- Call
//
// One call of a handler: its request and its caller, and the kinds of callers of a route.

/// A request with the router's findings about it.
pub struct Call<'a> {
    pub request: &'a Request<'a>,
    /// The caller; present for every route with [`Access::User`], and with an API key.
    pub(super) caller: Option<Caller>,
    /// The number in the path, if the route has one.
    pub path_id: Option<i64>,
}

impl Call<'_> {
    /// The query string; empty if there is none.
    pub(super) fn query(&self) -> &[u8] {
        self.request.query().unwrap_or_default()
    }

    /// The caller.
    pub(crate) fn caller(&self) -> &Caller {
        self.caller.as_ref().expect("the route's access is User, so the dispatch identified one")
    }

    /// The API key that came with the request.
    pub(super) fn key(&self) -> Option<&Arc<ApiKey>> {
        self.caller.as_ref()?.key.as_ref()
    }
}

/// The result of a handler. It has sent a success itself; the router sends a refusal.
pub(super) type Handled = Result<(), Problem>;

/// A handler of a route.
pub(crate) type Handler = fn(&State, &Call<'_>, &mut Response<'_>) -> Handled;

/// The callers that may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Public,
    /// A user with a valid token.
    User,
    /// The operator, by a secret in the body or by calling from this machine.
    Admin,
    /// The owner of an API key, and nobody with a login.
    Key,
}

/// The API keys with which a route may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Those with the scope.
    With(Scope),
    /// Any good one.
    Any,
    /// None: the route takes a login, or the administrator.
    Never,
}

impl Keys {
    /// Whether a good key may use the route, and the scope that it lacks otherwise.
    pub(super) fn admits(self, key: &ApiKey) -> Result<(), Option<Scope>> {
        match self {
            Self::Any => Ok(()),
            Self::With(scope) if key.scopes.has(scope) => Ok(()),
            Self::With(scope) => Err(Some(scope)),
            Self::Never => Err(None),
        }
    }
}

// ---- Replies
//
// Replies that a handler writes itself, each in one way.

/// Header of replies that must not be cached: reports of a change, or the state of an instant.
pub(super) const NO_STORE: (&str, &str) = ("Cache-Control", "no-store");

/// Headers of stored data: the client may keep it and must revalidate it each time.
pub(super) const KEPT: [(&str, &str); 2] =
    [("Cache-Control", "private, no-cache"), ("Vary", "Authorization, Cookie")];

/// Sends `view` with `Cache-Control: no-store`.
pub(super) fn reply_with(status: u16, view: &impl Serialize, reply: &mut Response<'_>) {
    values::write(reply.body(), view);
    reply.send(status, JSON, &[NO_STORE]);
}

/// Sends the JSON in the body of `reply` with the `ETag` `etag`, after the request's preconditions.
pub(super) fn send_tagged(
    call: &Call<'_>,
    etag: &str,
    headers: &[(&str, &str)],
    reply: &mut Response<'_>,
) -> Handled {
    let verdict = call.request.preconditions().judge(Some(etag.as_bytes()))?;
    reply.send(verdict.status(), JSON, &[&[("ETag", etag)], headers].concat());
    Ok(())
}

/// Sends the prepared response of what is published; false if nothing is.
#[inline(always)] // Three callers, one of them the hottest route: a call costs it 25 instructions.
pub(super) fn send_published(
    slot: &PublishedJson,
    call: &Call<'_>,
    reply: &mut Response<'_>,
) -> Result<bool, Problem> {
    let request = call.request;
    let published = slot.load();
    let Some(published) = published.as_deref() else { return Ok(false) };
    reply.send_document(published.select(request.accept_encoding(), request.preconditions())?);
    Ok(true)
}

/// Sends `view` as of this instant, with its `ETag`.
pub(super) fn show(view: &impl Serialize, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    values::write(reply.body(), view);
    send_tagged(call, &etag(reply.written()), &[NO_STORE], reply)
}

// ---- Conditional
//
// Converts the preconditions of a request to those of the store. An `ETag` of ours is a revision
// in quotes. Pure.

/// Longest revision that is taken; ours have 24 characters.
const REVISION_CHARS_MAX: usize = 64;

/// The `ETag` of a record with this revision.
pub(super) fn etag_of(revision: &Revision) -> String {
    format!("\"{}\"", revision.0)
}

/// The states in which the request allows its change. A weak tag matches nothing, because
/// `If-Match` uses strong comparison (RFC 9110 13.1.1).
pub(super) fn expected(request: &Request<'_>) -> Expected {
    let given = request.preconditions();
    Expected {
        one_of: given.named_if_match().map(|named| states(named, |tag| !tag.weak)),
        none_of: given.named_if_none_match().map(|named| states(named, |_| true)),
    }
}

/// The same, and where the body has a `revision`, no other state than that. It is the tag without
/// quotes, for clients whose tags a proxy changes.
pub(super) fn expected_with(request: &Request<'_>, fields: &mut Fields<'_>) -> Expected {
    let expected = expected(request);
    match revision(fields) {
        Some(revision) => expected.and_only(revision),
        None => expected,
    }
}

/// The `revision` in the body.
pub(super) fn revision(fields: &mut Fields<'_>) -> Option<Revision> {
    fields.optional_text("revision", REVISION_CHARS_MAX).map(Revision)
}

fn states(named: Named<'_>, counts: impl Fn(&EntityTag<'_>) -> bool) -> States {
    match named {
        Named::Anything => States::All,
        Named::Tags(tags) => {
            let tags = tags.into_iter().filter(counts);
            let inner = tags.map(|tag| tag.opaque[1..tag.opaque.len() - 1].to_owned());
            States::These(
                inner.filter_map(|tag| String::from_utf8(tag).ok().map(Revision)).collect(),
            )
        }
    }
}

// ---- Health
//
// `GET /api/health`: the report that the scheduler last made. Prepared in advance.

/// Never waits.
pub(super) fn read(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Handled {
    let report = state.health.load();
    let Some(report) = report.as_deref() else {
        return Err(Problem::unavailable("starting", "The service is starting.", 1));
    };
    let given = call.request.preconditions();
    // The report has no `ETag`, because it changes each second. If the service is down the answer
    // is no success, so preconditions do not apply.
    if report.status() == 200 && given.judge(None)? == Verdict::NotModified {
        reply.send(304, "", &[NO_STORE]);
    } else {
        reply.send_document(report);
    }
    Ok(())
}
