//! What the warmers see of the relay.

use super::update::Update;
use crate::base::{Epoch, Symbol};
use crate::cache::valkey::ValkeyError;

/// Why something was not told.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    #[error("{0}")]
    Server(#[from] ValkeyError),
    #[error("a message of {bytes} bytes is over the limit of {bytes_max}")]
    TooLarge { bytes: usize, bytes_max: usize },
    #[error("the server's clock leaps")]
    Clock,
}

/// What became of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// Told to all nodes, and kept for those that come later.
    Told,
    /// A newer leader has published: this node does not lead any more.
    Fenced,
}

/// Tells the other nodes. Calls block, by deadlines.
pub trait Relay: Send + Sync {
    /// Publishes what a round brought, as the leader of `epoch`. Numbers the messages itself, anew
    /// in each epoch. Where the outcome is unknown the number is not used again.
    ///
    /// # Errors
    /// [`RelayError`].
    fn publish(&self, epoch: Epoch, update: &Update) -> Result<Published, RelayError>;

    /// Tells the leader which symbols this node wants to be kept fresh; it remembers them for
    /// [`WANTED_TTL_MS`](super::WANTED_TTL_MS). Of more than [`WANTED_MAX`](super::WANTED_MAX) only
    /// the first.
    ///
    /// # Errors
    /// [`RelayError`].
    fn want(&self, symbols: &[Symbol]) -> Result<(), RelayError>;

    /// Passes sealed bytes to all nodes that listen now. Nothing is kept.
    ///
    /// # Errors
    /// [`RelayError`].
    fn pass_on(&self, sealed: &[u8]) -> Result<(), RelayError>;

    /// Tells all nodes that listen now that the database has changes that they have to read.
    ///
    /// # Errors
    /// [`RelayError`].
    fn tell_of_changes(&self) -> Result<(), RelayError>;
}

/// What a node was told.
#[derive(Debug, PartialEq)]
pub enum Told {
    /// What a round brought.
    Update(Box<Update>),
    /// All that the server keeps: at the start, and after messages were missed.
    State(Box<Update>),
    /// Sealed bytes of another node.
    Sealed(Vec<u8>),
    /// The database has changes that have to be read. This node may have made them itself.
    Changes,
}

/// Hears on the thread `relay`. Must not block.
pub trait Listener: Send {
    /// Takes what was told, or gives an update back while the one before waits; it comes again,
    /// with what came meanwhile.
    ///
    /// # Errors
    /// What is not taken.
    fn hear(&self, told: Told) -> Result<(), Told>;
}

impl<F: Fn(Told) -> Result<(), Told> + Send> Listener for F {
    fn hear(&self, told: Told) -> Result<(), Told> {
        self(told)
    }
}
