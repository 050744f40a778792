//! Erased data leaves no byte in the database's files, neither in the file itself nor in its log.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{Program, Scene, TRADING, bearer, bhav, run, serve, state_flag, until};
use bhav::store::FILE_NAME;
use sonic_rs::JsonValueTrait;

const PASSWORD: &str = "nine green parrots";

/// Each sync has an API key of its own.
static NEXT_KEY: AtomicU32 = AtomicU32::new(1);

struct Account {
    email: String,
    token: String,
    /// Words that occur nowhere else: address, name, hash, notes.
    words: Vec<String>,
}

fn start(scene: &Scene) -> Program {
    let unlimited = [
        "--login-attempts-per-minute=0",
        "--sync-attempts-per-minute=0",
    ];
    Program::of(serve(scene, scene.state.path()).args(unlimited))
}

/// An account with an entry in the journal and a portfolio.
fn account(scene: &Scene, program: &Program, mark: &str) -> Account {
    let mut client = program.client();
    let email = format!("{mark}@example.com");
    let body = format!(r#"{{"email":"{email}","password":"{PASSWORD}","name":"Name of {mark}"}}"#);
    let answer = client
        .send_json("POST", "/api/auth/register", "", &body)
        .with_status(201);
    let token = answer.field("access_token");
    let entry = format!(
        r#"{{"traded_on":"2026-11-20","symbol":"NSE:INFY","side":"buy","quantity":1,"price":2,
        "strategy":"Plan of {mark}","notes":"Notes of {mark}"}}"#
    );
    client
        .send_json("POST", "/api/journal", &bearer(&token), &entry)
        .with_status(201);
    let lists = |name: &str| format!(r#"{{"watchlists":[{{"name":"{name}","symbols":[]}}]}}"#);
    for name in [format!("First list of {mark}"), format!("List of {mark}")] {
        client
            .send_json("PUT", "/api/watchlists", &bearer(&token), &lists(&name))
            .with_status(200);
    }
    let body = format!(
        r#"{{"api_key":"simkeya-{}","api_secret":"simsecreta","request_token":"{}"}}"#,
        NEXT_KEY.fetch_add(1, Ordering::Relaxed),
        scene.request_token()
    );
    client
        .send_json("POST", "/api/portfolio/sync", &bearer(&token), &body)
        .with_status(200);
    let file = rusqlite::Connection::open(scene.state.path().join(FILE_NAME)).unwrap();
    let hash = "SELECT password_hash FROM users WHERE email = ?1";
    let hash: String = file.query_row(hash, [&email], |row| row.get(0)).unwrap();
    let words = vec![
        email.clone(),
        format!("Name of {mark}"),
        format!("Plan of {mark}"),
        format!("Notes of {mark}"),
        format!("List of {mark}"),
        hash.rsplit('$').next().unwrap().to_owned(),
    ];
    Account {
        email,
        token,
        words,
    }
}

/// The words found in any file of the state directory, with the file's name.
fn found(state: &Path, words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(state).unwrap() {
        let path = entry.unwrap().path();
        // A file that was removed meanwhile holds nothing.
        let Ok(bytes) = fs::read(&path) else { continue };
        let holds = |word: &&String| memchr::memmem::find(&bytes, word.as_bytes()).is_some();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        found.extend(
            words
                .iter()
                .filter(holds)
                .map(|word| format!("{word} in {name}")),
        );
    }
    found
}

#[track_caller]
fn expect_there(state: &Path, words: &[String]) {
    for word in words {
        assert!(!found(state, std::slice::from_ref(word)).is_empty(), "{word} is nowhere");
    }
}

#[track_caller]
fn expect_gone(state: &Path, words: &[String]) {
    let found = found(state, words);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn an_erased_account_is_in_no_file_once_that_was_answered() {
    let scene = Scene::at(TRADING);
    let state = scene.state.path();
    let mut program = start(&scene);
    let (gone, stays) = (account(&scene, &program, "asha7"), account(&scene, &program, "ravi7"));
    expect_there(state, &gone.words);
    let body = format!(r#"{{"password":"{PASSWORD}"}}"#);
    let mut client = program.client();
    client
        .send_json("DELETE", "/api/auth/account", &bearer(&gone.token), &body)
        .with_status(200);
    expect_gone(state, &gone.words);
    expect_there(state, &stays.words);
    program.ends();
    expect_gone(state, &gone.words);
    expect_there(state, &stays.words);
}

#[test]
fn a_deleted_portfolio_and_deleted_entries_are_in_no_file() {
    let scene = Scene::at(TRADING);
    let state = scene.state.path();
    let program = start(&scene);
    let owner = account(&scene, &program, "asha7");
    let file = rusqlite::Connection::open(state.join(FILE_NAME)).unwrap();
    let shares = "SELECT tradingsymbol || symbol || isin FROM holdings WHERE symbol || isin != ''";
    // The columns as they lie next to each other.
    let share: String = file.query_row(shares, [], |row| row.get(0)).unwrap();
    drop(file);
    let words = vec![share];
    expect_there(state, &words);
    let mut client = program.client();
    let answer = client.request("DELETE", "/api/portfolio/data", &bearer(&owner.token));
    assert_eq!(answer.status, 200, "{}", answer.text());
    expect_gone(state, &words);
    let entries = client
        .request("GET", "/api/journal", &bearer(&owner.token))
        .json();
    let id = entries["entries"][0]["id"].as_i64().unwrap();
    client
        .request("DELETE", &format!("/api/journal/{id}"), &bearer(&owner.token))
        .with_status(200);
    let notes = ["Plan of asha7".to_owned(), "Notes of asha7".to_owned()];
    until("the entry to leave the files", || found(state, &notes).is_empty().then_some(()));
    let list = ["First list of asha7".to_owned()];
    until("the first list to leave the files", || {
        found(state, &list).is_empty().then_some(())
    });
    expect_there(state, &["List of asha7".to_owned()]);
}

#[test]
fn an_account_deleted_by_command_is_in_no_file() {
    let scene = Scene::at(TRADING);
    let state = scene.state.path();
    let mut program = start(&scene);
    let (beside, later) = (account(&scene, &program, "asha7"), account(&scene, &program, "ravi7"));
    let delete = |account: &Account| {
        let ran = run(&mut bhav(&[
            "user",
            "delete",
            &account.email,
            "--yes",
            &state_flag(state),
        ]));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        expect_gone(state, &account.words);
    };
    delete(&beside);
    program.ends();
    expect_there(state, &later.words);
    delete(&later);
}
