//! The trade journal. Runs on the store's threads, inside a transaction. Every statement names the
//! user beside the entry, so that an id of somebody else's entry finds nothing.

use rusqlite::{Connection, Row, params};

use super::accounts::expect_user;
use super::columns::{
    all, damaged, date, decimal, decimal_if_any, digits, digits_if_any, first, run, word,
};
use super::condition::Failure;
use super::{AccountId, JournalCursor, JournalEntry, JournalFields, Side, StoreError};
use crate::base::json;

/// What one user may keep: forty a trading day for a year.
pub const ENTRIES_MAX: usize = 10_000;

const COUNT_ENTRY: &str = include_str!("../../sql/store/count_entry.sql");
const UNCOUNT_ENTRY: &str = include_str!("../../sql/store/uncount_entry.sql");
const ADD_ENTRY: &str = include_str!("../../sql/store/add_entry.sql");
const ENTRIES: &str = include_str!("../../sql/store/entries.sql");
const ENTRIES_SAME_DAY: &str = include_str!("../../sql/store/entries_same_day.sql");
const ENTRIES_BEFORE: &str = include_str!("../../sql/store/entries_before.sql");
const ENTRY: &str = include_str!("../../sql/store/entry.sql");
const REPLACE_ENTRY: &str = include_str!("../../sql/store/replace_entry.sql");
const DELETE_ENTRY: &str = include_str!("../../sql/store/delete_entry.sql");

pub(super) fn add(
    connection: &Connection,
    id: AccountId,
    fields: JournalFields,
    now_ms: i64,
) -> Result<JournalEntry, Failure> {
    if run(connection, COUNT_ENTRY, [id.0, ENTRIES_MAX as i64])? == 0 {
        expect_user(connection, id)?;
        let limit = ENTRIES_MAX;
        return Err(StoreError::TooMany { what: "journal entries", limit }.into());
    }
    let added = put(connection, ADD_ENTRY, (id, None), fields, now_ms)?;
    added.ok_or_else(|| damaged("a row that was added"))
}

pub(super) fn page(
    connection: &Connection,
    id: AccountId,
    after: Option<JournalCursor>,
    limit: usize,
) -> Result<Vec<JournalEntry>, Failure> {
    let rows = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let Some(JournalCursor { traded_on, id: last }) = after else {
        return all(connection, ENTRIES, [id.0, rows(limit)], entry);
    };
    // In two steps: SQLite ends an index range by a pair of columns at the first of them, and a day
    // may have many entries.
    let day = traded_on.to_string();
    let mut page = all(connection, ENTRIES_SAME_DAY, params![id.0, rows(limit), day, last], entry)?;
    if page.len() < limit {
        let range = params![id.0, rows(limit - page.len()), day];
        page.extend(all(connection, ENTRIES_BEFORE, range, entry)?);
    }
    Ok(page)
}

pub(super) fn one(
    connection: &Connection,
    id: AccountId,
    entry_id: i64,
) -> Result<Option<JournalEntry>, Failure> {
    first(connection, ENTRY, [id.0, entry_id], entry)
}

pub(super) fn replace(
    connection: &Connection,
    id: AccountId,
    entry_id: i64,
    fields: JournalFields,
    now_ms: i64,
) -> Result<Option<JournalEntry>, Failure> {
    put(connection, REPLACE_ENTRY, (id, Some(entry_id)), fields, now_ms)
}

/// Writes the columns with either statement; `None` where no entry is replaced. An entry without
/// an id is a new one, whose id SQLite makes.
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

pub(super) fn delete(
    connection: &Connection,
    id: AccountId,
    entry_id: i64,
) -> Result<bool, Failure> {
    let deleted = run(connection, DELETE_ENTRY, [id.0, entry_id])? == 1;
    if deleted {
        run(connection, UNCOUNT_ENTRY, [id.0])?;
    }
    Ok(deleted)
}

fn entry(row: &Row<'_>) -> Result<JournalEntry, Failure> {
    let tags: String = row.get(9)?;
    let fields = JournalFields {
        traded_on: date(row, 1)?,
        symbol: row.get(2)?,
        side: word(row, 3, Side::parse, "a side")?,
        quantity: decimal(row, 4)?,
        price: decimal(row, 5)?,
        fees: decimal_if_any(row, 6)?,
        strategy: row.get(7)?,
        notes: row.get(8)?,
        tags: json::parse(tags.as_bytes()).ok_or_else(|| damaged("a list of tags"))?,
    };
    Ok(JournalEntry { id: row.get(0)?, fields, created_ms: row.get(10)?, updated_ms: row.get(11)? })
}

fn tags_as_text(tags: &[String]) -> String {
    // Text always serialises.
    sonic_rs::to_string(tags).unwrap_or_default()
}
