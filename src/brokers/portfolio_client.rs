//! What a client of any broker does: a sync with a user's own credentials, and the server's own
//! login. Callers name a broker, and the client that they get is this trait.
//!
//! Calls block for as long as the settings let them, on the lane of that broker's users.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::civil::Date;

use crate::base::Synced;
use crate::base::limiter::SharedCounts;
use crate::brokers::call::gate::ClassReading;
use crate::brokers::portfolio::Credentials;
use crate::brokers::session::token::{SharedToken, TokenStatus};
use crate::brokers::settings::AppKeys;
use crate::brokers::sync::SyncCounts;
use crate::brokers::{BrokerError, SyncedTrades};

/// A client of one broker's portfolios.
pub trait PortfolioClient: Send + Sync {
    /// One user's holdings and positions, with that user's own credentials. Blocks for at most the
    /// settings' `sync_timeout_ms`. A sync that failed half-way has no rows; it may have a session.
    fn sync(&self, credentials: &Credentials) -> Attempt;

    /// Exchanges the one-time code of a login for the server's own token of the day. If the code is
    /// refused, the current token stays.
    ///
    /// # Errors
    /// [`BrokerErrorKind::CodeRefused`](crate::brokers::BrokerErrorKind::CodeRefused) when the
    /// broker does not accept the code; `NotReady(Off)` without key and secret in the settings.
    fn activate(&self, code: &str) -> Result<TokenStatus, BrokerError>;

    /// The server's own token.
    fn token(&self) -> &Arc<SharedToken>;

    /// Puts the server's own app of changed settings in force. A call that has begun keeps the old
    /// one.
    fn set_app(&self, keys: AppKeys);

    /// From now on the sync calls of a key count together with those of the other nodes.
    fn join(&self, counts: &Arc<dyn SharedCounts>);

    /// Readings of every class of calls, for metrics.
    fn readings(&self) -> Vec<ClassReading>;

    /// Counts of users' syncs.
    fn sync_counts(&self) -> &SyncCounts;
}

/// The outcome of a sync: rows or the error, and the session if one was opened that outlives it.
pub struct Attempt {
    pub result: Result<Synced, BrokerError>,
    pub session: Option<Box<dyn OpenSession>>,
}

/// A session that a sync opened and that lives on at the broker until it is ended, or by itself.
pub trait OpenSession: Send {
    /// The account's trades: those of today at broker A; at broker B those of the present quarter
    /// and of past ones whose first days are not among `known_quarters`. Blocks for at most the
    /// time of a sync. A failure stops it, and what came before it stands.
    fn trades(&self, known_quarters: &BTreeSet<Date>) -> SyncedTrades;

    /// Ends it. Blocks for a second at most.
    fn end(self: Box<Self>);

    /// Leaves it as it is.
    fn keep(self: Box<Self>);
}
