//! What the portfolio's handlers share: brokers, lanes, locks and finished responses.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::api::portfolio::answer::SYNC_QUEUE_WAIT_MS;
use crate::api::portfolio::export_limit::Exports;
use crate::api::portfolio::user_lock::UserLocks;
use crate::base::Clock;
use crate::brokers::settings::UpstreamSettings;
use crate::cache::Responses;
use crate::limits::throttle::Throttle;
use crate::portfolio::Securities;
use crate::rt::Lane;

/// What the portfolio routes work with.
pub struct PortfolioState {
    pub answers: Arc<Responses>,
    securities: ArcSwap<Securities>,
    /// Computes responses that are not in the cache.
    pub lane: Arc<Lane>,
    /// Writes exports.
    pub export_lane: Arc<Lane>,
    pub exports: Arc<Exports>,
    pub locks: UserLocks,
    /// Syncs that each user tries, at whichever broker.
    pub attempts: Throttle,
    /// One user's sync at a broker, waiting for its lane included.
    pub sync_deadline_ms: u64,
    /// Of the server's own broker A key.
    own_key: ArcSwapOption<[u8; 32]>,
}

impl PortfolioState {
    /// `own_key` is the key of the server's shared broker A token.
    pub fn new(
        clock: &Clock,
        answers: Arc<Responses>,
        securities: Securities,
        lane: Arc<Lane>,
        export_lane: Arc<Lane>,
        upstream: &UpstreamSettings,
        own_key: Option<&SecretString>,
    ) -> Self {
        Self {
            answers,
            securities: ArcSwap::from_pointee(securities),
            lane,
            export_lane,
            exports: Arc::default(),
            locks: UserLocks::new(clock.clone()),
            attempts: Throttle::new(upstream.sync_attempts_per_minute, clock.clone()),
            sync_deadline_ms: upstream.sync_timeout_ms.saturating_add(SYNC_QUEUE_WAIT_MS),
            own_key: ArcSwapOption::new(own_key.map(hashed).map(Arc::new)),
        }
    }

    /// Whether a user's key is the server's own. Hashes are compared: how far two of them agree
    /// tells nothing about the keys.
    pub(super) fn is_own_key(&self, key: &SecretString) -> bool {
        self.own_key.load_full().is_some_and(|own| *own == hashed(key))
    }

    /// Puts another key in the place of the server's own.
    pub fn set_own_key(&self, own_key: Option<&SecretString>) {
        self.own_key.store(own_key.map(hashed).map(Arc::new));
    }

    /// The security master that resolves a broker's codes to tickers, as of this moment.
    pub(in crate::api) fn securities(&self) -> Arc<Securities> {
        self.securities.load_full()
    }

    /// Takes another security master into use, for syncs that begin from now on.
    pub fn set_securities(&self, securities: Securities) {
        self.securities.store(Arc::new(securities));
    }
}

fn hashed(key: &SecretString) -> [u8; 32] {
    Sha256::digest(key.expose_secret()).into()
}
