//! The real program with good and bad settings: exit codes, messages, and values that it never
//! prints.

#[cfg(feature = "engines")]
use crate::support::state_flag;
use crate::support::{Program, Ran, Scene, TRADING, bhav, run, serve};
use bhav::config::settings::REMOVED;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;

fn check_with(env: &[(&str, &str)], flags: &[&str]) -> Ran {
    run(bhav(&["config", "check"])
        .args(flags)
        .envs(env.iter().copied()))
}

#[track_caller]
fn expect_in(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing from:\n{text}");
    }
}

#[test]
fn no_settings_are_good_settings() {
    let ran = check_with(&[], &[]).with_code(0);
    expect_in(
        &ran.out,
        &[
            "BHAV_LISTEN=127.0.0.1:8080  # default\n",
            "BHAV_STATE_DIR=./bhav-state  # default\n",
        ],
    );
    assert_eq!(ran.err, "");
}

#[test]
fn settings_in_force_are_shown_with_their_origin() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("BROKERB_API_KEY"), "s3cr3t-credential\n").unwrap();
    let file = directory.path().join("token");
    std::fs::write(&file, "s3cr3t-file\n").unwrap();
    let ran = check_with(
        &[
            ("CREDENTIALS_DIRECTORY", directory.path().to_str().unwrap()),
            ("BROKERA_ACCESS_TOKEN_FILE", file.to_str().unwrap()),
            ("BROKERA_API_KEY", "s3cr3t-variable"),
            ("BHAV_EDGE_THREADS", "3"),
        ],
        &["--max-connections", "77"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    expect_in(
        &ran.out,
        &[
            "BHAV_EDGE_THREADS=3  # environment\n",
            "BHAV_MAX_CONNECTIONS=77  # flag\n",
            "BROKERA_API_KEY=***  # environment\n",
            "BROKERA_ACCESS_TOKEN=***  # file ",
            "BROKERB_API_KEY=***  # credential ",
            "JWT_SECRET=  # not set\n",
            "# warning: BROKERA_API_KEY came from the environment",
        ],
    );
    assert!(
        !ran.out.contains("s3cr3t") && !ran.err.contains("s3cr3t"),
        "{}{}",
        ran.out,
        ran.err
    );
}

#[test]
#[cfg(feature = "engines")]
fn a_node_of_several_does_not_start_without_the_key_of_all() {
    let url = ("BHAV_STORE_URL", "postgres://bhav@db.example.com/bhav");
    let state = tempfile::tempdir().unwrap();
    for command in [&["config", "check"][..], &["serve"]] {
        let ran = run(bhav(command).envs([url]).arg(state_flag(state.path())));
        assert_eq!(ran.code, Some(64), "{command:?}: {}", ran.err);
        expect_in(
            &ran.err,
            &[
                "JWT_SECRET is not set, and BHAV_STORE_URL needs it",
                "cure: give all nodes the same",
            ],
        );
        assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0, "nothing was begun");
    }
    let key = ("JWT_SECRET", "a key that all the nodes know, as they must");
    assert_eq!(check_with(&[url, key], &[]).code, Some(0));
    let ran = check_with(
        &[
            ("BHAV_CACHE_URL", "unix:/run/valkey.sock"),
            ("BHAV_NODE", "a"),
        ],
        &[],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    expect_in(
        &ran.out,
        &[
            "# warning: BHAV_CACHE_URL=",
            "alone",
            "# warning: BHAV_NODE=a has no",
        ],
    );
}

#[test]
fn all_faults_come_at_once_with_their_cure() {
    for command in [&["config", "check"][..], &["serve"], &["demo"], &["sim"]] {
        let ran = run(bhav(command).envs([
            ("BHAV_MAX_CONNECTIONS", "0"),
            ("BHAV_BROKERA_URL", "ftp://broker.example"),
            ("BHAV_LISTN", "127.0.0.1:0"),
            ("BHAV_NOW", "half past nine"),
            ("BROKERA_API_SECRET", "s3cr3t\u{7}"),
        ]));
        assert_eq!(ran.code, Some(64), "{command:?}: {}", ran.err);
        expect_in(
            &ran.err,
            &[
                "5 settings are wrong",
                "BHAV_MAX_CONNECTIONS=0 (environment) is below 1\n    cure: give a whole number",
                "BHAV_BROKERA_URL=ftp://broker.example",
                "did you mean BHAV_LISTEN?",
                "BHAV_NOW=half past nine",
                "2026-11-20T10:00:00+05:30",
                "BROKERA_API_SECRET=***",
            ],
        );
        assert!(!ran.err.contains("s3cr3t"), "{}", ran.err);
        assert_eq!(ran.out, "");
    }
}

#[test]
fn the_market_files_are_read_as_well() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "garbage").unwrap();
    let path = file.path().to_str().unwrap();
    for name in [
        "BHAV_CALENDAR_FILE",
        "BHAV_INDICES_FILE",
        "BHAV_UNIVERSE_FILE",
        "BHAV_SECTORS_FILE",
        "BHAV_FMV_FILE",
    ] {
        let ran = check_with(&[(name, path)], &[]);
        assert_eq!(ran.code, Some(64), "{name}: {}", ran.out);
        expect_in(&ran.err, &[&format!("{path}:1:")]);
    }
}

#[test]
fn files_are_told_of_together_with_settings_and_the_master_is_read() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "root:x:0:0:root:/home:/bin/sh\n").unwrap();
    let path = file.path().to_str().unwrap();
    let bad = [
        ("BHAV_CALENDAR_FILE", path),
        ("BHAV_UNIVERSE_FILE", path),
        ("BHAV_BROKERB_MASTER_FILE", path),
        ("BHAV_MAX_CONNECTIONS", "0"),
    ];
    let ran = check_with(&bad, &["--indices-file", path]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""));
    let master = format!("BHAV_BROKERB_MASTER_FILE={path} (environment) cannot be used: ");
    let indices = format!("BHAV_INDICES_FILE={path} (flag) cannot be used: ");
    expect_in(
        &ran.err,
        &[
            "5 settings are wrong",
            "BHAV_CALENDAR_FILE=",
            "BHAV_UNIVERSE_FILE=",
            &master,
            &indices,
        ],
    );
    // The service itself starts without the master, but reports all faults if it does not start.
    let ran = run(bhav(&["serve"]).envs(bad));
    assert_eq!(ran.code, Some(64));
    expect_in(&ran.err, &["4 settings are wrong"]);
}

#[test]
fn a_fault_of_a_secret_names_its_variable_and_where_that_stands() {
    let directory = tempfile::tempdir().unwrap();
    let (env_file, key) = (directory.path().join("bhav.env"), directory.path().join("key"));
    std::fs::write(&key, "short").unwrap();
    let (env_file, key) = (env_file.to_str().unwrap(), key.to_str().unwrap());
    let lines = format!(
        "# Keys\nBROKERA_API_KEY_FILE={key}-not-there\nJWT_SECRET_FILE={key}\n\
         BROKERB_API_KEY=s3cr3t\u{7}\n"
    );
    std::fs::write(env_file, lines).unwrap();
    let ran = check_with(&[], &["--env-file", env_file]);
    assert_eq!(ran.code, Some(64));
    expect_in(
        &ran.err,
        &[
            &format!("BROKERA_API_KEY_FILE={key}-not-there ({env_file} line 2) cannot be read: "),
            &format!("JWT_SECRET_FILE={key} ({env_file} line 3) has a key shorter"),
            &format!(
                "BROKERB_API_KEY=*** ({env_file} line 4) has what nobody sees: character 7 is a"
            ),
        ],
    );
    assert!(!ran.err.contains("s3cr3t"), "{}", ran.err);
}

#[test]
fn a_misspelt_secret_is_a_fault_like_a_misspelt_setting() {
    for (name, known) in [
        ("BROKERA_API_KEYS", "BROKERA_API_KEY"),
        ("BROKERA_ACESS_TOKEN_FILE", "BROKERA_ACCESS_TOKEN_FILE"),
        ("BROKERB_SECRET", "BROKERB_API_SECRET"),
        ("BROKER_A_API_KEY", "BROKERA_API_KEY"),
        ("BROKERA_URL", "BHAV_BROKERA_URL"),
        ("JWT_SECERT", "JWT_SECRET"),
        ("JWT_SECRET_KEY", "JWT_SECRET"),
        ("JWT_SECRETS_FILE", "JWT_SECRET_FILE"),
        ("JWT_PREVIOUS_SECRET", "JWT_PREVIOUS_SECRETS"),
    ] {
        let env = [(name, "s3cr3t-value")];
        for ran in [check_with(&env, &[]), run(bhav(&["serve"]).envs(env))] {
            assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""), "{name}: {}", ran.err);
            expect_in(
                &ran.err,
                &[&format!(
                    "{name} (environment) is no setting\n    cure: did you mean {known}?"
                )],
            );
            assert!(!ran.err.contains("s3cr3t"), "{}", ran.err);
        }
    }
    let ran = check_with(&[("BROKERB_QQQQ", "x")], &[]);
    assert_eq!(ran.code, Some(64), "nobody else has names like that: {}", ran.out);
    // Other programs have such names, and no name of ours resembles them.
    for name in [
        "JWT_ALGORITHM",
        "JWT_ISSUER",
        "JWT_EXPIRES_IN",
        "JWT_TOKEN",
        "BROKER_URL",
    ] {
        let ran = check_with(&[(name, "x")], &[]);
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.err);
        let told = ran
            .out
            .contains(&format!("# warning: {name} is no setting of bhav"));
        assert_eq!(told, name.starts_with("JWT_"), "{}", ran.out);
    }
}

#[test]
fn a_setting_of_an_earlier_version_keeps_nobody_from_starting() {
    let scene = Scene::at(TRADING);
    let (env_file, log) = (scene.state.path().join("bhav.env"), scene.state.path().join("log"));
    let lines = REMOVED.map(|name| format!("{name}=7\n")).concat();
    std::fs::write(&env_file, lines).unwrap();
    let ran = check_with(&[("BHAV_ENV_FILE", env_file.to_str().unwrap())], &[]).with_code(0);
    let mut command = serve(&scene, &scene.state.path().join("state"));
    command
        .env("BHAV_ENV_FILE", &env_file)
        .stderr(File::create(&log).unwrap());
    let mut program = Program::of(&mut command);
    program.terminate();
    assert!(program.exit().success());
    let logged = std::fs::read_to_string(log).unwrap();
    for (line, name) in (1..).zip(REMOVED) {
        let warning = format!("{name} ({} line {line}) is no longer a setting", env_file.display());
        expect_in(&ran.out, &[&format!("# warning: {warning}")]);
        expect_in(&logged, &[&warning]);
    }
}

#[test]
fn a_value_that_is_not_text_is_a_fault() {
    let ran = run(bhav(&["config", "check"]).env("BHAV_LOG", OsStr::from_bytes(b"in\xfffo")));
    assert_eq!(ran.code, Some(64));
    expect_in(&ran.err, &["BHAV_LOG", "is not UTF-8 text"]);
}

#[test]
fn listening_wider_is_allowed_and_told() {
    let ran = check_with(&[("BHAV_LISTEN", "0.0.0.0:8080")], &[]).with_code(0);
    expect_in(&ran.out, &["# warning: BHAV_LISTEN=0.0.0.0:8080", "regulated in India"]);
}

#[test]
fn a_wrong_command_line_exits_64() {
    for args in [
        &[][..],
        &["serv"],
        &["config"],
        &["serve", "--no-such-flag"],
        &["serve", "--listen"],
        &["serve", "--sim-listen", "127.0.0.1:0"],
        &["serve", "extra"],
    ] {
        let ran = run(&mut bhav(args));
        assert_eq!(ran.code, Some(64), "{args:?}: {}", ran.err);
        expect_in(
            &ran.err,
            &[if args == ["serve", "--listen"] {
                "<ADDR>"
            } else {
                "Usage: bhav"
            }],
        );
    }
}

#[test]
fn secrets_have_no_flag() {
    for secret in [
        "jwt-secret",
        "brokera-api-key",
        "brokera-access-token",
        "brokerb-api-secret",
    ] {
        let ran = run(&mut bhav(&["serve", &format!("--{secret}"), "s3cr3t"]));
        assert_eq!(ran.code, Some(64), "{secret}");
        assert!(!ran.err.contains("s3cr3t"), "{}", ran.err);
    }
}

#[test]
fn help_is_for_people() {
    let ran = run(&mut bhav(&["--help"]));
    assert_eq!(ran.code, Some(0));
    expect_in(
        &ran.out,
        &[
            "bhav demo",
            "config check",
            "Exit codes:",
            "64  wrong",
            "not investment advice",
        ],
    );
    let ran = run(&mut bhav(&["serve", "--help"]));
    assert_eq!(ran.code, Some(0));
    expect_in(
        &ran.out,
        &[
            "HTTP limits:",
            "[default: 65536]",
            "[env: BHAV_LISTEN]",
            "regulated",
        ],
    );
    assert!(!ran.out.contains("--sim-listen"), "the service has no simulator");
    let ran = run(&mut bhav(&["sim", "--help"]));
    expect_in(&ran.out, &["--listen", "--seed", "--now", "--log-format"]);
    assert!(!ran.out.contains("--state-dir"), "the simulator keeps nothing");
}

#[test]
fn version_and_template_are_printed() {
    let ran = run(&mut bhav(&["version"]));
    assert_eq!(ran.code, Some(0));
    expect_in(&ran.out, &[concat!("bhav ", env!("CARGO_PKG_VERSION"), " (")]);
    let ran = run(&mut bhav(&["config", "template"]));
    assert_eq!(ran.out, include_str!("../../systemd/bhav.env"));
}

#[test]
fn a_reader_that_went_away_is_no_fault() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = bhav(&["config", "check"]).stdout(writer).status().unwrap();
    assert_eq!(status.code(), Some(0));
}
