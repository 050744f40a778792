//! Row 4: what a portfolio is worth, what a sync changed in it, and what looks like a split.
//!
//! Pure: no broker, no SQL, no HTTP, no clock. Lane threads run it, the store's writer too, so it
//! must be quick and never panic: amounts that do not fit are an error value.

mod actions;
mod close;
mod diff;
mod merge;
mod pairs;
mod resolve;
#[cfg(test)]
mod testing;
mod value;

pub use actions::{Suspicion, Why, mark, suspicions};
pub use close::{date_back, reprice};
pub use diff::{Change, Diff, diff};
pub use merge::{Merged, merged};
pub use resolve::{Listed, Securities};
pub use value::{Point, Summary, Valuation, Valued, check, point, summary, valuation, valued};

/// A quantity, price or sum is larger than any portfolio's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an amount is larger than any portfolio's")]
pub struct Overflow;
