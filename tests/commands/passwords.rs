//! `bhav user add` and `bhav user passwd`: sources of a password, its effect, and the running
//! service's refusal of old ones.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use bhav::auth::keys::Registration;
use bhav::ops::state_lock::{self, StateLock};

use crate::support::canaries::Canaries;
use crate::support::{
    Answer, OnTerminal, Ran, Scene, Service, TRADING, bearer, bhav, run, run_with, state_flag,
};

const EMAIL: &str = "asha@example.com";
const OLD: &str = "nine green parrots";
const NEW: &str = "eleven blue herons";

/// `bhav user NAME` with a password on standard input.
fn user_with(scene: &Scene, args: &[&str], password: &str) -> Ran {
    let (name, rest) = args.split_first().unwrap();
    let state = state_flag(scene.state.path());
    let mut command = bhav(&["user", name, &state, "--password-file=-"]);
    command.args(rest);
    scene.while_time_passes(|| run_with(&mut command, password))
}

fn login(service: &Service, password: &str) -> Answer {
    service.account("login", EMAIL, password)
}

fn holdings(service: &Service, token: &str) -> u16 {
    service
        .client()
        .request("GET", "/api/portfolio/holdings", &bearer(token))
        .status
}

/// The state of a service that ran once and has the user `EMAIL` with the password `OLD`.
fn stopped() -> Scene {
    let scene = Scene::still_at(TRADING);
    let service = scene.start();
    service.register(EMAIL, OLD);
    service.stop();
    scene
}

#[test]
fn an_account_is_added_where_registration_is_closed_and_logs_in_at_once() {
    let scene = Scene::still_at(TRADING);
    let mut config = scene.config();
    config.auth.registration = Registration::Closed;
    let service = scene.start_with(&config);
    let ran = user_with(&scene, &["add", " Asha@Example.com ", "--name= Asha Rao "], OLD);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert_eq!(ran.out, format!("user 1 ({EMAIL}) is added\n"));
    let answer = login(&service, OLD).with_status(200);
    assert_eq!(answer.json()["user"]["name"], "Asha Rao");
    let token = answer.field("access_token");
    assert_eq!(holdings(&service, &token), 200);
    // An e-mail address has one account; the existing one stays unchanged.
    let ran = user_with(&scene, &["add", "ASHA@example.com"], NEW);
    assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""), "{}", ran.err);
    assert!(ran.err.contains("bhav user passwd asha@example.com"), "{}", ran.err);
    assert_eq!(login(&service, OLD).status, 200);
    for (email, name) in [("asha", "A"), ("", "A"), ("b@example.com", "A\tB")] {
        let ran = user_with(&scene, &["add", email, &format!("--name={name}")], OLD);
        assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""), "{email}: {}", ran.err);
    }
}

#[test]
fn a_new_password_ends_the_old_one_and_every_older_token_beside_a_running_service() {
    let scene = Scene::still_at(TRADING);
    let service = scene.start();
    let token = service.register(EMAIL, OLD);
    let other = service.register("ravi@example.com", OLD);
    assert_eq!(holdings(&service, &token), 200);
    let ran = user_with(&scene, &["passwd", EMAIL], &format!("{NEW}\n"));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let refused = "the running service refuses their older tokens\n";
    assert_eq!(ran.out, format!("user 1 ({EMAIL}) has a new password\n{refused}"));
    // As promised: from this moment on.
    assert_eq!((holdings(&service, &token), holdings(&service, &other)), (401, 200));
    login(&service, OLD).expect_problem(401, "invalid_credentials");
    let fresh = login(&service, NEW).field("access_token");
    assert_eq!(holdings(&service, &fresh), 200);
    service.stop();
    // A restart restores nothing.
    let service = scene.start();
    assert_eq!((holdings(&service, &token), holdings(&service, &fresh)), (401, 200));
    login(&service, OLD).expect_problem(401, "invalid_credentials");
}

#[test]
fn a_disabled_account_gets_a_new_password_and_stays_disabled() {
    let scene = stopped();
    let state = scene.state.path();
    let user = |command: &str| {
        run(&mut bhav(&["user", command, EMAIL, &state_flag(state)])).with_code(0);
    };
    user("disable");
    let ran = user_with(&scene, &["passwd", "1"], NEW).with_code(0);
    assert!(
        ran.out.contains("has a new password") && ran.out.contains("disabled"),
        "{}",
        ran.out
    );
    let service = scene.start();
    login(&service, NEW).expect_problem(403, "account_disabled");
    user("enable");
    assert_eq!(login(&service, NEW).status, 200);
    login(&service, OLD).expect_problem(401, "invalid_credentials");
}

#[test]
fn a_terminal_asks_twice_and_shows_nothing() {
    let scene = stopped();
    let state = state_flag(scene.state.path());
    let ask = |args: &[&str], first: &str, second: &str| {
        let mut terminal = OnTerminal::start(bhav(&["user"]).args(args).arg(&state));
        terminal.answer("New password (not shown): ", first);
        terminal.answer("The same again: ", second);
        let (ran, shown) = terminal.end();
        for typed in [first, second] {
            let said = [&shown, &ran.out, &ran.err];
            assert!(said.iter().all(|text| !text.contains(typed)), "{said:?}");
        }
        ran
    };
    let ran = ask(&["passwd", EMAIL], NEW, "eleven blue heron");
    assert_eq!((ran.code, ran.out.as_str()), (Some(65), ""), "{}", ran.err);
    assert!(ran.err.contains("the two differ"), "{}", ran.err);
    let ran = ask(&["passwd", EMAIL], NEW, NEW).with_code(0);
    assert_eq!(ran.out, format!("user 1 ({EMAIL}) has a new password\n"));
    ask(&["add", "ravi@example.com"], "größer als zwölf 🦜", "größer als zwölf 🦜").with_code(0);
    let service = scene.start();
    assert_eq!((login(&service, NEW).status, login(&service, OLD).status), (200, 401));
    assert_eq!(
        service
            .account("login", "ravi@example.com", "größer als zwölf 🦜")
            .status,
        200
    );
}

#[test]
fn a_password_comes_from_a_file_and_never_from_the_command_line() {
    let (scene, out) = (stopped(), tempfile::tempdir().unwrap());
    let state = state_flag(scene.state.path());
    let file = out.path().join("password");
    let passwd = |more: &[&str]| run(bhav(&["user", "passwd", EMAIL, &state]).args(more));
    let flag = format!("--password-file={}", file.display());
    fs::write(&file, format!("{NEW}\r\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let ran = passwd(&[&flag]).with_code(0);
    assert!(
        ran.err.contains("others may read") && ran.err.contains("chmod 600"),
        "{}",
        ran.err
    );
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(passwd(&[&flag]).err, "");
    for argument in ["--password=x", "--password", NEW] {
        assert_eq!(passwd(&[argument]).code, Some(64), "{argument}");
    }
    let ran = passwd(&[]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""), "nobody can be asked: {}", ran.err);
    assert!(ran.err.contains("--password-file"), "{}", ran.err);
    let service = scene.start();
    assert_eq!(login(&service, NEW).status, 200);
}

#[test]
fn what_is_no_usable_password_changes_nothing() {
    let (scene, out) = (stopped(), tempfile::tempdir().unwrap());
    let state = scene.state.path();
    let long = "ä".repeat(257);
    let far_too_long = "x".repeat(5_000);
    for (text, why) in [
        ("", "is empty"),
        ("\n", "is empty"),
        ("seven77\n", "at least 8 characters"),
        (&long, "at most 256 characters"),
        (&far_too_long, "more than 4096 bytes"),
        ("password123\n", "one of the most common"),
        ("nine green parrots\nnine green parrots\n", "one line"),
    ] {
        for args in [["passwd", EMAIL], ["add", "ravi@example.com"]] {
            let ran = user_with(&scene, &args, text);
            assert_eq!((ran.code, ran.out.as_str()), (Some(65), ""), "{text:.20}: {}", ran.err);
            assert!(ran.err.contains(why), "{text:.20}: {}", ran.err);
            let shown = text.trim_end();
            assert!(shown.is_empty() || !ran.err.contains(shown), "{}", ran.err);
        }
    }
    let file = out.path().join("latin1");
    fs::write(&file, b"caf\xe9 con leche\n").unwrap();
    for (path, why) in [
        (file, "not UTF-8"),
        (out.path().join("no"), "No such"),
        (out.path().into(), "directory"),
    ] {
        let flag = format!("--password-file={}", path.display());
        let ran = run(&mut bhav(&["user", "passwd", EMAIL, &state_flag(state), &flag]));
        assert_eq!((ran.code, ran.out.as_str()), (Some(65), ""), "{path:?}: {}", ran.err);
        assert!(ran.err.contains(why), "{path:?}: {}", ran.err);
    }
    user_with(&scene, &["passwd", "nobody@example.com"], NEW).with_code(64);
    // All letters differ: a repeated one would be refused.
    let longest: String = ('\u{100}'..).take(256).collect();
    assert_eq!(user_with(&scene, &["passwd", EMAIL], &longest).code, Some(0));
    let service = scene.start();
    assert_eq!((login(&service, &longest).status, login(&service, OLD).status), (200, 401));
    assert_eq!(service.post("/api/auth/login", "", "{}").status, 400);
}

/// The test holds the lock in place of a service that does not notice, so that the command still
/// runs while its memory is searched.
#[test]
fn a_password_is_wiped_once_it_is_stored() {
    let scene = stopped();
    let Ok(StateLock::Held(_lock)) = state_lock::take(scene.state.path()) else {
        panic!("somebody else has the state");
    };
    let canaries = Canaries::new();
    let password = canaries.make("password", "passwd");
    let mut command = bhav(&["user", "passwd", EMAIL, "--password-file=-"]);
    command.arg(state_flag(scene.state.path()));
    // A control: the search finds a value that is there.
    command.env("CONTROL", canaries.make("control", "environment"));
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(password.as_bytes())
        .unwrap();
    // The command has begun to report that the password is stored.
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let found = canaries.in_memory_of(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(canaries.copies_of("control", &found) > 0);
    assert_eq!(canaries.told("password", &found), Vec::<String>::new());
}
