//! What carries news and wants between the nodes.

use super::news::News;
use crate::base::{Epoch, Symbol};

/// Why something was not told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A newer leader has told something.
    #[error("a newer leader speaks")]
    Deposed,
    #[error("{0}")]
    Unavailable(String),
}

/// What is known of the hearing side, for health and metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireReading {
    pub state: &'static str,
    /// The node that told the newest message, and its epoch; `None` before the first.
    pub leader: Option<(String, Epoch)>,
    /// Since the leader was last heard; `None` before that.
    pub age_ms: Option<u64>,
    /// Messages that were missed.
    pub gaps: u64,
}

/// The way to the other nodes. What is heard goes to a
/// [`RelayInbox`](crate::warmers::RelayInbox).
pub trait Wire: Send + Sync {
    /// Tells the other nodes, as the leader of `epoch`. Blocks, by a deadline of its own; called on
    /// the lane `relay`.
    ///
    /// # Errors
    /// [`WireError`].
    fn tell(&self, epoch: Epoch, news: News) -> Result<(), WireError>;

    /// Tells the leader what this node wants, at most
    /// `WANTED_MAX` symbols. Blocks as [`tell`](Self::tell) does.
    ///
    /// # Errors
    /// [`WireError::Unavailable`].
    fn want(&self, symbols: &[Symbol]) -> Result<(), WireError>;

    /// Tells the other nodes that the database has changes of accounts. One that does not hear it
    /// finds them a second later. Blocks as [`tell`](Self::tell) does; called on the thread
    /// `changes`.
    ///
    /// # Errors
    /// [`WireError::Unavailable`].
    fn tell_of_changes(&self) -> Result<(), WireError>;

    /// What the other nodes want, as far as they said so within some seconds. Never blocks.
    fn wanted(&self) -> Vec<Symbol>;

    /// Never blocks.
    fn reading(&self) -> WireReading;
}

/// No way to the other nodes. One of them leads all the same; the others ask the public provider.
pub struct NoWire;

impl Wire for NoWire {
    fn tell(&self, _: Epoch, _: News) -> Result<(), WireError> {
        Ok(())
    }

    fn want(&self, _: &[Symbol]) -> Result<(), WireError> {
        Ok(())
    }

    fn tell_of_changes(&self) -> Result<(), WireError> {
        Ok(())
    }

    fn wanted(&self) -> Vec<Symbol> {
        Vec::new()
    }

    fn reading(&self) -> WireReading {
        WireReading { state: "off", ..WireReading::default() }
    }
}
