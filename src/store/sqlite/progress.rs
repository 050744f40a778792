//! Tells a supervisor that the start gets on while the database is copied or migrated.
//!
//! A word is said for work that was done and for no other reason: SQLite calls in between its own
//! instructions, so a disk that hangs says nothing, and the supervisor's patience ends. Runs on the
//! thread that opens the file.

use std::time::Duration;

use rusqlite::Connection;

use super::file::OpenError;
use crate::base::Clock;
use crate::ops::notify;

/// How long the supervisor waits after each word: longer than a commit or a sync of some hundred
/// megabytes takes, in which SQLite cannot call.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two words, so that a quick copy does not fill the supervisor's socket.
const PAUSE_MS: u64 = 5_000;
/// SQLite's instructions between two looks at the clock: some thousand rows, which also a slow disk
/// takes well within the supervisor's patience.
const INSTRUCTIONS: i32 = 10_000;

/// Another step begins.
pub(crate) fn step() {
    notify::extend_timeout(PATIENCE);
}

/// Runs one step, telling of it now and then while it gets on.
pub(crate) fn told<T>(
    connection: &mut Connection,
    work: impl FnOnce(&mut Connection) -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    step();
    watched(connection, paced(Clock::system(), step), work)
}

/// Runs `work` and calls `say` while SQLite gets on with it.
fn watched<T>(
    connection: &mut Connection,
    mut say: impl FnMut() + Send + 'static,
    work: impl FnOnce(&mut Connection) -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    let go_on = move || {
        say();
        false
    };
    connection.progress_handler(INSTRUCTIONS, Some(go_on))?;
    let done = work(connection);
    connection.progress_handler(0, None::<fn() -> bool>)?;
    done
}

/// Calls `say` when called and [`PAUSE_MS`] have passed since it began or did so last.
fn paced(clock: Clock, mut say: impl FnMut()) -> impl FnMut() {
    let mut said_mono_ms = clock.monotonic_ms();
    move || {
        let now_mono_ms = clock.monotonic_ms();
        if now_mono_ms.saturating_sub(said_mono_ms) >= PAUSE_MS {
            said_mono_ms = now_mono_ms;
            say();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ops::Counter;

    fn counted() -> (Arc<Counter>, impl FnMut() + Send + 'static) {
        let counter = Arc::new(Counter::new());
        let said = Arc::clone(&counter);
        (said, move || counter.increment())
    }

    fn filled(path: &std::path::Path) -> Connection {
        let connection = Connection::open(path).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE filling (x TEXT);
                 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 50000)
                 INSERT INTO filling SELECT 'row ' || i FROM n;",
            )
            .unwrap();
        connection
    }

    /// What the start's long statements are: the copy, and what migrations do to tables.
    #[test]
    fn sqlite_tells_of_a_copy_and_of_changes_while_they_get_on() {
        let dir = tempfile::tempdir().unwrap();
        let mut connection = filled(&dir.path().join("a.sqlite"));
        let copy = format!("VACUUM INTO '{}'", dir.path().join("b.sqlite").display());
        for sql in [
            copy.as_str(),
            "ALTER TABLE filling ADD COLUMN y INTEGER NOT NULL DEFAULT 0; UPDATE filling SET y = 1",
            "CREATE INDEX by_x ON filling (x)",
            "CREATE TABLE other AS SELECT * FROM filling",
        ] {
            let (said, say) = counted();
            watched(&mut connection, say, |c| Ok(c.execute_batch(sql)?)).unwrap();
            assert!(said.value() >= 3, "{sql}: {}", said.value());
        }
    }

    #[test]
    fn nothing_is_said_where_nothing_is_done_nor_afterwards() {
        let mut connection = Connection::open_in_memory().unwrap();
        let (said, say) = counted();
        watched(&mut connection, say, |_| Ok(())).unwrap();
        let count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 50000)
                     SELECT count(*) FROM n";
        let rows: i64 = connection.query_row(count, [], |row| row.get(0)).unwrap();
        assert_eq!((rows, said.value()), (50_000, 0));
    }

    #[test]
    fn words_keep_their_distance() {
        let clock = Clock::manual("2026-11-20T04:00:00Z".parse().unwrap());
        let (said, say) = counted();
        let mut say = paced(clock.clone(), say);
        for _ in 0..11 {
            say();
            clock.advance_ms(1_000);
        }
        assert_eq!(said.value(), 2, "after five seconds and after ten");
    }
}
