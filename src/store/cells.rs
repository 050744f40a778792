//! The cells of a row of any engine.

use compact_str::CompactString;
use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::{Account, ActionSign, PositionKind, Source, Symbol, Words};
use crate::portfolio::{Accounts, PointSource};
use crate::signals::Direction;
use crate::store::account_id::AccountId;
use crate::store::errors::{Failure, StoreError};

/// A row of a result. `None` is null. Each method fails for a column of another type.
pub(crate) trait Cells {
    fn integer(&self, at: usize) -> Result<Option<i64>, Failure>;
    fn real(&self, at: usize) -> Result<Option<f64>, Failure>;
    fn boolean(&self, at: usize) -> Result<Option<bool>, Failure>;
    fn text(&self, at: usize) -> Result<Option<&str>, Failure>;
}

impl dyn Cells + '_ {
    /// The value of a column.
    pub(crate) fn get<T: Cell>(&self, at: usize) -> Result<T, Failure> {
        T::read(self, at)
    }

    /// The text of a column that is never null.
    pub(crate) fn str(&self, at: usize) -> Result<&str, Failure> {
        self.text(at)?.ok_or_else(another_type)
    }
}

/// A row that this program could not have written.
pub(crate) fn damaged(what: &'static str) -> Failure {
    StoreError::Damaged(what).into()
}

pub(crate) fn another_type() -> Failure {
    damaged("a column of another type")
}

/// A value that a cell can hold.
pub(crate) trait Cell: Sized {
    fn read(row: &dyn Cells, at: usize) -> Result<Self, Failure>;
}

/// A value that can be null. [`Cell`] is implemented for it and for its `Option`.
pub(crate) trait Nullable: Sized {
    fn read_if_any(row: &dyn Cells, at: usize) -> Result<Option<Self>, Failure>;
}

impl<T: Nullable> Cell for Option<T> {
    fn read(row: &dyn Cells, at: usize) -> Result<Self, Failure> {
        T::read_if_any(row, at)
    }
}

impl<T: Nullable> Cell for T {
    fn read(row: &dyn Cells, at: usize) -> Result<Self, Failure> {
        T::read_if_any(row, at)?.ok_or_else(another_type)
    }
}

impl Nullable for i64 {
    fn read_if_any(row: &dyn Cells, at: usize) -> Result<Option<Self>, Failure> {
        row.integer(at)
    }
}

impl Nullable for u32 {
    fn read_if_any(row: &dyn Cells, at: usize) -> Result<Option<Self>, Failure> {
        let found = row.integer(at)?.map(Self::try_from).transpose();
        found.map_err(|_| another_type())
    }
}

impl Nullable for f64 {
    fn read_if_any(row: &dyn Cells, at: usize) -> Result<Option<Self>, Failure> {
        row.real(at)
    }
}

impl Nullable for bool {
    fn read_if_any(row: &dyn Cells, at: usize) -> Result<Option<Self>, Failure> {
        row.boolean(at)
    }
}

impl Nullable for usize {
    fn read_if_any(row: &dyn Cells, at: usize) -> Result<Option<Self>, Failure> {
        let found = row.integer(at)?.map(Self::try_from).transpose();
        found.map_err(|_| damaged("a count"))
    }
}

impl Nullable for AccountId {
    fn read_if_any(row: &dyn Cells, at: usize) -> Result<Option<Self>, Failure> {
        Ok(row.integer(at)?.map(AccountId))
    }
}

/// Reads a value that is stored as text.
pub(crate) fn parsed<T>(
    row: &dyn Cells,
    at: usize,
    parse: impl Fn(&str) -> Option<T>,
    what: &'static str,
) -> Result<Option<T>, Failure> {
    row.text(at)?
        .map(|text| parse(text).ok_or_else(|| damaged(what)))
        .transpose()
}

impl Nullable for String {
    fn read_if_any(row: &dyn Cells, at: usize) -> Result<Option<Self>, Failure> {
        Ok(row.text(at)?.map(str::to_owned))
    }
}

impl Nullable for CompactString {
    fn read_if_any(row: &dyn Cells, at: usize) -> Result<Option<Self>, Failure> {
        Ok(row.text(at)?.map(Self::from))
    }
}

impl Nullable for Decimal {
    fn read_if_any(row: &dyn Cells, at: usize) -> Result<Option<Self>, Failure> {
        parsed(row, at, |text| text.parse().ok(), "a decimal")
    }
}

impl Nullable for Date {
    fn read_if_any(row: &dyn Cells, at: usize) -> Result<Option<Self>, Failure> {
        parsed(row, at, |text| text.parse().ok(), "a date")
    }
}

impl Nullable for Symbol {
    fn read_if_any(row: &dyn Cells, at: usize) -> Result<Option<Self>, Failure> {
        parsed(row, at, Self::parse, "a symbol")
    }
}

/// Types that are stored as their words.
macro_rules! stored_as_words {
    ($($kind:ty: $what:literal,)+) => {$(
        impl $crate::store::cells::Nullable for $kind {
            fn read_if_any(
                row: &dyn $crate::store::cells::Cells,
                at: usize,
            ) -> Result<Option<Self>, $crate::store::tx::Failure> {
                $crate::store::cells::parsed(row, at, Self::parse, $what)
            }
        }

        impl<'a> $crate::store::arg::Argument<'a> for $kind {
            fn arg(value: Option<Self>) -> $crate::store::arg::Arg<'a> {
                $crate::store::arg::Arg::from(value.map(Self::as_str))
            }
        }
    )+};
}
pub(crate) use stored_as_words;

stored_as_words! {
    Account: "an account",
    Accounts: "a point's accounts",
    ActionSign: "a mark",
    Direction: "a direction",
    PointSource: "a point's source",
    PositionKind: "a kind of position",
    Source: "a source",
}
