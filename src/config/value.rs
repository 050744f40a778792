//! Parses the text of one setting into its value, and formats it back.
//!
//! Pure functions. An error never repeats the value; the caller shows it, masked if it is a secret.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use jiff::Timestamp;
use url::Url;

use crate::admin::listener::AdminListen;
use crate::auth::keys::Registration;
use crate::base::{Network, Words};
use crate::brokers::broker_a::ticker::Endpoint;
use crate::config::refused::{NOT_WHOLE, Refused};
use crate::nodes::lease::Holder;
use crate::nodes::valkey::{Address, BadAddress, Namespace};
use crate::ops::log::LogFormat;
use crate::store::settings::StoreUrl;

fn refused<T>(problem: impl Into<String>, cure: impl Into<String>) -> Result<T, Refused> {
    Err(Refused {
        problem: problem.into(),
        cure: cure.into(),
    })
}

/// A whole number within `range`.
pub(crate) fn number<T: TryFrom<u64>>(
    text: &str,
    range: RangeInclusive<u64>,
) -> Result<T, Refused> {
    let cure = format!("give a whole number from {} to {}", range.start(), range.end());
    let Ok(number) = text.parse::<u64>() else {
        return refused(NOT_WHOLE, cure);
    };
    if number < *range.start() {
        return refused(format!("is below {}", range.start()), cure);
    }
    match T::try_from(number) {
        Ok(fits) if number <= *range.end() => Ok(fits),
        _ => refused(format!("is above {}", range.end()), cure),
    }
}

/// `true` or `false`, and the usual other spellings.
pub(crate) fn switch(text: &str) -> Result<bool, Refused> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => refused("is neither true nor false", "give true or false"),
    }
}

/// Same as [`listen`], or `off`, which YAML makes `false` of.
pub(crate) fn listen_or_off(text: &str) -> Result<AdminListen, Refused> {
    if switch(text) == Ok(false) {
        return Ok(AdminListen::Off);
    }
    listen(text).map(AdminListen::At).map_err(|mut why| {
        why.cure.push_str(", or off");
        why
    })
}

/// `IP:PORT` or `unix:PATH`.
pub(crate) fn listen(text: &str) -> Result<String, Refused> {
    match text.strip_prefix("unix:") {
        // sun_path holds 108 bytes with its final zero (unix(7)).
        Some(path) if path.is_empty() || path.len() > 107 || path.contains('\0') => {
            refused("is no usable socket path", "give unix: and a path of 1 to 107 bytes")
        }
        Some(path) => unreplaced(path).map_or_else(|| Ok(text.to_owned()), Err),
        None => address(text).map_err(|mut why| {
            why.cure.push_str(", or unix:/run/bhav/bhav.sock");
            why
        }),
    }
}

/// `IP:PORT`, kept as text. Names are not resolved, so that starting needs no DNS.
pub(crate) fn address(text: &str) -> Result<String, Refused> {
    match text.parse::<SocketAddr>() {
        Ok(socket) if socket.ip().to_canonical().is_multicast() => {
            refused("is a multicast address, which nothing listens at", "give one of this machine")
        }
        Ok(_) => Ok(text.to_owned()),
        Err(_) => refused(
            "is not IP:PORT",
            "give an address and a port, such as 127.0.0.1:8080 or [::1]:8080",
        ),
    }
}

/// A `ws` or `wss` URL without query.
pub(crate) fn socket_url(text: &str) -> Result<String, Refused> {
    match Endpoint::parse(text) {
        Ok(_) => Ok(text.trim_end_matches('/').to_owned()),
        Err(_) => refused(
            "is no WebSocket URL",
            "give a URL such as wss://ws.example.com or ws://127.0.0.1:9000/ticker",
        ),
    }
}

/// A Valkey or Redis server, without a password: addresses are printed.
pub(crate) fn cache_url(text: &str) -> Result<Option<Address>, Refused> {
    Address::parse(text).map(Some).map_err(|bad| Refused {
        problem: bad.to_string(),
        cure: match bad {
            BadAddress::Password => "put the password into BHAV_CACHE_PASSWORD".into(),
            _ => "give valkey://HOST:PORT, redis://HOST:PORT, rediss://HOST:PORT or unix:/PATH"
                .into(),
        },
    })
}

/// A name in front of keys.
pub(crate) fn namespace(text: &str) -> Result<Option<Namespace>, Refused> {
    Namespace::parse(text)
        .map(Some)
        .or_else(|bad| refused(bad.to_string(), "give up to 64 small letters, digits, -, _ and ."))
}

/// The name of a node, safe in a log line and in a key.
pub(crate) fn node_name(text: &str) -> Result<Option<String>, Refused> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if text.is_empty() || text.len() > Holder::NODE_BYTES_MAX || !text.chars().all(is_plain) {
        return refused("is no name of a node", "give up to 64 letters, digits, -, _ and .");
    }
    Ok(Some(text.to_owned()))
}

/// An `http` or `https` root to which documented paths are appended; a last slash is dropped.
pub(crate) fn root_url(text: &str) -> Result<String, Refused> {
    const CURE: &str = "give a root such as https://api.example.com or http://127.0.0.1:9000/v1";
    if text.contains('#') {
        return refused("has a fragment", CURE);
    }
    let Ok(uri) = text.parse::<ureq::http::Uri>() else {
        return refused("is not a URL", CURE);
    };
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return refused("is neither http:// nor https://", CURE);
    }
    let Some(authority) = uri.authority().filter(|a| !a.host().is_empty()) else {
        return refused("names no host", CURE);
    };
    if authority.as_str().contains('@') {
        return refused("carries a user name or password", CURE);
    }
    if authority.port_u16().is_none() && authority.as_str() != authority.host() {
        return refused("has a port that is no number up to 65535", CURE);
    }
    if uri.query().is_some() {
        return refused("has a query", CURE);
    }
    let path = uri.path().strip_suffix('/').unwrap_or(uri.path());
    let crooked = |part: &str| part.is_empty() || part == "." || part == "..";
    if path.split('/').skip(1).any(crooked) {
        return refused("has an empty or dotted part in its path", CURE);
    }
    Ok(text.strip_suffix('/').unwrap_or(text).to_owned())
}

/// Comma-separated `scheme://host[:port]`, in the form in which browsers send them in `Origin`.
pub(crate) fn origins(text: &str) -> Result<Vec<String>, Refused> {
    let origin = |item: &str| {
        let origin = origin(item);
        origin.map_err(|why| Refused {
            problem: of_entry(text, item, &why.problem),
            ..why
        })
    };
    Ok(distinct(items(text).map(origin).collect::<Result<_, _>>()?))
}

/// An origin as browsers write it (WHATWG URL, 4.7): in lower case, without the default port, the
/// host's letters beyond ASCII as `xn--`.
fn origin(item: &str) -> Result<String, Refused> {
    const CURE: &str = "give origins such as https://dash.example.com,http://localhost:3000";
    if item == "*" {
        return refused("would allow every site", CURE);
    }
    if item.contains('*') {
        return refused("has a wildcard, and origins are compared whole", "list each origin");
    }
    if item.eq_ignore_ascii_case("null") {
        let problem = "is what pages without an origin send: files, and frames of any site";
        return refused(problem, "serve the page from an address, and give that");
    }
    if item.contains(char::is_whitespace) || item.contains(';') {
        return refused("has a separator that is no comma", CURE);
    }
    if !item.contains("://") {
        let cure = format!("give https://{item}, or http://{item} if there is no TLS");
        return refused("has no scheme", cure);
    }
    let Ok(url) = Url::parse(item) else {
        return refused("is no origin", CURE);
    };
    let origin = url.origin().ascii_serialization();
    if !matches!(url.scheme(), "http" | "https") {
        return refused("is neither http:// nor https://", CURE);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refused("carries a user name or password", CURE);
    }
    if url.query().is_some() || url.fragment().is_some() || url.path() != "/" {
        let problem = "has something after the host, and no page's origin has";
        return refused(problem, format!("give {origin}"));
    }
    if url.port() == Some(0) {
        return refused("has port 0, from which no page comes", CURE);
    }
    Ok(origin)
}

/// Comma-separated IP addresses and networks.
pub(crate) fn networks(text: &str) -> Result<Vec<Network>, Refused> {
    let network = |item: &str| {
        let parsed = item.parse::<Network>();
        parsed.map_err(|bad| Refused {
            problem: of_entry(text, item, &bad),
            cure: bad.cure(),
        })
    };
    Ok(distinct(items(text).map(network).collect::<Result<_, _>>()?))
}

/// The problem of an entry, which is named where there are others.
fn of_entry(text: &str, item: &str, problem: &dyn std::fmt::Display) -> String {
    match items(text).count() {
        1 => problem.to_string(),
        _ => format!("has the entry {item}, which {problem}"),
    }
}

/// The entries without those that came before.
fn distinct<T: PartialEq>(entries: Vec<T>) -> Vec<T> {
    let mut kept: Vec<T> = Vec::with_capacity(entries.len());
    for entry in entries {
        if !kept.contains(&entry) {
            kept.push(entry);
        }
    }
    kept
}

fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
}

/// A path.
pub(crate) fn path(text: &str) -> Result<PathBuf, Refused> {
    if text.contains('\0') {
        return refused("holds a zero byte", "give a path");
    }
    match unreplaced(text) {
        Some(why) => Err(why),
        None => Ok(PathBuf::from(text)),
    }
}

/// Why a path leads nowhere: it begins with what other programs replace, and this one does not.
fn unreplaced(path: &str) -> Option<Refused> {
    let (begin, problem) = match path.chars().next()? {
        '~' => ("~", "begins with ~, which a shell replaces and nobody else"),
        '$' => ("$", "begins with a variable, which a shell replaces and nobody else"),
        '%' => ("%", "begins with a specifier, which systemd replaces in units only"),
        _ if path.starts_with("file:") => ("", "is a URL"),
        _ => return None,
    };
    let mut cure = "write the whole path, such as /srv/bhav".to_owned();
    if !begin.is_empty() {
        cure = format!("{cure}; ./{begin} begins one that has such a name");
    }
    Some(Refused {
        problem: problem.into(),
        cure,
    })
}

/// A path that may be absent.
pub(crate) fn path_if_any(text: &str) -> Result<Option<PathBuf>, Refused> {
    path(text).map(Some)
}

/// The URL of a database server.
pub(crate) fn store_url(text: &str) -> Result<Option<StoreUrl>, Refused> {
    let parsed = StoreUrl::parse(text);
    parsed.map(Some).map_err(|bad| Refused {
        problem: bad.problem,
        cure: bad.cure.to_owned(),
    })
}

/// An instant with its offset, within the years that a market calendar can have.
pub(crate) fn instant(text: &str) -> Result<Option<Timestamp>, Refused> {
    const CURE: &str = "give an ISO 8601 instant with offset, such as 2026-11-20T10:00:00+05:30";
    let Ok(at) = text.parse::<Timestamp>() else {
        return refused("is not an instant with an offset", CURE);
    };
    let year = at.to_zoned(jiff::tz::TimeZone::UTC).year();
    if !(2000..=2100).contains(&year) {
        return refused("is outside the years 2000 to 2100", CURE);
    }
    Ok(Some(at))
}

/// The value of a request header: visible ASCII and spaces.
pub(crate) fn header_value(text: &str) -> Result<String, Refused> {
    const LONGEST_BYTES: usize = 256;
    let visible = text.bytes().all(|b| (0x20..0x7f).contains(&b));
    if !visible || text.len() > LONGEST_BYTES {
        return refused("is no header value", "give up to 256 visible ASCII characters");
    }
    Ok(text.to_owned())
}

/// A tracing filter.
pub(crate) fn filter(text: &str) -> Result<String, Refused> {
    match crate::ops::log::parsed(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(why) => refused(
            format!("is no log filter ({why})"),
            "give error, warn, info, debug, trace, or a list such as info,bhav::http=debug",
        ),
    }
}

/// `logfmt` or `json`.
pub(crate) fn log_format(text: &str) -> Result<LogFormat, Refused> {
    word(text, "is no log format", "give logfmt or json")
}

/// Whether anybody may create an account.
pub(crate) fn registration(text: &str) -> Result<Registration, Refused> {
    word(text, "is none of open, first and closed", "give open, first or closed")
}

fn word<T: Words>(text: &str, problem: &str, cure: &str) -> Result<T, Refused> {
    T::parse(text).map_or_else(|| refused(problem, cure), Ok)
}

/// The text that [`super::load`] would read back to the same value.
pub trait Show {
    fn show(&self) -> String;
}

macro_rules! show_displayed {
    ($($kind:ty),+) => { $(impl Show for $kind {
        fn show(&self) -> String { self.to_string() }
    })+ };
}
show_displayed!(u32, u64, usize, bool, String, Network, Timestamp, StoreUrl, Namespace, Address);
show_displayed!(Registration, LogFormat);

impl Show for PathBuf {
    fn show(&self) -> String {
        self.display().to_string()
    }
}

impl<T: Show> Show for Vec<T> {
    fn show(&self) -> String {
        self.iter().map(Show::show).collect::<Vec<_>>().join(",")
    }
}

impl<T: Show> Show for Option<T> {
    fn show(&self) -> String {
        self.as_ref().map(Show::show).unwrap_or_default()
    }
}

impl Show for AdminListen {
    fn show(&self) -> String {
        self.address().unwrap_or(Self::OFF).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_to_their_range() {
        assert_eq!(number::<u32>("10", 1..=10), Ok(10));
        for bad in ["0", "11", "-1", "", "1.5", "1e3", "99999999999999999999"] {
            let why = number::<u32>(bad, 1..=10).unwrap_err();
            assert!(why.cure.contains("1 to 10"), "{bad}: {why:?}");
        }
    }

    #[test]
    fn the_name_of_a_node_is_plain() {
        let longest = "n".repeat(64);
        for good in ["edge-1", "a", "Mumbai_2.example", &longest] {
            assert_eq!(node_name(good), Ok(Some(good.to_owned())));
        }
        for bad in ["", "edge 1", "a/b", "\u{e9}", &format!("{longest}n")] {
            assert!(node_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn root_urls_take_a_path_but_no_trouble() {
        assert_eq!(root_url("http://127.0.0.1:9/").unwrap(), "http://127.0.0.1:9");
        assert_eq!(root_url("https://h.example/a/v1").unwrap(), "https://h.example/a/v1");
        assert_eq!(root_url("http://[::1]:9").unwrap(), "http://[::1]:9");
        for bad in [
            "ftp://h",
            "h.example",
            "/x",
            "https://",
            "http://u:p@h/",
            "http://h:/",
            "http://h:99999/",
            "http://h/?q=1",
            "http://h/#f",
            "http://h//x",
            "http://h/../x",
            "http://h/a b",
        ] {
            assert!(root_url(bad).is_err(), "{bad} was accepted");
        }
    }

    #[test]
    fn an_origin_becomes_what_browsers_send() {
        for (text, expected) in [
            (
                "https://A.example, http://localhost:3000",
                "https://a.example,http://localhost:3000",
            ),
            ("https://dash.example.com:443", "https://dash.example.com"),
            ("http://dash.example.com:80/", "http://dash.example.com"),
            ("http://dash.example.com:443", "http://dash.example.com:443"),
            ("HTTPS://DASH.EXAMPLE.COM:8443/", "https://dash.example.com:8443"),
            ("https://b\u{fc}cher.example", "https://xn--bcher-kva.example"),
            ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
            ("https://bu\u{308}cher.example", "https://xn--bcher-kva.example"),
            ("http://[0:0:0::1]:80", "http://[::1]"),
            ("http://[FD00::1]:8080", "http://[fd00::1]:8080"),
            ("http://127.1:9", "http://127.0.0.1:9"),
            ("http://192.168.001.010", "http://192.168.1.8"),
            ("https://a.example,https://a.example:443/,", "https://a.example"),
            ("https://a.example:0443", "https://a.example"),
        ] {
            assert_eq!(origins(text).unwrap().join(","), expected, "{text}");
        }
    }

    #[test]
    fn an_origin_that_no_page_has_is_refused_with_its_cure() {
        for (text, problem, cure) in [
            ("*", "every site", "https://"),
            ("https://*.example.com", "wildcard", "each origin"),
            ("null", "without an origin", "from an address"),
            ("a.example", "has no scheme", "https://a.example"),
            ("a.example:8443", "has no scheme", "https://a.example:8443"),
            ("https://a.example/x", "after the host", "give https://a.example"),
            ("https://a.example:443/x", "after the host", "give https://a.example"),
            ("https://a.example?q", "after the host", "give https://a.example"),
            ("https://a.example/#", "after the host", "give https://a.example"),
            ("https://u:p@a.example", "user name", "https://"),
            ("ftp://a.example", "neither http", "https://"),
            ("wss://a.example", "neither http", "https://"),
            ("chrome-extension://abcdef", "neither http", "https://"),
            ("https://", "is no origin", "https://"),
            ("https://a.example:99999", "is no origin", "https://"),
            ("https://a.example:0", "port 0", "https://"),
            ("https://a.example https://b.example", "no comma", "https://"),
            ("https://a.example;https://b.example", "no comma", "https://"),
            ("https://300.1.1.1", "is no origin", "https://"),
            ("https://xn--a-\u{fc}.example", "is no origin", "https://"),
        ] {
            let why = origins(text).unwrap_err();
            assert!(why.problem.contains(problem) && why.cure.contains(cure), "{text}: {why:?}");
        }
        let why = origins("https://a.example,b.example").unwrap_err();
        assert_eq!(why.problem, "has the entry b.example, which has no scheme");
    }

    #[test]
    fn listening_takes_addresses_and_socket_paths() {
        for good in ["127.0.0.1:0", "[::1]:8080", "unix:/run/bhav.sock"] {
            assert_eq!(listen(good).unwrap(), good);
        }
        for bad in [
            "localhost:80",
            "8080",
            "127.0.0.1",
            "unix:",
            "127.0.0.1:70000",
            "224.0.0.1:80",
        ] {
            assert!(listen(bad).is_err(), "{bad} was accepted");
        }
        for off in ["off", "OFF", "false", "no"] {
            assert_eq!(listen_or_off(off), Ok(AdminListen::Off), "{off}");
        }
        assert!(listen_or_off("none").unwrap_err().cure.contains("or off"));
    }

    #[test]
    fn instants_need_an_offset_and_a_sane_year() {
        assert!(instant("2026-11-20T10:00:00+05:30").unwrap().is_some());
        for bad in ["2026-11-20T10:00:00", "10:00", "1970-01-01T00:00:00Z"] {
            assert!(instant(bad).is_err(), "{bad} was accepted");
        }
    }
}
