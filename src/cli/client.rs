//! HTTP client for the running service: ureq for http and https, a few lines of our own for a Unix
//! socket.
//!
//! Runs on the main thread of a command and blocks, at most for the timeout of each call. Request
//! bodies with secrets pass only through memory that is wiped.

use std::fmt::Write as _;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use socket2::{Domain, SockAddr, Socket, Type};
use ureq::Agent;
use ureq::http::HeaderValue;
use zeroize::Zeroizing;

/// Longest response read. The service's responses have a few KiB.
const ANSWER_BYTES_MAX: u64 = 256 * 1024;
/// More headers than any response of the service has.
const HEADERS_MAX: usize = 32;

/// The address of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// URL without a trailing slash.
    Http(String),
    Unix(PathBuf),
}

/// A response of any status.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    /// The `Date` header: the service's clock, to the second.
    pub date: Option<Timestamp>,
    pub body: Vec<u8>,
}

impl Target {
    /// The target from `--url`, else from the listen address of the settings.
    ///
    /// # Errors
    /// A message with the cure.
    pub(crate) fn of(url: Option<&str>, listen: &str) -> Result<Self, String> {
        let Some(url) = url.map(|url| url.trim_end_matches('/')) else {
            return Self::of_listen(listen);
        };
        if let Some(path) = url.strip_prefix("unix:") {
            return Ok(Self::Unix(path.into()));
        }
        let rest = url
            .strip_prefix("http://")
            .or_else(|| url.strip_prefix("https://"));
        match rest {
            Some(rest) if !rest.is_empty() && !url.contains(['?', '#', '@', ' ']) => {
                Ok(Self::Http(url.to_owned()))
            }
            _ => Err("--url is neither http://HOST:PORT, https://HOST nor unix:PATH".into()),
        }
    }

    fn of_listen(listen: &str) -> Result<Self, String> {
        if let Some(path) = listen.strip_prefix("unix:") {
            return Ok(Self::Unix(path.into()));
        }
        let address: SocketAddr = listen
            .parse()
            .map_err(|_| format!("{listen} is no address; give --url"))?;
        if address.port() == 0 {
            return Err("with port 0 only the service knows its port; give --url".into());
        }
        // A service that listens on all addresses is reached over loopback.
        let ip = match address.ip() {
            ip if !ip.is_unspecified() => ip,
            std::net::IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            std::net::IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        };
        Ok(Self::Http(format!("http://{}", SocketAddr::new(ip, address.port()))))
    }

    /// The address as text, for messages.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Http(url) => url.clone(),
            Self::Unix(path) => format!("unix:{}", path.display()),
        }
    }

    /// Sends a GET.
    ///
    /// # Errors
    /// No answer came in time.
    pub(crate) fn get(&self, path: &str, timeout: Duration) -> io::Result<Answer> {
        self.ask(path, None, timeout)
    }

    /// Sends a POST of JSON.
    ///
    /// # Errors
    /// No answer came in time.
    pub(crate) fn post(&self, path: &str, json: &[u8], timeout: Duration) -> io::Result<Answer> {
        self.ask(path, Some(json), timeout)
    }

    fn ask(&self, path: &str, json: Option<&[u8]>, timeout: Duration) -> io::Result<Answer> {
        match self {
            Self::Http(url) => over_http(&format!("{url}{path}"), json, timeout),
            Self::Unix(socket) => {
                let stream = Socket::new(Domain::UNIX, Type::STREAM, None)?;
                // Set before connecting, which also waits if the socket's backlog is full.
                stream.set_write_timeout(Some(timeout))?;
                stream.set_read_timeout(Some(timeout))?;
                stream.connect(&SockAddr::unix(socket)?)?;
                over_stream(stream, path, json)
            }
        }
    }
}

fn over_http(url: &str, json: Option<&[u8]>, timeout: Duration) -> io::Result<Answer> {
    let agent: Agent = Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .max_redirects(0)
        .timeout_global(Some(timeout))
        .build()
        .new_agent();
    let sent = match json {
        None => agent.get(url).call(),
        Some(json) => agent.post(url).content_type("application/json").send(json),
    };
    let mut response = sent.map_err(|error| match error {
        ureq::Error::Timeout(_) => io::Error::new(io::ErrorKind::TimedOut, error),
        other => other.into_io(),
    })?;
    let date = response
        .headers()
        .get("date")
        .and_then(|value: &HeaderValue| value.to_str().ok());
    let mut answer = Answer {
        status: response.status().as_u16(),
        date: date.and_then(http_date),
        body: vec![],
    };
    let reader = response.body_mut().as_reader();
    reader
        .take(ANSWER_BYTES_MAX)
        .read_to_end(&mut answer.body)?;
    Ok(answer)
}

/// Sends one request and reads the response until the service closes the connection.
fn over_stream(
    mut stream: impl Read + io::Write,
    path: &str,
    json: Option<&[u8]>,
) -> io::Result<Answer> {
    let (method, body) = match json {
        None => ("GET", &[][..]),
        Some(json) => ("POST", json),
    };
    let mut head = String::new();
    let _ = write!(head, "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    if json.is_some() {
        let length = body.len();
        let _ = write!(head, "Content-Type: application/json\r\nContent-Length: {length}\r\n");
    }
    head.push_str("\r\n");
    let mut request = Zeroizing::new(Vec::with_capacity(head.len() + body.len()));
    request.extend_from_slice(head.as_bytes());
    request.extend_from_slice(body);
    stream.write_all(&request)?;
    let mut bytes = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes)?;
    parsed(&bytes).ok_or_else(|| io::Error::other("the answer is not HTTP, or is cut off"))
}

fn parsed(bytes: &[u8]) -> Option<Answer> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head_bytes) = response.parse(bytes).ok()? else {
        return None;
    };
    let text = |name: &str| {
        let header = response
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name));
        header.and_then(|header| std::str::from_utf8(header.value).ok())
    };
    let length: usize = text("content-length")?.parse().ok()?;
    let body = bytes[head_bytes..].get(..length)?.to_vec();
    Some(Answer {
        status: response.code?,
        date: text("date").and_then(http_date),
        body,
    })
}

fn http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(text)
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_the_url_or_the_listen_address() {
        for (url, listen, expected) in [
            (None, "127.0.0.1:8080", "http://127.0.0.1:8080"),
            (None, "0.0.0.0:81", "http://127.0.0.1:81"),
            (None, "[::]:81", "http://[::1]:81"),
            (None, "unix:/run/bhav.sock", "unix:/run/bhav.sock"),
            (Some("http://h:1/"), "127.0.0.1:0", "http://h:1"),
            (Some("https://h"), "127.0.0.1:0", "https://h"),
            (Some("unix:a"), "127.0.0.1:0", "unix:a"),
        ] {
            assert_eq!(Target::of(url, listen).unwrap().text(), expected);
        }
        for (url, listen) in [
            (None, "127.0.0.1:0"),
            (Some("ftp://h"), "127.0.0.1:1"),
            (Some("http://"), "127.0.0.1:1"),
            (Some("http://user@h"), "127.0.0.1:1"),
        ] {
            assert!(Target::of(url, listen).unwrap_err().contains("--url"), "{url:?} {listen}");
        }
    }

    #[test]
    fn a_response_that_is_cut_off_is_refused() {
        let whole = "HTTP/1.1 503 Service Unavailable\r\ndate: Fri, 20 Nov 2026 05:30:00 GMT\r\n\
                     Content-Length: 2\r\n\r\n{}";
        let answer = parsed(whole.as_bytes()).unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (503, &b"{}"[..]));
        assert_eq!(answer.date.unwrap().to_string(), "2026-11-20T05:30:00Z");
        for cut in 0..whole.len() {
            assert!(parsed(&whole.as_bytes()[..cut]).is_none(), "{cut}");
        }
        assert!(parsed(b"SSH-2.0-OpenSSH_9.2\r\n").is_none());
    }
}
