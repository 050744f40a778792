//! This node as one of several: its name, its way to the others, and what they have in common.

use std::sync::Arc;

use crate::base::limiter::SharedCounts;
use crate::base::{ByBroker, Symbol, settings, words};
use crate::brokers::SharedToken;
use crate::nodes::relay::Update;
use crate::ops::counter::Counts;
use crate::rt::Lane;
use crate::store::{Epoch, Store};
use crate::views::states::RelayState;

/// This node among the others, as the scheduler knows it.
pub struct Nodes {
    /// The name of this node.
    pub node: String,
    /// Messages to the other nodes go out here.
    pub lane: Arc<Lane>,
    /// Without a server that nodes share, one node leads all the same and the rest ask the public
    /// provider.
    pub shared: Option<Shared>,
}

/// Services over the server that the nodes share.
pub struct Shared {
    pub relay: Arc<dyn Relay>,
    pub tokens: SharedTokens,
    /// Counts attempts of all nodes.
    pub limits: Arc<dyn SharedCounts>,
    /// Asks the database for its id, which names the keys on the shared server. Blocks as the store
    /// does.
    pub identify: Arc<dyn Fn(&Store) + Send + Sync>,
    /// Called with the epoch before anything is stored for all nodes.
    pub begin_term: Box<dyn Fn(Epoch) + Send + Sync>,
}

impl Nodes {
    /// The way to the others.
    pub(crate) fn relay(&self) -> Option<&Arc<dyn Relay>> {
        self.shared.as_ref().map(|shared| &shared.relay)
    }

    /// The receiving side, for health and metrics.
    pub(crate) fn relay_reading(&self) -> RelayReading {
        let off = || RelayReading {
            state: RelayState::Off,
            ..RelayReading::default()
        };
        self.relay().map_or_else(off, |relay| relay.reading())
    }
}

/// Why a message was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// A newer leader has sent something.
    #[error("a newer leader sends")]
    Deposed,
    #[error("{0}")]
    Unavailable(String),
}

/// The way to the other nodes.
pub trait Relay: Send + Sync {
    /// Sends an update to the other nodes as the leader of `epoch`. Blocks, by a deadline of its
    /// own; called on the lane `relay`.
    ///
    /// # Errors
    /// [`SendError`].
    fn send(&self, epoch: Epoch, update: Update) -> Result<(), SendError>;

    /// Sends the leader the symbols that this node wants. Blocks as [`send`](Self::send) does.
    ///
    /// # Errors
    /// [`SendError::Unavailable`].
    fn want(&self, symbols: &[Symbol]) -> Result<(), SendError>;

    /// Notifies the other nodes that the database has changes of accounts. A node that misses it
    /// finds them a second later. Blocks as [`send`](Self::send) does; called on the thread
    /// `changes`.
    ///
    /// # Errors
    /// [`SendError::Unavailable`].
    fn notify_changes(&self) -> Result<(), SendError>;

    /// The symbols that other nodes asked for within some seconds. Never blocks.
    fn wanted(&self) -> Vec<Symbol>;

    /// The receiving side's counters, for health and metrics. Never blocks.
    fn reading(&self) -> RelayReading;
}

/// Counters of the receiving side since the start; the first three are current.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelayReading {
    pub state: RelayState,
    /// Time since the last message of the leader; `None` before the first.
    pub age_ms: Option<u64>,
    /// The node that sent the newest message, and its epoch; `None` before the first.
    pub leader: Option<(String, Epoch)>,
    pub messages: u64,
    /// Messages missed: numbers left out.
    pub gaps: u64,
    /// Messages that came twice, or from a leader that was replaced.
    pub old: u64,
    /// Times that everything was read.
    pub loads: u64,
    /// Updates that waited because the one before was not taken yet.
    pub merged: u64,
    pub connects: u64,
    /// Connections that failed or broke.
    pub failures: u64,
}

// ---- Settings

/// The kernel's name of this machine.
const MACHINE_NAME: &str = "/proc/sys/kernel/hostname";
/// PostgreSQL cuts longer names of a connection off.
const CONNECTION_NAME_BYTES_MAX: usize = 63;

settings! {
    /// One node among several.
    pub struct NodeSettings {
        /// The name of this node, which no other node has. The machine's name if none is given.
        pub name: Option<String> = None,
        /// Time for which a leader leads after an authority last gave it the lease.
        pub lease_ms: u64 = 5_000,
    }
}

impl NodeSettings {
    /// The name of this node.
    pub(crate) fn called(&self) -> String {
        let machine = || std::fs::read_to_string(MACHINE_NAME).unwrap_or_default();
        self.name
            .clone()
            .unwrap_or_else(|| machine().trim().to_owned())
    }

    /// The name of its connections at the database and at the shared server: `bhav/NODE`, in
    /// letters that both take.
    pub(crate) fn connection_name(&self) -> String {
        let name = format!("bhav/{}", self.called());
        let plain = name.chars().filter(char::is_ascii_graphic);
        plain.take(CONNECTION_NAME_BYTES_MAX).collect()
    }
}

// ---- Tokens
//
// Counts of messages about tokens.

/// The tokens that nodes send each other, and the counts of that.
#[derive(Clone)]
pub struct SharedTokens {
    pub(crate) counts: Arc<Counts<TokenEvent>>,
    pub of: ByBroker<Arc<SharedToken>>,
}

words! {
    /// The fate of a message about tokens.
    pub(crate) enum TokenEvent {
        /// Sent to the other nodes: a token, or that one was refused.
        Told = "told",
        /// A message could not be sent; it is tried again.
        Untold = "untold",
        /// Received and put in force here.
        Taken = "taken",
        /// Another node's broker refused the token that was in force here.
        Dead = "dead",
        /// Older than the token in force: delayed, or a recording.
        Old = "old",
        /// It had expired when it was received.
        Late = "late",
        /// Given in the future, by this node's clock.
        Ahead = "ahead",
        /// Known to be refused by the broker.
        Refused = "refused",
        /// Not encrypted by a node with the same secret.
        Foreign = "foreign",
        /// Left unread, because too much came at once.
        Dropped = "dropped",
    }
}
