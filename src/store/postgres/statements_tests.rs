//! The server understands every statement that the store has, and finds its rows by an index.

use std::fs;

use super::conformance_tests::Schema;
use super::test_server::server;

/// Statements of the file's own upkeep, which no server runs, and the one that the server has in a
/// form of its own.
const OF_THE_FILE: &[&str] = &[
    "begin_start",
    "count_erasure",
    "erasures",
    "forget_database_id",
    "last_user_id",
    "note_cleaned",
    "note_move",
];
/// Statements that read a whole table on purpose, once at start.
const MAY_SCAN: &[&str] = &["revoked_tokens", "user_ids"];

/// What the server cannot tell from the text; the store says it with each argument.
const TYPES: &[(&str, &str)] = &[(
    "keep_later_points",
    "(bigint, text, text, text, text, text, bigint, text, bigint, bigint, boolean)",
)];

#[test]
fn every_statement_is_understood_and_uses_an_index() {
    let Some(server) = server() else { return };
    let schema = Schema::through(server);
    drop(schema.store());
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/sql/store");
    let mut seen = 0;
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if name.starts_with(|first: char| first.is_ascii_digit())
            || OF_THE_FILE.contains(&name.as_str())
        {
            continue;
        }
        seen += 1;
        let sql = fs::read_to_string(&path).unwrap().replace('?', "$");
        let places = (1..40).take_while(|n| sql.contains(&format!("${n}"))).count();
        let nulls = vec!["NULL"; places].join(", ");
        let call = if places == 0 { "one".to_owned() } else { format!("one ({nulls})") };
        // A general plan, since one of nulls would find nothing; empty tables are never scanned.
        let types = TYPES.iter().find(|(of, _)| *of == name).map_or("", |(_, types)| types);
        let text = format!(
            "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; \
             PREPARE one {types} AS {sql}; EXPLAIN (COSTS off) EXECUTE {call}"
        );
        let plan = server.execute(schema.role(), &text);
        let plan = plan.unwrap_or_else(|error| panic!("{name}: {error}"));
        let scans = plan.contains("Seq Scan") && !MAY_SCAN.contains(&name.as_str());
        assert!(!scans, "{name}:\n{plan}");
    }
    assert!(seen > 60, "only {seen}");
}
