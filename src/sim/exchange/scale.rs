//! The scale of a share's prices: a split divides those of before it.

/// `new` shares for `old` ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Scale {
    pub(super) new: i64,
    pub(super) old: i64,
}

impl Scale {
    /// No split.
    pub(crate) const ONE: Self = Self { new: 1, old: 1 };

    pub(crate) fn price(self, paise: i64) -> i64 {
        paise * self.old / self.new
    }

    pub(crate) fn volume(self, shares: i64) -> i64 {
        shares * self.new / self.old
    }
}
