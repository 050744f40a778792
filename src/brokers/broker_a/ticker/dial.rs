//! From an endpoint to a stream of bytes: its name, TCP and TLS, each by its deadline. Blocks, on
//! the thread `ticker` alone.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tungstenite::http::Uri;

use crate::base::Clock;
use crate::brokers::call::transport::BadUrl;
use crate::rt::outbound::{Names, Stream, trusting, web_roots};

/// The system's resolver has no deadline of its own that could be set.
const NAME_TIMEOUT_MS: u64 = 3_000;
/// For each address.
const TCP_TIMEOUT: Duration = Duration::from_secs(2);
/// TLS and the upgrade together.
const UPGRADE_TIMEOUT_MS: u64 = 7_000;
/// A write waits for a peer that does not read.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// Where the ticker is: a `ws` or `wss` URL without query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub(super) url: String,
    host: String,
    port: u16,
    tls: bool,
}

impl Endpoint {
    /// Reads the setting.
    ///
    /// # Errors
    /// [`BadUrl`].
    pub fn parse(url: &str) -> Result<Self, BadUrl> {
        let bad = || BadUrl { setting: "broker_a.ticker_url" };
        let uri: Uri = url.parse().map_err(|_| bad())?;
        let tls = match uri.scheme_str() {
            Some("wss") => true,
            Some("ws") => false,
            _ => return Err(bad()),
        };
        let host = uri.host().filter(|host| !host.is_empty() && !url.contains(['?', '#', '@']));
        let host = host.ok_or_else(bad)?.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
        Ok(Self { url: url.trim_end_matches('/').to_owned(), host, port, tls })
    }
}

/// Why a connection could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenFailure {
    /// The name has no address, or nobody listens there.
    Unreachable,
    TimedOut,
    Tls,
    /// 403: the token is dead, the plan has no data, or too many connections are open.
    Refused,
    /// 429, or the broker's own trouble.
    Busy,
    Redirected,
    /// Any other answer.
    NotWebSocket,
}

impl OpenFailure {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::TimedOut => "timed_out",
            Self::Tls => "tls",
            Self::Refused => "refused",
            Self::Busy => "busy",
            Self::Redirected => "redirected",
            Self::NotWebSocket => "not_websocket",
        }
    }
}

fn addresses(
    names: &Names,
    endpoint: &Endpoint,
    timeout_ms: u64,
) -> Result<Vec<SocketAddr>, OpenFailure> {
    let found = names.addresses(&endpoint.host, endpoint.port, timeout_ms);
    found.map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => OpenFailure::TimedOut,
        _ => OpenFailure::Unreachable,
    })
}

/// What it takes to reach an endpoint.
pub(super) struct Dialer {
    names: Names,
    tls: Arc<ClientConfig>,
    timer: Clock,
}

impl Dialer {
    /// # Errors
    /// The thread that resolves names cannot be started.
    pub(super) fn start() -> io::Result<Self> {
        let names = Names::start("ticker-name")?;
        Ok(Self { names, tls: Arc::new(trusting(web_roots())), timer: Clock::system() })
    }

    /// A stream to the endpoint. Its reads end by the deadline of the upgrade until
    /// [another](Timed::read_within) is set.
    pub(super) fn dial(&self, endpoint: &Endpoint) -> Result<Stream<Timed>, OpenFailure> {
        let tcp = connect(&addresses(&self.names, endpoint, NAME_TIMEOUT_MS)?)?;
        let until_mono_ms = self.timer.monotonic_ms() + UPGRADE_TIMEOUT_MS;
        let timed = Timed { tcp, timer: self.timer.clone(), until_mono_ms };
        match endpoint.tls {
            true => self.tls(endpoint, timed),
            false => Ok(Stream::Plain(timed)),
        }
    }

    fn tls(&self, endpoint: &Endpoint, timed: Timed) -> Result<Stream<Timed>, OpenFailure> {
        let name = ServerName::try_from(endpoint.host.clone()).map_err(|_| OpenFailure::Tls)?;
        Stream::secured(timed, &self.tls, name).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => OpenFailure::TimedOut,
            io::ErrorKind::InvalidData => OpenFailure::Tls,
            _ => OpenFailure::Unreachable,
        })
    }
}

fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, OpenFailure> {
    let mut failure = OpenFailure::Unreachable;
    for address in addresses {
        match TcpStream::connect_timeout(address, TCP_TIMEOUT) {
            Ok(tcp) => {
                let set = tcp.set_nodelay(true).and(tcp.set_write_timeout(Some(WRITE_TIMEOUT)));
                return set.map(|()| tcp).map_err(|_| OpenFailure::Unreachable);
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                failure = OpenFailure::TimedOut;
            }
            Err(_) => {}
        }
    }
    Err(failure)
}

/// Whether a read or write ended because nothing came or went in time.
pub(super) fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// A socket whose reads end by a deadline, however the bytes drip in.
pub(super) struct Timed {
    tcp: TcpStream,
    timer: Clock,
    until_mono_ms: u64,
}

impl Timed {
    /// All reads end by `within_ms` from now.
    pub(super) fn read_within(&mut self, within_ms: u64) {
        self.until_mono_ms = self.timer.monotonic_ms() + within_ms;
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let left_ms = self.until_mono_ms.saturating_sub(self.timer.monotonic_ms());
            if left_ms == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.tcp.set_read_timeout(Some(Duration::from_millis(left_ms)))?;
            match self.tcp.read(buffer) {
                Err(error) if is_wait(&error) => return Err(io::ErrorKind::TimedOut.into()),
                // The system does not resume a read with a timeout after a signal (signal(7)).
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.tcp.write(bytes) {
            // A peer that reads nothing for so long is gone.
            Err(error) if is_wait(&error) => Err(io::ErrorKind::BrokenPipe.into()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tcp.flush()
    }
}

#[cfg(test)]
#[path = "dial_tests.rs"]
pub(super) mod tests;
