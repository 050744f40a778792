//! The HTTP client for brokers and the public provider: blocking, on ureq with rustls.
//!
//! Runs on upstream lanes only. Every call ends by its deadline, every body has a cap (counted
//! after decompression). It logs nothing, its errors contain no URL, header or body, and it uses no
//! proxy from the environment.
//!
//! A client calls only the origin of its base URL. Headers and bodies carry sessions, so a redirect
//! is either an error ([`Redirects::Never`]) or stays within the origin. Calls with a user's
//! credentials have connections of their own ([`Transport::apart`]), closed when they end, because
//! an open connection still holds the bytes that it sent.

use std::cell::RefCell;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ureq::config::Config;
use ureq::http::{HeaderValue, Request, Response, Uri};
use ureq::middleware::MiddlewareNext;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Body, RequestBuilder, SendBody, Timeout};
use zeroize::Zeroizing;

use crate::brokers::settings::UpstreamSettings;
use crate::brokers::{BrokerError, BrokerErrorKind};

/// Cap on an answer's head; brokers send a few hundred bytes.
const RESPONSE_HEAD_BYTES_MAX: usize = 32 * 1024;

/// Most connections kept open per upstream. A feed makes one call at a time, login and lists a few.
const IDLE_CONNECTIONS_MAX: usize = 8;

/// Most redirects of one call: one to another path of the same origin, and one to spare.
const REDIRECTS_MAX: u32 = 2;

/// Initial allocation for a body.
const BODY_BYTES_FIRST: usize = 16 * 1024;

/// A client with one upstream's settings.
pub(crate) struct Transport {
    agent: Agent,
    origin: Arc<Origin>,
    connect_timeout_ms: u64,
    read_timeout_ms: u64,
}

/// Answers calls instead of the network, for a service on a stage (`rt/staged.rs`).
pub trait Peer: Send + Sync {
    /// Answers one call. May block.
    ///
    /// # Errors
    /// The same errors as a call over the network.
    fn answer(&self, asked: Request<SendBody<'_>>) -> Result<Response<Body>, ureq::Error>;
}

thread_local! {
    static PEER: RefCell<Option<Arc<dyn Peer>>> = const { RefCell::new(None) };
}

/// Clients that this thread makes from now on call `peer`, or the network if it is `None`.
pub fn speak_to(peer: Option<Arc<dyn Peer>>) {
    PEER.set(peer);
}

/// Redirects that are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redirects {
    /// None. Neither broker's API redirects, so a redirect cannot come from the broker.
    Never,
    /// At most [`REDIRECTS_MAX`], within scheme, host and port of the base URL.
    WithinOrigin,
}

/// A base URL of the settings that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{setting} is not an http or https URL without query")]
pub struct BadUrl {
    pub setting: &'static str,
}

impl BadUrl {
    /// `url` without a slash at its end.
    pub(crate) fn checked(setting: &'static str, url: &str) -> Result<String, Self> {
        let url = url.trim_end_matches('/');
        let rest = url
            .strip_prefix("https://")
            .or_else(|| url.strip_prefix("http://"));
        match rest {
            Some(rest) if !rest.is_empty() && !url.contains(['?', '#', ' ', '@']) => Ok(url.into()),
            _ => Err(Self { setting }),
        }
    }
}

/// Limits of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallLimits {
    /// Most bytes of the body, after decompression.
    pub body_bytes_max: u64,
    /// Time from the first packet to the last byte of the body, redirects included.
    pub total_timeout_ms: u64,
}

impl CallLimits {
    /// The limits of calls without special needs.
    pub(crate) fn usual(settings: &UpstreamSettings) -> Self {
        Self {
            body_bytes_max: settings.response_bytes_max,
            total_timeout_ms: settings.total_timeout_ms,
        }
    }
}

/// An answer, whatever its status.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub status: u16,
    /// The wait in `Retry-After`, which may be in seconds or a date; `None` if absent or
    /// unreadable.
    pub retry_after: Option<Duration>,
    pub content_type: Option<String>,
    /// The answer carries `X-Bhav-Simulator`.
    pub simulated: bool,
    pub body: Vec<u8>,
}

#[cfg(fuzzing)]
impl Reply {
    /// An answer with this body.
    pub(crate) fn fuzzed(body: &[u8]) -> Self {
        Self {
            status: 200,
            retry_after: None,
            content_type: Some("application/json".to_owned()),
            simulated: false,
            body: body.to_vec(),
        }
    }
}

/// The reason why there is no answer. No variant's text contains a secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransportError {
    #[error("{0}")]
    Unreachable(String),
    #[error("no answer within {limit_ms} ms")]
    TimedOut { limit_ms: u64 },
    #[error("answer larger than {limit_bytes} bytes")]
    TooLarge { limit_bytes: u64 },
    #[error("answer broken off or not HTTP: {0}")]
    Broken(String),
    #[error("a redirect that is not followed")]
    Redirected,
    #[error("request cannot be sent: {0}")]
    BadRequest(&'static str),
}

/// The end of a call.
type Replied = Result<Reply, TransportError>;

impl TransportError {
    /// The error of a call to `upstream` without a user's credentials.
    pub(crate) fn of(self, upstream: &'static str) -> BrokerError {
        let kind = match &self {
            // Both are faults of the connection, not answers of the upstream.
            Self::Unreachable(_) | Self::Broken(_) => BrokerErrorKind::Unreachable,
            Self::TimedOut { limit_ms } => {
                let limit = format!("{limit_ms} ms");
                return BrokerError::new(upstream, BrokerErrorKind::TimedOut, limit);
            }
            Self::TooLarge { .. } => BrokerErrorKind::Malformed,
            Self::Redirected => BrokerErrorKind::Redirected,
            Self::BadRequest(_) => BrokerErrorKind::Refused,
        };
        BrokerError::new(upstream, kind, self.to_string())
    }

    /// The error of a call to `upstream` with a user's credentials.
    pub(crate) fn of_user(self, upstream: &'static str) -> BrokerError {
        match self {
            // Only a key, or a token made with it, can contain one.
            Self::BadRequest(_) => {
                let detail = "a character in it cannot be sent";
                BrokerError::new(upstream, BrokerErrorKind::KeyRefused, detail)
            }
            other => other.of(upstream),
        }
    }
}

/// Names and values of headers.
type Headers<'a> = &'a [(&'static str, &'a str)];

impl Transport {
    /// A client for `base_url`, an http or https URL, and for no other origin.
    pub(crate) fn new(
        settings: &UpstreamSettings,
        base_url: &str,
        user_agent: &str,
        redirects: Redirects,
    ) -> Self {
        let read_timeout = Some(Duration::from_millis(settings.read_timeout_ms));
        let connect_timeout = Some(Duration::from_millis(settings.connect_timeout_ms));
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .https_only(base_url.starts_with("https://"))
            .proxy(None)
            .max_redirects(match redirects {
                Redirects::Never => 0,
                Redirects::WithinOrigin => REDIRECTS_MAX,
            })
            .max_redirects_will_error(true)
            .user_agent(user_agent)
            .max_response_header_size(RESPONSE_HEAD_BYTES_MAX)
            .max_idle_connections(IDLE_CONNECTIONS_MAX)
            .max_idle_connections_per_host(IDLE_CONNECTIONS_MAX)
            .timeout_resolve(connect_timeout)
            .timeout_connect(connect_timeout)
            .timeout_send_request(read_timeout)
            .timeout_send_body(read_timeout)
            .timeout_recv_response(read_timeout);
        let config = match PEER.with_borrow(Clone::clone) {
            None => config,
            Some(peer) => {
                config.middleware(move |asked: Request<SendBody<'_>>, _: MiddlewareNext<'_>| {
                    peer.answer(asked)
                })
            }
        };
        let config = config.build();
        let origin = Arc::new(Origin::of(base_url));
        Self {
            agent: agent(config, &origin),
            origin,
            connect_timeout_ms: settings.connect_timeout_ms,
            read_timeout_ms: settings.read_timeout_ms,
        }
    }

    /// The same client with connections of its own, which are closed when it is dropped.
    pub(crate) fn apart(&self) -> Self {
        let origin = Arc::clone(&self.origin);
        Self {
            agent: agent(self.agent.config().clone(), &origin),
            origin,
            ..*self
        }
    }

    /// GET. `url` includes its query (see [`push_query`]).
    ///
    /// # Errors
    /// [`TransportError`]; a status of 400 and above is an answer, not an error.
    pub(crate) fn get(&self, url: &str, headers: Headers<'_>, limits: CallLimits) -> Replied {
        let request = limited(with_headers(self.agent.get(url), headers)?, limits);
        self.finish(request.call(), limits)
    }

    /// GET with a JSON body, which broker B's calls need.
    ///
    /// # Errors
    /// As [`Transport::get`].
    pub(crate) fn fetch_with_json(
        &self,
        url: &str,
        headers: Headers<'_>,
        json: &[u8],
        limits: CallLimits,
    ) -> Replied {
        let request = limited(with_headers(self.agent.get(url), headers)?, limits);
        let sent = request
            .force_send_body()
            .content_type("application/json")
            .send(json);
        self.finish(sent, limits)
    }

    /// POST of a form.
    ///
    /// # Errors
    /// As [`Transport::get`].
    pub(crate) fn post_form(
        &self,
        url: &str,
        headers: Headers<'_>,
        fields: &[(&str, &str)],
        limits: CallLimits,
    ) -> Replied {
        let request = limited(with_headers(self.agent.post(url), headers)?, limits);
        let form = form(fields);
        let request = request.content_type("application/x-www-form-urlencoded");
        self.finish(request.send(form.as_bytes()), limits)
    }

    /// DELETE. `url` includes its query.
    ///
    /// # Errors
    /// As [`Transport::get`].
    pub(crate) fn delete(&self, url: &str, headers: Headers<'_>, limits: CallLimits) -> Replied {
        let request = limited(with_headers(self.agent.delete(url), headers)?, limits);
        self.finish(request.call(), limits)
    }

    fn finish(&self, sent: Result<Response<Body>, ureq::Error>, limits: CallLimits) -> Replied {
        let mut response = sent.map_err(|error| self.explain(error, limits))?;
        // A redirect that was not followed, whatever its target.
        if response.status().is_redirection() {
            return Err(TransportError::Redirected);
        }
        let headers = response.headers();
        let text = |name| {
            headers
                .get(name)
                .and_then(|value: &HeaderValue| value.to_str().ok())
        };
        let reply = Reply {
            status: response.status().as_u16(),
            retry_after: text("retry-after").and_then(|value| retry_after(value, text("date"))),
            content_type: text("content-type").map(str::to_owned),
            simulated: headers.contains_key("x-bhav-simulator"),
            body: Vec::new(),
        };
        // Counted here, behind the decoder: ureq's own limit counts compressed bytes.
        let mut body = Vec::with_capacity(BODY_BYTES_FIRST);
        let mut reader = response
            .body_mut()
            .as_reader()
            .take(limits.body_bytes_max + 1);
        reader
            .read_to_end(&mut body)
            .map_err(|error| self.explain(error.into(), limits))?;
        if body.len() as u64 > limits.body_bytes_max {
            return Err(TransportError::TooLarge {
                limit_bytes: limits.body_bytes_max,
            });
        }
        Ok(Reply { body, ..reply })
    }

    fn explain(&self, error: ureq::Error, limits: CallLimits) -> TransportError {
        match error {
            ureq::Error::Timeout(which) => TransportError::TimedOut {
                limit_ms: match which {
                    Timeout::Resolve | Timeout::Connect => self.connect_timeout_ms,
                    Timeout::Global | Timeout::PerCall => limits.total_timeout_ms,
                    _ => self.read_timeout_ms,
                },
            },
            ureq::Error::Io(error) => match error.kind() {
                std::io::ErrorKind::UnexpectedEof => TransportError::Broken(error.to_string()),
                std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock => {
                    TransportError::TimedOut {
                        limit_ms: limits.total_timeout_ms,
                    }
                }
                _ => TransportError::Unreachable(error.to_string()),
            },
            ureq::Error::HostNotFound
            | ureq::Error::ConnectionFailed
            | ureq::Error::Tls(_)
            | ureq::Error::Rustls(_) => TransportError::Unreachable(error.to_string()),
            ureq::Error::TooManyRedirects
            | ureq::Error::RedirectFailed
            | ureq::Error::RequireHttpsOnly(_) => TransportError::Redirected,
            // The library's text would repeat the URL.
            ureq::Error::BadUri(_) => TransportError::BadRequest("not a URL"),
            ureq::Error::Http(_) => TransportError::BadRequest("URL or header has a bad character"),
            ureq::Error::Decompress(..) => TransportError::Broken("bad compression".into()),
            other => TransportError::Broken(other.to_string()),
        }
    }
}

fn agent(config: Config, origin: &Arc<Origin>) -> Agent {
    let resolver = OwnOrigin {
        origin: Arc::clone(origin),
        resolver: DefaultResolver::default(),
    };
    Agent::with_parts(config, DefaultConnector::default(), resolver)
}

fn limited<B>(request: RequestBuilder<B>, limits: CallLimits) -> RequestBuilder<B> {
    let total = Some(Duration::from_millis(limits.total_timeout_ms));
    request
        .config()
        .timeout_global(total)
        .timeout_recv_body(total)
        .build()
}

fn with_headers<B>(
    mut request: RequestBuilder<B>,
    headers: Headers<'_>,
) -> Result<RequestBuilder<B>, TransportError> {
    for (name, value) in headers {
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| TransportError::BadRequest("header has a bad character"))?;
        value.set_sensitive(matches!(*name, "authorization" | "x-appkey" | "x-sessiontoken"));
        request = request.header(*name, value);
    }
    Ok(request)
}

/// The wait: seconds, or an HTTP date minus the answer's own `Date`, not our clock.
fn retry_after(value: &str, date: Option<&str>) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let wait_s = http_date(value)?.as_second() - http_date(date?)?.as_second();
    Some(Duration::from_secs(wait_s.max(0) as u64))
}

fn http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(text)
        .ok()
}

/// Appends `key=value` to a URL's query. All but unreserved characters are percent-encoded, because
/// a bare `&` in a symbol would end the value.
pub(crate) fn push_query(url: &mut String, key: &str, value: &str) {
    url.push(if url.contains('?') { '&' } else { '?' });
    url.push_str(key);
    url.push('=');
    push_encoded(url, value);
}

/// Fields as a form's body, in memory that is wiped and never grew by copying.
fn form(fields: &[(&str, &str)]) -> Zeroizing<String> {
    // A percent-encoded byte takes three.
    let bytes = fields
        .iter()
        .map(|(name, value)| name.len() + 3 * value.len() + 2)
        .sum();
    let mut form = Zeroizing::new(String::with_capacity(bytes));
    for (name, value) in fields {
        if !form.is_empty() {
            form.push('&');
        }
        form.push_str(name);
        form.push('=');
        push_encoded(&mut form, value);
    }
    form
}

/// Appends `text` percent-encoded (RFC 3986 unreserved characters stay).
pub(crate) fn push_encoded(url: &mut String, text: &str) {
    const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~');
    url.extend(utf8_percent_encode(text, ENCODED));
}

// ---- Origin
//
// Limits a client to one origin.
//
// ureq calls its resolver before every call and redirect, even with an open connection. So the
// resolver refuses other origins.

/// Scheme, host and port.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Origin(Option<(bool, String, u16)>);

impl Origin {
    /// The origin of a URL. Text that is not a URL has an origin that equals only another such.
    pub(crate) fn of(url: &str) -> Self {
        url.parse().map_or(Self(None), |uri| Self::of_uri(&uri))
    }

    fn of_uri(uri: &Uri) -> Self {
        let parts = || {
            let https = match uri.scheme_str()? {
                "https" => true,
                "http" => false,
                _ => return None,
            };
            let authority = uri.authority()?;
            let usual = if https { 443 } else { 80 };
            let host = authority.host().to_ascii_lowercase();
            Some((https, host, authority.port_u16().unwrap_or(usual)))
        };
        Self(parts())
    }
}

/// A resolver for the addresses of one origin only.
#[derive(Debug)]
pub(crate) struct OwnOrigin {
    origin: Arc<Origin>,
    resolver: DefaultResolver,
}

impl Resolver for OwnOrigin {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let asked = Origin::of_uri(uri);
        if asked.0.is_none() || asked != *self.origin {
            return Err(ureq::Error::RedirectFailed);
        }
        self.resolver.resolve(uri, config, timeout)
    }
}

#[cfg(test)]
#[path = "transport_tests.rs"]
mod tests;

#[cfg(test)]
mod origin_tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let base = Origin::of("https://api.example.com/v1");
        for same in [
            "https://api.example.com/v2?q",
            "https://API.example.com:443/",
        ] {
            assert_eq!(Origin::of(same), base, "{same}");
        }
        for other in [
            "http://api.example.com/",
            "https://api.example.com:8443/",
            "https://example.com/",
            "https://api.example.com.evil.test/",
            "https://api.example.com@evil.test/",
        ] {
            assert_ne!(Origin::of(other), base, "{other}");
        }
        for none in ["/path", "ftp://api.example.com/", "", "https://"] {
            assert_eq!(Origin::of(none), Origin(None), "{none}");
        }
    }
}
