//! Opens a stream of bytes to an endpoint: name, TCP and TLS, each with its deadline. It blocks,
//! and runs only on the thread `ticker`.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tungstenite::http::Uri;

use crate::base::{Clock, Symbol};
use crate::brokers::broker_a::ticker::reading::{Counters, Reason};
use crate::brokers::broker_a::ticker::subscriptions::{KnownTokens, Wanted};
use crate::brokers::call::transport::BadUrl;
use crate::brokers::feed::Push;
use crate::brokers::session::token::{SharedToken, Token};
use crate::brokers::settings::BrokerASettings;
use crate::rt::outbound::{Names, Stream, Timed, trusting, web_roots};
use crate::rt::threads::Stop;

/// The system's resolver has no deadline of its own that could be set.
const NAME_TIMEOUT_MS: u64 = 3_000;
/// Longest connection attempt to one address.
const TCP_TIMEOUT: Duration = Duration::from_secs(2);
/// Deadline of TLS and the upgrade together.
const UPGRADE_TIMEOUT_MS: u64 = 7_000;
/// Longest wait of a write for a peer that does not read.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// The ticker's address: a `ws` or `wss` URL without query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
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
    pub(crate) fn parse(url: &str) -> Result<Self, BadUrl> {
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

fn addresses(
    names: &Names,
    endpoint: &Endpoint,
    timeout_ms: u64,
) -> Result<Vec<SocketAddr>, Reason> {
    let found = names.addresses(&endpoint.host, endpoint.port, timeout_ms);
    found.map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => Reason::TimedOut,
        _ => Reason::Unreachable,
    })
}

/// The means to reach an endpoint.
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

    /// A stream to the endpoint. Its reads have the deadline of the upgrade until
    /// [`Timed::allow_for_ms`] sets another.
    pub(super) fn dial(&self, endpoint: &Endpoint) -> Result<Stream<Timed>, Reason> {
        let tcp = connect(&addresses(&self.names, endpoint, NAME_TIMEOUT_MS)?)?;
        let mut timed = Timed::new(tcp, &self.timer).with_write_timeout(WRITE_TIMEOUT);
        timed.allow_for_ms(UPGRADE_TIMEOUT_MS);
        match endpoint.tls {
            true => self.tls(endpoint, timed),
            false => Ok(Stream::Plain(timed)),
        }
    }

    fn tls(&self, endpoint: &Endpoint, timed: Timed) -> Result<Stream<Timed>, Reason> {
        let name = ServerName::try_from(endpoint.host.clone()).map_err(|_| Reason::Tls)?;
        Stream::secured(timed, &self.tls, name).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => Reason::TimedOut,
            io::ErrorKind::InvalidData => Reason::Tls,
            _ => Reason::Unreachable,
        })
    }
}

fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, Reason> {
    let mut failure = Reason::Unreachable;
    for address in addresses {
        match TcpStream::connect_timeout(address, TCP_TIMEOUT) {
            Ok(tcp) => {
                return tcp.set_nodelay(true).map(|()| tcp).map_err(|_| Reason::Unreachable);
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                failure = Reason::TimedOut;
            }
            Err(_) => {}
        }
    }
    Err(failure)
}

#[cfg(test)]
#[path = "dial_tests.rs"]
pub(super) mod tests;

// ---- Worker
//
// The state of the ticker's thread, its inputs, and what it shares with its owner.

/// The ticker's settings. A reload may change them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TickerSettings {
    /// `None` if the ticker is switched off.
    pub endpoint: Option<Endpoint>,
    /// Most instruments subscribed at once.
    pub symbols_max: usize,
}

impl TickerSettings {
    /// # Errors
    /// [`BadUrl`].
    pub(crate) fn of(settings: &BrokerASettings) -> Result<Self, BadUrl> {
        let endpoint = settings.ticker_endpoint().map(Endpoint::parse).transpose()?;
        Ok(Self { endpoint, symbols_max: settings.ticker_symbols_max })
    }
}

/// The thread's inputs.
pub(crate) struct TickerParts {
    pub(in crate::brokers::broker_a) settings: Arc<ArcSwap<TickerSettings>>,
    /// Indices whose ticks prove that prices flow.
    pub leads: Vec<Symbol>,
    pub clock: Clock,
    pub token: Arc<SharedToken>,
    pub(in crate::brokers::broker_a) tokens: Arc<KnownTokens>,
    pub push: Push,
}

/// State shared by the thread and its owner.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) counters: Counters,
    pub(super) wanted: Mutex<Arc<Wanted>>,
}

/// Endpoint and token of a connection.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) endpoint: Endpoint,
    pub(super) token: Arc<Token>,
}

impl Way {
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.token, &other.token) && self.endpoint == other.endpoint
    }
}

/// Everything that decides whether and how to connect, as of one moment.
pub(super) struct View {
    pub(super) settings: Arc<TickerSettings>,
    pub(super) wanted: Arc<Wanted>,
    token: Option<Arc<Token>>,
}

impl View {
    /// The endpoint and token of the wanted connection; `None` if none is wanted.
    pub(super) fn way(&self) -> Option<Way> {
        let endpoint = self.settings.endpoint.clone().filter(|_| self.wanted.awake)?;
        Some(Way { endpoint, token: self.token.clone()? })
    }

    /// Whether a connection is wanted, and this is still the way to it.
    pub(super) fn is_way(&self, way: &Way) -> bool {
        self.wanted.awake
            && self.settings.endpoint.as_ref() == Some(&way.endpoint)
            && self.token.as_ref().is_some_and(|token| Arc::ptr_eq(token, &way.token))
    }
}

/// State of the thread.
pub(super) struct Worker {
    pub(super) parts: TickerParts,
    pub(super) shared: Arc<Shared>,
    pub(super) dialer: Dialer,
    pub(super) stop: Stop,
}

impl Worker {
    pub(super) fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    pub(super) fn now_mono_ms(&self) -> u64 {
        self.parts.clock.monotonic_ms()
    }

    /// Reads everything that may have changed.
    pub(super) fn view(&self) -> View {
        View {
            settings: self.parts.settings.load_full(),
            wanted: Arc::clone(&self.shared.wanted.lock()),
            token: self.parts.token.usable(self.parts.clock.now()).ok(),
        }
    }
}
