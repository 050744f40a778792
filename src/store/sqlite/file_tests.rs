//! Opening files: modes, versions, foreign files, copies.

use super::*;
use std::path::PathBuf;
use tempfile::TempDir;

fn fresh() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bhav.sqlite");
    (dir, path)
}

fn number(connection: &Connection, pragma: &str) -> i64 {
    connection
        .pragma_query_value(None, pragma, |row| row.get(0))
        .unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A file with the first version of the schema and one user.
fn first_version(path: &Path) {
    let mut connection = Connection::open(path).unwrap();
    migrate(&mut connection, &FILE_MIGRATIONS[..1]).unwrap();
    connection
        .execute("INSERT INTO users (email, password_hash, created_ms) VALUES ('a', 'h', 1)", [])
        .unwrap();
}

#[test]
fn the_linked_sqlite_is_not_older_than_the_minimum() {
    assert!(rusqlite::version_number() >= SQLITE_VERSION_MIN, "{}", rusqlite::version());
}

#[test]
fn a_new_file_is_private_and_has_the_current_schema() {
    let (dir, path) = fresh();
    let connection = open_for_writing(&path, true).unwrap();
    connection
        .execute("UPDATE probe SET written = 1", [])
        .unwrap();
    let files: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    assert!(files.len() >= 2, "the file and its log: {files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{file:?}");
    }
    assert_eq!(number(&connection, "user_version"), known_file_version());
    assert_eq!(number(&connection, "application_id"), i64::from(APPLICATION_ID));
    assert_eq!(
        (number(&connection, "synchronous"), number(&connection, "foreign_keys")),
        (2, 1)
    );
    let log: String = connection
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .unwrap();
    assert_eq!(log, "wal");
    let reader = open_for_reading(&path).unwrap();
    assert!(reader.execute("UPDATE probe SET written = 2", []).is_err());
}

#[test]
fn every_table_is_strict() {
    let (_dir, path) = fresh();
    let connection = open_for_writing(&path, true).unwrap();
    let loose = "SELECT count(*), sum(strict) FROM pragma_table_list \
                 WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'";
    let (tables, strict): (i64, i64) = connection
        .query_row(loose, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    assert!(tables >= 10 && tables == strict, "{strict} of {tables}");
}

#[test]
fn a_file_readable_by_others_is_made_private() {
    let (_dir, path) = fresh();
    drop(open_for_writing(&path, true).unwrap());
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    drop(open_for_writing(&path, true).unwrap());
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_newer_schema_is_refused_and_not_changed() {
    let (_dir, path) = fresh();
    let connection = open_for_writing(&path, true).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let before = fs::read(&path).unwrap();
    let error = open_for_writing(&path, true).unwrap_err();
    assert!(error.ends_the_start() && error.to_string().contains("version 99"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_foreign_database_is_refused_and_not_changed() {
    let (_dir, path) = fresh();
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1);")
        .unwrap();
    drop(other);
    let before = fs::read(&path).unwrap();
    let error = open_for_writing(&path, true).unwrap_err();
    assert!(matches!(&error, OpenError::Foreign { .. }) && error.ends_the_start(), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn an_older_file_is_migrated_and_a_copy_kept() {
    let (dir, path) = fresh();
    first_version(&path);
    let connection = open_for_writing(&path, true).unwrap();
    assert_eq!(number(&connection, "user_version"), known_file_version());
    connection
        .execute("UPDATE users SET email = 'b'", [])
        .unwrap();
    let kept = dir.path().join("bhav.sqlite.before-upgrade-v1");
    assert_eq!(mode(&kept), 0o600);
    let copy = Connection::open(&kept).unwrap();
    let email: String = copy
        .query_row("SELECT email FROM users", [], |row| row.get(0))
        .unwrap();
    assert_eq!((number(&copy, "user_version"), email.as_str()), (1, "a"));
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'journal'";
    assert_eq!(
        copy.query_row(tables, [], |row| row.get::<_, i64>(0))
            .unwrap(),
        0
    );
}

#[test]
fn published_signals_survive_the_removal_of_an_unused_column() {
    let (_dir, path) = fresh();
    let mut connection = Connection::open(&path).unwrap();
    migrate(&mut connection, &FILE_MIGRATIONS[..6]).unwrap();
    connection
        .execute_batch(
            "INSERT INTO signal_dates (date, published_ms, symbols) VALUES ('2026-11-20', 1, 1);
             INSERT INTO signal_ledger (published_on, symbol, pattern, direction, confidence,
                 dates, base_rate, close_e4, rank, simulated)
             VALUES ('2026-11-20', 'NSE:A', 'hammer', 'bullish', 0.51, 1, 0.5, 7, 1, 1);
             INSERT INTO signal_outcomes VALUES (1, '2026-11-27', 1, 2, 1);",
        )
        .unwrap();
    drop(connection);
    let connection = open_for_writing(&path, true).unwrap();
    let kept = "SELECT l.symbol || ' ' || l.close_e4 || ' ' || l.simulated || ' ' || o.hit
         FROM signal_ledger l JOIN signal_outcomes o ON o.ledger_id = l.id";
    let kept: String = connection.query_row(kept, [], |row| row.get(0)).unwrap();
    assert_eq!(kept, "NSE:A 7 1 1");
    assert!(
        connection
            .prepare("SELECT provisional FROM signal_ledger")
            .is_err()
    );
    let error = connection
        .execute("UPDATE signal_ledger SET rank = 2", [])
        .unwrap_err();
    assert!(error.to_string().contains("never"), "{error}");
}

#[test]
fn older_journals_are_measured_by_the_migration() {
    let (_dir, path) = fresh();
    let at = FILE_MIGRATIONS
        .iter()
        .position(|step| step.name() == "0008_journal_bytes")
        .unwrap();
    let mut connection = Connection::open(&path).unwrap();
    migrate(&mut connection, &FILE_MIGRATIONS[..at]).unwrap();
    connection
        .execute_batch(
            "INSERT INTO users (id, email, password_hash, created_ms, journal_entries)
            VALUES (1, 'a', 'h', 1, 2), (2, 'b', 'h', 1, 0), (3, 'c', 'h', 1, 1);
            INSERT INTO journal (user_id, traded_on, symbol, side, quantity, price, strategy,
                notes, tags, created_ms, updated_ms)
            VALUES (1, '2026-11-20', 'INFY', 'buy', '1', '1', 'é', NULL, '[]', 1, 1),
                (1, '2026-11-20', 'TCS', 'buy', '1', '1', NULL, '₹₹', '[\"a\"]', 1, 1),
                (3, '2026-11-20', 'X', 'buy', '1', '1', NULL, NULL, '[]', 1, 1);",
        )
        .unwrap();
    drop(connection);
    let connection = open_for_writing(&path, true).unwrap();
    let mut bytes = connection
        .prepare("SELECT journal_bytes FROM users ORDER BY id")
        .unwrap();
    let bytes: Vec<i64> = bytes
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(bytes, [4 + 2 + 2 + 3 + 6 + 5, 0, 3]);
}

/// Rows of broker A, of broker B with a mark, and a point of each kind.
#[test]
fn older_portfolios_keep_their_amounts_and_are_closed_again() {
    let (_dir, path) = fresh();
    let mut connection = Connection::open(&path).unwrap();
    let at = FILE_MIGRATIONS
        .iter()
        .position(|step| step.name() == "0010_closing_prices")
        .unwrap();
    migrate(&mut connection, &FILE_MIGRATIONS[..at]).unwrap();
    // 20 November 2026, 03:00 IST: the day before in UTC.
    connection
        .execute_batch(
            "INSERT INTO users (email, password_hash, created_ms) VALUES ('a', 'h', 1);
             INSERT INTO holdings (user_id, broker, ordinal, exchange, tradingsymbol,
                 settled_quantity, t1_quantity, pledged_quantity, mtf_quantity, disputed_quantity,
                 average_price, as_of_ms, discrepancy, unresolved, corporate_action)
             VALUES (1, 'a', 0, 'NSE', 'INFY', '3', '0', '0', '0', '0', '33.345', 1, 0, 0, 0),
                 (1, 'b', 0, 'NSE', 'TCS', '3', '0', '0', '0', '0', NULL, 1795123800000, 0, 0, 1);
             INSERT INTO points VALUES (1, '2026-11-19', '100', '110', '10', 'sync', 0, 0, 0),
                 (1, '2026-11-20', '100', '110', '10', 'close', 1, 0, 0);
             INSERT INTO closes VALUES ('2026-11-20', 'NSE:INFY', '7');
             INSERT INTO close_runs VALUES ('2026-11-20', 1, 1);",
        )
        .unwrap();
    drop(connection);
    let connection = open_for_writing(&path, true).unwrap();
    let texts = |sql: &str| -> Vec<Option<String>> {
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let marks = texts("SELECT mark || ' ' || marked_on FROM holdings ORDER BY broker");
    assert_eq!(marks, [None, Some("inverse_ratios 2026-11-20".to_owned())]);
    let apart = texts("SELECT value_without_cost FROM points ORDER BY date");
    assert_eq!(apart, [Some("0".to_owned()), None]);
    assert!(texts("SELECT symbol FROM closes").is_empty());
    assert!(texts("SELECT date FROM close_runs").is_empty());
    let costs =
        texts("SELECT average_price || coalesce(cost, '') FROM holdings WHERE broker = 'a'");
    assert_eq!(costs, [Some("33.345".to_owned())], "an average alone is the cost of one share");
}

/// Entries published before the migration keep their values and get the prior they were made with.
#[test]
fn older_signals_get_a_prior_of_300_dates() {
    let (_dir, path) = fresh();
    let mut connection = Connection::open(&path).unwrap();
    let at = FILE_MIGRATIONS
        .iter()
        .position(|step| step.name() == "0011_signal_books")
        .unwrap();
    migrate(&mut connection, &FILE_MIGRATIONS[..at]).unwrap();
    connection
        .execute_batch(
            "INSERT INTO signal_dates VALUES ('2026-11-20', 1, 5);
             INSERT INTO signal_ledger (published_on, symbol, pattern, direction, confidence, dates,
                 hit_rate, base_rate, close_e4, rank, simulated)
             VALUES ('2026-11-20', 'NSE:INFY', 'hammer', 'bullish', 0.52, 9, 0.25, 0.53, 1, 1, 0);
             INSERT INTO signal_outcomes VALUES (1, '2026-11-27', 1, 2, 1);",
        )
        .unwrap();
    drop(connection);
    let connection = open_for_writing(&path, true).unwrap();
    let line = "SELECT prior_dates || ' ' || date_hit_rate || ' ' || (past_hits IS NULL) || ' ' ||
        (universe_moved IS NULL) FROM signal_ledger JOIN signal_outcomes ON ledger_id = id";
    let line: String = connection.query_row(line, [], |row| row.get(0)).unwrap();
    assert_eq!(line, "300 0.25 1 1");
}

#[test]
fn a_new_file_is_made_without_a_copy() {
    let (dir, path) = fresh();
    drop(open_for_writing(&path, true).unwrap());
    let names: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert!(
        names
            .iter()
            .all(|n| !n.to_string_lossy().contains("before")),
        "{names:?}"
    );
}

#[test]
fn migrations_are_applied_all_or_none() {
    let (_dir, path) = fresh();
    first_version(&path);
    let mut connection = Connection::open(&path).unwrap();
    let broken = Migration {
        path: "broken",
        sql: "CREATE TABLE broken (;",
    };
    let migrations = [FILE_MIGRATIONS[0], FILE_MIGRATIONS[1], broken];
    assert!(migrate(&mut connection, &migrations).is_err());
    assert_eq!(number(&connection, "user_version"), 1);
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'holdings'";
    assert_eq!(
        connection
            .query_row(tables, [], |row| row.get::<_, i64>(0))
            .unwrap(),
        0
    );
}

#[test]
fn a_missing_file_that_was_opened_before_is_not_made_again() {
    let (_dir, path) = fresh();
    assert!(open_for_writing(&path, false).is_err());
    assert!(!path.exists());
}
