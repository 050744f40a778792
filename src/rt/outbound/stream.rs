//! A stream that is plain or within TLS, over any socket.

use std::io;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::base::Clock;
use crate::rt::{Lane, LaneSpec};

/// Plain or within TLS.
pub(crate) enum Stream<S: Read + Write> {
    Plain(S),
    Tls(Box<StreamOwned<ClientConnection, S>>),
}

impl<S: Read + Write> Stream<S> {
    /// Does the TLS handshake over `socket`.
    ///
    /// # Errors
    /// The socket's; `InvalidData` for a peer that is not trusted.
    pub(crate) fn secured(
        socket: S,
        config: &Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> io::Result<Self> {
        let session = ClientConnection::new(Arc::clone(config), name);
        let session = session.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let mut stream = StreamOwned::new(session, socket);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Self::Tls(Box::new(stream)))
    }

    pub(crate) fn socket(&mut self) -> &mut S {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &mut stream.sock,
        }
    }
}

impl<S: Read + Write> Read for Stream<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl<S: Read + Write> Write for Stream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

// ---- Names
//
// Addresses of a name, by a deadline.

/// A look-up that hangs is abandoned, and delays at most the next one.
pub(crate) const NAMES_QUEUE_MAX: usize = 1;
/// Most addresses of one name that are tried.
const ADDRESSES_MAX: usize = 3;

/// Gives the addresses of a name.
type Resolve = Arc<dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// Looks names up on a thread that can be abandoned: the system's resolver cannot be interrupted
/// and has no deadline.
pub(crate) struct Names {
    pub(crate) lane: Lane,
    resolve: Resolve,
}

impl Names {
    /// Uses the system's resolver, on a thread of this name.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(thread: &'static str) -> io::Result<Self> {
        let resolve = |host: &str, port: u16| {
            (host, port)
                .to_socket_addrs()
                .map(|found| found.take(ADDRESSES_MAX).collect())
        };
        Self::with(thread, Arc::new(resolve))
    }

    pub(crate) fn with(thread: &'static str, resolve: Resolve) -> io::Result<Self> {
        let spec = LaneSpec {
            name: thread,
            threads: 1,
            queue_max: NAMES_QUEUE_MAX,
        };
        // Deadlines use this machine's clock, whatever clock the market has.
        let lane = Lane::start(&spec, &Clock::system())?;
        Ok(Self { lane, resolve })
    }

    /// The addresses of a host, which may itself be an address.
    ///
    /// # Errors
    /// The resolver's, and `TimedOut`.
    pub(crate) fn addresses(
        &self,
        host: &str,
        port: u16,
        timeout_ms: u64,
    ) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let resolve = Arc::clone(&self.resolve);
        let host = host.to_owned();
        let late = || io::Error::from(io::ErrorKind::TimedOut);
        // A refused job counts as late too: an earlier look-up hangs.
        let found = self.lane.submit(timeout_ms, move || resolve(&host, port));
        found.map_err(|_| late())?.wait().map_err(|_| late())?
    }
}

// ---- Tls
//
// The roots that TLS connections trust.

#[cfg(feature = "engines")]
use std::path::Path;

#[cfg(feature = "engines")]
use rustls::pki_types::{CertificateDer, pem::PemObject};

/// The public authorities.
pub(crate) fn web_roots() -> RootCertStore {
    RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    }
}

/// The authorities in a file (PEM).
///
/// # Errors
/// Why the file cannot be used, as text.
#[cfg(feature = "engines")]
pub(crate) fn roots_of(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|why| why.to_string())? {
        let certificate = certificate.map_err(|why| why.to_string())?;
        roots.add(certificate).map_err(|why| why.to_string())?;
    }
    match roots.is_empty() {
        true => Err("it holds no certificate".to_owned()),
        false => Ok(roots),
    }
}

/// Verifies every server's chain and name with these roots.
pub(crate) fn trusting(roots: RootCertStore) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the ciphers of TLS 1.2 and 1.3");
    config.with_root_certificates(roots).with_no_client_auth()
}
