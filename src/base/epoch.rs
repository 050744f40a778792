//! The number of a leadership: each new leader has a higher one than all before it.

use std::fmt;

/// What fences a leader off that has been replaced: whoever sees a higher epoch refuses what comes
/// with a lower one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Of a node that is alone, which nobody can replace.
    pub const ALONE: Self = Self(0);
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
