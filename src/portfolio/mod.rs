//! The value of a portfolio, the changes of a sync, and which of them look like a split.
//!
//! Pure: no broker, no SQL, no HTTP, no clock. It runs on lane threads (for work that blocks or
//! computes) and on the store's writer, so it must be quick and never panic. An amount that
//! overflows is an error value.

pub(crate) mod close;
pub(crate) mod closed_trades;
pub(crate) mod corporate_actions;
mod day_point;
mod matching;
mod merge;
pub(crate) mod outcome;
pub(crate) mod securities;
mod sync;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod valuation;

pub(crate) use close::reprice;
pub(crate) use day_point::Accounts;
pub use day_point::{DayPoint, MadeOf, PointSource, point};
pub(crate) use merge::{Merged, merged};
pub(crate) use outcome::{Change, Difference, Reconciliation};
pub use outcome::{First, SyncOutcome};
pub use securities::Listed;
pub(crate) use securities::Securities;
pub(crate) use sync::unvalued;
pub use sync::{Derived, Repriced, Stood, derive};
pub(crate) use valuation::{Overflow, Owned, Valued, day_change, owned, valued};
pub use valuation::{Summary, check, share};
pub(crate) use valuation::{add, summary};
