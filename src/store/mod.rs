//! Durable data: accounts, portfolios, journals, candles and published signals.
//!
//! [`Store`] and [`SignalStore`] hide the engine. Their methods may be called on the edge, where
//! they park, and on OS threads, where they block. Each has a deadline. `Ok` of a write means that
//! it is on disk. A broker credential is never stored: no type here has a field for one.

pub mod backups;
mod condition;
#[cfg(test)]
pub(crate) mod conformance;
mod expected;
mod open;
mod operations;
#[cfg(feature = "engines")]
mod postgres;
pub(crate) mod records;
pub mod settings;
pub mod sqlite;
mod statements;
mod traits;
mod tx;

pub use backups::BackupRecord;
pub use expected::{Expected, ExpectedPage, Revision, States};
#[cfg(feature = "engines")]
pub use open::{check_server, open_lease};
pub use open::{copy_to_server, open, open_users};
pub use records::{
    AccountId, AuthState, Basis, Before, CandleHistory, Change, Changes, ClosePage, Completion,
    Continuity, CopiedTable, DatabaseIdentity, Deleted, Erased, JournalCursor, JournalEntry,
    JournalFields, JournalPage, JournalSize, LastRead, LedgerEntry, LoginNetwork, NewHistory,
    NewUser, Portfolio, PriceOfClose, ProvisionalEntry, ProvisionalSignal, PublishedSignal, Side,
    SignalOutcome, SplitSuspicion, StoreError, StoreHealth, StoredCandles, SyncState, Turn, User,
    UserChange, UserSecrets, UserSummary, Valued,
};
pub use sqlite::errors::{MaintenanceError, OpenError};
pub use sqlite::maintenance;
pub use sqlite::maintenance::remove_unfinished;
pub use sqlite::store::{FILE_NAME, SqliteStore};
pub use traits::{Database, Derive, NewPortfolio, SignalStore, Store, UserDirectory};
