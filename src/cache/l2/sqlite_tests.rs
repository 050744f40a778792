//! Restarts, broken files and bounds of L2 in SQLite.

use tempfile::TempDir;

use super::*;
use crate::base::{Quote, json, testing};
use crate::cache::l1::{Hit, L1};
use crate::cache::l2::RECORD_BYTES_MAX;
use crate::cache::l2::codec;
use crate::cache::l2::second_level::KEY_BYTES_MAX;

fn item(key: &str, text: &str) -> (String, Vec<u8>) {
    (key.to_owned(), text.as_bytes().to_vec())
}

fn fresh() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("l2.sqlite");
    (dir, path)
}

fn text(l2: &SqliteL2, kind: Kind, key: &str) -> Option<String> {
    let record = l2.load(kind, key).unwrap()?;
    Some(String::from_utf8(record.bytes).unwrap())
}

#[test]
fn stored_records_survive_a_reopen() {
    let (_dir, path) = fresh();
    let l2 = SqliteL2::open(&path, 100).unwrap();
    l2.store(Kind::Quote, &[item("NSE:INFY", "one"), item("NSE:TCS", "two")], 1_000)
        .unwrap();
    l2.store(Kind::Quote, &[item("NSE:INFY", "three")], 2_000)
        .unwrap();
    l2.store(Kind::Instruments, &[item("NSE:INFY", "another kind")], 3_000)
        .unwrap();
    drop(l2);
    let l2 = SqliteL2::open(&path, 100).unwrap();
    let record = l2.load(Kind::Quote, "NSE:INFY").unwrap().unwrap();
    assert_eq!(
        record,
        Record {
            bytes: b"three".to_vec(),
            stored_ms: 2_000
        }
    );
    let mut all = l2.load_all(Kind::Quote).unwrap();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let keys: Vec<&str> = all.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["NSE:INFY", "NSE:TCS"]);
    assert_eq!(l2.load(Kind::Instruments, "NSE:TCS").unwrap(), None);
    let stats = l2.stats();
    assert_eq!(
        (stats.backend.as_str(), stats.hits, stats.misses, stats.errors),
        ("sqlite", 3, 1, 0)
    );
}

#[test]
fn the_files_are_readable_by_their_owner_alone() {
    let (dir, path) = fresh();
    fs::write(&path, b"").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let l2 = SqliteL2::open(&path, 100).unwrap();
    l2.store(Kind::Quote, &[item("NSE:INFY", "one")], 1_000)
        .unwrap();
    let mut seen = 0;
    for entry in fs::read_dir(dir.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", entry.file_name());
        seen += 1;
    }
    assert!(seen >= 2, "the file and its log");
}

#[test]
fn a_file_that_is_no_database_is_set_aside() {
    let (_dir, path) = fresh();
    for round in ["first", "second"] {
        fs::write(&path, format!("{round} {}", "not a database ".repeat(100))).unwrap();
        let l2 = SqliteL2::open(&path, 100).unwrap();
        assert_eq!(l2.stats().set_aside, 1);
        l2.store(Kind::Quote, &[item("NSE:INFY", round)], 1_000)
            .unwrap();
        assert_eq!(text(&l2, Kind::Quote, "NSE:INFY").as_deref(), Some(round));
    }
    let kept = fs::read_to_string(beside(&path, ".set-aside")).unwrap();
    assert!(kept.starts_with("second"), "one is kept, the last");
}

#[test]
fn a_file_of_another_version_is_set_aside() {
    let (_dir, path) = fresh();
    drop(SqliteL2::open(&path, 100).unwrap());
    let raw = Connection::open(&path).unwrap();
    raw.pragma_update(None, "user_version", SCHEMA_VERSION + 1)
        .unwrap();
    drop(raw);
    let l2 = SqliteL2::open(&path, 100).unwrap();
    assert_eq!(l2.stats().set_aside, 1);
    assert_eq!(text(&l2, Kind::Quote, "NSE:INFY"), None);
}

#[test]
fn damage_found_later_fails_one_call_and_replaces_the_file() {
    let (_dir, path) = fresh();
    let l2 = SqliteL2::open(&path, 1_000).unwrap();
    let items: Vec<_> = (0..500)
        .map(|i| item(&format!("NSE:S{i}"), &"x".repeat(500)))
        .collect();
    l2.store(Kind::Quote, &items, 1_000).unwrap();
    drop(l2);
    // Keeps the first page, which opening reads, intact.
    let mut bytes = fs::read(&path).unwrap();
    bytes[4_096..].fill(0xA5);
    fs::write(&path, bytes).unwrap();
    let l2 = SqliteL2::open(&path, 1_000).unwrap();
    assert!(l2.load_all(Kind::Quote).is_err());
    assert_eq!((l2.stats().errors, l2.stats().set_aside), (1, 1));
    assert!(l2.load_all(Kind::Quote).unwrap().is_empty());
    l2.store(Kind::Quote, &items, 2_000).unwrap();
    assert_eq!(l2.load_all(Kind::Quote).unwrap().len(), 500);
}

#[test]
fn an_unwritable_directory_is_an_error() {
    let (dir, path) = fresh();
    fs::write(dir.path().join("file"), b"").unwrap();
    assert!(SqliteL2::open(&dir.path().join("file/l2.sqlite"), 100).is_err());
    assert!(SqliteL2::open(&dir.path().join("missing/l2.sqlite"), 100).is_err());
    fs::create_dir(&path).unwrap();
    assert!(SqliteL2::open(&path, 100).is_err());
    assert!(path.is_dir(), "nothing is moved away that was not at fault");
}

#[test]
fn a_read_only_file_is_an_error_and_stays_readable() {
    let (_dir, path) = fresh();
    let l2 = SqliteL2::open(&path, 100).unwrap();
    l2.store(Kind::Quote, &[item("NSE:INFY", "one")], 1_000)
        .unwrap();
    // Simulates a file system that was remounted read-only. Permissions would not stop a test that
    // runs as root.
    l2.with(|connection| connection.pragma_update(None, "query_only", true))
        .unwrap();
    let refused = l2.store(Kind::Quote, &[item("NSE:INFY", "two")], 2_000);
    assert!(matches!(refused, Err(L2Error::Unavailable { .. })));
    assert_eq!(text(&l2, Kind::Quote, "NSE:INFY").as_deref(), Some("one"));
    assert_eq!((l2.stats().errors, l2.stats().set_aside), (1, 0));
}

#[test]
fn a_full_kind_drops_the_records_stored_longest_ago() {
    let (_dir, path) = fresh();
    let l2 = SqliteL2::open(&path, 3).unwrap();
    l2.store(Kind::Instruments, &[item("NSE:A", "other kind")], 1)
        .unwrap();
    for (key, now_ms) in [
        ("NSE:A", 1),
        ("NSE:B", 2),
        ("NSE:C", 3),
        ("NSE:A", 4),
        ("NSE:D", 5),
    ] {
        l2.store(Kind::Quote, &[item(key, "x")], now_ms).unwrap();
    }
    let mut keys: Vec<_> = l2
        .load_all(Kind::Quote)
        .unwrap()
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    keys.sort();
    assert_eq!(keys, ["NSE:A", "NSE:C", "NSE:D"]);
    assert_eq!(l2.stats().evictions, 1);
    assert_eq!(l2.load_all(Kind::Instruments).unwrap().len(), 1);
}

#[test]
fn an_oversized_item_is_refused_with_all_items_of_the_call() {
    let (_dir, path) = fresh();
    let l2 = SqliteL2::open(&path, 100).unwrap();
    let long_key = "K".repeat(KEY_BYTES_MAX + 1);
    let long = ("k".to_owned(), vec![0; RECORD_BYTES_MAX + 1]);
    for bad in [item(&long_key, "x"), long] {
        let refused = l2.store(Kind::Quote, &[item("NSE:INFY", "x"), bad], 1);
        assert!(matches!(refused, Err(L2Error::TooLarge { .. })));
    }
    assert!(l2.load_all(Kind::Quote).unwrap().is_empty());
}

#[test]
fn restored_quotes_are_stale_in_l1() {
    let (_dir, path) = fresh();
    let l2 = SqliteL2::open(&path, 1_000).unwrap();
    let quotes: Vec<Quote> = (0..500)
        .map(|i| {
            let as_of = "2026-11-20T10:00:00Z".parse().unwrap();
            Quote {
                previous_close: json::parse_decimal("100"),
                asked: "2026-11-20T10:00:01Z".parse().unwrap(),
                ..testing::quote(&format!("NSE:S{i}"), &format!("{}.05", 100 + i), as_of)
            }
        })
        .collect();
    l2.store(Kind::Quote, &codec::records(&quotes), 1_000)
        .unwrap();
    l2.store(Kind::Quote, &[item("NSE:BROKEN", "{")], 1_000)
        .unwrap();
    drop(l2);
    let l2 = SqliteL2::open(&path, 1_000).unwrap();
    let l1 = L1::new(1_000);
    let now = "2026-11-20T10:00:01Z".parse().unwrap();
    let restored = codec::restore_quotes(&l1, &l2, now, 0).unwrap();
    assert_eq!(
        restored,
        codec::Restored {
            quotes: 500,
            of_the_future: 0
        }
    );
    assert_eq!(l1.quote("NSE:S7").as_ref(), Some(&quotes[7]));
    let view = l1.view(0);
    assert!(matches!(view.get("NSE:S499"), Some(Hit::Known { stale: true, .. })));
}

#[test]
fn entries_and_bytes_are_measured_after_each_change() {
    let (_dir, path) = fresh();
    let l2 = SqliteL2::open(&path, 3).unwrap();
    let empty = l2.stats();
    assert!(empty.entries == 0 && empty.bytes > 0, "{empty:?}");
    let long = "x".repeat(100_000);
    l2.store(Kind::Instruments, &[item("index", &long)], 1_000)
        .unwrap();
    let grown = l2.stats();
    assert!(grown.entries == 1 && grown.bytes >= empty.bytes + 100_000, "{grown:?}");
    let many: Vec<_> = (0..5)
        .map(|number| item(&format!("NSE:S{number}"), "q"))
        .collect();
    l2.store(Kind::Quote, &many, 2_000).unwrap();
    assert_eq!((l2.stats().entries, l2.stats().evictions), (4, 2));
    drop(l2);
    let again = SqliteL2::open(&path, 3).unwrap().stats();
    assert!(again.entries == 4 && again.bytes >= 100_000, "{again:?}");
}
