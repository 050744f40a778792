//! The cells of a row of any engine.

use super::error::StoreError;
use super::tx::Failure;

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

/// A value that can be null, of whose type the rest is read.
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

impl Nullable for String {
    fn read_if_any(row: &dyn Cells, at: usize) -> Result<Option<Self>, Failure> {
        Ok(row.text(at)?.map(str::to_owned))
    }
}
