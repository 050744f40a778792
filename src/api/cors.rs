//! Cross-origin access: an allow-list, empty by default (contract, section 2).

use std::sync::Arc;

use crate::http::{Method, Request};

/// How long a browser may reuse the answer to a preflight request.
const PREFLIGHT_MAX_AGE_S: &str = "600";

/// Request headers that scripts may send besides those that browsers always allow: `If-None-Match`
/// for their own caches, `If-Match` for safe changes.
const ALLOWED_HEADERS: &str = "Authorization, Content-Type, If-Match, If-None-Match, X-Request-Id";

/// An origin and the header lines that answer it.
#[derive(Debug)]
struct Allowed {
    origin: Box<[u8]>,
    lines: Arc<[u8]>,
}

/// The allowed origins with their header lines, prepared in advance.
#[derive(Debug)]
pub struct Cors {
    allowed: Vec<Allowed>,
    /// Header lines for all other origins.
    others: Arc<[u8]>,
}

impl Cors {
    /// Allows these origins, compared byte for byte, and no other.
    pub fn new(origins: &[String]) -> Self {
        let lines = |origin: &String| {
            let lines = format!(
                "Access-Control-Allow-Origin: {origin}\r\n\
                 Access-Control-Allow-Credentials: true\r\n\
                 Access-Control-Expose-Headers: ETag, Retry-After, X-Request-Id\r\n\
                 Vary: Origin\r\n"
            );
            Allowed { origin: origin.as_bytes().into(), lines: lines.into_bytes().into() }
        };
        let others = b"Vary: Origin\r\n".as_slice().into();
        Self { allowed: origins.iter().map(lines).collect(), others }
    }

    /// Header lines of the response to a request from this origin; `None` if no origin is allowed.
    /// Once there is a list, every response varies with the origin.
    pub fn lines(&self, origin: Option<&[u8]>) -> Option<Arc<[u8]>> {
        if self.allowed.is_empty() {
            return None;
        }
        let found = origin.and_then(|origin| self.find(origin));
        Some(Arc::clone(found.map_or(&self.others, |allowed| &allowed.lines)))
    }

    /// Whether a request with a cookie can be trusted to come from the user's intent: it changes
    /// nothing, or it comes from this site or an allowed origin. A request that does not say where
    /// it comes from is not trusted. Clients other than browsers send the header `Authorization`
    /// instead.
    pub fn trusts(&self, request: &Request<'_>) -> bool {
        if matches!(request.method(), Method::Get | Method::Head | Method::Options) {
            return true;
        }
        let mut sites = request.headers("sec-fetch-site");
        let (site, another) = (sites.next(), sites.next());
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
    pub fn is_from_here(&self, request: &Request<'_>) -> bool {
        request
            .origin()
            .is_some_and(|origin| is_own(origin, request) || self.find(origin).is_some())
    }

    fn find(&self, origin: &[u8]) -> Option<&Allowed> {
        self.allowed.iter().find(|allowed| *allowed.origin == *origin)
    }

    /// The additional headers of the answer to a preflight request from an allowed origin; `None`
    /// for any other request.
    pub fn preflight<'a>(
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

/// Whether the origin is the host that the request names.
fn is_own(origin: &[u8], request: &Request<'_>) -> bool {
    let authority = origin.strip_prefix(b"https://").or_else(|| origin.strip_prefix(b"http://"));
    let host = request.header("host");
    authority.is_some_and(|authority| {
        !authority.is_empty() && host.is_some_and(|host| host.eq_ignore_ascii_case(authority))
    })
}
