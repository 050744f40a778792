//! Prepares every statement in `sql/store` with the current schema, and checks that none scans a
//! table.

use std::fs;

use super::*;

/// Statements that scan a table on purpose, once at start. The last one reads a row for each table
/// that counts ids.
const MAY_SCAN: &[(&str, &str)] = &[
    ("epochs", "SCAN users USING COVERING INDEX users_with_epoch"),
    ("user_ids", "SCAN users USING COVERING INDEX sqlite_autoindex_users_1"),
    ("revoked_tokens", "SCAN revoked_tokens USING COVERING INDEX revoked_tokens_by_end"),
    ("last_user_id", "SCAN sqlite_sequence"),
];

fn statements() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/sql/store");
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).unwrap())
        })
        .filter(|(name, _)| !name.starts_with(|first: char| first.is_ascii_digit()))
        .collect();
    found.sort();
    assert!(found.len() > 40, "only {}", found.len());
    found
}

#[test]
fn every_statement_uses_an_index_and_sorts_by_it() {
    let (_dir, path, _store) = fresh();
    let connection = Connection::open(&path).unwrap();
    for (name, sql) in statements() {
        let statement = connection.prepare(&sql);
        let parameters = statement.unwrap_or_else(|e| panic!("{name}: {e}")).parameter_count();
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let nothing = params_from_iter(vec![rusqlite::types::Null; parameters]);
        let steps: Vec<String> =
            plan.query_map(nothing, |row| row.get(3)).unwrap().map(Result::unwrap).collect();
        for step in steps {
            let allowed = MAY_SCAN.contains(&(name.as_str(), step.as_str()));
            let walks = step.starts_with("SCAN") && step != "SCAN CONSTANT ROW";
            assert!(allowed || !(walks || step.contains("TEMP B-TREE")), "{name}: {step}");
        }
    }
}

#[test]
fn a_page_of_the_journal_starts_at_its_cursor() {
    let (_dir, path, _store) = fresh();
    let connection = Connection::open(&path).unwrap();
    let sql = include_str!("../../../sql/store/entries_same_day.sql");
    let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let step: String = plan.query_row([1, 1, 1, 1], |row| row.get(3)).unwrap();
    assert!(step.contains("(user_id=? AND traded_on=? AND id<?)"), "{step}");
}

#[test]
fn erasing_finds_a_user_s_rows_by_an_index() {
    let (_dir, path, _store) = fresh();
    let connection = Connection::open(&path).unwrap();
    let tables =
        "SELECT m.name, f.\"from\" FROM sqlite_schema m, pragma_foreign_key_list(m.name) f";
    let mut references = connection.prepare(tables).unwrap();
    let found: Vec<(String, String)> = references
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(found.len(), 10, "{found:?}");
    for (table, column) in found {
        let sql = format!("EXPLAIN QUERY PLAN DELETE FROM {table} WHERE {column} = 1");
        let step: String = connection.query_row(&sql, [], |row| row.get(3)).unwrap();
        assert!(step.starts_with("SEARCH"), "{table}: {step}");
    }
}
