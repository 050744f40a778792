//! Ways in which a database file goes back in time. In each of them, a token of an account that the
//! copy lacks is refused, also once another account has got its id.

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use crate::support::{
    Program, Ran, Scene, Service, TRADING, bearer, bhav, run, serve, state_flag, until,
};
use bhav::store::FILE_NAME;

const PASSWORD: &str = "nine green parrots";

/// The id of the account, from the token's middle part.
pub fn id_in(token: &str) -> String {
    let claims = BASE64_URL_SAFE_NO_PAD
        .decode(token.split('.').nth(1).unwrap())
        .unwrap();
    let claims = String::from_utf8(claims).unwrap();
    claims
        .split("\"sub\":\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned()
}

pub fn status(service: &Service, token: &str) -> u16 {
    service
        .client()
        .request("GET", "/api/journal", &bearer(token))
        .status
}

fn copy_folder(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        match fs::copy(entry.path(), to.join(entry.file_name())) {
            // A running service replaces files, so one may be gone since the list was read.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            copied => drop(copied.unwrap()),
        }
    }
}

fn command(state: &Path, args: &[&str]) -> Ran {
    let ran = run(bhav(args).arg(state_flag(state)));
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.err);
    ran
}

/// Copies the state between the first account and Alice's, with the service running or stopped,
/// restores the copy, and lets Bob register.
fn goes_back(runs: bool, copy: impl Fn(&Path, &Path), back: impl Fn(&Path, &Path)) {
    let scene = Scene::at(TRADING);
    let (state, aside) = (scene.state.path(), tempfile::tempdir().unwrap());
    let aside = aside.path().join("aside");
    let service = scene.start();
    let first = service.register("first@example.com", PASSWORD);
    let service = if runs {
        copy(state, &aside);
        service
    } else {
        service.stop();
        copy(state, &aside);
        scene.start()
    };
    let alice = service.register("alice@example.com", PASSWORD);
    assert_eq!((status(&service, &first), status(&service, &alice)), (200, 200));
    service.stop();
    back(state, &aside);
    let service = scene.start();
    assert_eq!(status(&service, &alice), 401, "before another has her id");
    let mut bob = service.register("bob@example.com", PASSWORD);
    if id_in(&bob) != id_in(&alice) {
        bob = service.register("carol@example.com", PASSWORD);
    }
    assert_eq!(id_in(&bob), id_in(&alice), "the test reaches what it is about");
    assert_eq!((status(&service, &bob), status(&service, &alice)), (200, 401));
    assert_eq!(status(&service, &first), 401, "nobody knows what the first has ended since");
    service.stop();
    let service = scene.start();
    assert_eq!((status(&service, &bob), status(&service, &alice)), (200, 401));
}

fn copy_file(from: &Path, to: &Path) {
    fs::copy(from.join(FILE_NAME), to).unwrap();
}

#[test]
fn by_backup_and_restore() {
    let backup = |state: &Path, aside: &Path| {
        command(state, &["backup", aside.to_str().unwrap()]);
    };
    let restore = |state: &Path, aside: &Path| {
        command(state, &["restore", aside.to_str().unwrap(), "--yes"]);
    };
    goes_back(true, backup, restore);
}

#[test]
fn by_a_file_that_is_copied_over() {
    goes_back(false, copy_file, |state, aside| {
        fs::copy(aside, state.join(FILE_NAME)).unwrap();
    });
}

#[test]
fn by_a_file_that_is_removed_and_put_back() {
    goes_back(false, copy_file, |state, aside| {
        fs::remove_file(state.join(FILE_NAME)).unwrap();
        fs::copy(aside, state.join(FILE_NAME)).unwrap();
    });
}

/// The operator has said that a new one is to be made.
#[test]
fn by_a_file_that_is_removed_with_its_mark() {
    goes_back(false, copy_file, |state, _| {
        fs::remove_file(state.join(FILE_NAME)).unwrap();
        fs::remove_file(state.join(format!("{FILE_NAME}.mark"))).unwrap();
    });
}

#[test]
fn by_a_folder_that_was_copied_while_stopped_and_is_put_back_whole() {
    goes_back(false, copy_folder, |state, aside| copy_folder(aside, state));
}

#[test]
fn by_a_folder_that_was_copied_while_running_and_is_put_back_whole() {
    goes_back(true, copy_folder, |state, aside| copy_folder(aside, state));
}

#[test]
fn by_a_folder_that_is_copied_over_the_present_files() {
    let over = |state: &Path, aside: &Path| {
        for entry in fs::read_dir(aside).unwrap().map(Result::unwrap) {
            fs::copy(entry.path(), state.join(entry.file_name())).unwrap();
        }
    };
    goes_back(false, copy_folder, over);
    goes_back(true, copy_folder, over);
}

/// A snapshot of the machine brings back every file as it was, and with it what would tell it. Here
/// the mark is made to fit.
#[test]
fn by_a_way_that_nobody_can_see_others_accounts_stay_closed_and_a_command_ends_the_rest() {
    let scene = Scene::still_at(TRADING);
    let (state, aside) = (scene.state.path(), tempfile::tempdir().unwrap());
    let aside = aside.path().join("aside");
    let service = scene.start();
    let first = service.register("first@example.com", PASSWORD);
    service.stop();
    copy_folder(state, &aside);
    let service = scene.start();
    let alice = service.register("alice@example.com", PASSWORD);
    service.stop();
    copy_file(&aside, &state.join(FILE_NAME));
    let mark = fs::read_to_string(aside.join(format!("{FILE_NAME}.mark"))).unwrap();
    let of_older_programs = mark.split(",\"file\"").next().unwrap().to_owned() + "}";
    fs::write(state.join(format!("{FILE_NAME}.mark")), of_older_programs).unwrap();
    let service = scene.start();
    let bob = service.register("bob@example.com", PASSWORD);
    assert_eq!(id_in(&bob), id_in(&alice));
    assert_eq!((status(&service, &bob), status(&service, &alice)), (200, 401));
    assert_eq!(status(&service, &first), 200, "what the documents say cannot be known");
    let ran = command(state, &["renew-identity", "--yes"]);
    assert!(ran.out.contains("everybody logs in again"), "{}", ran.out);
    scene.while_time_passes(|| {
        until("the command at the running service", || {
            status(&service, &first) == 401 && status(&service, &bob) == 401
        });
    });
    let again = service
        .account("login", "bob@example.com", PASSWORD)
        .field("access_token");
    assert_eq!(status(&service, &again), 200);
    service.stop();
    let service = scene.start();
    assert_eq!(
        (status(&service, &again), status(&service, &bob)),
        (200, 401),
        "a start keeps it"
    );
}

const LOST: &str = "the log beside the database";

/// The log of a start after the last process was killed and `spoil` was applied.
fn said_after_a_kill(spoil: impl Fn(&Path)) -> (String, bool) {
    let scene = Scene::at(TRADING);
    let log = tempfile::NamedTempFile::new().unwrap();
    let start = || {
        let stderr = log.reopen().unwrap();
        Program::of(serve(&scene, scene.state.path()).stderr(stderr))
    };
    let account = |program: &Program, action: &str| {
        let body = format!(r#"{{"email":"a@example.com","password":"{PASSWORD}"}}"#);
        program
            .client()
            .send_json("POST", &format!("/api/auth/{action}"), "", &body)
            .status
    };
    let mut program = start();
    assert_eq!(account(&program, "register"), 201);
    program.kill();
    spoil(scene.state.path());
    let mut program = start();
    let is_there = account(&program, "login") == 200;
    program.terminate();
    program.exit();
    (fs::read_to_string(log.path()).unwrap(), is_there)
}

#[test]
fn a_start_after_a_kill_says_that_the_log_is_gone() {
    let log = format!("{FILE_NAME}-wal");
    let (said, is_there) = said_after_a_kill(|state| fs::remove_file(state.join(&log)).unwrap());
    assert!(said.contains(LOST) && !is_there, "{said}");
}

#[test]
fn a_start_after_a_kill_says_nothing_of_a_log_that_is_there_or_was_moved_in() {
    let (said, is_there) = said_after_a_kill(|_| {});
    assert!(!said.contains(LOST) && is_there, "{said}");
    let (said, is_there) = said_after_a_kill(|state| {
        command(state, &["user", "list"]);
        command(state, &["user", "disable", "1"]);
        command(state, &["user", "enable", "1"]);
    });
    assert!(!said.contains(LOST) && is_there, "{said}");
}
