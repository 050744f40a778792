//! A transaction of any engine, as the statements see it.
//!
//! Every statement is written once, in `sql/store`, in what SQLite and PostgreSQL have in common.
//! Parameters are numbered (`?1`), booleans are `TRUE` and `FALSE`.

use std::ops::ControlFlow;

use super::arg::Arg;
use super::cells::Cells;
use super::error::StoreError;

/// A statement.
#[derive(Clone, Copy)]
pub(crate) struct Sql {
    pub(crate) sqlite: &'static str,
}

/// The statement in a file, whose path is given from the root of the repository.
macro_rules! sql {
    ($path:literal) => {
        $crate::store::tx::Sql {
            sqlite: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path)),
        }
    };
}
pub(crate) use sql;

/// Why work on a transaction failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    Refused(#[from] StoreError),
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// Reads one row of a result.
pub(crate) type ReadRow<'a> = &'a mut dyn FnMut(&dyn Cells) -> Result<ControlFlow<()>, Failure>;
/// Reads one row of the results of a statement that was run with several rows of arguments. The
/// number says with which of them.
pub(crate) type ReadRowOf<'a> = &'a mut dyn FnMut(usize, &dyn Cells) -> Result<(), Failure>;

/// A transaction, or a connection that makes one of each statement. Blocks; runs on the store's
/// threads.
pub(crate) trait Tx {
    /// Runs a statement and reads its rows until `read` breaks. A statement that writes is run to
    /// its end only if `read` never breaks.
    fn query(&self, sql: Sql, args: &[Arg<'_>], read: ReadRow<'_>) -> Result<(), Failure>;

    /// Runs a statement with each row of arguments, in order, and reads the rows of all results. At
    /// the cost of one round trip, where the engine is on another machine.
    fn query_many(
        &self,
        sql: Sql,
        rows: &[Vec<Arg<'_>>],
        read: ReadRowOf<'_>,
    ) -> Result<(), Failure>;

    /// Runs a statement without result rows and returns how many rows it changed.
    fn run(&self, sql: Sql, args: &[Arg<'_>]) -> Result<u64, Failure>;

    /// Same as [`run`](Self::run), with each row of arguments in order, at the cost of one round
    /// trip. Returns how many rows were changed in all.
    fn run_many(&self, sql: Sql, rows: &[Vec<Arg<'_>>]) -> Result<u64, Failure>;
}

impl dyn Tx + '_ {
    /// Runs a statement and returns all its rows.
    pub(crate) fn all<T>(
        &self,
        sql: Sql,
        args: &[Arg<'_>],
        read: impl Fn(&dyn Cells) -> Result<T, Failure>,
    ) -> Result<Vec<T>, Failure> {
        let mut found = Vec::new();
        self.query(sql, args, &mut |row| {
            found.push(read(row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// Runs a statement to its end, as a writing one needs, and returns its first row.
    pub(crate) fn first<T>(
        &self,
        sql: Sql,
        args: &[Arg<'_>],
        read: impl Fn(&dyn Cells) -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        Ok(self.all(sql, args, read)?.into_iter().next())
    }
}
