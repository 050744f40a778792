//! What the ticker's thread works with: its parts, what it tells, what is wanted of it.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use parking_lot::Mutex;

use super::link::Endpoint;
use super::reading::Counters;
use super::subscriptions::{KnownTokens, Wanted};
use crate::base::{Clock, Symbol};
use crate::brokers::feed::Push;
use crate::brokers::session::token::{SharedToken, Token};

/// How often a waiting thread looks whether it may go on.
const LOOK: Duration = Duration::from_millis(200);

/// What the thread works with.
pub struct TickerParts {
    pub endpoint: Endpoint,
    /// Most instruments subscribed at once.
    pub symbols_max: usize,
    /// Indices whose ticks show that prices flow.
    pub leads: Vec<Symbol>,
    pub clock: Clock,
    pub token: Arc<SharedToken>,
    pub(in crate::brokers::broker_a) tokens: Arc<KnownTokens>,
    pub push: Push,
}

/// What the thread and its owner share.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) counters: Counters,
    pub(super) wanted: Mutex<Arc<Wanted>>,
}

/// State of the thread.
pub(super) struct Worker {
    pub(super) parts: TickerParts,
    pub(super) shared: Arc<Shared>,
    /// Ends when the owner goes.
    pub(super) stop: Receiver<()>,
    /// Dropped with the thread, whatever ends it.
    pub(super) _done: Sender<()>,
}

impl Worker {
    pub(super) fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    pub(super) fn now_mono_ms(&self) -> u64 {
        self.parts.clock.monotonic_ms()
    }

    pub(super) fn wanted(&self) -> Arc<Wanted> {
        Arc::clone(&self.shared.wanted.lock())
    }

    pub(super) fn token(&self) -> Option<Arc<Token>> {
        self.parts.token.usable(self.parts.clock.now()).ok()
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stop.try_recv() == Err(TryRecvError::Disconnected)
    }

    /// Waits a moment; true when the service stops.
    pub(super) fn look(&self) -> bool {
        self.stop.recv_timeout(LOOK) == Err(RecvTimeoutError::Disconnected)
    }
}
