//! The log of changes of accounts and tokens, which triggers of the database number and record: its
//! pages, and whether a page follows on what was read before.

use crate::store::account_id::AccountId;
use crate::store::arg::args;
use crate::store::cells::{Cells, damaged};
use crate::store::columns::{at, columns, record};
use crate::store::errors::Result;
use crate::store::tx::statements;
use crate::store::tx::{Failure, Tx};

columns! {
    const CHANGE = [
        made, noticed, database_id, secret_check, number, kind, user_id, token_id, value, mark,
    ];
    const LAST_CHANGE = [made, noticed, mark];
}

statements! {
    const CHANGES_AFTER = ["\
-- The first row is the change ?1 itself, where it is still there: its mark proves that it is the
-- one that was read. One row with nulls where there is none.
SELECT ", CHANGE.sql, "
FROM change_count JOIN identity ON identity.id = 1 LEFT JOIN changes ON changes.number >= ?1
WHERE change_count.id = 1
ORDER BY changes.number
LIMIT ?2"];
    const CHANGES_MADE = ["SELECT ", LAST_CHANGE.sql, "
FROM change_count LEFT JOIN changes ON changes.number = change_count.made
WHERE change_count.id = 1"];
}

/// Changes of accounts and tokens read at a time.
pub(crate) const CHANGES_PAGE: usize = 500;

/// A change that every node needs to judge tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The account exists, with this token epoch. Its API keys may have changed.
    Account {
        id: AccountId,
        epoch: i64,
    },
    Erased {
        id: AccountId,
    },
    Revoked {
        token_id: String,
        expires_ms: i64,
    },
    /// A change that a newer program has made.
    Unknown,
}

/// The last change that a node has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LastRead {
    /// Number of the last change.
    pub number: i64,
    /// Random mark of that change; `None` if its row no longer exists.
    pub mark: Option<i64>,
}

/// Relation of a page to the changes read before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Continuity {
    /// The page follows directly on the changes that were read.
    Follows,
    /// Some changes between were deleted meanwhile.
    Missed,
    /// The changes that were read are gone or different: the database is an older copy, or has
    /// another past.
    WentBack,
}

/// A page of the changes after a given one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Changes {
    /// The incarnation of the database.
    pub incarnation: String,
    /// The check value of the secret that nodes of this database sign with.
    pub secret_check: Option<String>,
    /// The mark of the change before the page, if that is still stored.
    pub before: Option<i64>,
    /// The mark of the last change of the page.
    pub mark: Option<i64>,
    /// Number of the last change made.
    pub made: i64,
    /// Number of the last change that the one service of a file has reported as applied.
    pub noticed: i64,
    /// The changes with their numbers, in order.
    pub rows: Vec<(i64, Change)>,
}

impl Changes {
    /// Whether these are all changes made since `read`.
    pub(crate) fn continuity(&self, read: LastRead) -> Continuity {
        let first = self.rows.first().map(|(number, _)| *number);
        match (read.mark, self.before) {
            _ if self.made < read.number => Continuity::WentBack,
            (Some(known), Some(found)) if known == found => Continuity::Follows,
            (Some(_), Some(_)) => Continuity::WentBack,
            // The newest changes are never forgotten.
            (Some(_), None) if first.is_none() => Continuity::WentBack,
            (Some(_), None) => Continuity::Missed,
            (None, _) => match first.map_or(self.made == read.number, |at| at == read.number + 1) {
                true => Continuity::Follows,
                false => Continuity::Missed,
            },
        }
    }

    /// The last change of the page, or `read` if the page is empty.
    pub(crate) fn last(&self, read: LastRead) -> LastRead {
        let last = self.rows.last().map(|(number, _)| *number);
        last.map_or(read, |number| LastRead {
            number,
            mark: self.mark,
        })
    }
}

/// The changes after `number`, at most [`CHANGES_PAGE`].
pub(super) fn changes_after(tx: &dyn Tx, number: i64) -> Result<Changes, Failure> {
    // One more row, for the change `number` itself.
    let rows = tx.all(CHANGES_AFTER, &args![number, CHANGES_PAGE + 1], |row| {
        let change = match row.get::<Option<i64>>(at!(CHANGE.number))? {
            Some(number) => Some((number, row.get::<i64>(at!(CHANGE.mark))?, change(row)?)),
            None => None,
        };
        let incarnation = row.get::<Option<String>>(at!(CHANGE.database_id))?;
        let secret_check = row.get::<Option<String>>(at!(CHANGE.secret_check))?;
        let made = row.get::<i64>(at!(CHANGE.made))?;
        let noticed = row.get::<i64>(at!(CHANGE.noticed))?;
        Ok(((made, noticed, (incarnation, secret_check)), change))
    })?;
    let Some(((made, noticed, (incarnation, secret_check)), _)) = rows.first().cloned() else {
        return Err(damaged("a count of changes"));
    };
    let mut rows: Vec<_> = rows.into_iter().filter_map(|row| row.1).collect();
    let is_before = rows.first().is_some_and(|(first, ..)| *first == number);
    let before = is_before.then(|| rows.remove(0).1);
    rows.truncate(CHANGES_PAGE);
    Ok(Changes {
        incarnation: incarnation.unwrap_or_default(),
        secret_check,
        before,
        mark: rows.last().map(|(_, mark, _)| *mark),
        made,
        noticed,
        rows: rows
            .into_iter()
            .map(|(number, _, change)| (number, change))
            .collect(),
    })
}

pub(super) fn change(row: &dyn Cells) -> Result<Change, Failure> {
    let id = || row.get(at!(CHANGE.user_id));
    let value = || row.get(at!(CHANGE.value));
    Ok(match row.str(at!(CHANGE.kind))? {
        "account" => Change::Account {
            id: id()?,
            epoch: value()?,
        },
        "erased" => Change::Erased { id: id()? },
        "revoked" => Change::Revoked {
            token_id: row.get(at!(CHANGE.token_id))?,
            expires_ms: value()?,
        },
        _ => Change::Unknown,
    })
}

/// The last change made, and the number of the last change that the one service of a file has
/// applied.
pub(super) fn counts(tx: &dyn Tx) -> Result<(LastRead, i64), Failure> {
    tx.only(CHANGES_MADE, &[], "a count of changes", |row| {
        let number = row.get(at!(LAST_CHANGE.made))?;
        let read = record!(row of LAST_CHANGE, LastRead [mark] number);
        Ok((read, row.get(at!(LAST_CHANGE.noticed))?))
    })
}
