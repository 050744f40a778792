//! What a portfolio is worth, what a sync changed in it, and which changes look like a split.
//!
//! Pure: no broker, no SQL, no HTTP, no clock. It runs on lane threads (for work that blocks or
//! computes) and on the store's writer, so it must be quick and never panic. An amount that
//! overflows is an error value.

mod close;
pub(crate) mod corporate_actions;
mod day_point;
mod diff;
pub(crate) mod matching;
mod merge;
mod overflow;
pub(crate) mod securities;
mod sync;
#[cfg(test)]
mod testing;
pub(crate) mod valuation;

pub use close::{date_back, reprice};
pub use corporate_actions::{Suspicion, Why, mark, suspicions};
pub use day_point::{DayPoint, PointSource, point};
pub use diff::{Change, Diff, diff};
pub use merge::{Merged, merged};
pub use overflow::Overflow;
pub use securities::{Listed, Securities};
pub use sync::{Counts, Derived, Repriced, derive, open_positions};
pub use valuation::{Summary, Valuation, Valued, check, summary, valuation, valued};
