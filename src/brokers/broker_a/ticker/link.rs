//! The connection: TCP, TLS and the upgrade within their deadlines, then messages. Blocks, on the
//! thread `ticker` alone.
//!
//! The library's own way to connect is not used: it follows redirects, has no deadline, and its
//! errors repeat the URL, which carries the token. No error here has any text of the peer or of the
//! library.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tungstenite::client::IntoClientRequest;
use tungstenite::http::{HeaderValue, Uri};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Bytes, Error, HandshakeError, Message, WebSocket};

use crate::base::{Clock, wipe};
use crate::brokers::call::transport::BadUrl;
use crate::brokers::session::token::Token;

const TCP_TIMEOUT: Duration = Duration::from_secs(2);
/// TLS and the upgrade together.
const UPGRADE_TIMEOUT_MS: u64 = 7_000;
/// A write waits for a peer that does not read.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);
/// 3,000 full packets take 545 KiB.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
const READ_BUFFER_BYTES: usize = 16 * 1024;
const WRITE_BUFFER_BYTES: usize = 16 * 1024;
const WRITE_BUFFER_BYTES_MAX: usize = 64 * 1024;

/// Where the ticker is: a `ws` or `wss` URL without query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    url: String,
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

/// The connection broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// What came.
pub(super) enum Heard {
    Binary(Bytes),
    /// Not kept: the broker sends the app owner's orders as text.
    Text,
    Pong,
    Other,
    /// Nothing within the wait.
    Nothing,
}

/// An open connection.
pub(super) struct Link {
    socket: WebSocket<Stream>,
    timer: Clock,
    /// The peer said that it is the simulator.
    pub(super) simulated: bool,
}

impl Link {
    /// Opens a connection with this token.
    pub(super) fn open(endpoint: &Endpoint, token: &Token) -> Result<Self, OpenFailure> {
        let timer = Clock::system();
        let tcp = connect(endpoint)?;
        let until_mono_ms = Some(timer.monotonic_ms() + UPGRADE_TIMEOUT_MS);
        let timed = Timed { tcp, timer: timer.clone(), until_mono_ms };
        let stream = if endpoint.tls { tls(endpoint, timed)? } else { Stream::Plain(timed) };
        let opened = upgrade(endpoint, token, stream);
        // Making the request leaves pieces of the token.
        wipe::scrub();
        let (mut socket, simulated) = opened?;
        socket.get_mut().timed().until_mono_ms = None;
        Ok(Self { socket, timer, simulated })
    }

    /// The next message, waiting for at most `wait`.
    pub(super) fn read(&mut self, wait: Duration) -> Result<Heard, Broken> {
        let wait = wait.max(Duration::from_millis(1));
        let timed = self.socket.get_mut().timed();
        timed.tcp.set_read_timeout(Some(wait)).map_err(|_| Broken)?;
        match self.socket.read() {
            Ok(Message::Binary(bytes)) => Ok(Heard::Binary(bytes)),
            Ok(Message::Text(_)) => Ok(Heard::Text),
            Ok(Message::Pong(_)) => Ok(Heard::Pong),
            Ok(Message::Close(_)) => Err(Broken),
            Ok(Message::Ping(_) | Message::Frame(_)) => Ok(Heard::Other),
            Err(Error::Io(error)) if is_wait(&error) => Ok(Heard::Nothing),
            Err(_) => Err(Broken),
        }
    }

    pub(super) fn send_text(&mut self, text: String) -> Result<(), Broken> {
        self.socket.send(Message::text(text)).map_err(|_| Broken)
    }

    pub(super) fn ping(&mut self) -> Result<(), Broken> {
        self.socket.send(Message::Ping(Bytes::new())).map_err(|_| Broken)
    }

    /// Says goodbye, so that the broker does not count a dead connection, and waits for the answer
    /// for at most `wait`.
    pub(super) fn close(mut self, wait: Duration) {
        let until = self.timer.monotonic_ms() + wait.as_millis() as u64;
        self.socket.get_mut().timed().until_mono_ms = Some(until);
        if self.socket.close(None).is_err() {
            return;
        }
        // Ends with the connection, an error, or the deadline.
        while self.socket.read().is_ok() {}
    }
}

fn connect(endpoint: &Endpoint) -> Result<TcpStream, OpenFailure> {
    let found = (endpoint.host.as_str(), endpoint.port).to_socket_addrs();
    let mut failure = OpenFailure::Unreachable;
    for address in found.map_err(|_| OpenFailure::Unreachable)? {
        match TcpStream::connect_timeout(&address, TCP_TIMEOUT) {
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

fn tls(endpoint: &Endpoint, timed: Timed) -> Result<Stream, OpenFailure> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|_| OpenFailure::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(endpoint.host.clone()).map_err(|_| OpenFailure::Tls)?;
    let session = ClientConnection::new(Arc::new(config), name).map_err(|_| OpenFailure::Tls)?;
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

fn upgrade(
    endpoint: &Endpoint,
    token: &Token,
    stream: Stream,
) -> Result<(WebSocket<Stream>, bool), OpenFailure> {
    let target = token.ticker_url(&endpoint.url);
    let request = target.as_str().into_client_request();
    let mut request = request.map_err(|_| OpenFailure::NotWebSocket)?;
    request.headers_mut().insert("x-kite-version", HeaderValue::from_static("3"));
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_write_buffer_size(WRITE_BUFFER_BYTES_MAX)
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    match tungstenite::client::client_with_config(request, stream, Some(config)) {
        Ok((socket, response)) => {
            let simulated = response.headers().contains_key("x-bhav-simulator");
            Ok((socket, simulated))
        }
        Err(HandshakeError::Failure(Error::Http(response))) => {
            Err(match response.status().as_u16() {
                403 => OpenFailure::Refused,
                429 | 500.. => OpenFailure::Busy,
                300..=399 => OpenFailure::Redirected,
                _ => OpenFailure::NotWebSocket,
            })
        }
        Err(HandshakeError::Failure(Error::Io(error))) => Err(match error.kind() {
            io::ErrorKind::TimedOut => OpenFailure::TimedOut,
            _ => OpenFailure::Unreachable,
        }),
        Err(HandshakeError::Failure(_)) => Err(OpenFailure::NotWebSocket),
        Err(HandshakeError::Interrupted(_)) => Err(OpenFailure::TimedOut),
    }
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// A socket whose reads end by a deadline, where one is set, however the bytes drip in.
struct Timed {
    tcp: TcpStream,
    timer: Clock,
    until_mono_ms: Option<u64>,
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(until_mono_ms) = self.until_mono_ms else { return self.tcp.read(buffer) };
        let left_ms = until_mono_ms.saturating_sub(self.timer.monotonic_ms());
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

enum Stream {
    Plain(Timed),
    Tls(Box<StreamOwned<ClientConnection, Timed>>),
}

impl Stream {
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
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_websocket_url_without_query() {
        let endpoint = Endpoint::parse("wss://ws.kite.trade").unwrap();
        assert_eq!(
            (endpoint.host.as_str(), endpoint.port, endpoint.tls),
            ("ws.kite.trade", 443, true)
        );
        let local = Endpoint::parse("ws://[::1]:9000/a/ticker/").unwrap();
        assert_eq!((local.host.as_str(), local.port, local.tls), ("::1", 9_000, false));
        assert_eq!(local.url, "ws://[::1]:9000/a/ticker");
        for bad in ["https://ws.kite.trade", "ws://", "ws://a/?q=1", "ws://u@a/", "ws://a/#f", "a"]
        {
            assert!(Endpoint::parse(bad).is_err(), "{bad}");
        }
    }
}
