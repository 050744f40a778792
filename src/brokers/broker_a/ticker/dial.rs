//! Opens a stream of bytes to an endpoint: name, TCP and TLS, each with its deadline. It blocks,
//! and runs only on the thread `ticker`.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tungstenite::http::Uri;

use crate::base::Clock;
use crate::brokers::broker_a::ticker::reading::Reason;
use crate::brokers::call::transport::BadUrl;
use crate::rt::outbound::{Names, Stream, Timed, trusting, web_roots};

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
        let bad = || BadUrl {
            setting: "broker_a.ticker_url",
        };
        let uri: Uri = url.parse().map_err(|_| bad())?;
        let tls = match uri.scheme_str() {
            Some("wss") => true,
            Some("ws") => false,
            _ => return Err(bad()),
        };
        let host = uri
            .host()
            .filter(|host| !host.is_empty() && !url.contains(['?', '#', '@']));
        let host = host.ok_or_else(bad)?.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            host,
            port,
            tls,
        })
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
        Ok(Self {
            names,
            tls: Arc::new(trusting(web_roots())),
            timer: Clock::system(),
        })
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
                return tcp
                    .set_nodelay(true)
                    .map(|()| tcp)
                    .map_err(|_| Reason::Unreachable);
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
