//! The trade journal. Runs on the store's threads, within a transaction. Every statement names the
//! user beside the entry, so that the id of another user's entry finds nothing.

use rusqlite::{Connection, Params, Row, params};

use super::columns::{
    damaged, date, decimal, decimal_if_any, digits, digits_if_any, first, named, run,
};
use super::condition::Failure;
use crate::base::json;
use crate::store::limits::{ENTRIES_MAX, PAGE_BYTES_MAX, TEXT_BYTES_MAX};
use crate::store::{
    AccountId, Expected, ExpectedPage, JournalCursor, JournalEntry, JournalFields, JournalPage,
    JournalSize, Side, StoreError,
};

const COUNT_ENTRY: &str = include_str!("../../../sql/store/count_entry.sql");
const UNCOUNT_ENTRY: &str = include_str!("../../../sql/store/uncount_entry.sql");
const COUNT_BYTES: &str = include_str!("../../../sql/store/count_bytes.sql");
const ENTRY_BYTES: &str = include_str!("../../../sql/store/entry_bytes.sql");
const JOURNAL_SIZE: &str = include_str!("../../../sql/store/journal_size.sql");
const ADD_ENTRY: &str = include_str!("../../../sql/store/add_entry.sql");
const ENTRIES: &str = include_str!("../../../sql/store/entries.sql");
const ENTRIES_SAME_DAY: &str = include_str!("../../../sql/store/entries_same_day.sql");
const ENTRIES_BEFORE: &str = include_str!("../../../sql/store/entries_before.sql");
const ENTRY: &str = include_str!("../../../sql/store/entry.sql");
const REPLACE_ENTRY: &str = include_str!("../../../sql/store/replace_entry.sql");
const DELETE_ENTRY: &str = include_str!("../../../sql/store/delete_entry.sql");

pub(crate) fn add(
    connection: &Connection,
    id: AccountId,
    fields: JournalFields,
    now_ms: i64,
    seen: Option<&ExpectedPage>,
) -> Result<JournalEntry, Failure> {
    if let Some(ExpectedPage { after, limit, expected }) = seen {
        let now = page(connection, id, *after, *limit)?;
        expected.compare(|| now.revision())?;
    }
    let bytes = text_bytes(&fields) as i64;
    let count = [id.0, ENTRIES_MAX as i64, bytes, TEXT_BYTES_MAX as i64];
    if run(connection, COUNT_ENTRY, count)? == 0 {
        let size = size(connection, id)?;
        let full = if size.entries < ENTRIES_MAX { too_much_text() } else { too_many_entries() };
        return Err(full.into());
    }
    let added = put(connection, ADD_ENTRY, (id, None), fields, now_ms)?;
    added.ok_or_else(|| damaged("a row that was added"))
}

fn too_many_entries() -> StoreError {
    StoreError::TooMany { what: "journal entries", limit: ENTRIES_MAX }
}

fn too_much_text() -> StoreError {
    StoreError::TooMany { what: "bytes of journal text", limit: TEXT_BYTES_MAX }
}

/// Number of entries and bytes of their text, as counted at each change.
pub(crate) fn size(connection: &Connection, id: AccountId) -> Result<JournalSize, Failure> {
    let number = |row: &Row<'_>, at| {
        usize::try_from(row.get::<_, i64>(at)?).map_err(|_| damaged("the size of a journal"))
    };
    let both =
        |row: &Row<'_>| Ok(JournalSize { entries: number(row, 0)?, text_bytes: number(row, 1)? });
    first(connection, JOURNAL_SIZE, [id.0], both)?.ok_or_else(|| StoreError::NoSuchUser.into())
}

/// A page of at most `limit` entries, with at most [`PAGE_BYTES_MAX`] of text if it has more than
/// one.
pub(crate) fn page(
    connection: &Connection,
    id: AccountId,
    after: Option<JournalCursor>,
    limit: usize,
) -> Result<JournalPage, Failure> {
    let mut page = PageInProgress { limit, bytes: 0, page: JournalPage::default() };
    let Some(JournalCursor { traded_on, id: last }) = after else {
        page.fill(connection, ENTRIES, params![id.0, page.rows()])?;
        return Ok(page.page);
    };
    // Read in two steps: SQLite bounds an index range over a pair of columns by the first column
    // only, and one day may have many entries.
    let day = traded_on.to_string();
    page.fill(connection, ENTRIES_SAME_DAY, params![id.0, page.rows(), day, last])?;
    if !page.page.more {
        page.fill(connection, ENTRIES_BEFORE, params![id.0, page.rows(), day])?;
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
    fn rows(&self) -> i64 {
        let rows = (self.limit - self.page.entries.len()).saturating_add(1);
        i64::try_from(rows).unwrap_or(i64::MAX)
    }

    fn fill(
        &mut self,
        connection: &Connection,
        sql: &str,
        range: impl Params,
    ) -> Result<(), Failure> {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(range)?;
        while let Some(row) = rows.next()? {
            let entries = &mut self.page.entries;
            self.bytes += stored_bytes(row)?;
            let too_long = self.bytes > PAGE_BYTES_MAX && !entries.is_empty();
            if entries.len() == self.limit || too_long {
                self.page.more = true;
                break;
            }
            entries.push(entry(row)?);
        }
        Ok(())
    }
}

pub(crate) fn one(
    connection: &Connection,
    id: AccountId,
    entry_id: i64,
) -> Result<Option<JournalEntry>, Failure> {
    first(connection, ENTRY, [id.0, entry_id], entry)
}

pub(crate) fn replace(
    connection: &Connection,
    id: AccountId,
    entry_id: i64,
    fields: JournalFields,
    now_ms: i64,
    expected: &Expected,
) -> Result<Option<JournalEntry>, Failure> {
    if !is_there(connection, id, entry_id, expected)? {
        return Ok(None);
    }
    let before = first(connection, ENTRY_BYTES, [id.0, entry_id], |row| Ok(row.get::<_, i64>(0)?))?;
    let Some(before) = before else { return Ok(None) };
    let grown = text_bytes(&fields) as i64 - before;
    if run(connection, COUNT_BYTES, [id.0, grown, TEXT_BYTES_MAX as i64])? == 0 {
        return Err(too_much_text().into());
    }
    put(connection, REPLACE_ENTRY, (id, Some(entry_id)), fields, now_ms)
}

/// Writes the columns with the given statement. `None` if no entry was replaced. An entry without
/// an id is new and gets one from SQLite.
fn put(
    connection: &Connection,
    sql: &str,
    (id, entry_id): (AccountId, Option<i64>),
    fields: JournalFields,
    now_ms: i64,
) -> Result<Option<JournalEntry>, Failure> {
    let row = params![
        id.0,
        entry_id,
        fields.traded_on.to_string(),
        fields.symbol,
        fields.side.as_str(),
        digits(fields.quantity),
        digits(fields.price),
        digits_if_any(fields.fees),
        fields.strategy,
        fields.notes,
        tags_as_text(&fields.tags),
        now_ms,
    ];
    let put = first(connection, sql, row, |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(put.map(|(id, created_ms)| JournalEntry { id, fields, created_ms, updated_ms: now_ms }))
}

pub(crate) fn delete(
    connection: &Connection,
    id: AccountId,
    entry_id: i64,
    expected: &Expected,
) -> Result<bool, Failure> {
    if !is_there(connection, id, entry_id, expected)? {
        return Ok(false);
    }
    let bytes = first(connection, DELETE_ENTRY, [id.0, entry_id], |row| Ok(row.get::<_, i64>(0)?))?;
    let Some(bytes) = bytes else { return Ok(false) };
    run(connection, UNCOUNT_ENTRY, [id.0, bytes])?;
    Ok(true)
}

/// Whether the entry exists, in the expected state. It is read only if a state is expected.
fn is_there(
    connection: &Connection,
    id: AccountId,
    entry_id: i64,
    expected: &Expected,
) -> Result<bool, Failure> {
    if expected.is_any() {
        // The change itself shows whether the entry exists.
        return Ok(true);
    }
    let Some(now) = one(connection, id, entry_id)? else { return Ok(false) };
    expected.compare(|| now.revision())?;
    Ok(true)
}

fn entry(row: &Row<'_>) -> Result<JournalEntry, Failure> {
    let tags: String = row.get(9)?;
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
fn stored_bytes(row: &Row<'_>) -> Result<usize, Failure> {
    let mut bytes = 0;
    for column in [2, 7, 8, 9] {
        let text = row.get_ref(column)?.as_str_or_null().map_err(rusqlite::Error::from)?;
        bytes += text.map_or(0, str::len);
    }
    Ok(bytes)
}

fn tags_as_text(tags: &[String]) -> String {
    // Serialising text cannot fail.
    sonic_rs::to_string(tags).unwrap_or_default()
}
