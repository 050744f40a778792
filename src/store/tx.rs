//! Statements, and a transaction of any engine, as the operations of the store use them.
//!
//! Every statement is written once, in the SQL that SQLite and PostgreSQL have in common.
//! Parameters are numbered (`?1`), booleans are `TRUE` and `FALSE`.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::ControlFlow;

use jiff::civil::Date;
use rust_decimal::Decimal;
use serde::Serialize;

use crate::base::{ActionSign, Broker, PositionKind, Source, Symbol, Words};
use crate::http::document::variants::content_tag;
use crate::ops::exit::VERSION;
use crate::portfolio::{Brokers, PointSource};
use crate::signals::Direction;
use crate::store::errors::StoreError;

pub(crate) use crate::store::errors::Failure;

/// A statement.
#[derive(Clone, Copy)]
pub(crate) struct Sql {
    #[cfg(test)]
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    /// PostgreSQL's text, if the engines differ too much.
    #[cfg_attr(not(feature = "engines"), expect(dead_code, reason = "a file has SQLite's"))]
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

/// Declares the statements of a subject as constants, and a list of them for tests.
macro_rules! statements {
    ($(
        $(#[$about:meta])*
        const $name:ident = $text:literal $(, postgres $other:literal)?;
    )+) => {
        $(
            $(#[$about])*
            pub(super) const $name: $crate::store::tx::Sql = $crate::store::tx::Sql {
                #[cfg(test)]
                name: stringify!($name),
                text: $text,
                of_postgres: [$(Some($other),)? None][0],
            };
        )+

        #[cfg(test)]
        pub(crate) const STATEMENTS: &[$crate::store::tx::Sql] = &[$($name),+];
    };
}
pub(crate) use statements;

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

// ---- Cells
//
// The cells of a row of any engine.

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
    row.text(at)?.map(|text| parse(text).ok_or_else(|| damaged(what))).transpose()
}

impl Nullable for String {
    fn read_if_any(row: &dyn Cells, at: usize) -> Result<Option<Self>, Failure> {
        Ok(row.text(at)?.map(str::to_owned))
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
        impl $crate::store::tx::Nullable for $kind {
            fn read_if_any(
                row: &dyn $crate::store::tx::Cells,
                at: usize,
            ) -> Result<Option<Self>, $crate::store::tx::Failure> {
                $crate::store::tx::parsed(row, at, Self::parse, $what)
            }
        }

        impl<'a> $crate::store::tx::Argument<'a> for $kind {
            fn arg(value: Option<Self>) -> $crate::store::tx::Arg<'a> {
                $crate::store::tx::Arg::from(value.map(Self::as_str))
            }
        }
    )+};
}
pub(crate) use stored_as_words;

stored_as_words! {
    ActionSign: "a mark",
    Broker: "a broker",
    Brokers: "a point's brokers",
    Direction: "a direction",
    PointSource: "a point's source",
    PositionKind: "a kind of position",
    Source: "a source",
}

// ---- Arg
//
// Arguments of statements. Each carries its type, also if it is null.

/// An argument of a statement. `None` is null.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Arg<'a> {
    Integer(Option<i64>),
    Real(Option<f64>),
    Boolean(Option<bool>),
    Text(Option<Cow<'a, str>>),
}

/// A value that can be an argument.
pub(crate) trait Argument<'a>: Sized {
    /// The argument, or null of the value's type.
    fn arg(value: Option<Self>) -> Arg<'a>;
}

impl<'a, T: Argument<'a>> From<T> for Arg<'a> {
    fn from(value: T) -> Self {
        T::arg(Some(value))
    }
}

impl<'a, T: Argument<'a>> From<Option<T>> for Arg<'a> {
    fn from(value: Option<T>) -> Self {
        T::arg(value)
    }
}

/// A record whose members are a row's columns from `$at` on, in this order, with its other members.
macro_rules! record {
    ($row:ident, $at:expr, $type:ident [$($member:ident),+ $(,)?] $($other:tt)*) => {{
        let mut columns = $at..;
        let mut next = || columns.next().unwrap_or_default();
        $type { $($member: $row.get(next())?,)+ $($other)* }
    }};
}
pub(super) use record;

/// The arguments of a statement, in order.
macro_rules! args {
    ($($value:expr),* $(,)?) => {
        [$($crate::store::tx::Arg::from($value)),*]
    };
}
pub(crate) use args;

impl<'a> Argument<'a> for i64 {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::Integer(value)
    }
}

impl<'a> Argument<'a> for u32 {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::Integer(value.map(i64::from))
    }
}

/// A limit or a count. A value above the engines' range means no limit.
impl<'a> Argument<'a> for usize {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::Integer(value.map(|value| i64::try_from(value).unwrap_or(i64::MAX)))
    }
}

impl<'a> Argument<'a> for AccountId {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::Integer(value.map(|id| id.0))
    }
}

impl<'a> Argument<'a> for f64 {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::Real(value)
    }
}

impl<'a> Argument<'a> for bool {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::Boolean(value)
    }
}

impl<'a, T: Borrow<str> + ?Sized> Argument<'a> for &'a T {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::Text(value.map(|text| Cow::Borrowed(text.borrow())))
    }
}

impl<'a> Argument<'a> for String {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::Text(value.map(Cow::Owned))
    }
}

/// Stored as text, since no engine's number keeps all digits.
impl<'a> Argument<'a> for Decimal {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::Text(value.map(|decimal| Cow::Owned(decimal.to_string())))
    }
}

/// Stored as text, which sorts by time.
impl<'a> Argument<'a> for Date {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::Text(value.map(|date| Cow::Owned(date.to_string())))
    }
}

// ---- Write
//
// Deadlines of the store's operations, and the properties of a write.

/// Deadline of a read. A person waits for it; a local disk takes milliseconds.
pub(crate) const READ_DEADLINE_MS: u64 = 2_000;
/// Deadline for reading a portfolio's version, the only read left before a cached response is sent.
pub(crate) const GLANCE_DEADLINE_MS: u64 = 250;
/// Deadline of a write. Longer than the wait for another process's lock.
pub(crate) const WRITE_DEADLINE_MS: u64 = 5_000;
/// Deadline of a page of the close run, which has many rows and for which nobody waits.
pub(crate) const PAGE_DEADLINE_MS: u64 = 10_000;

/// The properties of a write. SQLite runs one write at a time in one process, so it needs neither
/// the locks nor the rights.
#[cfg_attr(not(feature = "engines"), expect(dead_code, reason = "locks and rights are a server's"))]
pub(crate) struct Write {
    pub(crate) deadline_ms: u64,
    /// Users whose data is compared before it is changed. No other write changes it meanwhile.
    pub(crate) users: Vec<AccountId>,
    /// Checks within the transaction that this node has the right to write. Then no other node
    /// takes it before the commit. `None` where anybody may write.
    pub(crate) right: Option<Check>,
    /// Whether the write overwrites older data that must not stay in a log for long.
    pub(crate) hides: bool,
    /// Whether a user's data is erased for good.
    pub(crate) erases: bool,
}

/// A check within a transaction.
pub(crate) type Check = Box<dyn Fn(&dyn Tx) -> Result<(), Failure> + Send>;

/// A user's id: positive, never used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountId(pub i64);

/// The number of a leadership: each new leader has a higher one than all before it. Whoever has
/// seen a higher epoch refuses what comes with a lower one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch of a single-node installation.
    pub const ALONE: Self = Self(0);
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The right to change a user's portfolio. Of all nodes that share a database, one holder has it at
/// a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    pub user: AccountId,
    /// Random text, different for each turn.
    pub holder: String,
    /// Higher than the number of every earlier turn of the user.
    pub number: i64,
}

impl Turn {
    /// Lifetime of a turn that is not extended, by the clock of the database. A node that is gone
    /// blocks its user for this long.
    pub(crate) const LASTS_MS: u64 = 20_000;
    /// Interval between extensions. Three may fail before the turn runs out.
    pub(crate) const EXTENDED_EACH_MS: u64 = 5_000;

    /// The turn of the one process that has the database. Nobody can take it.
    pub fn alone(user: AccountId) -> Self {
        Self { user, holder: String::new(), number: 0 }
    }

    /// Whether this is the turn of a single process.
    pub(crate) fn is_alone(&self) -> bool {
        self.number == 0
    }
}

impl Write {
    /// A write for which a person waits.
    pub(crate) fn new() -> Self {
        Self {
            deadline_ms: WRITE_DEADLINE_MS,
            users: Vec::new(),
            right: None,
            hides: false,
            erases: false,
        }
    }

    /// A write of many rows, for which nobody waits.
    pub(crate) fn page() -> Self {
        Self { deadline_ms: PAGE_DEADLINE_MS, ..Self::new() }
    }

    pub(crate) fn of(self, users: impl IntoIterator<Item = AccountId>) -> Self {
        Self { users: users.into_iter().collect(), ..self }
    }

    pub(crate) fn hiding(self) -> Self {
        Self { hides: true, ..self }
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
        let is_one = self.one_of.as_ref().is_none_or(|states| states.have(&revision));
        let these = if is_one { vec![revision] } else { Vec::new() };
        Self { one_of: Some(States::These(these)), ..self }
    }

    /// Checks the precondition against the record's state.
    ///
    /// # Errors
    /// [`StoreError::NotAsExpected`].
    pub(super) fn compare(&self, revision: impl FnOnce() -> Revision) -> Result<(), StoreError> {
        if self.is_any() {
            return Ok(());
        }
        let now = revision();
        let met = self.one_of.as_ref().is_none_or(|states| states.have(&now))
            && !self.none_of.as_ref().is_some_and(|states| states.have(&now));
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
