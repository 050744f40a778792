//! The database as an operator meets it: damaged, or newer than the program. (What survives being
//! killed stands in `kill`.)

use std::fs;
use std::path::Path;

use crate::support::{SNAPSHOT, Scene, TRADING, refused, until};
use bhav::base::Clock;
use bhav::store::{FILE_NAME, SqliteStore};
use sonic_rs::JsonValueTrait;

fn open(dir: &Path) -> SqliteStore {
    SqliteStore::open(&dir.join(FILE_NAME), 2, &Clock::system()).unwrap()
}

#[test]
fn a_damaged_database_is_reported_left_alone_and_prices_go_on() {
    let scene = Scene::at(TRADING);
    let path = scene.state.path().join(FILE_NAME);
    let bytes = b"no database at all".repeat(400);
    fs::write(&path, &bytes).unwrap();
    let service = scene.start();
    service.fresh_snapshot();
    assert_eq!(service.get(SNAPSHOT).status, 200);
    let json = until("a report", || {
        Some(service.health()).filter(|json| json["warmers"]["index"] == "ok")
    });
    assert_eq!(
        (json["status"].as_str(), json["database"].as_str()),
        (Some("degraded"), Some("corrupt"))
    );
    service.stop();
    assert_eq!(fs::read(&path).unwrap(), bytes, "people's data is the operator's to restore");
}

#[test]
fn a_database_that_is_put_right_is_noticed_without_a_restart() {
    let scene = Scene::at(TRADING);
    let path = scene.state.path().join(FILE_NAME);
    fs::create_dir(&path).unwrap();
    let service = scene.start();
    let database = |word: &'static str| {
        until(word, || Some(service.health()).filter(|json| json["database"] == word))
    };
    database("unavailable");
    fs::remove_dir(&path).unwrap();
    database("ok");
    until("the probe's write", || {
        (service.health()["store"]["commits"].as_u64() >= Some(1)).then_some(())
    });
    service.stop();
}

#[test]
fn a_newer_database_ends_the_start_with_64_and_says_what_to_do() {
    let state = tempfile::tempdir().unwrap();
    drop(open(state.path()));
    let path = state.path().join(FILE_NAME);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let dir = format!("--state-dir={}", state.path().display());
    let (code, said) = refused(&["--listen=127.0.0.1:0", &dir]);
    assert_eq!(code, Some(64), "{said}");
    for part in ["version 99", "run the newer program", "before-v"] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
}
