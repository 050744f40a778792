//! The exit codes documented in the help and in docs/operating.md: each of their cases through the
//! real program, and no other code.

use std::fs::{self, OpenOptions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use bhav::ops::exit;
use bhav::store::FILE_NAME;

use crate::support::source::root;
use crate::support::wait::at_once;
use crate::support::{
    Program, Ran, Scene, Signal, TRADING, bhav, by_shell, few_candles, run, run_with, serve,
    state_flag, until,
};

/// Each code with its meaning in one line, as a help text lists them.
fn listed(help: &str) -> Vec<(i32, String)> {
    let mut rows: Vec<(i32, String)> = Vec::new();
    for line in help.lines().skip(1) {
        let (code, text) = line
            .trim_start()
            .split_once("  ")
            .unwrap_or(("", line.trim_start()));
        match (code.parse(), rows.last_mut()) {
            (Ok(code), _) => rows.push((code, text.trim().to_owned())),
            (Err(_), Some((_, meaning))) => {
                meaning.push(' ');
                meaning.push_str(line.trim());
            }
            (Err(_), None) => panic!("{line}"),
        }
    }
    rows
}

#[test]
fn help_and_the_page_on_operating_say_the_same() {
    let page = fs::read_to_string(root().join("docs/operating.md")).unwrap();
    let section = page.split("\n## Exit codes\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let table = section.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        Some((cells.get(1)?.parse::<i32>().ok()?, (*cells.get(2)?).to_owned()))
    });
    let help = listed(exit::HELP);
    assert_eq!(help.iter().map(|(code, _)| *code).collect::<Vec<_>>(), ALL);
    assert_eq!(table.collect::<Vec<_>>(), help);
    let ran = run(&mut bhav(&["serve", "--help"]));
    assert!(ran.out.contains(exit::HELP), "{}", ran.out);
}

const ALL: [i32; 8] = [0, 1, 2, 64, 65, 69, 70, 74];

#[track_caller]
fn expect(what: &str, ran: &Ran, code: i32, word: &str) {
    assert_eq!(ran.code, Some(code), "{what}: {}{}", ran.out, ran.err);
    let said = [&ran.out, &ran.err];
    assert!(said.iter().any(|text| text.contains(word)), "{what}: no {word} in {said:?}");
}

/// `bhav serve` in the scene's world. It is expected to end by itself.
fn served(scene: &Scene, state: &Path, listen: &str) -> Ran {
    let mut command = bhav(&["serve", "--admin-listen=off", &few_candles()]);
    run(command
        .args(scene.flags(state))
        .arg(format!("--listen={listen}")))
}

const FREE: &str = "127.0.0.1:0";

#[test]
fn done_is_0_and_so_is_a_stop_by_either_signal() {
    expect("version", &run(&mut bhav(&["version"])), 0, "bhav");
    expect("help", &run(&mut bhav(&["--help"])), 0, "Usage");
    let scene = Scene::at(TRADING);
    for signal in [Signal::TERM, Signal::INT] {
        let mut program = Program::of(&mut serve(&scene, scene.state.path()));
        program.signal(signal);
        assert_eq!(program.exit().code(), Some(0), "{signal:?}");
    }
}

#[test]
fn status_alone_ends_with_1_and_2() {
    let (scene, service) = Scene::trading_on(Scene::config_without_tokens);
    service.fresh_snapshot();
    let url = format!("--url=http://{}", service.0.address());
    let status = || run(&mut bhav(&["status", &url, &state_flag(scene.state.path())]));
    let degraded =
        until("a status that is not down", || Some(status()).filter(|ran| ran.code != Some(2)));
    expect("degraded", &degraded, 1, "bhav is degraded");
    service.stop();
    expect("down", &status(), 2, "bhav is down");
}

#[test]
fn a_wrong_command_line_settings_and_a_database_that_is_not_ours_are_64() {
    expect("command line", &run(&mut bhav(&["serve", "--no-such-flag"])), 64, "Usage");
    let ran = run(bhav(&["serve"]).env("BHAV_LOG_FORMAT", "xml"));
    expect("settings", &ran, 64, "BHAV_LOG_FORMAT");
    let scene = Scene::at(TRADING);
    let calendar = scene.state.path().join("calendar");
    fs::write(&calendar, "garbage").unwrap();
    let mut command = serve(&scene, scene.state.path());
    command
        .env("BHAV_CALENDAR_FILE", &calendar)
        .stderr(Stdio::piped());
    expect("a file that settings name", &run(&mut command), 64, "calendar:1: ");
    scene.start().stop();
    let file = scene.state.path().join(FILE_NAME);
    for (pragma, value, word) in [
        ("user_version", 99, "newer"),
        ("application_id", 7, "not a database of this program"),
    ] {
        let connection = rusqlite::Connection::open(&file).unwrap();
        let before: i64 = connection
            .pragma_query_value(None, pragma, |row| row.get(0))
            .unwrap();
        connection.pragma_update(None, pragma, value).unwrap();
        drop(connection);
        expect(pragma, &served(&scene, scene.state.path(), FREE), 64, word);
        let connection = rusqlite::Connection::open(&file).unwrap();
        connection.pragma_update(None, pragma, before).unwrap();
    }
}

#[test]
fn what_was_given_to_work_on_and_cannot_be_used_is_65() {
    let (scene, out) = (Scene::at(TRADING), tempfile::tempdir().unwrap());
    scene.start().stop();
    let state = state_flag(scene.state.path());
    let ran = run_with(&mut bhav(&["token", "a", "--url=unix:nowhere"]), "no code here\n");
    expect("code", &ran, 65, "no request_token");
    let mut add = bhav(&["user", "add", "a@example.com", "--password-file=-", &state]);
    expect("password", &run_with(&mut add, "short"), 65, "at least 8 characters");
    let backup = out.path().join("missing");
    let restore = bhav(&["restore", backup.to_str().unwrap(), "--yes", &state])
        .output()
        .unwrap();
    assert_eq!(restore.status.code(), Some(65));
}

#[test]
fn an_address_a_state_a_service_or_a_broker_that_cannot_be_had_is_69() {
    let (scene, out) = (Scene::at(TRADING), tempfile::tempdir().unwrap());
    let service = scene.start_with(&scene.config_without_tokens());
    expect("address", &served(&scene, out.path(), service.0.address()), 69, "in use");
    let other = served(&scene, out.path(), "192.0.2.1:1");
    expect("an address that is not this machine's", &other, 69, "cannot listen");
    let held = served(&scene, scene.state.path(), FREE);
    expect("state", &held, 69, "in use by another instance");
    let listen = format!("--listen={}", scene.sim.addr());
    expect("sim", &run(&mut bhav(&["sim", &listen])), 69, "simulator");
    let nobody = run_with(&mut bhav(&["token", "a", "--url=unix:nowhere"]), "abc\n");
    expect("service", &nobody, 69, "does not answer");
    scene.refuse_all();
    let url = format!("--url=http://{}", service.0.address());
    let ran = run_with(&mut bhav(&["token", "a", &url]), "abc\n");
    expect("broker", &ran, 69, "broker A");
}

#[test]
fn what_cannot_be_made_or_written_is_74() {
    let (scene, out) = (Scene::at(TRADING), tempfile::tempdir().unwrap());
    scene.start().stop();
    let file = out.path().join("file");
    fs::write(&file, "").unwrap();
    let below = file.join("state");
    expect("state", &served(&scene, &below, FREE), 74, "state directory");
    let key = out.path().join("jwt.key");
    fs::write(&key, "no key").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    expect("key", &served(&scene, out.path(), FREE), 74, "contains no key");
    let state = state_flag(scene.state.path());
    let ran = run(bhav(&["backup", &state]).arg(&below));
    expect("backup", &ran, 74, below.to_str().unwrap());
    let written = |command: &mut Command| {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        Ran {
            code: output.status.code(),
            out: String::new(),
            err,
        }
    };
    let ran = written(&mut bhav(&["config", "template"]));
    expect("output", &ran, 74, "standard output: ");
}

/// Whichever descriptor is missing. Never 64, after which systemd does not try again.
#[test]
fn a_shortage_of_descriptors_is_70() {
    let scene = Scene::at(TRADING);
    // Held, so that no other program gets the port and nothing is fetched.
    let nowhere = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", nowhere.local_addr().unwrap());
    at_once([5, 8, 11, 14, 17], |descriptors| {
        let state = scene.state.path().join(descriptors.to_string());
        let limited = format!("ulimit -n {descriptors}; exec \"$0\" \"$@\"");
        let mut command = by_shell(&limited);
        command.args([
            "serve",
            "--listen=127.0.0.1:0",
            "--admin-listen=off",
            &few_candles(),
        ]);
        command
            .arg(state_flag(&state))
            .arg(format!("--public-url={url}"));
        let ran = run(&mut command);
        assert_eq!(ran.code, Some(70), "{descriptors}: {}", ran.err);
        assert!(ran.err.contains("level=error"), "{descriptors}: {}", ran.err);
    });
}
