//! The one error of this module.

/// A quantity, price or sum is larger than any portfolio's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an amount is larger than any portfolio's")]
pub struct Overflow;
