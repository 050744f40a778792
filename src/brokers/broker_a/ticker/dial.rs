//! From an endpoint to a stream of bytes: its name, TCP and TLS, each by its deadline. Blocks, on
//! the thread `ticker` alone.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tungstenite::http::Uri;

use crate::base::Clock;
use crate::brokers::call::transport::BadUrl;
use crate::rt::{Lane, LaneSpec};

/// The system's resolver has no deadline of its own that could be set.
const NAME_TIMEOUT_MS: u64 = 3_000;
/// A call of it that hangs is left to itself, and holds up the next try at most.
const NAMES_QUEUE_MAX: usize = 1;
/// For each address, and how many are tried.
const TCP_TIMEOUT: Duration = Duration::from_secs(2);
const ADDRESSES_MAX: usize = 3;
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

/// Gives the addresses of a name.
type Resolve = Arc<dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// Finds addresses by a deadline. The system's resolver cannot be interrupted, so it runs on a
/// thread that may be left behind.
pub(super) struct Names {
    lane: Lane,
    resolve: Resolve,
    timeout_ms: u64,
}

impl Names {
    /// Of the system.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start() -> io::Result<Self> {
        let resolve = |host: &str, port: u16| {
            (host, port).to_socket_addrs().map(|found| found.take(ADDRESSES_MAX).collect())
        };
        Self::with(Arc::new(resolve), NAME_TIMEOUT_MS)
    }

    fn with(resolve: Resolve, timeout_ms: u64) -> io::Result<Self> {
        let spec = LaneSpec { name: "ticker-name", threads: 1, queue_max: NAMES_QUEUE_MAX };
        // Deadlines are of this machine, whatever clock the market has.
        let lane = Lane::start(&spec, &Clock::system())?;
        Ok(Self { lane, resolve, timeout_ms })
    }

    fn of(&self, endpoint: &Endpoint) -> Result<Vec<SocketAddr>, OpenFailure> {
        if let Ok(address) = endpoint.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, endpoint.port)]);
        }
        let (resolve, host, port) =
            (Arc::clone(&self.resolve), endpoint.host.clone(), endpoint.port);
        // Refused and late are one: a call before this one hangs.
        let found = self.lane.submit(self.timeout_ms, move || resolve(&host, port));
        let found = found.map_err(|_| OpenFailure::TimedOut)?.wait();
        found.map_err(|_| OpenFailure::TimedOut)?.map_err(|_| OpenFailure::Unreachable)
    }
}

/// What TLS connections trust: the roots of the web.
pub(super) fn web_tls() -> Option<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    tls_trusting(roots)
}

fn tls_trusting(roots: RootCertStore) -> Option<Arc<ClientConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().ok()?;
    Some(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// What it takes to reach an endpoint.
pub(super) struct Dialer {
    names: Names,
    tls: Option<Arc<ClientConfig>>,
    timer: Clock,
}

impl Dialer {
    /// # Errors
    /// The thread that resolves names cannot be started.
    pub(super) fn start() -> io::Result<Self> {
        Ok(Self { names: Names::start()?, tls: web_tls(), timer: Clock::system() })
    }

    /// A stream to the endpoint. Its reads end by the deadline of the upgrade until that is
    /// [lifted](Stream::wait_for).
    pub(super) fn dial(&self, endpoint: &Endpoint) -> Result<Stream, OpenFailure> {
        let tcp = connect(&self.names.of(endpoint)?)?;
        let until_mono_ms = self.timer.monotonic_ms() + UPGRADE_TIMEOUT_MS;
        let timed = Timed { tcp, timer: self.timer.clone(), until_mono_ms };
        match endpoint.tls {
            true => self.tls(endpoint, timed),
            false => Ok(Stream::Plain(timed)),
        }
    }

    fn tls(&self, endpoint: &Endpoint, timed: Timed) -> Result<Stream, OpenFailure> {
        let config = self.tls.clone().ok_or(OpenFailure::Tls)?;
        let name = ServerName::try_from(endpoint.host.clone()).map_err(|_| OpenFailure::Tls)?;
        let session = ClientConnection::new(config, name).map_err(|_| OpenFailure::Tls)?;
        let mut stream = StreamOwned::new(session, timed);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).map_err(|error| match error.kind() {
                io::ErrorKind::TimedOut => OpenFailure::TimedOut,
                io::ErrorKind::InvalidData => OpenFailure::Tls,
                _ => OpenFailure::Unreachable,
            })?;
        }
        Ok(Stream::Tls(Box::new(stream)))
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

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left_ms = self.until_mono_ms.saturating_sub(self.timer.monotonic_ms());
        if left_ms == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.tcp.set_read_timeout(Some(Duration::from_millis(left_ms)))?;
        match self.tcp.read(buffer) {
            Err(error) if is_wait(&error) => Err(io::ErrorKind::TimedOut.into()),
            read => read,
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

/// Plain or within TLS.
pub(super) enum Stream {
    Plain(Timed),
    Tls(Box<StreamOwned<ClientConnection, Timed>>),
}

impl Stream {
    /// All reads end by `within_ms` from now.
    pub(super) fn read_within(&mut self, within_ms: u64) {
        let timed = self.timed();
        timed.until_mono_ms = timed.timer.monotonic_ms() + within_ms;
    }

    fn timed(&mut self) -> &mut Timed {
        match self {
            Self::Plain(timed) => timed,
            Self::Tls(stream) => &mut stream.sock,
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(timed) => timed.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(timed) => timed.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(timed) => timed.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

#[cfg(test)]
#[path = "dial_tests.rs"]
pub(super) mod tests;
