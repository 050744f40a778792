//! What the ticker's thread works with: its parts, what it tells, what is wanted of it.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use parking_lot::Mutex;

use super::dial::{Dialer, Endpoint};
use super::reading::Counters;
use super::subscriptions::{KnownTokens, Wanted};
use crate::base::{Clock, Symbol};
use crate::brokers::call::transport::BadUrl;
use crate::brokers::feed::Push;
use crate::brokers::session::token::{SharedToken, Token};
use crate::brokers::settings::BrokerASettings;

/// How often a thread that waits for its next try looks whether it may go on.
const LOOK: Duration = Duration::from_millis(200);

/// Where no connection is wanted, changes are told. A refusal for want of permission ends by time
/// alone: it holds for a minute.
pub(super) const REST: Duration = Duration::from_secs(60);

/// What settings say of the ticker. A reload may change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TickerSettings {
    /// `None` when it is switched off.
    pub endpoint: Option<Endpoint>,
    /// Most instruments subscribed at once.
    pub symbols_max: usize,
}

impl TickerSettings {
    /// # Errors
    /// [`BadUrl`].
    pub fn of(settings: &BrokerASettings) -> Result<Self, BadUrl> {
        let endpoint = settings.ticker_endpoint().map(Endpoint::parse).transpose()?;
        Ok(Self { endpoint, symbols_max: settings.ticker_symbols_max })
    }
}

/// What the thread works with.
pub struct TickerParts {
    pub(in crate::brokers::broker_a) settings: Arc<ArcSwap<TickerSettings>>,
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

/// What a connection is opened with.
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

/// What the thread goes by, as it is at one moment.
pub(super) struct View {
    pub(super) settings: Arc<TickerSettings>,
    pub(super) wanted: Arc<Wanted>,
    token: Option<Arc<Token>>,
}

impl View {
    /// Where a connection is wanted, and with which token; `None` where none is.
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

    /// Looks once at everything that may have changed.
    pub(super) fn view(&self) -> View {
        View {
            settings: self.parts.settings.load_full(),
            wanted: Arc::clone(&self.shared.wanted.lock()),
            token: self.parts.token.usable(self.parts.clock.now()).ok(),
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stop.try_recv() == Err(TryRecvError::Disconnected)
    }

    /// Waits a moment; true when the service stops.
    pub(super) fn look(&self) -> bool {
        self.stop.recv_timeout(LOOK) == Err(RecvTimeoutError::Disconnected)
    }

    /// Waits until something has changed, for a long time at most; true when the service stops.
    pub(super) fn rest(&self) -> bool {
        self.parts.token.news().wait(REST);
        self.is_stopping()
    }
}
