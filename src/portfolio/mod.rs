//! What a portfolio is worth, what a sync changed in it, and which changes look like a split.
//!
//! Pure: no broker, no SQL, no HTTP, no clock. It runs on lane threads (for work that blocks or
//! computes) and on the store's writer, so it must be quick and never panic. An amount that
//! overflows is an error value.

mod close;
pub(crate) mod closed_trades;
pub(crate) mod corporate_actions;
mod day_point;
mod diff;
mod matching;
mod merge;
mod outcome;
mod overflow;
pub(crate) mod securities;
mod sync;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod valuation;

pub use close::{date_back, date_back_unmoved, reprice};
pub use corporate_actions::Why;
pub use day_point::{Brokers, DayPoint, MadeOf, PointSource, point};
pub use merge::{Merged, merged};
pub use outcome::{
    ChangedRow, Difference, First, HeldRow, PositionChanges, Reconciliation, RowName, SuspectedRow,
    SyncOutcome,
};
pub use overflow::Overflow;
pub use securities::{Listed, Securities};
pub use sync::{Derived, Repriced, Stood, derive};
pub use valuation::{
    Summary, Valuation, Valued, check, day_change_pct, share, summary, valuation, valued,
};
