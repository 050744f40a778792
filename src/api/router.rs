//! Finds the route of a request, identifies its caller, and calls the handler. Runs on the edge.

use std::sync::Arc;

use crate::api::call::{Access, Call, Handled, Route, Taking};
use crate::api::errors;
use crate::api::mcp::Tools;
use crate::api::pages::Place;
use crate::api::query::Decoded;
use crate::api::refusal_log::log_refusal;
use crate::api::routes::ROUTES;
use crate::api::state::State;
use crate::auth::{ApiKey, Caller, KeyRefusal, holds_key, number};
use crate::http::settings::HttpSettings;
use crate::http::{BodyLimits, Due, Group, Method, Problem, Request, Response, Serve, Upload};
use crate::rt::News;

/// Kind of the requests for the dashboard's pages and files in the statistics: after all routes.
const PAGE_KIND: usize = ROUTES.len() + 1;

/// The service that the HTTP layer calls.
pub struct Api {
    state: State,
}

impl Api {
    /// Serves [`ROUTES`] from `state`.
    pub fn new(state: State) -> Self {
        Tools::prepare(ROUTES);
        Self { state }
    }

    /// The state that handlers use.
    pub fn state(&self) -> &State {
        &self.state
    }

    fn dispatch(&self, request: &Request<'_>, response: &mut Response<'_>) -> Handled {
        self.expect_no_key_in_query(request)?;
        let method = request.method();
        let sent = request.path();
        let (place, normal) = found_for(request, sent);
        let path = normal.as_deref().unwrap_or(sent);
        match place {
            Found::Route(number, path_id) => {
                response.is_of_kind(number + 1);
                let route = &ROUTES[number];
                let caller = self.admitted(route, request)?;
                let Route { access, method, .. } = *route;
                if access == Access::Public && method == Method::Get && path_id.is_none() {
                    request.name_route(number);
                }
                self.run(
                    number,
                    &Call {
                        request,
                        caller,
                        path_id,
                    },
                    response,
                )
            }
            Found::Path if method == Method::Options => {
                self.options(&allowed_methods(path), request, response)
            }
            Found::Path => Err(method_not_allowed(path)),
            Found::Nothing => self.page(path, request, response),
        }
    }

    fn expect_no_key_in_query(&self, request: &Request<'_>) -> Result<(), Problem> {
        if request.query().is_some_and(has_key) {
            self.state
                .auth
                .api_keys
                .refused
                .increment(KeyRefusal::Query);
            return Err(errors::key_refused(KeyRefusal::Query));
        }
        Ok(())
    }

    /// The route of a request whose body is a file, and the call, if its caller may make it.
    fn upload_of<'r>(
        &self,
        request: &'r Request<'r>,
    ) -> Result<(&'static Taking, Call<'r>), Problem> {
        self.expect_no_key_in_query(request)?;
        let (place, _) = found_for(request, request.path());
        let Found::Route(number, path_id) = place else {
            return Err(Problem::internal());
        };
        let route = &ROUTES[number];
        let taking = route.upload.as_ref().ok_or_else(Problem::internal)?;
        let caller = self.admitted(route, request)?;
        self.expect_change(route, request)?;
        Ok((
            taking,
            Call {
                request,
                caller,
                path_id,
            },
        ))
    }

    /// Answers a path that is not a route: a page of the dashboard, or 404.
    fn page(&self, path: &[u8], request: &Request<'_>, response: &mut Response<'_>) -> Handled {
        let place = Place::at(&self.state, path);
        let Some(place) = place.or_else(|| Place::missing(&self.state, path, request)) else {
            return Err(Problem::new(404, "not_found", "There is nothing at this path."));
        };
        response.is_of_kind(PAGE_KIND);
        match request.method() {
            Method::Options => self.options(place.allowed_methods(), request, response),
            _ => {
                self.state.auth.by_key(request).map_err(errors::no_key)?;
                place.serve(&self.state, request, response)
            }
        }
    }

    #[inline]
    fn run(&self, number: usize, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
        let route = &ROUTES[number];
        if route.method != Method::Get {
            self.expect_change(route, call.request)?;
        }
        (route.run)(&self.state, call, response)
    }

    /// Refuses a change that is not made here, or not as requested.
    fn expect_change(&self, route: &Route, request: &Request<'_>) -> Result<(), Problem> {
        if self.state.is_read_only && !only_reads(route) {
            let here = |other: &&Route| other.path == route.path && only_reads(other);
            return Err(errors::read_only(methods_of(ROUTES.iter().filter(here))));
        }
        refuse_unsupported_change(route, request)
    }

    /// Sends a refusal and logs it once, with the request id that the client sees.
    fn refuse(&self, problem: &Problem, request: &Request<'_>, response: &mut Response<'_>) {
        let explained = (problem.status == 412)
            .then(|| errors::altered_tag(request))
            .flatten();
        let problem = explained.as_ref().unwrap_or(problem);
        let request_id = match self.is_shown_to_a_person(request) {
            true => response.problem_page(problem),
            false => response.problem(problem),
        };
        log_refusal(&self.state, request, &request_id, problem);
    }

    /// Whether a browser opens a page of the dashboard, or comes back from a broker's login. Routes
    /// of the API answer everybody alike.
    fn is_shown_to_a_person(&self, request: &Request<'_>) -> bool {
        request.wants_page() && Place::at(&self.state, request.path()).is_some()
    }

    /// The caller of a route that needs one, and the owner of an API key on every route.
    fn admitted(&self, route: &Route, request: &Request<'_>) -> Result<Option<Caller>, Problem> {
        // A browser adds no key by itself. The protocol demands the check all the same.
        let is_of_page = route.access == Access::Key && request.header("origin").is_some();
        if is_of_page && !self.state.cors.load().is_from_here(request) {
            return Err(errors::cross_site(request, "A request with an Origin"));
        }
        if let Some(key) = self.state.auth.by_key(request).map_err(errors::no_key)? {
            self.expect_scope(route, &key)?;
            return Ok(Some(Caller::by_key(key)));
        }
        match route.access {
            Access::Public | Access::Admin => return Ok(None),
            Access::Key => return Err(errors::key_missing()),
            Access::User => {}
        }
        let caller = self
            .state
            .auth
            .identify(request)
            .map_err(errors::unidentified)?;
        if caller.by_cookie && !self.state.cors.load().trusts(request) {
            return Err(errors::cross_site(request, "A change by cookie"));
        }
        Ok(Some(caller))
    }

    fn expect_scope(&self, route: &Route, key: &ApiKey) -> Result<(), Problem> {
        let refused = |why| {
            self.state.auth.api_keys.refused.increment(why);
            errors::key_refused(why)
        };
        route.keys.admits(key).map_err(|lacking| match lacking {
            Some(scope) => {
                let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
                refused(KeyRefusal::Scope).with("WWW-Authenticate", challenge)
            }
            None => refused(KeyRefusal::Login),
        })
    }

    /// Answers OPTIONS, including CORS preflights. Never identifies the caller.
    fn options(&self, allow: &str, request: &Request<'_>, response: &mut Response<'_>) -> Handled {
        response.body();
        match self.state.cors.load().preflight(request, allow) {
            Some(headers) => response.send(204, "", &headers),
            None => response.send(204, "", &[("Allow", allow)]),
        }
        Ok(())
    }
}

impl Serve for Api {
    fn kinds(&self) -> usize {
        PAGE_KIND
    }

    fn news(&self) -> Option<News> {
        Some(self.state.snapshot.news().clone())
    }

    fn refresh_streams(&self, due: Due, wake: &mut dyn FnMut(Group)) -> bool {
        self.state
            .event_streams
            .refresh(self.state.quote_source(), due, wake)
    }

    fn lines_for(&self, origin: Option<&[u8]>) -> Option<Arc<[u8]>> {
        self.state.cors.lines(origin)
    }

    fn body_limits(&self, head: &Request<'_>, settings: &HttpSettings) -> BodyLimits {
        let sent = head.path();
        let (place, normal) = found_for(head, sent);
        let path = normal.as_deref().unwrap_or(sent);
        match place {
            Found::Route(number, _) => (ROUTES[number].body)(settings),
            Found::Path => settings.body_limits(),
            Found::Nothing => Place::at(&self.state, path)
                .map_or_else(|| settings.body_limits(), |place| place.body_limits(settings)),
        }
    }

    fn admit(&self, head: &Request<'_>) -> Result<i64, Problem> {
        let (taking, call) = self.upload_of(head)?;
        (taking.admit)(&self.state, &call)?;
        Ok(call.caller().id.0)
    }

    fn refuse_upload(&self, head: &Request<'_>, problem: &Problem, response: &mut Response<'_>) {
        self.refuse(problem, head, response);
    }

    fn serve_upload<'a>(
        &'a self,
        request: &Request<'_>,
        upload: Upload,
        response: &mut Response<'a>,
    ) {
        if let Found::Route(number, _) = found_for(request, request.path()).0 {
            response.is_of_kind(number + 1);
        }
        // Once more: the login may have ended since the head came.
        let handled = self
            .upload_of(request)
            .and_then(|(taking, call)| (taking.take)(&self.state, &call, upload, response));
        if let Err(problem) = handled {
            self.refuse(&problem, request, response);
        }
    }

    fn has_pages(&self) -> bool {
        self.state.site.is_some()
    }

    // Inlined into the exchange: what stands between a known head and its handler is short.
    #[inline]
    fn serve<'a>(&'a self, request: &Request<'_>, response: &mut Response<'a>) {
        let handled = match request.known_route() {
            // Nobody's, and without an API key: such a head is never known.
            Some(number) => {
                response.is_of_kind(number + 1);
                self.run(
                    number,
                    &Call {
                        request,
                        caller: None,
                        path_id: None,
                    },
                    response,
                )
            }
            None => self.dispatch(request, response),
        };
        if let Err(problem) = handled {
            self.refuse(&problem, request, response);
        }
    }
}

/// Whether a value in the query has an API key's form, percent-encoded or not. A key has two
/// underscores, and symbols have none, so most queries are not decoded.
fn has_key(query: &[u8]) -> bool {
    let may_be = memchr::memchr(b'_', query).is_some()
        || memchr::memchr_iter(b'%', query)
            .any(|at| matches!(query.get(at + 1..at + 3), Some([b'5', b'f' | b'F'])));
    may_be
        && holds_key(
            &Decoded(query)
                .map(Result::unwrap_or_default)
                .collect::<Vec<u8>>(),
        )
}

/// The match of a method and path with the routes.
enum Found {
    /// Index in [`ROUTES`], and the number in the path.
    Route(usize, Option<i64>),
    /// The path exists, but not with this method. `*` accepts only `OPTIONS`.
    Path,
    Nothing,
}

/// The match of a request, and its normalised path, which is tried if the one sent fits nothing.
#[inline(always)]
fn found_for(request: &Request<'_>, sent: &[u8]) -> (Found, Option<Vec<u8>>) {
    let method = request.method();
    match found(method, sent) {
        Found::Nothing => {
            let normal = request.normal_path();
            let place = normal
                .as_ref()
                .map_or(Found::Nothing, |path| found(method, path));
            (place, normal)
        }
        place => (place, None),
    }
}

fn found(method: Method, path: &[u8]) -> Found {
    let mut other = Found::Nothing;
    for (number, (route, pattern)) in ROUTES.iter().zip(&PATTERNS).enumerate() {
        if let Some(path_id) = pattern.matched(path) {
            let head = method == Method::Head && route.method == Method::Get;
            if route.method == method || head {
                return Found::Route(number, path_id);
            }
            other = Found::Path;
        }
    }
    if path == b"*" { Found::Path } else { other }
}

/// A route's path, split at `{id}` at compile time.
struct Pattern {
    before: &'static [u8],
    /// The part after `{id}`; `None` if the path has none.
    after: Option<&'static [u8]>,
    id: IdForm,
}

/// What stands for `{id}` in a path.
#[derive(Clone, Copy)]
enum IdForm {
    /// A positive number.
    Number,
    /// The id of an API key, a number in base62.
    Key,
    /// A name that clients give.
    Name,
}

/// Longest name in a path.
const NAME_BYTES_MAX: usize = 64;

/// The patterns of [`ROUTES`], in the same order.
const PATTERNS: [Pattern; ROUTES.len()] = {
    let mut patterns = [const {
        Pattern {
            before: b"",
            after: None,
            id: IdForm::Number,
        }
    }; ROUTES.len()];
    let mut number = 0;
    while number < patterns.len() {
        patterns[number] = Pattern::of(ROUTES[number].path.as_bytes());
        number += 1;
    }
    patterns
};

impl Pattern {
    const fn of(path: &'static [u8]) -> Self {
        let mut at = 0;
        while at < path.len() {
            let (before, rest) = path.split_at(at);
            if let [b'{', b'i', b'd', b'}', after @ ..] = rest {
                let id = match before {
                    b"/api/keys/" => IdForm::Key,
                    b"/api/trades/accounts/"
                    | b"/api/trades/corrections/"
                    | b"/api/trades/conflicts/"
                    | b"/api/trades/tax/" => IdForm::Name,
                    _ => IdForm::Number,
                };
                return Self {
                    before,
                    after: Some(after),
                    id,
                };
            }
            at += 1;
        }
        Self {
            before: path,
            after: None,
            id: IdForm::Number,
        }
    }

    /// Whether `path` matches. The inner value is the number at `{id}`, if there is one.
    fn matched(&self, path: &[u8]) -> Option<Option<i64>> {
        let Some(after) = self.after else {
            return (self.before == path).then_some(None);
        };
        let digits = path.strip_prefix(self.before)?.strip_suffix(after)?;
        match self.id {
            IdForm::Key => return number(digits).map(|id| Some(id.cast_signed())),
            IdForm::Name => return is_name(digits).then_some(None),
            IdForm::Number => {}
        }
        // Ids are written without sign and leading zero.
        let plain = digits.first()?.is_ascii_digit() && *digits.first()? != b'0';
        let id = std::str::from_utf8(digits)
            .ok()
            .filter(|_| plain)?
            .parse()
            .ok()?;
        Some(Some(id))
    }
}

/// Whether a segment of a path is a name: 1 to 64 of `A-Za-z0-9._-`.
fn is_name(segment: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=NAME_BYTES_MAX).contains(&segment.len()) && segment.iter().all(allowed)
}

/// Refuses a change that this API cannot make as requested: to a part of a resource (RFC 9110
/// 14.5), or with a precondition on a resource that cannot be read and so has no state (13.1.1).
/// Preconditions on readable resources are checked where they are changed.
fn refuse_unsupported_change(route: &Route, request: &Request<'_>) -> Result<(), Problem> {
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
    let all = ROUTES.iter().zip(&PATTERNS);
    let here = all.filter(|(_, pattern)| path == b"*" || pattern.matched(path).is_some());
    methods_of(here.map(|(route, _)| route))
}

/// The methods of routes of one path, as the value of `Allow`.
fn methods_of<'a>(routes: impl Iterator<Item = &'a Route>) -> String {
    let mut allowed = Vec::new();
    for route in routes {
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

/// Whether a route changes nothing that outlives the login of its caller.
fn only_reads(route: &Route) -> bool {
    let is_login = matches!(route.path, "/api/auth/login" | "/api/auth/logout");
    route.method == Method::Get || is_login
}
