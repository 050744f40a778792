//! The trade journal.
//!
//! A change checks its precondition within its transaction, so that of two clients that have read
//! the same state only one can change it: [`StoreError::NotAsExpected`]. Every statement names both
//! user and entry, so the id of another user's entry finds nothing.

use std::ops::ControlFlow;

use jiff::civil::Date;
use rust_decimal::Decimal;
use serde::Serialize;

use crate::base::{Words, json, words};
use crate::store::account_id::AccountId;
use crate::store::arg::{Arg, args};
use crate::store::cells::{Cells, damaged, stored_as_words};
use crate::store::columns::{at, columns, record, values};
use crate::store::errors::{Result, StoreError};
use crate::store::open::Store;
use crate::store::tx::{Expected, Failure, Revision, Sql, Tx, statements};
use crate::store::write::{READ_DEADLINE_MS, Write};

/// Entries that one user may keep: forty per trading day for a year.
pub(crate) const ENTRIES_MAX: usize = 10_000;
/// Bytes of text in one user's entries (symbol, strategy, notes and tags, as stored): 800 for each
/// of [`ENTRIES_MAX`]. Bounds the disk space of an account, the memory of an export, and the
/// writer's time for an erasure. The longest texts in every entry would be 200 MB.
pub(crate) const TEXT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of text on a page, unless it has a single longer entry. Such a page takes some hundred
/// microseconds to serialise.
pub(crate) const PAGE_BYTES_MAX: usize = 256 * 1024;

columns! {
    /// What of an entry is written, also where one is replaced.
    const WRITTEN = [
        traded_on, symbol, side, quantity, price, fees, strategy, notes, tags, updated_ms,
    ];
    const ENTRY = [..WRITTEN, id, created_ms];
}

/// Bytes of text in a stored entry.
const TEXT_IN_ROW: &str = "octet_length(symbol) + coalesce(octet_length(strategy), 0) \
                           + coalesce(octet_length(notes), 0) + octet_length(tags)";

statements! {
    const COUNT_ENTRY = "\
UPDATE users SET journal_entries = journal_entries + 1, journal_bytes = journal_bytes + ?3
WHERE id = ?1 AND journal_entries < ?2 AND journal_bytes + ?3 <= ?4";
    const UNCOUNT_ENTRY = "\
UPDATE users SET journal_entries = journal_entries - 1, journal_bytes = journal_bytes - ?2
WHERE id = ?1";
    const COUNT_BYTES = "\
-- What an entry grows by that is replaced. One that shrinks is taken from a journal over its bound.
UPDATE users SET journal_bytes = journal_bytes + ?2
WHERE id = ?1 AND (?2 <= 0 OR journal_bytes + ?2 <= ?3)";
    const ENTRY_BYTES =
        ["SELECT ", TEXT_IN_ROW, " FROM journal WHERE id = ?2 AND user_id = ?1"];
    const JOURNAL_SIZE = "SELECT journal_entries, journal_bytes FROM users WHERE id = ?1";
    const ADD_ENTRY = ["\
INSERT INTO journal (user_id, created_ms, ", WRITTEN.sql, ")
VALUES (?1, ?2, ", WRITTEN.parameters(3), ")
RETURNING id, created_ms"];
    const ENTRIES = ["\
SELECT ", ENTRY.sql, "
FROM journal WHERE user_id = ?1 ORDER BY traded_on DESC, id DESC LIMIT ?2"];
    const ENTRIES_SAME_DAY = ["\
-- After the cursor, on its own date: older entries.
SELECT ", ENTRY.sql, "
FROM journal WHERE user_id = ?1 AND traded_on = ?3 AND id < ?4
ORDER BY id DESC LIMIT ?2"];
    const ENTRIES_BEFORE = ["\
-- After the cursor, on earlier dates.
SELECT ", ENTRY.sql, "
FROM journal WHERE user_id = ?1 AND traded_on < ?3
ORDER BY traded_on DESC, id DESC LIMIT ?2"];
    const ENTRY_OF_USER =
        ["SELECT ", ENTRY.sql, " FROM journal WHERE id = ?2 AND user_id = ?1"];
    const REPLACE_ENTRY = ["\
UPDATE journal SET (", WRITTEN.sql, ") = (", WRITTEN.parameters(3), ")
WHERE id = ?2 AND user_id = ?1
RETURNING id, created_ms"];
    const DELETE_ENTRY =
        ["DELETE FROM journal WHERE id = ?2 AND user_id = ?1 RETURNING ", TEXT_IN_ROW];
}

words! {
    /// Whether a trade was a purchase or a sale.
    pub enum Side {
        Buy = "buy",
        Sell = "sell",
    }
}

stored_as_words! {
    Side: "a side",
}

/// The fields of a journal entry, already validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalFields {
    pub traded_on: Date,
    pub symbol: String,
    pub side: Side,
    pub quantity: Decimal,
    pub price: Decimal,
    pub fees: Option<Decimal>,
    pub strategy: Option<String>,
    pub notes: Option<String>,
    pub tags: Vec<String>,
}

/// One stored journal entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalEntry {
    pub id: i64,
    pub fields: JournalFields,
    pub created_ms: i64,
    pub updated_ms: i64,
}

/// Size of one user's journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalSize {
    pub entries: usize,
    pub text_bytes: usize,
}

/// A page of the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JournalPage {
    pub entries: Vec<JournalEntry>,
    /// Whether more entries follow.
    pub more: bool,
}

/// Position at which a page of the journal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalCursor {
    pub traded_on: Date,
    pub id: i64,
}

impl JournalPage {
    /// Position of the next page; `None` if this is the last one.
    pub(crate) fn next(&self) -> Option<JournalCursor> {
        let last = self.entries.last().filter(|_| self.more)?;
        Some(JournalCursor {
            traded_on: last.fields.traded_on,
            id: last.id,
        })
    }
}

impl Store {
    /// Adds an entry. `seen`, if given, is a page of the journal that must still be in the state
    /// the client has seen.
    pub(crate) fn add_entry(
        &self,
        id: AccountId,
        fields: JournalFields,
        now_ms: i64,
        seen: Option<ExpectedPage>,
    ) -> Result<JournalEntry> {
        self.write(Write::new().of([id]), move |tx| {
            if let Some(ExpectedPage {
                after,
                limit,
                expected,
            }) = &seen
            {
                let now = page(tx, id, *after, *limit)?;
                expected.compare(|| now.revision())?;
            }
            let count = args![id, ENTRIES_MAX, text_bytes(&fields), TEXT_BYTES_MAX];
            if tx.run(COUNT_ENTRY, &count)? == 0 {
                let too_many = StoreError::TooMany {
                    what: "journal entries",
                    limit: ENTRIES_MAX,
                };
                let is_long = size(tx, id)?.entries < ENTRIES_MAX;
                return Err(if is_long { too_much_text() } else { too_many }.into());
            }
            let added = put(tx, ADD_ENTRY, &args![id, now_ms], &fields, now_ms)?;
            added.ok_or_else(|| damaged("a row that was added"))
        })
    }

    /// A page of entries, newest trading date first, then newest entry. It has fewer than `limit`
    /// entries if they are long.
    pub(crate) fn entries(
        &self,
        id: AccountId,
        after: Option<JournalCursor>,
        limit: usize,
    ) -> Result<JournalPage> {
        self.read(READ_DEADLINE_MS, move |tx| page(tx, id, after, limit))
    }

    /// Number of entries and bytes of their text, as counted at each change.
    pub(crate) fn journal_size(&self, id: AccountId) -> Result<JournalSize> {
        self.read(READ_DEADLINE_MS, move |tx| size(tx, id))
    }

    /// The entry; `None` if this user has no such entry.
    pub(crate) fn entry(&self, id: AccountId, entry: i64) -> Result<Option<JournalEntry>> {
        self.read(READ_DEADLINE_MS, move |tx| one(tx, id, entry))
    }

    pub(crate) fn replace_entry(
        &self,
        id: AccountId,
        entry: i64,
        fields: JournalFields,
        now_ms: i64,
        expected: Expected,
    ) -> Result<Option<JournalEntry>> {
        self.write(Write::new().of([id]).hiding(), move |tx| {
            if !is_there(tx, id, entry, &expected)? {
                return Ok(None);
            }
            let before = tx.first(ENTRY_BYTES, &args![id, entry], |row| row.get::<i64>(0))?;
            let Some(before) = before else {
                return Ok(None);
            };
            let grown = text_bytes(&fields) as i64 - before;
            if tx.run(COUNT_BYTES, &args![id, grown, TEXT_BYTES_MAX])? == 0 {
                return Err(too_much_text().into());
            }
            put(tx, REPLACE_ENTRY, &args![id, entry], &fields, now_ms)
        })
    }

    pub(crate) fn delete_entry(
        &self,
        id: AccountId,
        entry: i64,
        expected: Expected,
    ) -> Result<bool> {
        self.write(Write::new().of([id]).hiding(), move |tx| {
            if !is_there(tx, id, entry, &expected)? {
                return Ok(false);
            }
            let bytes = tx.first(DELETE_ENTRY, &args![id, entry], |row| row.get::<i64>(0))?;
            let Some(bytes) = bytes else { return Ok(false) };
            tx.run(UNCOUNT_ENTRY, &args![id, bytes])?;
            Ok(true)
        })
    }
}

fn too_much_text() -> StoreError {
    StoreError::TooMany {
        what: "bytes of journal text",
        limit: TEXT_BYTES_MAX,
    }
}

/// Number of entries and bytes of their text, as counted at each change.
fn size(tx: &dyn Tx, id: AccountId) -> Result<JournalSize, Failure> {
    let found = tx.first(JOURNAL_SIZE, &args![id], |row| {
        Ok(JournalSize {
            entries: row.get(0)?,
            text_bytes: row.get(1)?,
        })
    })?;
    found.ok_or_else(|| StoreError::NoSuchUser.into())
}

/// A page of at most `limit` entries, with at most [`PAGE_BYTES_MAX`] of text if it has more than
/// one.
fn page(
    tx: &dyn Tx,
    id: AccountId,
    after: Option<JournalCursor>,
    limit: usize,
) -> Result<JournalPage, Failure> {
    let mut page = PageInProgress {
        limit,
        bytes: 0,
        page: JournalPage::default(),
    };
    let Some(JournalCursor {
        traded_on,
        id: last,
    }) = after
    else {
        page.fill(tx, ENTRIES, &args![id, page.rows()])?;
        return Ok(page.page);
    };
    // Read in two steps: SQLite bounds an index range over a pair of columns by the first column
    // only, and one day may have many entries.
    page.fill(tx, ENTRIES_SAME_DAY, &args![id, page.rows(), traded_on, last])?;
    if !page.page.more {
        page.fill(tx, ENTRIES_BEFORE, &args![id, page.rows(), traded_on])?;
    }
    Ok(page.page)
}

/// A page that is being read.
struct PageInProgress {
    limit: usize,
    bytes: usize,
    page: JournalPage,
}

impl PageInProgress {
    /// Rows to ask for. One row beyond the limit shows whether another page exists.
    fn rows(&self) -> usize {
        (self.limit - self.page.entries.len()).saturating_add(1)
    }

    fn fill(&mut self, tx: &dyn Tx, sql: Sql, range: &[Arg<'_>]) -> Result<(), Failure> {
        tx.query(sql, &[range], &mut |_, row| {
            let entries = &mut self.page.entries;
            self.bytes += stored_bytes(row)?;
            let too_long = self.bytes > PAGE_BYTES_MAX && !entries.is_empty();
            if entries.len() == self.limit || too_long {
                self.page.more = true;
                return Ok(ControlFlow::Break(()));
            }
            entries.push(entry(row)?);
            Ok(ControlFlow::Continue(()))
        })
    }
}

fn one(tx: &dyn Tx, id: AccountId, entry_id: i64) -> Result<Option<JournalEntry>, Failure> {
    tx.first(ENTRY_OF_USER, &args![id, entry_id], entry)
}

/// Writes an entry with the given statement, whose first arguments say which. `None` if no entry
/// was replaced.
fn put(
    tx: &dyn Tx,
    sql: Sql,
    which: &[Arg<'_>; 2],
    fields: &JournalFields,
    now_ms: i64,
) -> Result<Option<JournalEntry>, Failure> {
    let written = values!(WRITTEN {
        traded_on: fields.traded_on,
        symbol: &fields.symbol,
        side: fields.side,
        quantity: fields.quantity,
        price: fields.price,
        fees: fields.fees,
        strategy: fields.strategy.as_ref(),
        notes: fields.notes.as_ref(),
        tags: tags_as_text(&fields.tags),
        updated_ms: now_ms,
    });
    let row = [which.as_slice(), &written].concat();
    let put = tx.first(sql, &row, |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(put.map(|(id, created_ms)| {
        let fields = fields.clone();
        JournalEntry {
            id,
            fields,
            created_ms,
            updated_ms: now_ms,
        }
    }))
}

/// Whether the entry exists, in the expected state. It is read only if a state is expected.
fn is_there(
    tx: &dyn Tx,
    id: AccountId,
    entry_id: i64,
    expected: &Expected,
) -> Result<bool, Failure> {
    if expected.is_any() {
        // The change itself shows whether the entry exists.
        return Ok(true);
    }
    let Some(now) = one(tx, id, entry_id)? else {
        return Ok(false);
    };
    expected.compare(|| now.revision())?;
    Ok(true)
}

fn entry(row: &dyn Cells) -> Result<JournalEntry, Failure> {
    let tags = row.str(at!(ENTRY.tags))?;
    let tags = json::parse(tags.as_bytes()).ok_or_else(|| damaged("a list of tags"))?;
    let fields = record!(row of ENTRY, JournalFields [
        traded_on, symbol, side, quantity, price, fees, strategy, notes,
    ] tags);
    Ok(record!(row of ENTRY, JournalEntry [id, created_ms, updated_ms] fields))
}

/// Bytes of text of an entry, as the SQL statements measure a stored row.
fn text_bytes(fields: &JournalFields) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    fields.symbol.len()
        + optional(&fields.strategy)
        + optional(&fields.notes)
        + tags_as_text(&fields.tags).len()
}

/// Bytes of text of a row that was read.
fn stored_bytes(row: &dyn Cells) -> Result<usize, Failure> {
    let mut bytes = 0;
    for column in [
        at!(ENTRY.symbol),
        at!(ENTRY.strategy),
        at!(ENTRY.notes),
        at!(ENTRY.tags),
    ] {
        let text = row.text(column)?;
        bytes += text.map_or(0, str::len);
    }
    Ok(bytes)
}

fn tags_as_text(tags: &[String]) -> String {
    // Serialising text cannot fail.
    sonic_rs::to_string(tags).unwrap_or_default()
}

// ---- Revisions

/// A page of a journal, and the state it is expected to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpectedPage {
    pub after: Option<JournalCursor>,
    pub limit: usize,
    pub expected: Expected,
}

impl JournalEntry {
    /// Revision of the whole entry.
    pub(crate) fn revision(&self) -> Revision {
        Revision::of(&Shown::of(self))
    }
}

impl JournalPage {
    /// Revision of the page: of its entries, and of whether more follow.
    pub(crate) fn revision(&self) -> Revision {
        Revision::of(&(self.entries.iter().map(Shown::of).collect::<Vec<_>>(), self.more))
    }
}

/// An entry with its numbers as text, since floats would lose digits.
#[derive(Serialize)]
struct Shown<'a> {
    id: i64,
    traded_on: String,
    symbol: &'a str,
    side: &'static str,
    numbers: [Option<String>; 3],
    texts: [Option<&'a str>; 2],
    tags: &'a [String],
    written_ms: [i64; 2],
}

impl<'a> Shown<'a> {
    fn of(entry: &'a JournalEntry) -> Self {
        let JournalEntry {
            id,
            fields,
            created_ms,
            updated_ms,
        } = entry;
        let numbers = [Some(fields.quantity), Some(fields.price), fields.fees];
        Self {
            id: *id,
            traded_on: fields.traded_on.to_string(),
            symbol: &fields.symbol,
            side: fields.side.as_str(),
            numbers: numbers.map(|number| number.map(|number| number.normalize().to_string())),
            texts: [fields.strategy.as_deref(), fields.notes.as_deref()],
            tags: &fields.tags,
            written_ms: [*created_ms, *updated_ms],
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn entry() -> JournalEntry {
        let fields = JournalFields {
            traded_on: date(2026, 11, 20),
            symbol: "INFY".into(),
            side: Side::Buy,
            quantity: "1.50".parse().unwrap(),
            price: "2".parse().unwrap(),
            fees: None,
            strategy: None,
            notes: None,
            tags: vec!["a".into()],
        };
        JournalEntry {
            id: 7,
            fields,
            created_ms: 1,
            updated_ms: 2,
        }
    }

    #[test]
    fn a_revision_depends_on_every_field_and_not_on_number_spelling() {
        let first = entry().revision();
        assert_eq!(first.0.len(), 24);
        let mut same = entry();
        same.fields.quantity = "1.5".parse().unwrap();
        assert_eq!(same.revision(), first);
        let changes: [fn(&mut JournalEntry); 12] = [
            |entry| entry.id = 8,
            |entry| entry.fields.traded_on = date(2026, 11, 19),
            |entry| entry.fields.symbol = "ITC".into(),
            |entry| entry.fields.side = Side::Sell,
            |entry| entry.fields.quantity = "1.51".parse().unwrap(),
            |entry| entry.fields.price = "2.0000001".parse().unwrap(),
            |entry| entry.fields.fees = Some("0".parse().unwrap()),
            |entry| entry.fields.strategy = Some("null".into()),
            |entry| entry.fields.notes = Some("n".into()),
            |entry| entry.fields.tags = vec!["a\",\"b".into()],
            |entry| entry.created_ms = 2,
            |entry| entry.updated_ms = 3,
        ];
        let mut seen = vec![first];
        for change in changes {
            let mut other = entry();
            change(&mut other);
            let revision = other.revision();
            assert!(!seen.contains(&revision), "{other:?}");
            seen.push(revision);
        }
        let page = |entries: Vec<JournalEntry>, more| JournalPage { entries, more }.revision();
        assert_ne!(page(vec![entry()], false), page(vec![entry()], true));
        assert_ne!(page(vec![entry()], false), page(vec![entry(), entry()], false));
        assert_eq!(page(vec![entry()], true), page(vec![entry()], true));
    }
}
