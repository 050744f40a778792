//! What a portfolio is worth, what a sync changed in it, and which changes look like a split.
//!
//! Pure: no broker, no SQL, no HTTP, no clock. Lanes run it and the store's writer too, so it must
//! be quick and never panic: an amount that does not fit is an error value.

mod close;
pub(crate) mod corporate_actions;
mod diff;
pub(crate) mod matching;
mod merge;
mod overflow;
pub(crate) mod securities;
#[cfg(test)]
mod testing;
pub(crate) mod valuation;

pub use close::{date_back, reprice};
pub use corporate_actions::{Suspicion, Why, mark, suspicions};
pub use diff::{Change, Diff, diff};
pub use merge::{Merged, merged};
pub use overflow::Overflow;
pub use securities::{Listed, Securities};
pub use valuation::{Point, Summary, Valuation, Valued, check, point, summary, valuation, valued};
