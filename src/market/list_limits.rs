//! What a day's list may lack against the one before it. Pure.

/// A list with less than this part of those before it, in percent, is cut short. From day to day an
/// exchange takes out a few.
pub(super) const KEPT_PCT_MIN: usize = 90;

/// Largest part of the rows, in percent, that may be unreadable.
pub(super) const UNREAD_PCT_MAX: u64 = 10;

/// Symbols that are named.
pub(crate) const NAMED_MAX: usize = 5;

/// Whether a list that has `kept` of the `before` that the last one had was cut short.
pub(crate) fn is_cut_short(kept: usize, before: usize) -> bool {
    kept * 100 < before * KEPT_PCT_MIN
}

/// Whether too many of the rows of a list, `unread` of `rows`, could not be read.
pub(crate) fn is_much_unread(unread: u64, rows: u64) -> bool {
    unread * 100 > rows * UNREAD_PCT_MAX
}
