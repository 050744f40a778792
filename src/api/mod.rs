//! The routes. Foreground answers from memory.
//!
//! [`ROUTES`] is the whole surface. Handlers run on the edge, receive [`State`] as an argument, and
//! answer through [`Response`]; a refusal is a [`Problem`] that they return and that is sent and
//! logged here, in one place. Must never block; only a route marked [`Hop::OnMiss`] may park.

mod account;
mod activation;
mod body;
pub(crate) mod broker_status;
mod conditional;
mod cors;
pub(crate) mod errors;
mod health;
mod journal;
mod json;
mod openapi;
mod portfolio;
mod query;
mod quotes;
mod routes;
mod signals;
mod snapshot;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::{ArcSwap, ArcSwapOption};
use jiff::Timestamp;

use crate::auth::{Auth, Caller, Unidentified};
use crate::base::{Clock, MarketDay};
use crate::brokers::{BrokerA, BrokerB, SharedToken};
use crate::cache::{L1, Misses, Probes};
use crate::http::{Method, Prepared, Problem, Request, Response, Serve};
use crate::limits::throttle::{Key, Throttle};
use crate::market::{InstrumentList, MarketCalendar, PublishedJson};
use crate::ops::RefusalLines;
use crate::rt::Lane;
use crate::signals::SignalList;
use crate::store::Store;

pub use activation::Administration;
pub use cors::Cors;
pub use openapi::Document;
pub use portfolio::PortfolioState;
pub use routes::{ROUTES, Route};

/// Bytes of a path that a line of the log shows; our longest route is a third of it.
const LOGGED_PATH_BYTES_MAX: usize = 160;

/// What handlers work with: cheap handles, built by the composition root.
pub struct State {
    pub clock: Clock,
    pub calendar: ArcSwap<MarketCalendar>,
    pub auth: Arc<Auth>,
    pub store: Arc<dyn Store>,
    pub snapshot: Arc<PublishedJson>,
    /// The list and the record of signals, complete; and the list to filter.
    pub signals: Arc<PublishedJson>,
    pub signals_record: Arc<PublishedJson>,
    pub signal_list: Arc<ArcSwapOption<SignalList>>,
    pub l1: Arc<L1>,
    /// Requests that wait for listed symbols, and for well-formed ones that the embedded list
    /// lacks.
    pub misses: Misses,
    pub probes: Probes,
    /// Symbols that users hold, fetched in passing; nobody waits for them.
    pub held: Misses,
    pub instruments: Arc<ArcSwap<InstrumentList>>,
    pub health: Arc<ArcSwapOption<Prepared>>,
    pub broker_a: Arc<BrokerA>,
    /// Users' syncs and activations; the shared feed has threads of its own.
    pub broker_a_lane: Arc<Lane>,
    /// Ends the sessions that syncs opened, apart from the syncs.
    pub broker_a_sessions_lane: Arc<Lane>,
    pub broker_a_token: Arc<SharedToken>,
    pub broker_b: Arc<BrokerB>,
    pub broker_b_lane: Arc<Lane>,
    pub administration: Administration,
    /// Changes that each user makes to what is stored of theirs.
    pub writes: Throttle,
    /// 0 while some feed may answer a request that misses within its wait; else the milliseconds
    /// until one may be asked again. Kept by the scheduler.
    pub answer_in_ms: Arc<AtomicU64>,
    pub miss_wait_ms: u64,
    pub cors: ArcSwap<Cors>,
    pub portfolio: PortfolioState,
    /// What the log gets to see of refusals.
    pub refusal_lines: RefusalLines,
    /// The description of all this.
    pub document: Document,
}

impl State {
    /// Where prices stand at `now`.
    #[inline(never)]
    fn market_day(&self, now: Timestamp) -> MarketDay {
        self.calendar.load().market_day(now)
    }

    /// The allowed origins of this moment.
    #[inline(never)]
    fn cors(&self) -> Arc<Cors> {
        self.cors.load_full()
    }

    /// Apart from the caller, which may park: the load takes a thread-local's address.
    #[inline(never)]
    fn cors_lines(&self, origin: Option<&[u8]>) -> Option<Arc<[u8]>> {
        self.cors.load().lines(origin)
    }
}

impl State {
    /// Counts one change by `caller`, which is about to be written.
    ///
    /// # Errors
    /// Too many of late.
    fn admit_write(&self, caller: &Caller) -> Result<(), Problem> {
        self.writes.admit(&[Key::User(caller.id.0)]).map_err(errors::too_many_writes)
    }
}

/// A request with what the dispatch found out about it.
pub struct Call<'a> {
    pub request: Request<'a>,
    /// Who is calling; there for every route of [`Access::User`].
    caller: Option<Caller>,
    /// The number in the path, where the route has one.
    pub path_id: Option<i64>,
}

impl Call<'_> {
    /// Who is calling.
    pub fn caller(&self) -> &Caller {
        self.caller.as_ref().expect("the route's access is User, so the dispatch identified one")
    }
}

/// Sends a success itself; a refusal is returned.
pub type Handler = fn(&State, &Call<'_>, &mut Response<'_>) -> Result<(), Problem>;

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Public,
    /// A user with a valid token.
    User,
    /// The operator, by a secret in the body or by calling from this machine.
    Admin,
}

/// Whether a handler may park.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hop {
    Never,
    /// For what is not cached, for a bounded time.
    OnMiss,
    /// For a lane, each time, up to the lane's deadline.
    Always,
}

/// The service that the HTTP layer calls.
pub struct Api {
    state: State,
}

impl Api {
    /// Serves [`ROUTES`] from `state`.
    pub fn new(state: State) -> Self {
        Self { state }
    }

    /// What the handlers work with.
    pub fn state(&self) -> &State {
        &self.state
    }

    fn dispatch(&self, request: &Request<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
        let method = request.method();
        let (sent, mut normal) = (request.path(), None);
        let mut place = found(method, sent);
        if let Found::Nothing = place {
            // Looked for once more where it can be spelled otherwise.
            normal = request.normal_path();
            place = normal.as_ref().map_or(place, |path| found(method, path));
        }
        let path = normal.as_deref().unwrap_or(sent);
        match place {
            Found::Route(number, path_id) => self.run(number, path_id, request, reply),
            Found::Path if method == Method::Options => self.options(path, request, reply),
            Found::Path => Err(method_not_allowed(path)),
            Found::Nothing => Err(Problem::new(404, "not_found", "There is nothing at this path.")),
        }
    }

    fn run(
        &self,
        number: usize,
        path_id: Option<i64>,
        request: &Request<'_>,
        reply: &mut Response<'_>,
    ) -> Result<(), Problem> {
        let route = &ROUTES[number];
        reply.is_of_kind(number + 1);
        let caller = self.admitted(route, request)?;
        if route.method != Method::Get {
            refuse_unmeant(route, request)?;
        }
        let call = Call { request: *request, caller, path_id };
        (route.run)(&self.state, &call, reply)
    }

    /// Sends a refusal and logs it once, with the id that the client sees; in a flood without a
    /// line.
    fn refuse(&self, problem: &Problem, request: &Request<'_>, reply: &mut Response<'_>) {
        let request_id = reply.problem(problem);
        let (status, code) = (problem.status, problem.code);
        let State { refusal_lines, clock, .. } = &self.state;
        if !refusal_lines.admit(status, code, clock.monotonic_ms()) {
            return;
        }
        let method = request.method().as_str();
        let path = shown(request.path());
        let cause = problem.cause.as_deref();
        if status >= 500 {
            tracing::warn!(request_id, method, path, status, code, cause, "request failed");
        } else {
            tracing::info!(request_id, method, path, status, code, cause, "request refused");
        }
    }

    /// The caller of a route that needs one.
    fn admitted(&self, route: &Route, request: &Request<'_>) -> Result<Option<Caller>, Problem> {
        if route.access != Access::User {
            return Ok(None);
        }
        let auth = &self.state.auth;
        let caller = match auth.identify(request) {
            Err(Unidentified::Unready) if auth.recover() => auth.identify(request),
            settled => settled,
        };
        let caller = caller.map_err(errors::unidentified)?;
        if caller.by_cookie && !self.state.cors().trusts(request) {
            let detail = "A request by cookie must come from a page of this site.";
            return Err(Problem::new(403, "cross_site_request", detail));
        }
        Ok(Some(caller))
    }

    /// OPTIONS, a preflight included; never asks who is calling.
    fn options(
        &self,
        path: &[u8],
        request: &Request<'_>,
        reply: &mut Response<'_>,
    ) -> Result<(), Problem> {
        let allow = allowed_methods(path);
        reply.body();
        match self.state.cors().preflight(request, &allow) {
            Some(headers) => reply.send(204, "", &headers),
            None => reply.send(204, "", &[("Allow", &allow)]),
        }
        Ok(())
    }
}

impl Serve for Api {
    fn kinds(&self) -> usize {
        ROUTES.len()
    }

    fn lines_for(&self, origin: Option<&[u8]>) -> Option<Arc<[u8]>> {
        self.state.cors_lines(origin)
    }

    fn serve<'a>(&'a self, request: &Request<'_>, reply: &mut Response<'a>) {
        if let Err(problem) = self.dispatch(request, reply) {
            self.refuse(&problem, request, reply);
        }
    }
}

/// The path as the log shows it.
fn shown(path: &[u8]) -> String {
    match path.split_at_checked(LOGGED_PATH_BYTES_MAX) {
        Some((start, rest)) if !rest.is_empty() => {
            format!("{}... ({} bytes)", String::from_utf8_lossy(start), path.len())
        }
        _ => String::from_utf8_lossy(path).into_owned(),
    }
}

/// What there is for a method at a path.
enum Found {
    /// Its place among [`ROUTES`], and the number in the path.
    Route(usize, Option<i64>),
    /// For other methods alone; `*` is of `OPTIONS` only.
    Path,
    Nothing,
}

fn found(method: Method, path: &[u8]) -> Found {
    let mut other = Found::Nothing;
    for (number, route) in ROUTES.iter().enumerate() {
        if let Some(path_id) = matched(route.path, path) {
            let head = method == Method::Head && route.method == Method::Get;
            if route.method == method || head {
                return Found::Route(number, path_id);
            }
            other = Found::Path;
        }
    }
    if path == b"*" { Found::Path } else { other }
}

/// Whether `path` is one of `pattern`; gives the number that stands for `{id}`, if any.
fn matched(pattern: &str, path: &[u8]) -> Option<Option<i64>> {
    let Some((before, after)) = pattern.split_once("{id}") else {
        return (pattern.as_bytes() == path).then_some(None);
    };
    let digits = path.strip_prefix(before.as_bytes())?.strip_suffix(after.as_bytes())?;
    // As we write ids: no sign, no leading zero.
    let plain = digits.first()?.is_ascii_digit() && *digits.first()? != b'0';
    let id = std::str::from_utf8(digits).ok().filter(|_| plain)?.parse().ok()?;
    Some(Some(id))
}

/// Refuses a change that is not meant as it would be made: of a part of something (RFC 9110 14.5),
/// or of a state of something that has none, because nobody can read it (13.1.1). What can be read
/// is compared where it is changed.
fn refuse_unmeant(route: &Route, request: &Request<'_>) -> Result<(), Problem> {
    if route.method == Method::Put && request.header("content-range").is_some() {
        let detail = "An entry is put as a whole, without Content-Range.";
        return Err(Problem::new(400, "content_range_not_supported", detail));
    }
    let is_read = |other: &Route| other.method == Method::Get && other.path == route.path;
    if request.preconditions().wants_a_match() && !ROUTES.iter().any(is_read) {
        return Err(Problem::precondition_failed());
    }
    Ok(())
}

fn method_not_allowed(path: &[u8]) -> Problem {
    let detail = "This path does not take this method; see the Allow header.";
    Problem::new(405, "method_not_allowed", detail).with("Allow", allowed_methods(path))
}

fn allowed_methods(path: &[u8]) -> String {
    let mut allowed = Vec::new();
    for route in ROUTES.iter().filter(|route| path == b"*" || matched(route.path, path).is_some()) {
        allowed.push(route.method.as_str());
        if route.method == Method::Get {
            allowed.push(Method::Head.as_str());
        }
    }
    allowed.push(Method::Options.as_str());
    allowed.sort_unstable();
    allowed.dedup();
    allowed.join(", ")
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_long_path_is_cut_in_the_log() {
        assert_eq!(shown(b"/api/journal/7"), "/api/journal/7");
        let path = [b"/".as_slice(), &[0xC3, 0xA4].repeat(4_000)].concat();
        let shown = shown(&path);
        assert!(shown.len() < 200 && shown.ends_with("... (8001 bytes)"), "{shown}");
    }
}
