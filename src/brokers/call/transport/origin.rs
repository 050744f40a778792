//! Keeps a client to one origin.
//!
//! ureq asks its resolver before every call and every redirect, also where a connection stands
//! open; so that is where another origin is refused, before its name is even looked up.

use std::sync::Arc;

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Scheme, host and port.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Origin(Option<(bool, String, u16)>);

impl Origin {
    /// That of a URL; of what is none, an origin that is equal to no other.
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

/// Finds the addresses of one origin and of no other.
#[derive(Debug)]
pub(crate) struct OwnOrigin {
    origin: Arc<Origin>,
    resolver: DefaultResolver,
}

impl OwnOrigin {
    pub(crate) fn new(origin: Arc<Origin>) -> Self {
        Self { origin, resolver: DefaultResolver::default() }
    }
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
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let base = Origin::of("https://api.example.com/v1");
        for same in ["https://api.example.com/v2?q", "https://API.example.com:443/"] {
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
