//! Deadlines of the store's operations, and the properties of a write.

use std::fmt;

use crate::store::account_id::AccountId;
use crate::store::errors::Failure;
use crate::store::tx::Tx;

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
#[cfg_attr(
    not(feature = "engines"),
    expect(dead_code, reason = "locks and rights are a server's")
)]
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
        Self {
            user,
            holder: String::new(),
            number: 0,
        }
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
        Self {
            deadline_ms: PAGE_DEADLINE_MS,
            ..Self::new()
        }
    }

    pub(crate) fn of(self, users: impl IntoIterator<Item = AccountId>) -> Self {
        Self {
            users: users.into_iter().collect(),
            ..self
        }
    }

    pub(crate) fn hiding(self) -> Self {
        Self {
            hides: true,
            ..self
        }
    }
}
