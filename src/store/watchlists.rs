//! Watch lists: those of an account are one row, which is read and replaced as a whole. Their
//! limits are the API's, which is the only writer, and bound the row to some 30 KB.
//!
//! They are stored in a form of its own, whose version stands beside it. A row of a later version
//! than this program knows is refused, and never replaced: it may hold what this program would
//! lose.

use serde::{Deserialize, Serialize};

use crate::base::{Symbol, json};
use crate::store::account_id::AccountId;
use crate::store::arg::args;
use crate::store::cells::damaged;
use crate::store::columns::{at, columns};
use crate::store::errors::{Result, StoreError};
use crate::store::open::Store;
use crate::store::tx::{Expected, Failure, Revision, Tx, statements};
use crate::store::write::{READ_DEADLINE_MS, Write};
use crate::views::account::Watchlist;

/// The version of the stored form that this program writes. Rows of each earlier one are read; the
/// next write of the account gives them this one.
const VERSION: i64 = 1;

columns! {
    const STORED = [last_id, version, lists];
}

statements! {
    const WATCHLISTS = ["SELECT ", STORED.sql, " FROM watchlists WHERE user_id = ?1"];
    const KEEP_WATCHLISTS = "\
-- Nothing is written for an account that is gone.
INSERT INTO watchlists (user_id, last_id, version, lists)
SELECT id, ?2, ?3, ?4 FROM users WHERE id = ?1
ON CONFLICT (user_id) DO UPDATE
SET last_id = excluded.last_id, version = excluded.version, lists = excluded.lists";
}

/// A list as version 1 stores it. Never changed: other members are another version.
#[derive(Serialize, Deserialize)]
struct ListOfVersion1 {
    id: i64,
    name: String,
    symbols: Vec<Symbol>,
}

/// The watch lists of an account, in their order. By default there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Watchlists {
    pub lists: Vec<Watchlist>,
    last_id: i64,
}

impl Watchlists {
    /// Revision of all lists together.
    pub(crate) fn revision(&self) -> Revision {
        Revision::of(&self.lists)
    }

    /// These lists in the place of the present ones. One with the id 0 is new and gets the next id,
    /// which is never given twice. `None` if one has an id that no present one has.
    fn replaced_by(&self, mut lists: Vec<Watchlist>) -> Option<Self> {
        let mut last_id = self.last_id;
        for list in &mut lists {
            if list.id == 0 {
                last_id += 1;
                list.id = last_id;
            } else if !self.lists.iter().any(|present| present.id == list.id) {
                return None;
            }
        }
        Some(Self { lists, last_id })
    }

    /// The lists as [`VERSION`] stores them.
    fn stored(&self) -> String {
        let stored = |Watchlist { id, name, symbols }: &Watchlist| ListOfVersion1 {
            id: *id,
            name: name.clone(),
            symbols: symbols.clone(),
        };
        let lists: Vec<_> = self.lists.iter().map(stored).collect();
        // Serialising text and numbers cannot fail.
        sonic_rs::to_string(&lists).unwrap_or_default()
    }
}

impl Store {
    pub(crate) fn watchlists(&self, id: AccountId) -> Result<Watchlists> {
        self.read(READ_DEADLINE_MS, move |tx| read(tx, id))
    }

    /// Replaces all lists of the account, and returns them with their ids. `None` if one has an id
    /// that no list of the account has. [`StoreError::NotAsExpected`] is found first.
    pub(crate) fn replace_watchlists(
        &self,
        id: AccountId,
        lists: Vec<Watchlist>,
        expected: Expected,
    ) -> Result<Option<Watchlists>> {
        self.write(Write::new().of([id]).hiding(), move |tx| {
            let present = read(tx, id)?;
            expected.compare(|| present.revision())?;
            let Some(next) = present.replaced_by(lists.clone()) else {
                return Ok(None);
            };
            match tx.run(KEEP_WATCHLISTS, &args![id, next.last_id, VERSION, next.stored()])? {
                0 => Err(StoreError::NoSuchUser.into()),
                _ => Ok(Some(next)),
            }
        })
    }
}

fn read(tx: &dyn Tx, id: AccountId) -> Result<Watchlists, Failure> {
    let found = tx.first(WATCHLISTS, &args![id], |row| {
        let lists = lists(row.get(at!(STORED.version))?, row.str(at!(STORED.lists))?)?;
        Ok(Watchlists {
            lists,
            last_id: row.get(at!(STORED.last_id))?,
        })
    })?;
    Ok(found.unwrap_or_default())
}

/// Reads the lists of a row of this version.
fn lists(version: i64, text: &str) -> Result<Vec<Watchlist>, Failure> {
    let read = |ListOfVersion1 { id, name, symbols }| Watchlist { id, name, symbols };
    match version {
        1 => {
            let lists: Option<Vec<ListOfVersion1>> = json::parse(text.as_bytes());
            let lists = lists.ok_or_else(|| damaged("watch lists"))?;
            Ok(lists.into_iter().map(read).collect())
        }
        found if found > VERSION => Err(StoreError::NewerRow {
            what: "watch lists",
            found,
            known: VERSION,
        }
        .into()),
        _ => Err(damaged("watch lists")),
    }
}
