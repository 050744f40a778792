//! The trades ledger: imports with their rows, and what the person says beside them.
//!
//! An import is written in batches while it is `loading`, and becomes visible by one small
//! transaction. So it is whole or absent, and no write holds the writer for long. One that is
//! dropped becomes invisible first, and its rows are removed in batches afterwards.

mod import_rows;
mod imports;
mod quarters;
mod report_rows;
mod sayings;
mod sync_imports;
mod versions;

pub(crate) use import_rows::{ImportBatch, ROWS_PER_WRITE};
pub(crate) use imports::{Confirmed, ImportCounts, ImportState, NewImport, StoredImport};
pub(crate) use sayings::{LedgerAccount, StoredCorrection};
pub(crate) use sync_imports::SyncedBatch;
pub(crate) use versions::LedgerVersions;
