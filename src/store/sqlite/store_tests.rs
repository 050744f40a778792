//! SQLite's own behaviour: one writer that groups commits, and concurrent readers.

use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::store::condition::PROBE_WRITE;
use crate::store::conformance::samples::{DAY, fields, user};
use crate::store::{Store, StoreError};

fn clock() -> Clock {
    Clock::system()
}

fn fresh() -> (TempDir, PathBuf, Store) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    let store = Store::open_file(&path, 2, &clock()).unwrap();
    (dir, path, store)
}

#[test]
fn a_blocked_writer_makes_writes_late_and_then_busy() {
    let (_dir, _, store) = fresh();
    let id = user(&store, "a@example.com");
    let (release, gate) = crossbeam_channel::unbounded::<()>();
    let (started, running) = crossbeam_channel::unbounded::<()>();
    let held = store
        .file()
        .writer
        .submit(WRITE_DEADLINE_MS, move |_: &mut SqliteLedger| {
            started.send(()).ok();
            gate.recv().ok();
            Ok(())
        })
        .unwrap();
    running.recv().unwrap();
    let count = |file: &Connection| file.run(PROBE_WRITE, &[]);
    assert_eq!(store.file().work(20, count), Err(StoreError::Late));
    assert!(store.user_by_id(id).unwrap().is_some(), "readers do not wait for it");
    let queued = |_| {
        store
            .file()
            .writer
            .submit(WRITE_DEADLINE_MS, |_: &mut SqliteLedger| Ok(()))
    };
    let waiting = (1..WRITES_WAITING_MAX)
        .map(queued)
        .collect::<Result<Vec<_>, _>>()
        .unwrap();
    assert_eq!(store.revoke_token("one", 5), Err(StoreError::Busy));
    assert_eq!(store.health().refused, 2);
    assert_eq!(store.health().state.as_str(), "ok", "the file is not at fault");
    drop(release);
    assert_eq!(held.wait(), Ok(Ok(())));
    assert!(
        waiting
            .into_iter()
            .all(|ticket| ticket.wait() == Ok(Ok(())))
    );
    store.revoke_token("one", 5).unwrap();
}

#[test]
fn a_commit_carries_one_write_if_so_configured() {
    let dir = tempfile::tempdir().unwrap();
    let settings = StoreSettings {
        writes_per_commit_max: 1,
        ..StoreSettings::default()
    };
    let store = Store::in_file(&dir.path().join(FILE_NAME), &settings, None, &clock());
    let store = store.unwrap();
    let shared = &store;
    std::thread::scope(|scope| {
        for n in 0..8 {
            scope.spawn(move || shared.revoke_token(&n.to_string(), 5).unwrap());
        }
    });
    let health = store.health();
    assert_eq!((health.writer.committed, health.writer.commits), (8, 8));
}

#[test]
fn writers_at_once_share_commits() {
    let (_dir, _, store) = fresh();
    let shared = &store;
    std::thread::scope(|scope| {
        for writer in 0..16 {
            let revoke = move |n| shared.revoke_token(&format!("{writer} {n}"), 5).unwrap();
            scope.spawn(move || (0..20).for_each(revoke));
        }
    });
    let health = store.health();
    assert_eq!(health.writer.committed, 320);
    assert!(health.writer.commits < 320, "{health:?}");
}

#[path = "faults_tests.rs"]
mod faults;
