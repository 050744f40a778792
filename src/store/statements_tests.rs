//! Each engine understands its statements with the current schema, and no statement scans a table.

use rusqlite::{Connection, params_from_iter};
use tempfile::TempDir;

use super::schema::TABLES;
use super::tx::Sql;
use super::{FILE_NAME, Store, journal};
use crate::base::Clock;

/// Statements that scan a table on purpose, once at start. The last one reads a row for each table
/// that counts ids.
const MAY_SCAN: &[(&str, &str)] = &[
    ("EPOCHS", "SCAN users USING COVERING INDEX users_with_epoch"),
    ("USER_IDS", "SCAN users USING COVERING INDEX sqlite_autoindex_users_1"),
    (
        "REVOKED_TOKENS",
        "SCAN revoked_tokens USING COVERING INDEX revoked_tokens_by_end",
    ),
    ("LAST_USER_ID", "SCAN sqlite_sequence"),
];

fn fresh() -> (TempDir, Connection) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    drop(Store::open_file(&path, 2, &Clock::system()).unwrap());
    (dir, Connection::open(&path).unwrap())
}

/// Every statement uses an index, and sorts by it.
pub(super) fn expect_indexes_of_a_file(statements: &[Sql]) {
    let (_dir, connection) = fresh();
    for Sql { name, text, .. } in statements {
        let statement = connection.prepare(text);
        let parameters = statement
            .unwrap_or_else(|e| panic!("{name}: {e}"))
            .parameter_count();
        let mut plan = connection
            .prepare(&format!("EXPLAIN QUERY PLAN {text}"))
            .unwrap();
        let nothing = params_from_iter(vec![rusqlite::types::Null; parameters]);
        let steps: Vec<String> = plan
            .query_map(nothing, |row| row.get(3))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        for step in steps {
            let allowed = MAY_SCAN.contains(&(*name, step.as_str()));
            let walks = step.starts_with("SCAN") && step != "SCAN CONSTANT ROW";
            assert!(allowed || !(walks || step.contains("TEMP B-TREE")), "{name}: {step}");
        }
    }
}

#[test]
fn a_page_of_the_journal_starts_at_its_cursor() {
    let (_dir, connection) = fresh();
    let text = journal::ENTRIES_SAME_DAY.text;
    let mut plan = connection
        .prepare(&format!("EXPLAIN QUERY PLAN {text}"))
        .unwrap();
    let step: String = plan.query_row([1, 1, 1, 1], |row| row.get(3)).unwrap();
    assert!(step.contains("(user_id=? AND traded_on=? AND id<?)"), "{step}");
}

#[test]
fn erasing_finds_a_user_s_rows_by_an_index() {
    let (_dir, connection) = fresh();
    let tables =
        "SELECT m.name, f.\"from\" FROM sqlite_schema m, pragma_foreign_key_list(m.name) f";
    let mut references = connection.prepare(tables).unwrap();
    let found: Vec<(String, String)> = references
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let owned = TABLES
        .iter()
        .filter_map(|table| Some((table, table.owned.as_ref()?)));
    let owned = owned.filter(|(table, owned)| !table.is_of_server && owned.kept.is_none());
    for (table, owned) in owned.filter(|(table, _)| table.name != "users") {
        let reference = (table.name.to_owned(), owned.column.to_owned());
        assert!(found.contains(&reference), "{reference:?}");
    }
    for (table, column) in found {
        let sql = format!("EXPLAIN QUERY PLAN DELETE FROM {table} WHERE {column} = 1");
        let step: String = connection.query_row(&sql, [], |row| row.get(3)).unwrap();
        assert!(step.starts_with("SEARCH"), "{table}: {step}");
    }
}

/// The server understands every statement, and uses an index.
#[cfg(feature = "engines")]
pub(super) fn expect_indexes_of_a_server(statements: &[Sql]) {
    use std::sync::OnceLock;

    use super::postgres::conformance_tests::Schema;
    use super::postgres::test_server::server;

    /// One for the statements of all subjects, which are not run.
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    /// Statements that read a whole table on purpose, once at start.
    const MAY_SCAN: &[&str] = &["REVOKED_TOKENS", "USER_IDS"];
    /// Parameter types that the server cannot derive from the text. The store sends them with each
    /// argument.
    const TYPES: &[(&str, &str)] = &[(
        "KEEP_LATER_POINTS",
        "(bigint, text, text, text, text, text, bigint, text, bigint, bigint, boolean)",
    )];

    let Some(server) = server() else { return };
    let schema = SCHEMA.get_or_init(|| {
        let schema = Schema::through(server);
        drop(schema.store());
        schema
    });
    for sql in statements {
        let name = sql.name;
        let sql = sql.for_postgres();
        let places = (1..40)
            .take_while(|n| sql.contains(&format!("${n}")))
            .count();
        let nulls = vec!["NULL"; places].join(", ");
        let call = if places == 0 {
            "one".to_owned()
        } else {
            format!("one ({nulls})")
        };
        // A generic plan, since a plan for nulls would find nothing. Empty tables are never
        // scanned.
        let types = TYPES
            .iter()
            .find(|(of, _)| *of == name)
            .map_or("", |(_, types)| types);
        let text = format!(
            "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; \
             PREPARE one {types} AS {sql}; EXPLAIN (COSTS off) EXECUTE {call}"
        );
        let plan = server.execute(schema.role(), &text);
        let plan = plan.unwrap_or_else(|error| panic!("{name}: {error}"));
        let scans = plan.contains("Seq Scan") && !MAY_SCAN.contains(&name);
        assert!(!scans, "{name}:\n{plan}");
    }
}
