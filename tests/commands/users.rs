//! `bhav user`: the list, and changes that a running service enforces at once.

use crate::support::{Answer, Ran, Scene, Service, TRADING, bearer, bhav, run, state_flag};
use bhav::store::FILE_NAME;

const PASSWORD: &str = "nine green parrots";
const EMAIL: &str = "asha@example.com";

fn user(scene: &Scene, args: &[&str]) -> Ran {
    let (name, rest) = args.split_first().unwrap();
    let mut command = bhav(&["user", name, &state_flag(scene.state.path())]);
    command.args(rest);
    scene.while_time_passes(|| run(&mut command))
}

fn login(service: &Service, password: &str) -> Answer {
    service.account("login", EMAIL, password)
}

fn holdings(service: &Service, token: &str) -> Answer {
    service
        .client()
        .request("GET", "/api/portfolio/holdings", &bearer(token))
}

#[test]
fn a_disabled_user_has_neither_login_nor_token_until_enabled() {
    let scene = Scene::still_at(TRADING);
    let service = scene.start();
    let token = service.register(EMAIL, PASSWORD);
    let other = service.register("ravi@example.com", PASSWORD);
    assert_eq!(holdings(&service, &token).status, 200);
    let ran = user(&scene, &["disable", " Asha@Example.com "]).with_code(0);
    let refused = "the running service refuses their tokens\n";
    assert_eq!(ran.out, format!("user 1 ({EMAIL}) is disabled\n{refused}"));
    // As promised: from this moment on.
    holdings(&service, &token).expect_problem(401, "token_invalid");
    assert_eq!(holdings(&service, &other).status, 200);
    login(&service, PASSWORD).expect_problem(403, "account_disabled");
    login(&service, "not the password").expect_problem(401, "invalid_credentials");
    let ran = user(&scene, &["disable", "1"]);
    assert_eq!(ran.out, format!("user 1 ({EMAIL}) is disabled already\n"));

    let ran = user(&scene, &["list"]);
    assert_eq!((ran.code, ran.out.lines().count()), (Some(0), 3), "{}", ran.out);
    for part in [
        "1  2026-11-20 11:00",
        "never",
        "disabled  asha@example.com",
        "open      ravi@",
    ] {
        assert!(ran.out.contains(part), "{part} is not in\n{}", ran.out);
    }
    assert!(!ran.out.contains("argon2"), "{}", ran.out);

    let ran = user(&scene, &["enable", EMAIL]);
    assert_eq!((ran.code, ran.out), (Some(0), format!("user 1 ({EMAIL}) is enabled\n")));
    assert_eq!(login(&service, PASSWORD).status, 200);
    holdings(&service, &token).expect_problem(401, "token_invalid");
    service.stop();
    // A restart does not restore it.
    let service = scene.start();
    holdings(&service, &token).expect_problem(401, "token_invalid");
}

#[test]
fn a_user_who_is_logged_out_has_to_log_in_anew_and_can() {
    let scene = Scene::still_at(TRADING);
    let service = scene.start();
    let tokens = [
        service.register(EMAIL, PASSWORD),
        login(&service, PASSWORD).field("access_token"),
    ];
    let other = service.register("ravi@example.com", PASSWORD);
    let ran = user(&scene, &["logout", EMAIL]).with_code(0);
    let refused = "the running service refuses their tokens\n";
    assert_eq!(ran.out, format!("user 1 ({EMAIL}) is logged out everywhere\n{refused}"));
    for token in &tokens {
        holdings(&service, token).expect_problem(401, "token_invalid");
    }
    assert_eq!(holdings(&service, &other).status, 200);
    let again = login(&service, PASSWORD).field("access_token");
    assert_eq!(holdings(&service, &again).status, 200);
    assert_eq!(user(&scene, &["logout", "nobody@example.com"]).code, Some(64));
}

#[test]
fn a_deleted_user_is_gone_with_everything() {
    let scene = Scene::still_at(TRADING);
    let service = scene.start();
    let token = service.register(EMAIL, PASSWORD);
    let entry =
        r#"{"traded_on":"2026-11-20","symbol":"NSE:INFY","side":"buy","quantity":1,"price":1}"#;
    assert_eq!(service.post("/api/journal", &bearer(&token), entry).status, 201);
    let ran = user(&scene, &["list"]);
    assert!(ran.out.contains("       1  open      asha@"), "{}", ran.out);
    let ran = user(&scene, &["delete", EMAIL]);
    assert_eq!(ran.code, Some(64), "{}", ran.out);
    assert!(ran.err.contains("--yes"), "{}", ran.err);
    let ran = user(&scene, &["delete", EMAIL, "--yes"]).with_code(0);
    assert!(
        ran.out
            .ends_with("the running service refuses their tokens\n"),
        "{}",
        ran.out
    );
    holdings(&service, &token).expect_problem(401, "token_invalid");
    login(&service, PASSWORD).expect_problem(401, "invalid_credentials");
    service.stop();
    let file = rusqlite::Connection::open(scene.state.path().join(FILE_NAME)).unwrap();
    for table in ["users", "journal"] {
        let sql = format!("SELECT count(*) FROM {table}");
        let rows: i64 = file.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 0, "{table}");
    }
}

#[test]
fn without_a_service_it_works_and_holds_at_the_next_start() {
    let scene = Scene::still_at(TRADING);
    let service = scene.start();
    let token = service.register(EMAIL, PASSWORD);
    service.stop();
    let ran = user(&scene, &["disable", EMAIL]);
    assert_eq!(ran.out, format!("user 1 ({EMAIL}) is disabled\n"), "{}", ran.err);
    let service = scene.start();
    holdings(&service, &token).expect_problem(401, "token_invalid");
    login(&service, PASSWORD).expect_problem(403, "account_disabled");
}

#[test]
fn who_is_not_there_and_a_database_that_is_not_are_told() {
    let scene = Scene::still_at(TRADING);
    let ran = user(&scene, &["list"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(74), ""), "{}", ran.err);
    assert!(!ran.err.contains("demo"), "{}", ran.err);
    // The demo keeps its state below the given directory.
    let demo = scene.state.path().join("demo");
    std::fs::create_dir(&demo).unwrap();
    std::fs::write(demo.join(FILE_NAME), "").unwrap();
    let ran = user(&scene, &["list"]);
    let hint = format!("(--state-dir={} is the demo's)", demo.display());
    assert!(ran.err.contains(&hint), "{}", ran.err);
    scene.start().stop();
    for name in ["nobody@example.com", "7", "-1", "0", "garbage"] {
        let ran = user(&scene, &["disable", "--", name]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""), "{name}: {}", ran.err);
    }
    let file = rusqlite::Connection::open(scene.state.path().join(FILE_NAME)).unwrap();
    file.pragma_update(None, "user_version", 1).unwrap();
    drop(file);
    let ran = user(&scene, &["list"]).with_code(64);
    assert!(ran.err.contains("start the service once"), "{}", ran.err);
}
