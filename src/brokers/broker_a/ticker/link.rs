//! The WebSocket: the upgrade within its deadline, then messages. Blocks, on the thread `ticker`
//! alone.
//!
//! The library's own way to connect is not used: it follows redirects, has no deadline, and its
//! errors repeat the URL, which carries the token. No error here has any text of the peer or of the
//! library.

use std::io;
use std::time::Duration;

use tungstenite::client::IntoClientRequest;
use tungstenite::http::HeaderValue;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Bytes, Error, HandshakeError, Message, WebSocket};

use super::dial::{Dialer, Endpoint, OpenFailure, Timed, is_wait};
use crate::base::wipe;
use crate::brokers::session::token::Token;
use crate::rt::outbound::Stream;

/// 3,000 full packets take 545 KiB.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
const READ_BUFFER_BYTES: usize = 16 * 1024;
const WRITE_BUFFER_BYTES: usize = 16 * 1024;
const WRITE_BUFFER_BYTES_MAX: usize = 64 * 1024;

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
    socket: WebSocket<Stream<Timed>>,
    /// The peer said that it is the simulator.
    pub(super) simulated: bool,
}

impl Link {
    /// Opens a connection with this token.
    pub(super) fn open(
        dialer: &Dialer,
        endpoint: &Endpoint,
        token: &Token,
    ) -> Result<Self, OpenFailure> {
        let opened = upgrade(endpoint, token, dialer.dial(endpoint)?);
        // Making the request leaves pieces of the token.
        wipe::scrub();
        let (socket, simulated) = opened?;
        Ok(Self { socket, simulated })
    }

    /// The next message, waiting for at most `wait`, however its bytes drip in; what has come of it
    /// is kept.
    pub(super) fn read(&mut self, wait: Duration) -> Result<Heard, Broken> {
        self.socket.get_mut().socket().read_within(wait.as_millis().max(1) as u64);
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
        self.socket.get_mut().socket().read_within(wait.as_millis() as u64);
        if self.socket.close(None).is_err() {
            return;
        }
        // Ends with the connection, an error, or the deadline.
        while self.socket.read().is_ok() {}
    }
}

fn upgrade(
    endpoint: &Endpoint,
    token: &Token,
    stream: Stream<Timed>,
) -> Result<(WebSocket<Stream<Timed>>, bool), OpenFailure> {
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

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
