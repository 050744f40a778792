//! Durable data: accounts, portfolios, journals, candles and published signals.
//!
//! [`Store`] and [`SignalStore`] hide the engine. Their methods may be called on the edge, where
//! they park, and on OS threads, where they block. Each has a deadline. `Ok` of a write means that
//! it is on disk. A broker credential is never stored: no type here has a field for one.

mod arg;
pub mod backups;
mod cells;
mod condition;
#[cfg(test)]
pub(crate) mod conformance;
mod error;
mod expected;
pub(crate) mod limits;
mod open;
mod operations;
#[cfg(feature = "engines")]
mod postgres;
pub(crate) mod records;
pub mod settings;
pub(crate) mod signal_records;
pub(crate) mod small_file;
pub mod sqlite;
mod statements;
mod traits;
mod transact;
mod tx;
pub mod url;

pub use backups::BackupRecord;
pub use error::StoreError;
pub use expected::{Expected, ExpectedPage, Revision, States};
#[cfg(feature = "engines")]
pub use open::{check_server, open_lease};
pub use open::{copy_to_server, open, open_users};
pub use records::{
    AccountId, AuthState, Before, Change, Changes, ClosePage, Continuity, CopiedTable,
    DatabaseIdentity, Deleted, Erased, JournalCursor, JournalEntry, JournalFields, JournalPage,
    JournalSize, LastRead, LoginNetwork, NewUser, Portfolio, PriceOfClose, Side, StoreHealth,
    SyncState, Turn, User, UserChange, UserSecrets, UserSummary, Valued,
};
pub use signal_records::{
    Basis, CandleHistory, Completion, LedgerEntry, NewHistory, ProvisionalEntry, ProvisionalSignal,
    PublishedSignal, SignalOutcome, SplitSuspicion, StoredCandles,
};
pub use sqlite::errors::{MaintenanceError, OpenError};
pub use sqlite::maintenance;
pub use sqlite::store::{FILE_NAME, SqliteStore};
pub use sqlite::unfinished::remove_unfinished;
pub use traits::{Database, Derive, NewPortfolio, SignalStore, Store, UserDirectory};
