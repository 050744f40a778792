//! The WebSocket: the upgrade within its deadline, then messages. It blocks, and runs only on the
//! thread `ticker`.
//!
//! The library's own way to connect is not used: it follows redirects, has no deadline, and its
//! errors repeat the URL, which carries the token. No error here contains text of the peer or of
//! the library.

use std::io;
use std::time::Duration;

use tungstenite::client::IntoClientRequest;
use tungstenite::http::HeaderValue;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, HandshakeError, Message, WebSocket};

use crate::base::wipe;
use crate::brokers::broker_a::ticker::dial::{Dialer, Endpoint};
use crate::brokers::broker_a::ticker::reading::Reason;
use crate::brokers::session::token::Token;
use crate::rt::outbound::{Stream, Timed, is_wait};

/// 3,000 full packets take 545 KiB.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
const READ_BUFFER_BYTES: usize = 16 * 1024;
const WRITE_BUFFER_BYTES: usize = 16 * 1024;
const WRITE_BUFFER_BYTES_MAX: usize = 64 * 1024;

/// An open connection.
pub(super) struct Link {
    socket: WebSocket<Stream<Timed>>,
    /// The peer declared itself as the simulator.
    pub(super) simulated: bool,
}

impl Link {
    /// Opens a connection with this token.
    pub(super) fn open(
        dialer: &Dialer,
        endpoint: &Endpoint,
        token: &Token,
    ) -> Result<Self, Reason> {
        let opened = upgrade(endpoint, token, dialer.dial(endpoint)?);
        // Making the request leaves pieces of the token on the stack.
        wipe::scrub();
        let (socket, simulated) = opened?;
        Ok(Self { socket, simulated })
    }

    /// The next message; `None` if there is none within `wait`. The bytes of an incomplete message
    /// are kept for the next call.
    ///
    /// # Errors
    /// [`Reason::Broken`], also for the close of the peer.
    pub(super) fn read(&mut self, wait: Duration) -> Result<Option<Message>, Reason> {
        self.socket
            .get_mut()
            .socket()
            .allow_for_ms(wait.as_millis().max(1) as u64);
        match self.socket.read() {
            Ok(Message::Close(_)) => Err(Reason::Broken),
            Ok(message) => Ok(Some(message)),
            Err(Error::Io(error)) if is_wait(&error) => Ok(None),
            Err(_) => Err(Reason::Broken),
        }
    }

    /// # Errors
    /// [`Reason::Broken`].
    pub(super) fn send(&mut self, message: Message) -> Result<(), Reason> {
        self.socket.send(message).map_err(|_| Reason::Broken)
    }

    /// Sends a close, so that the broker does not count a dead connection, and waits for the answer
    /// for at most `wait`.
    pub(super) fn close(mut self, wait: Duration) {
        self.socket
            .get_mut()
            .socket()
            .allow_for_ms(wait.as_millis() as u64);
        if self.socket.close(None).is_err() {
            return;
        }
        // The loop ends with the connection, an error, or the deadline.
        while self.socket.read().is_ok() {}
    }
}

fn upgrade(
    endpoint: &Endpoint,
    token: &Token,
    stream: Stream<Timed>,
) -> Result<(WebSocket<Stream<Timed>>, bool), Reason> {
    let target = token.ticker_url(&endpoint.url);
    let request = target.as_str().into_client_request();
    let mut request = request.map_err(|_| Reason::NotWebSocket)?;
    request
        .headers_mut()
        .insert("x-kite-version", HeaderValue::from_static("3"));
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
                403 => Reason::Refused,
                429 | 500.. => Reason::Busy,
                300..=399 => Reason::Redirected,
                _ => Reason::NotWebSocket,
            })
        }
        Err(HandshakeError::Failure(Error::Io(error))) => Err(match error.kind() {
            io::ErrorKind::TimedOut => Reason::TimedOut,
            _ => Reason::Unreachable,
        }),
        Err(HandshakeError::Failure(_)) => Err(Reason::NotWebSocket),
        Err(HandshakeError::Interrupted(_)) => Err(Reason::TimedOut),
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
