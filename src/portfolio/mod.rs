//! What a portfolio is worth, what a sync changed in it, and which changes look like a split.
//!
//! Pure: no broker, no SQL, no HTTP, no clock. It runs on lane threads (for work that blocks or
//! computes) and on the store's writer, so it must be quick and never panic. An amount that
//! overflows is an error value.

pub(crate) mod closed_trades;
pub(crate) mod corporate_actions;
mod outcome;
pub(crate) mod securities;
mod sync;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod valuation;

pub use corporate_actions::{Why, date_back, date_back_unmoved, reprice};
pub use outcome::{
    ChangedRow, Difference, First, HeldRow, PositionChanges, Reconciliation, RowName, SuspectedRow,
    SyncOutcome,
};
pub use securities::{Listed, Securities};
pub use sync::{Brokers, DayPoint, Derived, MadeOf, PointSource, Repriced, Stood, derive, point};
pub use valuation::{
    Merged, Overflow, Summary, Valuation, Valued, check, day_change_pct, merged, share, summary,
    valuation, valued,
};
