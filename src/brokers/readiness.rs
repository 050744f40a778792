//! Whether a feed can be asked now.

use std::time::Duration;

/// Whether a feed can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Now.
    Ready,
    /// After this time: rate limit or penalty.
    Paced(Duration),
    /// Circuit open for this long after repeated failures.
    Open(Duration),
    /// Broker A without a token, or with one that is known to be dead.
    NoToken,
    /// Broker A's token is good but its plan carries no market data (PermissionException).
    NoPermission,
    /// Switched off by a setting.
    Off,
    /// Another node leads, and calls the feeds for all nodes.
    Follows,
}
