//! What a node has that is one of several.

use std::sync::Arc;

use super::relay::Wire;
use crate::base::Epoch;
use crate::rt::Lane;

/// The other nodes, as the scheduler knows them.
pub struct Cluster {
    /// What this node is called.
    pub node: String,
    pub wire: Arc<dyn Wire>,
    /// Whether the second cache level is all nodes', so that the leader alone writes it.
    pub shares_cache: bool,
    /// Messages to the other nodes go out here.
    pub lane: Arc<Lane>,
    /// Told the epoch before anything is stored for all nodes.
    pub begin_term: Box<dyn Fn(Epoch) + Send + Sync>,
}
