//! Reports progress to the supervisor (systemd) while the database is copied or migrated at start.
//!
//! Progress is reported only for work that was done: SQLite calls back between its own
//! instructions. If a disk hangs there are no reports, and the supervisor's time-out ends the
//! start. Runs on the thread that opens the file.

use std::time::Duration;

use rusqlite::Connection;

use super::errors::OpenError;
use crate::base::Clock;
use crate::ops::notify;

/// How long the supervisor waits after each report. Longer than a commit or a sync of some hundred
/// megabytes takes, during which SQLite cannot call back.
const SUPERVISOR_TIMEOUT: Duration = Duration::from_secs(60);
/// Time between two reports, so that a quick copy does not fill the supervisor's socket.
const PAUSE_MS: u64 = 5_000;
/// SQLite instructions between two looks at the clock: some thousand rows, which even a slow disk
/// reads well within the supervisor's time-out.
const INSTRUCTIONS: i32 = 10_000;

/// Reports that another step begins.
pub(crate) fn step() {
    notify::extend_timeout(SUPERVISOR_TIMEOUT);
}

/// Runs one step and reports progress while it advances.
pub(crate) fn with_reports<T>(
    connection: &mut Connection,
    work: impl FnOnce(&mut Connection) -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    step();
    watched(connection, paced(Clock::system(), step), work)
}

/// Runs `work` and calls `report` while SQLite advances.
fn watched<T>(
    connection: &mut Connection,
    mut report: impl FnMut() + Send + 'static,
    work: impl FnOnce(&mut Connection) -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    let go_on = move || {
        report();
        false
    };
    connection.progress_handler(INSTRUCTIONS, Some(go_on))?;
    let done = work(connection);
    connection.progress_handler(0, None::<fn() -> bool>)?;
    done
}

/// Calls `report` if [`PAUSE_MS`] have passed since the beginning or since the last report.
fn paced(clock: Clock, mut report: impl FnMut()) -> impl FnMut() {
    let mut said_mono_ms = clock.monotonic_ms();
    move || {
        let now_mono_ms = clock.monotonic_ms();
        if now_mono_ms.saturating_sub(said_mono_ms) >= PAUSE_MS {
            said_mono_ms = now_mono_ms;
            report();
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

    /// The long statements of a start: the copy, and changes of tables by migrations.
    #[test]
    fn progress_is_reported_during_a_copy_and_a_migration() {
        let dir = tempfile::tempdir().unwrap();
        let mut connection = filled(&dir.path().join("a.sqlite"));
        let copy = format!("VACUUM INTO '{}'", dir.path().join("b.sqlite").display());
        for sql in [
            copy.as_str(),
            "ALTER TABLE filling ADD COLUMN y INTEGER NOT NULL DEFAULT 0; UPDATE filling SET y = 1",
            "CREATE INDEX by_x ON filling (x)",
            "CREATE TABLE other AS SELECT * FROM filling",
        ] {
            let (said, report) = counted();
            watched(&mut connection, report, |c| Ok(c.execute_batch(sql)?)).unwrap();
            assert!(said.value() >= 3, "{sql}: {}", said.value());
        }
    }

    #[test]
    fn nothing_is_reported_without_work_or_after_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        let (said, report) = counted();
        watched(&mut connection, report, |_| Ok(())).unwrap();
        let count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 50000)
                     SELECT count(*) FROM n";
        let rows: i64 = connection.query_row(count, [], |row| row.get(0)).unwrap();
        assert_eq!((rows, said.value()), (50_000, 0));
    }

    #[test]
    fn reports_are_at_least_a_pause_apart() {
        let clock = Clock::manual("2026-11-20T04:00:00Z".parse().unwrap());
        let (said, report) = counted();
        let mut report = paced(clock.clone(), report);
        for _ in 0..11 {
            report();
            clock.advance_ms(1_000);
        }
        assert_eq!(said.value(), 2, "after five seconds and after ten");
    }
}
