//! A token is valid for the database that issued it, and for an existing account. A restored, lost
//! or replaced database ends it.

use std::fs;
use std::path::Path;

use crate::support::{Answer, Program, Scene, TRADING, bearer, bhav, run, serve, state_flag};
use bhav::api::{Access, ROUTES};
use bhav::store::FILE_NAME;
use sonic_rs::JsonValueTrait;

const PASSWORD: &str = "nine green parrots";
const OTHER_PASSWORD: &str = "ten yellow parrots";

fn start(scene: &Scene) -> Program {
    Program::of(serve(scene, scene.state.path()).arg("--login-attempts-per-minute=0"))
}

fn stop(mut program: Program) {
    program.ends();
}

fn account(program: &Program, action: &str, email: &str, password: &str) -> Answer {
    let body = format!(r#"{{"email":"{email}","password":"{password}"}}"#);
    let target = format!("/api/auth/{action}");
    program.client().send_json("POST", &target, "", &body)
}

/// A new account's id and token.
fn register(program: &Program, email: &str) -> (i64, String) {
    let answer = account(program, "register", email, PASSWORD).with_status(201);
    let json = answer.json();
    (
        json["user"]["id"].as_i64().unwrap(),
        json["access_token"].as_str().unwrap().to_owned(),
    )
}

fn change_password(program: &Program, token: &str, old: &str, new: &str) -> String {
    let body = format!(r#"{{"current_password":"{old}","new_password":"{new}"}}"#);
    let mut client = program.client();
    let answer = client.send_json("POST", "/api/auth/password", &bearer(token), &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.field("access_token")
}

#[track_caller]
fn expect_good(program: &Program, token: &str) {
    program
        .client()
        .request("GET", "/api/journal", &bearer(token))
        .with_status(200);
}

/// Sends the token to each route that needs a user.
#[track_caller]
fn expect_refused_everywhere(program: &Program, token: &str) {
    let mut client = program.client();
    let mut asked = 0;
    for route in ROUTES.iter().filter(|route| route.access == Access::User) {
        let id = if route.path.starts_with("/api/keys/") {
            "00000000000"
        } else {
            "1"
        };
        let (method, target) = (route.method.as_str(), route.path.replace("{id}", id));
        let answer = match method {
            "GET" => client.request(method, &target, &bearer(token)),
            _ => client.send_json(method, &target, &bearer(token), "{}"),
        };
        answer.expect_problem(401, "token_invalid");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer error=\"invalid_token\""));
        asked += 1;
    }
    assert!(asked >= 14, "{asked}");
}

fn database(scene: &Scene, suffix: &str) -> std::path::PathBuf {
    scene.state.path().join(format!("{FILE_NAME}{suffix}"))
}

fn backup_to(scene: &Scene, to: &Path) {
    let to = to.to_str().unwrap();
    run(&mut bhav(&["backup", to, &state_flag(scene.state.path())])).with_code(0);
}

#[test]
fn after_a_restore_no_earlier_token_reads_what_a_later_account_of_its_id_has() {
    let scene = Scene::at(TRADING);
    let copies = tempfile::tempdir().unwrap();
    let copy = copies.path().join("copy.sqlite");
    let program = start(&scene);
    let (_, kept) = register(&program, "asha@example.com");
    backup_to(&scene, &copy);
    let (id, token) = register(&program, "ravi@example.com");
    stop(program);
    let args = [
        "restore",
        copy.to_str().unwrap(),
        "--yes",
        &state_flag(scene.state.path()),
    ];
    let ran = run(&mut bhav(&args)).with_code(0);
    assert!(ran.out.contains("everybody logs in again"), "{}", ran.out);

    let program = start(&scene);
    let (again, other) = register(&program, "meera@example.com");
    assert_eq!(again, id, "ids are given again");
    expect_refused_everywhere(&program, &token);
    // A user whose account was in the backup logs in again too.
    expect_refused_everywhere(&program, &kept);
    expect_good(&program, &other);
    let login = account(&program, "login", "asha@example.com", PASSWORD);
    let login = login.field("access_token");
    expect_good(&program, &login);
    // A start is no restore.
    stop(program);
    let mut program = start(&scene);
    expect_good(&program, &login);
    program.kill();
    expect_good(&start(&scene), &other);
}

#[test]
fn a_copy_that_is_put_in_place_by_hand_ends_all_tokens_too() {
    let scene = Scene::at(TRADING);
    let copies = tempfile::tempdir().unwrap();
    let (ours, raw) = (copies.path().join("ours"), copies.path().join("raw"));
    let program = start(&scene);
    register(&program, "asha@example.com");
    backup_to(&scene, &ours);
    stop(program);
    fs::copy(database(&scene, ""), &raw).unwrap();
    for copy in [ours, raw] {
        let program = start(&scene);
        let (id, token) = register(&program, "ravi@example.com");
        stop(program);
        fs::copy(&copy, database(&scene, "")).unwrap();
        let program = start(&scene);
        let (again, other) = register(&program, "meera@example.com");
        assert_eq!(again, id, "ids are given again");
        expect_refused_everywhere(&program, &token);
        expect_good(&program, &other);
        stop(program);
        fs::copy(&copy, database(&scene, "")).unwrap();
    }
}

#[test]
fn a_lost_database_ends_all_tokens_though_the_key_is_kept() {
    let scene = Scene::at(TRADING);
    let program = start(&scene);
    let (id, token) = register(&program, "asha@example.com");
    stop(program);
    let key = fs::read(scene.state.path().join("jwt.key")).unwrap();
    // With the mark, or the loss would be damage.
    for suffix in ["", "-wal", "-shm", ".mark"] {
        let _ = fs::remove_file(database(&scene, suffix));
    }
    let program = start(&scene);
    let (again, other) = register(&program, "meera@example.com");
    assert_eq!(again, id);
    assert_eq!(fs::read(scene.state.path().join("jwt.key")).unwrap(), key);
    expect_refused_everywhere(&program, &token);
    expect_good(&program, &other);
}

/// For example an account whose registration was lost with the end of the log.
#[test]
fn a_token_of_an_account_that_is_not_there_is_refused_everywhere() {
    let scene = Scene::at(TRADING);
    let program = start(&scene);
    let (id, token) = register(&program, "asha@example.com");
    let (_, other) = register(&program, "ravi@example.com");
    stop(program);
    let file = rusqlite::Connection::open(database(&scene, "")).unwrap();
    assert_eq!(
        file.execute("DELETE FROM users WHERE id = ?1", [id])
            .unwrap(),
        1
    );
    drop(file);
    let program = start(&scene);
    expect_refused_everywhere(&program, &token);
    expect_good(&program, &other);
}

/// The database goes back in a way that leaves no sign. A change of the password then ends every
/// token ever issued.
#[test]
fn epochs_that_ran_ahead_of_the_database_are_not_good_again() {
    let scene = Scene::at(TRADING);
    let mut program = start(&scene);
    let (_, first) = register(&program, "asha@example.com");
    let copies = tempfile::tempdir().unwrap();
    for suffix in ["", "-wal"] {
        let from = database(&scene, suffix);
        fs::copy(&from, copies.path().join(from.file_name().unwrap())).unwrap();
    }
    let stolen = change_password(&program, &first, PASSWORD, OTHER_PASSWORD);
    let stolen = change_password(&program, &stolen, OTHER_PASSWORD, PASSWORD);
    expect_good(&program, &stolen);
    program.kill();
    for suffix in ["", "-wal"] {
        let to = database(&scene, suffix);
        fs::copy(copies.path().join(to.file_name().unwrap()), &to).unwrap();
    }
    let program = start(&scene);
    let login = account(&program, "login", "asha@example.com", PASSWORD).json();
    let login = login["access_token"].as_str().unwrap().to_owned();
    let new = change_password(&program, &login, PASSWORD, OTHER_PASSWORD);
    let newer = change_password(&program, &new, OTHER_PASSWORD, PASSWORD);
    expect_good(&program, &newer);
    for old in [&stolen, &first, &login, &new] {
        expect_refused_everywhere(&program, old);
    }
}
