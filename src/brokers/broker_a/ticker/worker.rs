//! The state of the ticker's thread, its inputs, and what it shares with its owner.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::base::{Clock, Symbol};
use crate::brokers::BrokerASettings;
use crate::brokers::broker_a::ticker::dial::{Dialer, Endpoint};
use crate::brokers::broker_a::ticker::reading::Counters;
use crate::brokers::broker_a::ticker::subscriptions::{KnownTokens, Wanted};
use crate::brokers::call::transport::BadUrl;
use crate::brokers::feed::Push;
use crate::brokers::session::token::{SharedToken, Token};
use crate::rt::threads::Stop;

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
        let endpoint = settings
            .ticker_endpoint()
            .map(Endpoint::parse)
            .transpose()?;
        Ok(Self {
            endpoint,
            symbols_max: settings.ticker_symbols_max,
        })
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
        let endpoint = self
            .settings
            .endpoint
            .clone()
            .filter(|_| self.wanted.awake)?;
        Some(Way {
            endpoint,
            token: self.token.clone()?,
        })
    }

    /// Whether a connection is wanted, and this is still the way to it.
    pub(super) fn is_way(&self, way: &Way) -> bool {
        self.wanted.awake
            && self.settings.endpoint.as_ref() == Some(&way.endpoint)
            && self
                .token
                .as_ref()
                .is_some_and(|token| Arc::ptr_eq(token, &way.token))
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
