//! Full, read-only, damaged, missing and locked files: which operations go on, which are refused,
//! and how the store recovers.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write as _};

use super::*;
use crate::ops::state_lock::NotHeld;
use crate::store::condition::PROBE_WRITE;
use crate::store::write::Write;
use crate::store::{Expected, JournalFields};

const UNAVAILABLE: &str = "unavailable";

fn note(bytes: usize) -> JournalFields {
    JournalFields {
        notes: Some("x".repeat(bytes)),
        ..fields(DAY, "NSE:INFY")
    }
}

/// Changes something about the writer's connection without writing.
fn on_writer(store: &Store, work: impl FnOnce(&Connection) + Send + 'static) {
    store
        .file()
        .work(WRITE_DEADLINE_MS, move |file| {
            work(file);
            Ok(())
        })
        .unwrap();
}

fn state(store: &Store) -> &'static str {
    store.health().state.as_str()
}

#[track_caller]
fn refused<T>(result: Result<T, StoreError>) {
    let error = result.err();
    assert!(matches!(&error, Some(StoreError::Unavailable(_))), "{error:?}");
}

#[test]
fn a_full_disk_refuses_writes_until_it_has_room_and_serves_reads() {
    let (_dir, _, store) = fresh();
    let id = user(&store, "a@example.com");
    store.add_entry(id, note(10), 1, None).unwrap();
    on_writer(&store, |file| {
        let pages: i64 = file
            .pragma_query_value(None, "page_count", |row| row.get(0))
            .unwrap();
        file.pragma_update_and_check(None, "max_page_count", pages + 2, |_| Ok(()))
            .unwrap();
    });
    assert_eq!(state(&store), "ok");
    refused(store.add_entry(id, note(100_000), 2, None));
    let health = store.health();
    assert_eq!(health.state.as_str(), "full");
    assert!(health.cause.contains("full") && health.refused == 1, "{health:?}");
    assert_eq!(store.entries(id, None, 10).unwrap().entries.len(), 1, "nothing of it was kept");
    // A write that changes nothing does not show that there is room.
    assert!(!store.delete_entry(id, 999, Expected::default()).unwrap());
    assert_eq!(state(&store), "full");
    on_writer(&store, |file| {
        file.pragma_update_and_check(None, "max_page_count", 1_000_000, |_| Ok(()))
            .unwrap();
    });
    assert_eq!(state(&store), "full", "no write has shown it yet");
    store.probe();
    assert_eq!((state(&store), store.health().cause.as_str()), ("ok", ""));
    store.add_entry(id, note(100_000), 3, None).unwrap();
}

#[test]
fn a_write_that_finds_the_disk_full_fails_alone() {
    let (_dir, _, store) = fresh();
    let id = user(&store, "a@example.com");
    on_writer(&store, |file| {
        let pages: i64 = file
            .pragma_query_value(None, "page_count", |row| row.get(0))
            .unwrap();
        file.pragma_update_and_check(None, "max_page_count", pages + 8, |_| Ok(()))
            .unwrap();
    });
    let store = &store;
    let done = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..16)
            .map(|n| {
                scope.spawn(move || {
                    store.add_entry(id, note(if n % 4 == 0 { 90_000 } else { 5 }), n, None)
                })
            })
            .collect();
        writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .collect::<Vec<_>>()
    });
    let kept = done.iter().filter(|result| result.is_ok()).count();
    let stored = store.entries(id, None, 100).unwrap().entries;
    assert_eq!(stored.len(), kept, "what was acknowledged is there, and nothing else");
    for entry in done.into_iter().flatten() {
        assert!(stored.contains(&entry));
    }
}

#[test]
fn a_read_only_file_refuses_writes_until_it_is_writable() {
    let (_dir, _, store) = fresh();
    let id = user(&store, "a@example.com");
    on_writer(&store, |file| file.pragma_update(None, "query_only", true).unwrap());
    refused(store.add_entry(id, note(1), 1, None));
    assert_eq!(state(&store), "read_only");
    assert!(store.user_by_id(id).unwrap().is_some());
    store.probe();
    assert_eq!(state(&store), "ok");
    store.add_entry(id, note(1), 2, None).unwrap();
}

#[test]
fn a_locked_file_is_busy_until_it_is_unlocked() {
    let (_dir, path, store) = fresh();
    on_writer(&store, |file| file.busy_timeout(std::time::Duration::ZERO).unwrap());
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    refused(store.revoke_token("one", 5));
    assert_eq!(state(&store), "busy");
    other.execute_batch("ROLLBACK").unwrap();
    store.probe();
    assert_eq!(state(&store), "ok");
}

/// Overwrites one page of a closed file.
fn damage(path: &Path, page: u64) {
    let mut file = OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start((page - 1) * 4_096)).unwrap();
    file.write_all(&[0xA5; 4_096]).unwrap();
}

#[test]
fn a_damaged_page_stops_writes_and_the_file_is_not_replaced() {
    let (dir, path, store) = fresh();
    let id = user(&store, "a@example.com");
    store.add_entry(id, note(10), 1, None).unwrap();
    drop(store);
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'journal'";
    let page: i64 = Connection::open(&path)
        .unwrap()
        .query_row(root, [], |row| row.get(0))
        .unwrap();
    damage(&path, page as u64);
    let store = Store::open_file(&path, 1, &clock()).unwrap();
    assert!(store.user_by_id(id).unwrap().is_some(), "what can be read is served");
    refused(store.entries(id, None, 10));
    assert_eq!(state(&store), "corrupt");
    refused(store.add_entry(id, note(1), 2, None));
    refused(store.revoke_token("one", 5));
    store.probe();
    assert_eq!(state(&store), "corrupt");
    assert!(store.user_by_id(id).unwrap().is_some());
    drop(store);
    let mut names: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert!(
        names
            .iter()
            .all(|name| name.to_string_lossy().starts_with(FILE_NAME)),
        "{names:?}"
    );
    assert_eq!(&fs::read(&path).unwrap()[(page as usize - 1) * 4_096..][..4], &[0xA5; 4]);
}

#[test]
fn a_damaged_header_is_corrupt_until_the_file_is_replaced() {
    let (_dir, path, store) = fresh();
    let id = user(&store, "a@example.com");
    drop(store);
    let good = fs::read(&path).unwrap();
    damage(&path, 1);
    let bad = fs::read(&path).unwrap();
    let store = Store::open_file(&path, 1, &clock()).unwrap();
    assert_eq!(state(&store), "corrupt");
    refused(store.user_by_id(id));
    refused(store.revoke_token("one", 5));
    store.probe();
    assert_eq!(fs::read(&path).unwrap(), bad, "left as it was found");
    fs::write(&path, &good).unwrap();
    store.probe();
    assert_eq!(state(&store), "ok");
    assert!(store.user_by_id(id).unwrap().is_some());
}

#[test]
fn a_file_that_cannot_be_opened_is_opened_later() {
    let dir = tempfile::tempdir().unwrap();
    let parent = dir.path().join("state");
    fs::write(&parent, "not a directory").unwrap();
    let store = Store::open_file(&parent.join(FILE_NAME), 1, &clock()).unwrap();
    assert_eq!(state(&store), UNAVAILABLE);
    assert!(!store.health().cause.is_empty());
    refused(store.user_by_email("a@example.com"));
    refused(store.revoke_token("one", 5));
    fs::remove_file(&parent).unwrap();
    fs::create_dir(&parent).unwrap();
    store.probe();
    assert_eq!(state(&store), "ok");
    user(&store, "a@example.com");
}

#[test]
fn a_moved_file_refuses_writes_until_it_is_back() {
    let (dir, path, store) = fresh();
    let id = user(&store, "a@example.com");
    let away = dir.path().join("away");
    fs::rename(&path, &away).unwrap();
    store.probe();
    assert_eq!(state(&store), UNAVAILABLE);
    refused(store.add_entry(id, note(1), 1, None));
    assert!(!path.exists(), "no empty one is made in its place");
    fs::write(&path, "").unwrap();
    refused(store.add_entry(id, note(1), 1, None));
    fs::rename(&away, &path).unwrap();
    store.probe();
    assert_eq!(state(&store), "ok");
    store.add_entry(id, note(1), 1, None).unwrap();
    drop(store);
    let store = Store::open_file(&path, 1, &clock()).unwrap();
    assert_eq!(store.entries(id, None, 10).unwrap().entries.len(), 1);
}

/// The first instance could not take the lock at its start, and now another has it.
#[test]
fn a_store_without_the_lock_is_read_only_until_it_has_it() {
    let (dir, path, store) = fresh();
    let id = user(&store, "a@example.com");
    drop(store);
    let before = fs::read(&path).unwrap();
    let other = InstanceLock::of(dir.path());
    other.hold().unwrap();
    let lock = Arc::new(InstanceLock::of(dir.path()));
    let settings = StoreSettings::default();
    let store = Store::in_file(&path, &settings, Some(lock), &clock()).unwrap();
    assert!(store.user_by_id(id).unwrap().is_some());
    refused(store.add_entry(id, note(1), 1, None));
    assert_eq!(state(&store), "busy");
    assert!(store.health().cause.contains("another instance"), "{}", store.health().cause);
    store.probe();
    assert_eq!((state(&store), fs::read(&path).unwrap()), ("busy", before));
    other.release();
    store.probe();
    assert_eq!(state(&store), "ok");
    store.add_entry(id, note(1), 2, None).unwrap();
    let late = InstanceLock::of(dir.path());
    assert!(matches!(late.hold(), Err(NotHeld::InUse)));
}

/// An open reader keeps the log from being emptied, and the service waits for that.
#[test]
fn a_removed_log_stops_writes_while_a_reader_uses_it() {
    let (_dir, path, store) = fresh();
    let id = user(&store, "a@example.com");
    let reader = Connection::open(&path).unwrap();
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM users")
        .unwrap();
    let rows: i64 = reader
        .query_row("SELECT count(*) FROM users", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 1);
    store.add_entry(id, note(1), 1, None).unwrap();
    fs::remove_file(path.with_extension("sqlite-wal")).unwrap();
    refused(store.add_entry(id, note(2), 2, None));
    let health = store.health();
    assert_eq!(health.state.as_str(), UNAVAILABLE);
    assert!(health.cause.contains("something reads it"), "{}", health.cause);
    reader.execute_batch("COMMIT").unwrap();
    drop(reader);
    store.add_entry(id, note(3), 3, None).unwrap();
    assert_eq!(state(&store), "ok");
    let copy = path.with_extension("copy");
    fs::copy(&path, &copy).unwrap();
    let entries = "SELECT count(*) FROM journal";
    let copy = Connection::open(&copy).unwrap();
    assert_eq!(
        copy.query_row(entries, [], |row| row.get::<_, i64>(0))
            .unwrap(),
        1
    );
    assert_eq!(store.entries(id, None, 10).unwrap().entries.len(), 2);
}

#[test]
fn a_store_that_is_closed_is_one_file() {
    let (dir, _, store) = fresh();
    let id = user(&store, "a@example.com");
    store.close();
    let mut names: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["bhav.sqlite", "bhav.sqlite.mark"]);
    refused(store.add_entry(id, note(1), 1, None));
    store.probe();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "it opens nothing any more");
}

#[test]
fn writes_that_do_not_end_are_told_and_reads_go_on() {
    let (_dir, _, store) = fresh();
    let id = user(&store, "a@example.com");
    let (held, waits) = crossbeam_channel::bounded::<()>(0);
    let (begins, begun) = crossbeam_channel::bounded::<()>(1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let work = move |_: &Connection| {
                begins.send(()).unwrap();
                let _ = waits.recv();
                Ok(())
            };
            let _ = store.file().work(60_000, work);
        });
        let write = || Write {
            deadline_ms: 50,
            ..Write::new()
        };
        let touch = || store.write(write(), |tx| tx.run(PROBE_WRITE, &[]).map(drop));
        begun.recv().unwrap();
        assert_eq!(touch(), Err(StoreError::Late));
        assert_eq!(state(&store), "ok", "one late write may be an accident");
        store.probe();
        assert_eq!(state(&store), "stuck");
        assert!(store.entries(id, None, 10).is_ok());
        drop(held);
    });
    store.probe();
    assert_eq!(state(&store), "ok");
}
