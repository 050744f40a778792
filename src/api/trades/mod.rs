//! `/api/trades`: a user's files of trades, and the ledger that they make.
//!
//! A file is streamed to memory by the HTTP layer, once its head is admitted, and read on the lane
//! `ledger`, as is everything that is computed from stored rows. What was computed is kept until
//! the rows, the portfolio, the day or the prices of 2018 change. Nothing of it runs on the edge
//! but the look at a version, by which a repeated read is answered 304.

mod accounts;
mod agreement;
mod answer;
mod book;
mod corrections;
mod csv;
mod gains;
mod gathered;
mod import_file;
mod imports;
mod kept_books;
mod list;
mod lots;
mod paging;
mod reconciliation;
mod refusals;
mod returns;
mod state;
mod sync_import;
mod synced;
mod worksheet;

pub(super) use accounts::{accounts, set_person};
pub(super) use agreement::agreement;
pub(super) use corrections::{choose, corrections, delete_correction, put_correction};
pub(super) use gains::{csv as gains_csv, gains};
pub(super) use import_file::{IMPORT, import_nothing};
pub(super) use imports::{confirm, delete_all, imports, undo};
pub(super) use list::{csv, list};
pub(super) use lots::lots;
pub(super) use reconciliation::reconciliation;
pub(super) use returns::returns;
pub(crate) use state::TradesState;
pub(super) use sync_import::{SyncedBy, add_synced, known_quarters};
pub(super) use worksheet::csv as worksheet;
