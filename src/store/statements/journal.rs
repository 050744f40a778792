//! The trade journal. Runs on the store's threads, within a transaction. Every statement names the
//! user beside the entry, so that the id of another user's entry finds nothing.

use std::ops::ControlFlow;

use super::columns::{date, decimal, decimal_if_any, named};
use crate::base::json;
use crate::store::records::{ENTRIES_MAX, PAGE_BYTES_MAX, TEXT_BYTES_MAX};
use crate::store::tx::{Arg, Cells, Failure, Sql, Tx, args, damaged, sql};
use crate::store::{
    AccountId, Expected, ExpectedPage, JournalCursor, JournalEntry, JournalFields, JournalPage,
    JournalSize, Side, StoreError,
};

const COUNT_ENTRY: Sql = sql!("sql/store/count_entry.sql");
const UNCOUNT_ENTRY: Sql = sql!("sql/store/uncount_entry.sql");
const COUNT_BYTES: Sql = sql!("sql/store/count_bytes.sql");
const ENTRY_BYTES: Sql = sql!("sql/store/entry_bytes.sql");
const JOURNAL_SIZE: Sql = sql!("sql/store/journal_size.sql");
const ADD_ENTRY: Sql = sql!("sql/store/add_entry.sql");
const ENTRIES: Sql = sql!("sql/store/entries.sql");
const ENTRIES_SAME_DAY: Sql = sql!("sql/store/entries_same_day.sql");
const ENTRIES_BEFORE: Sql = sql!("sql/store/entries_before.sql");
const ENTRY: Sql = sql!("sql/store/entry.sql");
const REPLACE_ENTRY: Sql = sql!("sql/store/replace_entry.sql");
const DELETE_ENTRY: Sql = sql!("sql/store/delete_entry.sql");

pub(crate) fn add(
    tx: &dyn Tx,
    id: AccountId,
    fields: &JournalFields,
    now_ms: i64,
    seen: Option<&ExpectedPage>,
) -> Result<JournalEntry, Failure> {
    if let Some(ExpectedPage { after, limit, expected }) = seen {
        let now = page(tx, id, *after, *limit)?;
        expected.compare(|| now.revision())?;
    }
    let bytes = text_bytes(fields) as i64;
    let count = args![id, ENTRIES_MAX, bytes, TEXT_BYTES_MAX];
    if tx.run(COUNT_ENTRY, &count)? == 0 {
        let size = size(tx, id)?;
        let full = if size.entries < ENTRIES_MAX { too_much_text() } else { too_many_entries() };
        return Err(full.into());
    }
    let added = put(tx, ADD_ENTRY, &columns(id, fields, now_ms), fields, now_ms)?;
    added.ok_or_else(|| damaged("a row that was added"))
}

fn too_many_entries() -> StoreError {
    StoreError::TooMany { what: "journal entries", limit: ENTRIES_MAX }
}

fn too_much_text() -> StoreError {
    StoreError::TooMany { what: "bytes of journal text", limit: TEXT_BYTES_MAX }
}

/// Number of entries and bytes of their text, as counted at each change.
pub(crate) fn size(tx: &dyn Tx, id: AccountId) -> Result<JournalSize, Failure> {
    let number = |row: &dyn Cells, at| {
        usize::try_from(row.get::<i64>(at)?).map_err(|_| damaged("the size of a journal"))
    };
    let both =
        |row: &dyn Cells| Ok(JournalSize { entries: number(row, 0)?, text_bytes: number(row, 1)? });
    tx.first(JOURNAL_SIZE, &args![id], both)?.ok_or_else(|| StoreError::NoSuchUser.into())
}

/// A page of at most `limit` entries, with at most [`PAGE_BYTES_MAX`] of text if it has more than
/// one.
pub(crate) fn page(
    tx: &dyn Tx,
    id: AccountId,
    after: Option<JournalCursor>,
    limit: usize,
) -> Result<JournalPage, Failure> {
    let mut page = PageInProgress { limit, bytes: 0, page: JournalPage::default() };
    let Some(JournalCursor { traded_on, id: last }) = after else {
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
    /// Rows to ask for. One more than there is room for shows whether there is another page.
    fn rows(&self) -> usize {
        (self.limit - self.page.entries.len()).saturating_add(1)
    }

    fn fill(&mut self, tx: &dyn Tx, sql: Sql, range: &[Arg<'_>]) -> Result<(), Failure> {
        tx.query(sql, range, &mut |row| {
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

pub(crate) fn one(
    tx: &dyn Tx,
    id: AccountId,
    entry_id: i64,
) -> Result<Option<JournalEntry>, Failure> {
    tx.first(ENTRY, &args![id, entry_id], entry)
}

pub(crate) fn replace(
    tx: &dyn Tx,
    id: AccountId,
    entry_id: i64,
    fields: &JournalFields,
    now_ms: i64,
    expected: &Expected,
) -> Result<Option<JournalEntry>, Failure> {
    if !is_there(tx, id, entry_id, expected)? {
        return Ok(None);
    }
    let before = tx.first(ENTRY_BYTES, &args![id, entry_id], |row| row.get::<i64>(0))?;
    let Some(before) = before else { return Ok(None) };
    let grown = text_bytes(fields) as i64 - before;
    if tx.run(COUNT_BYTES, &args![id, grown, TEXT_BYTES_MAX])? == 0 {
        return Err(too_much_text().into());
    }
    let mut row = columns(id, fields, now_ms);
    row.push(entry_id.into());
    put(tx, REPLACE_ENTRY, &row, fields, now_ms)
}

/// The columns of an entry, after its user.
fn columns(id: AccountId, fields: &JournalFields, now_ms: i64) -> Vec<Arg<'_>> {
    args![
        id,
        fields.traded_on,
        &fields.symbol,
        fields.side.as_str(),
        fields.quantity,
        fields.price,
        fields.fees,
        fields.strategy.as_ref(),
        fields.notes.as_ref(),
        tags_as_text(&fields.tags),
        now_ms,
    ]
    .into()
}

/// Writes an entry with the given statement. `None` if no entry was replaced.
fn put(
    tx: &dyn Tx,
    sql: Sql,
    row: &[Arg<'_>],
    fields: &JournalFields,
    now_ms: i64,
) -> Result<Option<JournalEntry>, Failure> {
    let put = tx.first(sql, row, |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(put.map(|(id, created_ms)| {
        let fields = fields.clone();
        JournalEntry { id, fields, created_ms, updated_ms: now_ms }
    }))
}

pub(crate) fn delete(
    tx: &dyn Tx,
    id: AccountId,
    entry_id: i64,
    expected: &Expected,
) -> Result<bool, Failure> {
    if !is_there(tx, id, entry_id, expected)? {
        return Ok(false);
    }
    let bytes = tx.first(DELETE_ENTRY, &args![id, entry_id], |row| row.get::<i64>(0))?;
    let Some(bytes) = bytes else { return Ok(false) };
    tx.run(UNCOUNT_ENTRY, &args![id, bytes])?;
    Ok(true)
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
    let Some(now) = one(tx, id, entry_id)? else { return Ok(false) };
    expected.compare(|| now.revision())?;
    Ok(true)
}

fn entry(row: &dyn Cells) -> Result<JournalEntry, Failure> {
    let tags = row.str(9)?;
    let fields = JournalFields {
        traded_on: date(row, 1)?,
        symbol: row.get(2)?,
        side: named(row, 3, Side::parse, "a side")?,
        quantity: decimal(row, 4)?,
        price: decimal(row, 5)?,
        fees: decimal_if_any(row, 6)?,
        strategy: row.get(7)?,
        notes: row.get(8)?,
        tags: json::parse(tags.as_bytes()).ok_or_else(|| damaged("a list of tags"))?,
    };
    Ok(JournalEntry { id: row.get(0)?, fields, created_ms: row.get(10)?, updated_ms: row.get(11)? })
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
    for column in [2, 7, 8, 9] {
        let text = row.text(column)?;
        bytes += text.map_or(0, str::len);
    }
    Ok(bytes)
}

fn tags_as_text(tags: &[String]) -> String {
    // Serialising text cannot fail.
    sonic_rs::to_string(tags).unwrap_or_default()
}
