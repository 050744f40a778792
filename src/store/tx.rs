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
    /// The same with `$1` for `?1`.
    #[cfg(feature = "engines")]
    pub(crate) postgres: &'static str,
}

/// The statement in a file, whose path is given from the root of the repository. A second file is
/// the form of PostgreSQL, for what the engines say too differently.
macro_rules! sql {
    ($path:literal) => {{
        const TEXT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path));
        #[cfg(feature = "engines")]
        const DOLLARS: [u8; TEXT.len()] = $crate::store::tx::with_dollars(TEXT);
        $crate::store::tx::Sql {
            sqlite: TEXT,
            #[cfg(feature = "engines")]
            postgres: match std::str::from_utf8(&DOLLARS) {
                Ok(text) => text,
                Err(_) => panic!("not text"),
            },
        }
    }};
    ($path:literal, postgres: $other:literal) => {
        $crate::store::tx::Sql {
            sqlite: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path)),
            #[cfg(feature = "engines")]
            postgres: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $other)),
        }
    };
}
pub(crate) use sql;

/// Writes parameters as PostgreSQL does. No statement has a question mark in another place.
#[cfg(feature = "engines")]
pub(crate) const fn with_dollars<const BYTES: usize>(text: &str) -> [u8; BYTES] {
    let mut written = [0; BYTES];
    let mut at = 0;
    while at < BYTES {
        let byte = text.as_bytes()[at];
        written[at] = if byte == b'?' { b'$' } else { byte };
        at += 1;
    }
    written
}

/// Why work on a transaction failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    Refused(#[from] StoreError),
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    #[cfg(feature = "engines")]
    #[error("{0}")]
    Postgres(#[from] tokio_postgres::Error),
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
