//! What a node has that is one of several.

use std::sync::Arc;

use super::relay::Wire;
use super::tokens::SharedTokens;
use crate::base::{Epoch, NodeSecret};
use crate::limits::shared::SharedCounts;
use crate::rt::Lane;
use crate::store::Store;

/// Asks the database which one it is.
type Identify = Arc<dyn Fn(&dyn Store) + Send + Sync>;

/// The other nodes, as the scheduler knows them.
pub struct Cluster {
    /// What this node is called.
    pub node: String,
    pub wire: Arc<dyn Wire>,
    /// What nodes tell each other about brokers' tokens; `None` where there is no way to.
    pub tokens: Option<SharedTokens>,
    /// Counts attempts of all nodes; `None` where each counts its own.
    pub limits: Option<Arc<dyn SharedCounts>>,
    /// What all nodes have in common.
    pub secret: Arc<NodeSecret>,
    /// Whether the second cache level is all nodes', so that the leader alone writes it.
    pub shares_cache: bool,
    /// Messages to the other nodes go out here.
    pub lane: Arc<Lane>,
    /// Asks the database which one it is, for the names of what stands on the shared server. Blocks
    /// as the store does.
    pub identify: Identify,
    /// Told the epoch before anything is stored for all nodes.
    pub begin_term: Box<dyn Fn(Epoch) + Send + Sync>,
}
