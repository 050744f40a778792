//! Rewrites the database file, so that no trace of erased rows is left in it.
//!
//! `secure_delete` overwrites deleted rows in place. But if SQLite had moved a row between pages
//! before, an old copy may be left in a page's free space, which nothing overwrites. This was seen
//! in one of a thousand erasures. Only rewriting the whole file removes such copies. Erasures are
//! counted in the transaction that makes them, so that a crash forgets none. Runs on the writer's
//! thread, outside a transaction.

use rusqlite::Connection;

use crate::store::arg::args;
use crate::store::cells::damaged;
use crate::store::tx::{Failure, Sql, Tx, sql};

const COUNT_ERASURE: Sql = sql!("sql/store/count_erasure.sql");
const ERASURES: Sql = sql!("sql/store/erasures.sql");
const NOTE_CLEANED: Sql = sql!("sql/store/note_cleaned.sql");

/// Largest file that is rewritten while the service runs. A rewrite takes 10 to 25 ms a MiB on a
/// busy machine and stops all writes. Up to this size it is shorter than a write's deadline.
pub(crate) const RUNNING_BYTES_MAX: i64 = 64 * 1024 * 1024;
/// Largest file that is rewritten at start, when only the supervisor waits.
pub(crate) const START_BYTES_MAX: i64 = 1024 * 1024 * 1024;

/// Counts an erasure. Called in the transaction that erases.
pub(crate) fn count(connection: &Connection) -> Result<(), Failure> {
    connection.run(COUNT_ERASURE, &[]).map(drop)
}

/// Whether something was erased since the last rewrite, and the file is at most `bytes_max`.
pub(crate) fn is_due(connection: &Connection, bytes_max: i64) -> Result<bool, Failure> {
    let (erasures, cleaned) = counts(connection)?;
    Ok(erasures > cleaned && bytes(connection)? <= bytes_max)
}

fn counts(connection: &Connection) -> Result<(i64, i64), Failure> {
    let tx: &dyn Tx = connection;
    let found = tx.first(ERASURES, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
    found.ok_or_else(|| damaged("the count of erasures"))
}

fn bytes(connection: &Connection) -> rusqlite::Result<i64> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get(0));
    let (pages, page_bytes): (i64, i64) = (number("page_count")?, number("page_size")?);
    Ok(pages * page_bytes)
}

/// Rewrites the file if that is due. Its log has to be emptied afterwards. An erasure during the
/// rewrite makes the next one due.
pub(crate) fn clean(connection: &Connection, bytes_max: i64) -> Result<(), Failure> {
    if !is_due(connection, bytes_max)? {
        return Ok(());
    }
    let (erasures, _) = counts(connection)?;
    connection.execute_batch("VACUUM")?;
    connection.run(NOTE_CLEANED, &args![erasures]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::file::open_for_writing;
    use crate::store::sqlite::log;

    #[test]
    fn a_rewritten_file_has_no_trace_of_a_deleted_row() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bhav.sqlite");
        let connection = open_for_writing(&path, true).unwrap();
        // Simulates a copy that SQLite left behind.
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
