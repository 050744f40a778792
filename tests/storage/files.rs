//! The database's files during and after a service: the place of written data, a new database, and
//! a damaged one.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::wait::at_once;
use crate::support::{Answer, Client, Program, Scene, TRADING, serve, until};
use bhav::store::FILE_NAME;

const PASSWORD: &str = "nine green parrots";
const STATUS: &str = "/api/health";

fn start(scene: &Scene) -> Program {
    start_in(scene, scene.state.path())
}

fn start_in(scene: &Scene, state: &Path) -> Program {
    Program::of(serve(scene, state).arg("--login-attempts-per-minute=0"))
}

fn stop(program: &mut Program) {
    program.ends();
}

fn account(client: &mut Client, action: &str, email: &str) -> Answer {
    client.account(action, email, PASSWORD)
}

fn file(scene: &Scene, suffix: &str) -> PathBuf {
    scene.state.path().join(format!("{FILE_NAME}{suffix}"))
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |about| about.len())
}

/// Waits for this state of the database in health.
fn await_database(client: &mut Client, word: &str) {
    until(word, || (client.get(STATUS).json()["database"] == word).then_some(()));
}

#[test]
fn after_a_clean_stop_the_one_file_is_all_of_it() {
    let scene = Scene::at(TRADING);
    let mut program = start(&scene);
    let mut client = program.client();
    assert_eq!(account(&mut client, "register", "asha@example.com").status, 201);
    stop(&mut program);
    assert_eq!(length(&file(&scene, "-wal")), 0);
    let elsewhere = tempfile::tempdir().unwrap();
    fs::copy(file(&scene, ""), elsewhere.path().join(FILE_NAME)).unwrap();
    let other = start_in(&scene, elsewhere.path());
    let mut client = Client::connect(&other.address);
    assert_eq!(account(&mut client, "login", "asha@example.com").status, 200);
}

#[test]
fn after_a_migration_the_one_file_is_all_of_it() {
    let scene = Scene::at(TRADING);
    let connection = rusqlite::Connection::open(file(&scene, "")).unwrap();
    connection
        .execute_batch(include_str!("../../sql/store/0001_accounts.sql"))
        .unwrap();
    connection
        .pragma_update(None, "application_id", 0x6268_6176)
        .unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    drop(connection);
    let mut program = start(&scene);
    // The files that a crash at this moment leaves, without the log.
    program.kill();
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("copy");
    fs::copy(file(&scene, ""), &copy).unwrap();
    let connection = rusqlite::Connection::open(&copy).unwrap();
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'journal'";
    assert_eq!(
        connection
            .query_row(tables, [], |row| row.get::<_, i64>(0))
            .unwrap(),
        1
    );
}

/// Data from before and after the log's loss survives a crash.
fn log_that_goes(spoil: impl Fn(&Path)) {
    let scene = Scene::at(TRADING);
    let mut program = start(&scene);
    let mut client = program.client();
    let mut answered = Vec::new();
    for number in 0..10 {
        if number == 4 {
            spoil(&file(&scene, "-wal"));
        }
        let email = format!("user{number}@example.com");
        if account(&mut client, "register", &email).status == 201 {
            answered.push(email);
        }
    }
    assert!(answered.len() >= 4);
    // The database takes writes, as before or again.
    until("a write", || {
        let email = format!("again{}@example.com", fastrand::u64(..));
        let answer = account(&mut client, "register", &email);
        (answer.status == 201).then(|| answered.push(email))
    });
    await_database(&mut client, "ok");
    program.kill();
    let program = start(&scene);
    let mut client = program.client();
    for email in &answered {
        assert_eq!(account(&mut client, "login", email).status, 200, "{email} is lost");
    }
}

#[test]
fn a_log_that_is_removed_under_a_service_takes_nothing_with_it() {
    log_that_goes(|log| fs::remove_file(log).unwrap());
}

#[test]
fn a_log_that_is_replaced_under_a_service_takes_nothing_with_it() {
    log_that_goes(|log| {
        let copy = log.with_extension("copy");
        fs::copy(log, &copy).unwrap();
        fs::rename(&copy, log).unwrap();
    });
}

#[test]
fn a_log_and_its_index_that_are_removed_take_nothing_with_them() {
    log_that_goes(|log| {
        fs::remove_file(log).unwrap();
        fs::remove_file(log.with_extension("sqlite-shm")).unwrap();
    });
}

/// The loss is noticed and reported without a write.
#[test]
fn a_log_that_is_removed_is_noticed_without_a_write() {
    let scene = Scene::at(TRADING);
    let mut program = start(&scene);
    let mut client = program.client();
    assert_eq!(account(&mut client, "register", "asha@example.com").status, 201);
    fs::remove_file(file(&scene, "-wal")).unwrap();
    until("a log in its place", || file(&scene, "-wal").exists().then_some(()));
    program.kill();
    let program = start(&scene);
    let mut client = program.client();
    assert_eq!(account(&mut client, "login", "asha@example.com").status, 200);
}

#[test]
fn a_file_without_a_table_is_new() {
    for bytes in [Vec::new(), header_page()] {
        let scene = Scene::at(TRADING);
        fs::write(file(&scene, ""), &bytes).unwrap();
        let program = start(&scene);
        let mut client = program.client();
        let answer = account(&mut client, "register", "asha@example.com");
        assert_eq!(answer.status, 201, "{} bytes: {}", bytes.len(), answer.text());
        await_database(&mut client, "ok");
    }
}

/// The first page that SQLite writes into a new file with a log.
fn header_page() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new.sqlite");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .pragma_update(None, "journal_mode", "wal")
        .unwrap();
    drop(connection);
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 4_096);
    bytes
}

#[test]
fn a_first_start_that_is_killed_at_any_moment_can_be_repeated() {
    let scene = Scene::at(TRADING);
    for round in 0..40 {
        let state = tempfile::tempdir().unwrap();
        let mut command = serve(&scene, state.path());
        let mut first = command.stdout(Stdio::null()).spawn().unwrap();
        let path = state.path().join(FILE_NAME);
        until("the file", || path.exists().then_some(()));
        // Not a condition to sleep on: any moment will do.
        for _ in 0..fastrand::u32(..20_000) {
            std::hint::spin_loop();
        }
        first.kill().unwrap();
        first.wait().unwrap();
        let bytes = length(&path);
        let program = start_in(&scene, state.path());
        let mut client = program.client();
        let answer = account(&mut client, "register", "asha@example.com");
        assert_eq!(answer.status, 201, "round {round}, {bytes} bytes: {}", answer.text());
    }
}

/// Prices go on, and no empty database replaces it.
#[test]
fn an_emptied_database_is_damage_and_told() {
    let damages = [
        ("emptied after a stop", Vec::new(), None),
        ("cut to its first page", header_page(), None),
        ("emptied beside its log", Vec::new(), Some(vec![7; 5_000])),
    ];
    at_once(damages, |(what, left, log)| {
        let scene = Scene::at(TRADING);
        let mut program = start(&scene);
        let mut client = program.client();
        assert_eq!(account(&mut client, "register", "asha@example.com").status, 201);
        stop(&mut program);
        let good = fs::read(file(&scene, "")).unwrap();
        fs::write(file(&scene, ""), &left).unwrap();
        if let Some(log) = &log {
            fs::write(file(&scene, "-wal"), log).unwrap();
        }

        let program = start(&scene);
        let mut client = program.client();
        await_database(&mut client, "corrupt");
        for action in ["register", "login"] {
            account(&mut client, action, "ravi@example.com")
                .expect_problem(503, "store_unavailable");
        }
        until("prices", || (client.get(crate::support::SNAPSHOT).status == 200).then_some(()));
        assert_eq!(fs::read(file(&scene, "")).unwrap(), left, "{what}: left as it was");
        if log.is_some() {
            assert_eq!(fs::read(file(&scene, "-wal")).ok(), log, "{what}: left as it was");
        }
        // Puts a good file in its place.
        let _ = fs::remove_file(file(&scene, "-wal"));
        fs::write(file(&scene, ""), &good).unwrap();
        await_database(&mut client, "ok");
        // The state that decides about tokens is loaded a moment later.
        until(what, || {
            (account(&mut client, "login", "asha@example.com").status == 200).then_some(())
        });
    });
}

/// The running service has the file open.
#[test]
fn a_database_that_is_cut_to_nothing_under_a_service_is_told() {
    let scene = Scene::at(TRADING);
    let program = start(&scene);
    let mut client = program.client();
    assert_eq!(account(&mut client, "register", "asha@example.com").status, 201);
    OpenOptions::new()
        .write(true)
        .open(file(&scene, ""))
        .unwrap()
        .set_len(0)
        .unwrap();
    account(&mut client, "register", "ravi@example.com").expect_problem(503, "store_unavailable");
    await_database(&mut client, "corrupt");
}
