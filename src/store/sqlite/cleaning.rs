//! Leaves no trace of what was erased in the database's own file.
//!
//! `secure_delete` overwrites what is deleted where it stands. But where SQLite has moved rows
//! between pages before, an old copy of one may be left in a page's free space, which nobody
//! overwrites: seen in one of a thousand erasures. Writing the whole file anew is what drops it.
//! Erasures are counted in the transaction that makes them, so that none is forgotten over a crash.
//! Runs on the writer's thread, outside a transaction.

use rusqlite::Connection;

use super::columns::{damaged, first, run};
use super::condition::Failure;

const COUNT_ERASURE: &str = include_str!("../../../sql/store/count_erasure.sql");
const ERASURES: &str = include_str!("../../../sql/store/erasures.sql");
const NOTE_CLEANED: &str = include_str!("../../../sql/store/note_cleaned.sql");

/// No write is taken while the file is written anew, some 10 to 25 ms a MiB on a busy machine: up
/// to this size that is less than a write waits at most.
pub(crate) const RUNNING_BYTES_MAX: i64 = 64 * 1024 * 1024;
/// A larger file has to wait for the next start, where nobody waits for it but the supervisor.
pub(crate) const START_BYTES_MAX: i64 = 1024 * 1024 * 1024;

/// In the transaction that erases.
pub(crate) fn count(connection: &Connection) -> Result<(), Failure> {
    run(connection, COUNT_ERASURE, []).map(drop)
}

/// Whether something was erased since the file was last written anew, and it is no larger.
pub(crate) fn is_due(connection: &Connection, bytes_max: i64) -> Result<bool, Failure> {
    let (erasures, cleaned) = counts(connection)?;
    Ok(erasures > cleaned && bytes(connection)? <= bytes_max)
}

fn counts(connection: &Connection) -> Result<(i64, i64), Failure> {
    let found = first(connection, ERASURES, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    found.ok_or_else(|| damaged("the count of erasures"))
}

fn bytes(connection: &Connection) -> rusqlite::Result<i64> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get(0));
    let (pages, page_bytes): (i64, i64) = (number("page_count")?, number("page_size")?);
    Ok(pages * page_bytes)
}

/// Writes the file anew, if that is due; then its log has to be emptied too. What is erased
/// meanwhile is due again.
pub(crate) fn clean(connection: &Connection, bytes_max: i64) -> Result<(), Failure> {
    if !is_due(connection, bytes_max)? {
        return Ok(());
    }
    let (erasures, _) = counts(connection)?;
    connection.execute_batch("VACUUM")?;
    run(connection, NOTE_CLEANED, [erasures]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::file::open_for_writing;
    use crate::store::sqlite::log;

    #[test]
    fn nothing_of_a_deleted_row_is_left_though_its_pages_were_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bhav.sqlite");
        let connection = open_for_writing(&path, true).unwrap();
        // As where SQLite left a copy behind.
        connection.pragma_update_and_check(None, "secure_delete", false, |_| Ok(())).unwrap();
        let add = "INSERT INTO users (email, password_hash, created_ms) VALUES (?1, 'h', 1)";
        for n in 0..200 {
            connection.execute(add, [format!("somebody-{n:04}@example.com")]).unwrap();
        }
        let held = || {
            log::empty(&connection, log::READERS_WAIT).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            memchr::memmem::find_iter(&bytes, "somebody-01").count()
        };
        assert!(held() >= 200);
        let due = |bytes_max: i64| is_due(&connection, bytes_max).unwrap();
        assert!(!due(RUNNING_BYTES_MAX));
        clean(&connection, RUNNING_BYTES_MAX).unwrap();
        connection.execute("DELETE FROM users WHERE email LIKE 'somebody-01%'", []).unwrap();
        count(&connection).unwrap();
        assert!(held() > 0, "the test needs a trace");
        assert!(due(RUNNING_BYTES_MAX) && !due(100_000), "it is larger");
        clean(&connection, 100_000).unwrap();
        assert!(held() > 0);
        clean(&connection, RUNNING_BYTES_MAX).unwrap();
        assert_eq!(held(), 0);
        assert!(!due(RUNNING_BYTES_MAX));
        let left = "SELECT count(*) FROM users";
        assert_eq!(connection.query_row(left, [], |row| row.get::<_, i64>(0)).unwrap(), 100);
        let sequence = "SELECT seq FROM sqlite_sequence WHERE name = 'users'";
        let last: i64 = connection.query_row(sequence, [], |row| row.get(0)).unwrap();
        assert_eq!(last, 200, "no id is given again");
    }
}
