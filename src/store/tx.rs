//! Statements, and a transaction of any engine, as the operations of the store use them.
//!
//! Every statement is written once, in the SQL that SQLite and PostgreSQL have in common.
//! Parameters are numbered (`?1`), booleans are `TRUE` and `FALSE`.

use std::ops::ControlFlow;

use serde::Serialize;

use crate::http::document::coding::content_tag;
use crate::ops::exit::VERSION;
use crate::store::arg::Arg;
use crate::store::cells::{Cells, damaged};
use crate::store::errors::StoreError;

pub(crate) use crate::store::errors::Failure;

/// A statement.
#[derive(Clone, Copy)]
pub(crate) struct Sql {
    #[cfg(test)]
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    /// PostgreSQL's text, if the engines differ too much.
    #[cfg_attr(
        not(feature = "engines"),
        expect(dead_code, reason = "a file has SQLite's")
    )]
    pub(crate) of_postgres: Option<&'static str>,
}

impl Sql {
    /// The statement with PostgreSQL's parameters: `$1` for `?1`. No statement has a question mark
    /// in another place.
    #[cfg(feature = "engines")]
    pub(crate) fn for_postgres(self) -> String {
        self.of_postgres.unwrap_or(self.text).replace('?', "$")
    }
}

/// Declares the statements of a subject as constants, with tests that each engine understands them
/// and scans no table. Those after `of the file:` or `of the server:` are of that engine alone.
macro_rules! statements {
    (of the file: $($statements:tt)+) => {
        $crate::store::tx::statement_constants! { $($statements)+ }

        #[cfg(test)]
        mod statement_plans {
            #[test]
            fn in_a_file() {
                $crate::store::statements_tests::expect_indexes_of_a_file(super::STATEMENTS);
            }
        }
    };
    (of the server: $($statements:tt)+) => {
        $crate::store::tx::statement_constants! { $($statements)+ }

        #[cfg(all(test, feature = "engines"))]
        mod statement_plans {
            #[test]
            fn on_a_server() {
                $crate::store::statements_tests::expect_indexes_of_a_server(super::STATEMENTS);
            }
        }
    };
    ($($statements:tt)+) => {
        $crate::store::tx::statement_constants! { $($statements)+ }

        #[cfg(test)]
        mod statement_plans {
            #[test]
            fn in_a_file() {
                $crate::store::statements_tests::expect_indexes_of_a_file(super::STATEMENTS);
            }

            #[cfg(feature = "engines")]
            #[test]
            fn on_a_server() {
                $crate::store::statements_tests::expect_indexes_of_a_server(super::STATEMENTS);
            }
        }
    };
}

/// The constants of `statements!`, and a list of them for its tests.
macro_rules! statement_constants {
    ($(
        $(#[$about:meta])*
        const $name:ident = $text:tt $(, postgres $other:literal)?;
    )+) => {
        $(
            $(#[$about])*
            pub(super) const $name: $crate::store::tx::Sql = $crate::store::tx::Sql {
                #[cfg(test)]
                name: stringify!($name),
                text: $crate::store::tx::statement_text!($text),
                of_postgres: [$(Some($other),)? None][0],
            };
        )+

        #[cfg(test)]
        const STATEMENTS: &[$crate::store::tx::Sql] = &[$($name),+];
    };
}
/// A statement's text, or the parts of one.
macro_rules! statement_text {
    ([$($part:expr),+ $(,)?]) => {
        $crate::store::columns::joined!($($part),+)
    };
    ($text:literal) => {
        $text
    };
}

pub(crate) use {statement_constants, statement_text, statements};

/// Reads one row of the results of a statement. The number is the index of the row of arguments
/// that it was run with.
pub(crate) type ReadRow<'a> =
    &'a mut dyn FnMut(usize, &dyn Cells) -> Result<ControlFlow<()>, Failure>;

/// A transaction, or a connection that makes one of each statement. Blocks; runs on the store's
/// threads.
pub(crate) trait Tx {
    /// Runs a statement with each row of arguments, in order, and reads the rows of the results
    /// until `read` breaks. Costs one round trip to an engine on another machine. A statement that
    /// writes is run to its end only if `read` never breaks.
    fn query(&self, sql: Sql, rows: &[&[Arg<'_>]], read: ReadRow<'_>) -> Result<(), Failure>;

    /// Runs a statement without result rows with each row of arguments. Returns the number of rows
    /// changed in all.
    fn execute(&self, sql: Sql, rows: &[&[Arg<'_>]]) -> Result<u64, Failure>;

    /// Same as [`execute`](Self::execute), with one row of arguments.
    fn run(&self, sql: Sql, args: &[Arg<'_>]) -> Result<u64, Failure> {
        self.execute(sql, &[args])
    }
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
        self.query(sql, &[args], &mut |_, row| {
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

    /// Same as `first`, for a row that always exists. Without it `what` counts as damaged.
    pub(crate) fn only<T>(
        &self,
        sql: Sql,
        args: &[Arg<'_>],
        what: &'static str,
        read: impl Fn(&dyn Cells) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.first(sql, args, read)?.ok_or_else(|| damaged(what))
    }

    /// [`execute`](Tx::execute) with rows from an iterator.
    pub(crate) fn run_each<'a>(
        &self,
        sql: Sql,
        rows: impl Iterator<Item: Into<Vec<Arg<'a>>>>,
    ) -> Result<u64, Failure> {
        let rows: Vec<Vec<Arg<'_>>> = rows.map(Into::into).collect();
        self.execute(sql, &rows.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// [`query`](Tx::query) with rows from an iterator, to the end of all results.
    pub(crate) fn query_each<'a>(
        &self,
        sql: Sql,
        rows: impl Iterator<Item: Into<Vec<Arg<'a>>>>,
        mut read: impl FnMut(usize, &dyn Cells) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let rows: Vec<Vec<Arg<'_>>> = rows.map(Into::into).collect();
        let rows: Vec<&[Arg<'_>]> = rows.iter().map(Vec::as_slice).collect();
        self.query(sql, &rows, &mut |at, row| read(at, row).map(ControlFlow::Continue))
    }
}

// ---- Preconditions
//
// Revisions of records, and the preconditions that a change has on them.

/// Names a state of a record, by hexadecimal digits; one that a client sent may be any text. Equal
/// revisions mean equal states, as the same version of the program shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Revision(pub(crate) String);

impl Revision {
    pub(super) fn of(state: &impl Serialize) -> Self {
        // Serialising text and numbers cannot fail.
        Self(content_tag(&sonic_rs::to_vec(&(VERSION, state)).unwrap_or_default()))
    }
}

/// The states that a precondition names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum States {
    /// Every state.
    All,
    These(Vec<Revision>),
}

impl States {
    fn have(&self, revision: &Revision) -> bool {
        match self {
            Self::All => true,
            Self::These(revisions) => revisions.contains(revision),
        }
    }
}

/// The states in which a record may be changed. By default any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    pub one_of: Option<States>,
    pub none_of: Option<States>,
}

impl Expected {
    /// Whether there is no precondition.
    pub(crate) fn is_any(&self) -> bool {
        *self == Self::default()
    }

    /// The states that are `revision` besides.
    pub(crate) fn and_only(self, revision: Revision) -> Self {
        let is_one = self
            .one_of
            .as_ref()
            .is_none_or(|states| states.have(&revision));
        let these = if is_one { vec![revision] } else { Vec::new() };
        Self {
            one_of: Some(States::These(these)),
            ..self
        }
    }

    /// Checks the precondition against the record's state.
    ///
    /// # Errors
    /// [`StoreError::NotAsExpected`].
    pub(crate) fn compare(&self, revision: impl FnOnce() -> Revision) -> Result<(), StoreError> {
        if self.is_any() {
            return Ok(());
        }
        let now = revision();
        let met = self.one_of.as_ref().is_none_or(|states| states.have(&now))
            && !self
                .none_of
                .as_ref()
                .is_some_and(|states| states.have(&now));
        met.then_some(()).ok_or(StoreError::NotAsExpected)
    }
}

#[cfg(test)]
mod precondition_tests {
    use super::*;

    #[test]
    fn a_precondition_matches_the_states_it_names() {
        let now = || Revision("now".into());
        let these = |names: &[&str]| {
            Some(States::These(names.iter().map(|name| Revision((*name).into())).collect()))
        };
        for (one_of, none_of, met) in [
            (None, None, true),
            (Some(States::All), None, true),
            (these(&["now"]), None, true),
            (these(&["then", "now"]), these(&["then"]), true),
            (these(&[]), None, false),
            (these(&["then"]), None, false),
            (None, Some(States::All), false),
            (None, these(&["now"]), false),
            (None, these(&[]), true),
            (these(&["now"]), these(&["now"]), false),
        ] {
            let expected = Expected { one_of, none_of };
            assert_eq!(expected.compare(now).is_ok(), met, "{expected:?}");
        }
    }
}
