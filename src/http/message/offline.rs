//! Requests without a socket: bytes in, bytes out, through the same parser and handlers as a
//! connection.
//!
//! For benches and tests. Runs on the caller's thread; a handler that parks blocks it.

use std::sync::Arc;

use super::request::Peer;
use crate::base::Clock;
use crate::http::connection::buffers::Buffers;
use crate::http::connection::exchange::{Exchange, Next, Stage};
use crate::http::serve::Serve;
use crate::http::server::connection_table::ConnectionTable;
use crate::http::server::shared::Shared;
use crate::http::settings::HttpSettings;

/// A connection without a socket.
pub struct Offline<S> {
    shared: Shared<S>,
    settings: HttpSettings,
    buffers: Box<Buffers>,
    stage: Stage,
}

impl<S: Serve> Offline<S> {
    /// Answers with `service` under `settings`.
    pub fn new(settings: &HttpSettings, clock: &Clock, service: S) -> Self {
        let slots = Arc::new(ConnectionTable::new(1, clock));
        Self {
            shared: Shared::new(service, settings, slots),
            settings: settings.clone(),
            buffers: Buffers::take(settings.head_bytes_max),
            stage: Stage::Head,
        }
    }

    /// Handles `input`, at most `READ_BYTES`, and
    /// returns all responses to it.
    pub fn exchange(&mut self, input: &[u8]) -> &[u8] {
        self.buffers.out.clear();
        let held = self.buffers.input_bytes;
        self.buffers.input[held..held + input.len()].copy_from_slice(input);
        self.buffers.input_bytes += input.len();
        let mut exchange = Exchange {
            shared: &self.shared,
            settings: &self.settings,
            peer: Peer::Unix,
            stage: &mut self.stage,
            answered: 0,
        };
        let next = exchange.run(&mut self.buffers);
        let Buffers { out, owned, .. } = &mut *self.buffers;
        match owned.take() {
            Some(body) => out.extend_from_slice(body.bytes()),
            None => debug_assert!(next != Next::Flush, "the output is full"),
        }
        &self.buffers.out
    }
}
