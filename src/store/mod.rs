//! Durable data: accounts, portfolios, journals, candles and published signals.
//!
//! [`Store`] hides the engine. Its methods may be called on the edge, where they park, and on OS
//! threads, where they block. Each has a deadline and may fail with [`StoreError`]. `Ok` of a write
//! means that it is on disk. A broker credential is never stored: no type here has a field for one.
//!
//! Each subject is one file with its types, its statements, and its operations.

mod account_id;
mod accounts;
mod api_keys;
mod arg;
pub mod backups;
mod candles;
mod cells;
mod change_log;
mod changes;
mod closes;
mod columns;
mod condition;
#[cfg(test)]
pub(crate) mod conformance;
mod errors;
mod journal;
mod ledger;
mod open;
mod portfolios;
#[cfg(feature = "engines")]
mod postgres;
mod schema;
pub mod settings;
mod signals;
pub(crate) mod small_file;
pub(crate) mod sqlite;
#[cfg(test)]
mod statements_tests;
mod turns;
mod tx;
mod users;
mod watchlists;
mod write;

pub use crate::store::account_id::AccountId;
pub(crate) use crate::store::change_log::{CHANGES_PAGE, Change, Changes, Continuity, LastRead};
pub(crate) use accounts::{
    LOGIN_NETWORK_AGAIN_MS, LOGIN_NETWORKS_MAX, LoginNetwork, SPELLINGS_MAX,
};
pub use accounts::{NewUser, User, UserSecrets};
pub(crate) use api_keys::{ENDED_LISTED_MS, KeyUse, ListedKey, StoredKey};
pub(crate) use backups::BackupRecord;
pub use candles::{CandleHistory, NewHistory, SplitSuspicion};
pub(crate) use changes::{AuthState, CHANGES_KEPT, KeysRead};
pub use closes::ClosePage;
pub(crate) use closes::{PriceOfClose, Valued};
pub use condition::StoreHealth;
pub use errors::{MaintenanceError, OpenError, StoreError};
pub use journal::Side;
pub(crate) use journal::{ExpectedPage, JournalCursor, JournalEntry, JournalFields};
pub(crate) use ledger::{
    Confirmed, ImportBatch, ImportCounts, ImportState, LedgerAccount, LedgerVersions, NewImport,
    ROWS_PER_WRITE, StoredCorrection, StoredImport, SyncedBatch,
};
pub use open::Store;
pub(crate) use open::copy_to_server;
#[cfg(feature = "engines")]
pub(crate) use open::{check_server, open_lease};
pub use portfolios::{Before, Derive, NewPortfolio, Portfolio, SessionBefore, SyncState, deriving};
#[cfg(feature = "engines")]
pub(crate) use postgres::PostgresLease;
pub use schema::{Exported, Owned, TABLES, Table};
pub(crate) use signals::PricedSignal;
pub use signals::{LedgerEntry, SignalOutcome};
pub use sqlite::maintenance;
pub(crate) use sqlite::maintenance::remove_unfinished;
pub use sqlite::store::FILE_NAME;
pub(crate) use tx::{Expected, Revision, States};
pub use users::{UserChange, UserDirectory, UserSummary};
pub(crate) use write::PAGE_DEADLINE_MS;
pub use write::{Epoch, Turn};
