//! The database as an operator meets it: killed at any moment, damaged, or newer than the program.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use bhav::base::{Clock, rng};
use bhav::store::{
    AccountId, FILE_NAME, JournalFields, NewUser, Side, SqliteStore, Store, StoreError,
};

use sonic_rs::JsonValueTrait;

use super::process::refused;
use super::support::{SNAPSHOT, Scene, TRADING, until};

/// Says to this test, run again in a child, where to write until it is killed.
const WRITER_DIR: &str = "BHAV_TEST_WRITER_DIR";
const THREADS: usize = 8;
const ROUNDS: usize = 24;
/// A round ends after about so many answers, a little sooner or later each time.
const ANSWERS_PER_ROUND: u64 = 120;

fn open(dir: &Path) -> SqliteStore {
    SqliteStore::open(&dir.join(FILE_NAME), 2, &Clock::system()).unwrap()
}

fn fields(note: String) -> JournalFields {
    JournalFields {
        traded_on: "2026-11-20".parse().unwrap(),
        symbol: "NSE:INFY".to_owned(),
        side: Side::Buy,
        quantity: 10.into(),
        price: 1_412.into(),
        fees: None,
        strategy: None,
        notes: Some(note),
        tags: Vec::new(),
    }
}

/// Writes until it is killed; one line on standard output for each answer, after the answer.
fn write_for_ever(dir: &Path) {
    let store = open(dir);
    let round = rng::request_id();
    let round = String::from_utf8_lossy(&round);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, round) = (&store, &round);
            scope.spawn(move || {
                let user = NewUser {
                    email: format!("{round}-{thread}@example.com"),
                    name: None,
                    password_hash: "hash".to_owned(),
                    created_ms: 1,
                };
                let id = store.create_user(user).unwrap().id;
                for number in 0u64.. {
                    let note = format!("{round}-{thread}-{number}");
                    match store.add_entry(id, fields(note.clone()), 1) {
                        Ok(entry) => {
                            let line = format!("answered {} {} {note}\n", id.0, entry.id);
                            std::io::stdout().write_all(line.as_bytes()).unwrap();
                        }
                        Err(StoreError::TooMany { .. }) => return,
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
}

/// `answered USER ENTRY NOTE`, if the line is whole.
fn answered(line: &str) -> Option<(AccountId, i64, String)> {
    let (_, after) = line.strip_suffix('\n')?.split_once("answered ")?;
    let mut words = after.split(' ');
    let id = AccountId(words.next()?.parse().ok()?);
    Some((id, words.next()?.parse().ok()?, words.next()?.to_owned()))
}

#[test]
fn what_was_answered_survives_being_killed_at_any_moment() {
    if let Some(dir) = std::env::var_os(WRITER_DIR) {
        return write_for_ever(Path::new(&dir));
    }
    let state = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    let mut unanswered = 0;
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "--test-threads=1"])
            .arg("service::store::what_was_answered_survives_being_killed_at_any_moment")
            .env(WRITER_DIR, state.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let enough = rng::jittered_ms(ANSWERS_PER_ROUND);
        let mut seen = Vec::new();
        let mut killed = false;
        loop {
            let mut line = String::new();
            if lines.read_line(&mut line).unwrap() == 0 {
                break;
            }
            seen.extend(answered(&line));
            if seen.len() as u64 >= enough && !killed {
                // It writes on meanwhile, so this hits it anywhere.
                child.kill().unwrap();
                killed = true;
            }
        }
        child.wait().unwrap();
        assert!(killed, "round {round} ended by itself after {} answers", seen.len());
        let store = open(state.path());
        assert_eq!(store.health().state, "ok");
        let mut stored = 0;
        let mut users: Vec<_> = seen.iter().map(|(id, ..)| *id).collect();
        users.sort_unstable();
        users.dedup();
        for id in users {
            stored += store.entries(id, None, 100_000).unwrap().len();
        }
        assert!(stored >= seen.len() && stored <= seen.len() + 2 * THREADS, "{stored}");
        unanswered += stored - seen.len();
        all.extend(seen);
    }
    let store = open(state.path());
    for (id, entry, note) in &all {
        let found = store.entry(*id, *entry).unwrap().expect("what was answered is there");
        assert_eq!(found.fields.notes.as_deref(), Some(note.as_str()));
    }
    let said = format!(
        "kill -9: {ROUNDS} times, {} answered writes, 0 lost; {unanswered} written, not answered\n",
        all.len(),
    );
    // Past the harness, which would swallow it.
    std::io::stderr().write_all(said.as_bytes()).unwrap();
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
    service.0.stop();
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
    service.0.stop();
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
