//! Cross-origin access: an allow-list, empty by default (contract, section 2).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;

use crate::http::{Method, Request};

/// Time for which a browser may reuse the answer to a preflight request.
const PREFLIGHT_MAX_AGE_S: &str = "600";

/// Request headers that scripts may send besides those that browsers always allow: `If-None-Match`
/// for their own caches, `If-Match` for safe changes, and those of an assistant's client.
const ALLOWED_HEADERS: &str = "Authorization, Content-Type, If-Match, If-None-Match, \
    X-Request-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Last-Event-ID";

/// An origin and the header lines that answer it.
#[derive(Debug)]
struct Allowed {
    origin: Box<[u8]>,
    lines: Arc<[u8]>,
}

/// The allowed origins with their header lines, prepared in advance.
#[derive(Debug)]
pub(crate) struct Cors {
    allowed: Vec<Allowed>,
    /// Header lines for all other origins.
    others: Arc<[u8]>,
}

/// The [`Cors`] in force.
#[derive(Debug)]
pub(crate) struct CorsInForce {
    cors: ArcSwap<Cors>,
    /// Some origin is allowed. Requests read this alone where none is.
    is_any_allowed: AtomicBool,
}

impl CorsInForce {
    /// Allows these origins.
    pub(crate) fn new(origins: &[String]) -> Self {
        let cors = ArcSwap::from_pointee(Cors::new(origins));
        Self {
            cors,
            is_any_allowed: AtomicBool::new(!origins.is_empty()),
        }
    }

    /// Allows these origins from now on.
    pub(crate) fn change(&self, origins: &[String]) {
        self.cors.store(Arc::new(Cors::new(origins)));
        self.is_any_allowed
            .store(!origins.is_empty(), Ordering::Release);
    }

    /// Separate, because the load takes the address of a thread-local and the caller may park.
    #[inline(never)]
    pub(crate) fn load(&self) -> Arc<Cors> {
        self.cors.load_full()
    }

    /// See [`Cors::lines`].
    pub(crate) fn lines(&self, origin: Option<&[u8]>) -> Option<Arc<[u8]>> {
        if !self.is_any_allowed.load(Ordering::Acquire) {
            return None;
        }
        self.load().lines(origin)
    }
}

impl Cors {
    /// Allows these origins, compared byte for byte, and no other.
    pub(crate) fn new(origins: &[String]) -> Self {
        let lines = |origin: &String| {
            let lines = format!(
                "Access-Control-Allow-Origin: {origin}\r\n\
                 Access-Control-Allow-Credentials: true\r\n\
                 Access-Control-Expose-Headers: ETag, Retry-After, X-Request-Id\r\n\
                 Vary: Origin\r\n"
            );
            Allowed {
                origin: origin.as_bytes().into(),
                lines: lines.into_bytes().into(),
            }
        };
        let others = b"Vary: Origin\r\n".as_slice().into();
        Self {
            allowed: origins.iter().map(lines).collect(),
            others,
        }
    }

    /// Header lines of the response to a request from this origin; `None` if no origin is allowed.
    /// Once there is a list, every response varies with the origin.
    pub(crate) fn lines(&self, origin: Option<&[u8]>) -> Option<Arc<[u8]>> {
        if self.allowed.is_empty() {
            return None;
        }
        let found = origin.and_then(|origin| self.find(origin));
        Some(Arc::clone(found.map_or(&self.others, |allowed| &allowed.lines)))
    }

    /// Whether a request with a cookie can be trusted to come from the user's intent: it changes
    /// nothing, or it comes from this site or an allowed origin. A request without an origin is not
    /// trusted. Clients other than browsers send the header `Authorization` instead.
    pub(crate) fn trusts(&self, request: &Request<'_>) -> bool {
        if matches!(request.method(), Method::Get | Method::Head | Method::Options) {
            return true;
        }
        let mut sites = request.headers("sec-fetch-site");
        let site = sites.next();
        let another = sites.next();
        if another.is_some() {
            return false;
        }
        let origin = request.origin();
        match site {
            Some(b"same-origin" | b"none") => true,
            // Older browsers send only `Origin`. No page can choose the host that a browser sends.
            None if origin.is_some_and(|origin| is_own(origin, request)) => true,
            _ => origin.is_some_and(|origin| self.find(origin).is_some()),
        }
    }

    /// Whether the request's page is of the host that the request names, or of an allowed origin.
    pub(crate) fn is_from_here(&self, request: &Request<'_>) -> bool {
        request
            .origin()
            .is_some_and(|origin| is_own(origin, request) || self.find(origin).is_some())
    }

    fn find(&self, origin: &[u8]) -> Option<&Allowed> {
        self.allowed
            .iter()
            .find(|allowed| *allowed.origin == *origin)
    }

    /// The additional headers of the answer to a preflight request from an allowed origin; `None`
    /// for any other request.
    pub(crate) fn preflight<'a>(
        &self,
        request: &Request<'_>,
        allow: &'a str,
    ) -> Option<[(&'static str, &'a str); 4]> {
        request.header("access-control-request-method")?;
        let origin = request.origin()?;
        self.find(origin)?;
        Some([
            ("Allow", allow),
            ("Access-Control-Allow-Methods", allow),
            ("Access-Control-Allow-Headers", ALLOWED_HEADERS),
            ("Access-Control-Max-Age", PREFLIGHT_MAX_AGE_S),
        ])
    }
}

/// Whether the origin is the host that the request names. The scheme's own port is no difference:
/// browsers leave it out, and some proxies write it.
fn is_own(origin: &[u8], request: &Request<'_>) -> bool {
    let (rest, default_port) =
        match (origin.strip_prefix(b"https://"), origin.strip_prefix(b"http://")) {
            (Some(rest), _) => (rest, b":443".as_slice()),
            (_, Some(rest)) => (rest, b":80".as_slice()),
            _ => return false,
        };
    let bare = |authority: &'_ [u8]| -> Vec<u8> {
        let bare = authority
            .strip_suffix(default_port)
            .or_else(|| authority.strip_suffix(b":"));
        bare.unwrap_or(authority).to_ascii_lowercase()
    };
    !rest.is_empty()
        && request
            .header("host")
            .is_some_and(|host| bare(host) == bare(rest))
}
