//! State of the portfolio's handlers: lanes, locks and finished responses.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::api::portfolio::export_limit::Exports;
use crate::api::portfolio::moved_rows::MovedRows;
use crate::api::portfolio::user_locks::UserLocks;
use crate::auth::throttle::Throttle;
use crate::base::Clock;
use crate::brokers::settings::UpstreamSettings;
use crate::cache::Responses;
use crate::portfolio::Securities;
use crate::rt::Lane;

/// Longest wait of a user's sync for a thread. Its own time limit begins after that.
pub(super) const SYNC_QUEUE_WAIT_MS: u64 = 10_000;

/// The state of the portfolio routes.
pub struct PortfolioState {
    pub responses: Arc<Responses>,
    /// The security master, which resolves a broker's codes to tickers.
    pub(crate) securities: ArcSwap<Securities>,
    /// Computes responses that are not in the cache.
    pub lane: Arc<Lane>,
    /// Writes exports.
    pub export_lane: Arc<Lane>,
    pub exports: Arc<Exports>,
    pub(crate) moved: Arc<MovedRows>,
    pub locks: UserLocks,
    /// Limits each user's attempts to sync, at both brokers together.
    pub attempts: Throttle,
    /// Time limit of one user's sync at a broker, including the wait for its lane.
    pub sync_deadline_ms: u64,
    /// Hash of the server's own broker A key.
    own_key: ArcSwapOption<[u8; 32]>,
}

impl PortfolioState {
    /// `own_key` is the key of the server's shared broker A token.
    pub(crate) fn new(
        clock: &Clock,
        responses: Arc<Responses>,
        securities: Securities,
        lane: Arc<Lane>,
        export_lane: Arc<Lane>,
        upstream: &UpstreamSettings,
        own_key: Option<&SecretString>,
    ) -> Self {
        Self {
            responses,
            securities: ArcSwap::from_pointee(securities),
            lane,
            export_lane,
            exports: Arc::default(),
            moved: Arc::default(),
            locks: UserLocks::new(clock.clone()),
            attempts: Throttle::new(upstream.sync_attempts_per_minute, clock.clone()),
            sync_deadline_ms: upstream.sync_timeout_ms.saturating_add(SYNC_QUEUE_WAIT_MS),
            own_key: ArcSwapOption::new(own_key.map(hashed).map(Arc::new)),
        }
    }

    /// Whether a user's key is the server's own. Hashes are compared, because a partial match of
    /// hashes reveals nothing about the keys.
    pub(super) fn is_own_key(&self, key: &SecretString) -> bool {
        self.own_key
            .load_full()
            .is_some_and(|own| *own == hashed(key))
    }

    /// Replaces the server's own key.
    pub(crate) fn set_own_key(&self, own_key: Option<&SecretString>) {
        self.own_key.store(own_key.map(hashed).map(Arc::new));
    }
}

pub(super) fn hashed(key: &SecretString) -> [u8; 32] {
    Sha256::digest(key.expose_secret()).into()
}
