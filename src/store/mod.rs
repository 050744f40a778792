//! Durable data: accounts, portfolios, journals, candles and published signals.
//!
//! [`Store`] hides the engine. Its methods may be called on the edge, where they park, and on OS
//! threads, where they block. Each has a deadline and may fail with [`StoreError`]. `Ok` of a write
//! means that it is on disk. A broker credential is never stored: no type here has a field for one.

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
pub(crate) mod sqlite;
mod statements;
mod turns;
mod tx;
mod users;

pub(crate) use backups::BackupRecord;
pub use expected::Expected;
pub(crate) use expected::{ExpectedPage, Revision, States};
pub use open::Store;
pub(crate) use open::copy_to_server;
#[cfg(feature = "engines")]
pub(crate) use open::{check_server, open_lease};
pub use records::{
    AccountId, Before, Completion, Derive, LedgerEntry, NewHistory, NewPortfolio, NewUser,
    Portfolio, ProvisionalEntry, Side, StoreError, Turn, User, UserChange,
};
pub(crate) use records::{
    AuthState, Basis, CandleHistory, Change, Changes, ClosePage, Continuity, CopiedTable,
    DatabaseIdentity, Deleted, Erased, JournalCursor, JournalEntry, JournalFields, JournalPage,
    JournalSize, LastRead, LoginNetwork, PriceOfClose, ProvisionalSignal, PublishedSignal,
    SignalOutcome, SplitSuspicion, StoreHealth, StoredCandles, SyncState, UserSecrets, UserSummary,
    Valued,
};
pub(crate) use sqlite::errors::MaintenanceError;
pub use sqlite::errors::OpenError;
pub use sqlite::maintenance;
pub(crate) use sqlite::maintenance::remove_unfinished;
pub use sqlite::store::FILE_NAME;
pub use users::UserDirectory;
