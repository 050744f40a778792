//! Counts of what nodes tell each other about tokens, for health and metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::brokers::SharedToken;

/// The tokens that nodes tell each other, and the counts of that.
#[derive(Clone)]
pub struct SharedTokens {
    pub counts: Arc<TokenCounts>,
    pub of_broker_a: Arc<SharedToken>,
    pub of_broker_b: Arc<SharedToken>,
}

/// What becomes of a word about tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenEvent {
    /// Told to the other nodes: a token, or that one was refused.
    Told,
    /// It could not be told; it is tried again.
    Untold,
    /// Heard and put in force here.
    Taken,
    /// Another node's broker refused the token that was in force here.
    Dead,
    /// Older than the one in force: late on its way, or a recording.
    Old,
    /// It had expired when it was heard.
    Late,
    /// Given in the future, by this node's clock.
    Ahead,
    /// Known to be refused by the broker.
    Refused,
    /// Not sealed by a node with the same secret.
    Foreign,
    /// Left unread, because too much came at once.
    Dropped,
}

impl TokenEvent {
    pub(crate) const ALL: [Self; 10] = [
        Self::Told,
        Self::Untold,
        Self::Taken,
        Self::Dead,
        Self::Old,
        Self::Late,
        Self::Ahead,
        Self::Refused,
        Self::Foreign,
        Self::Dropped,
    ];

    /// The name that metrics use.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Told => "told",
            Self::Untold => "untold",
            Self::Taken => "taken",
            Self::Dead => "dead",
            Self::Old => "old",
            Self::Late => "late",
            Self::Ahead => "ahead",
            Self::Refused => "refused",
            Self::Foreign => "foreign",
            Self::Dropped => "dropped",
        }
    }
}

/// Counts since the start, by event.
#[derive(Debug, Default)]
pub struct TokenCounts([AtomicU64; TokenEvent::ALL.len()]);

impl TokenCounts {
    pub(crate) fn add(&self, event: TokenEvent) {
        self.0[event as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn of(&self, event: TokenEvent) -> u64 {
        self.0[event as usize].load(Relaxed)
    }
}
