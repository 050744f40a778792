//! Completions and manual pages. They name every command, flag and setting.

use std::fs;

use crate::support::{bhav, run};
use bhav::cli::command;
use bhav::config::settings::SETTINGS;
use clap::Command;

/// Every command below `command`, named as in `bhav-config-check`.
fn pages(command: &Command, name: &str, found: &mut Vec<(String, Vec<String>)>) {
    let flags = command
        .get_arguments()
        .filter_map(|arg| arg.get_long())
        .map(str::to_owned);
    found.push((name.to_owned(), flags.collect()));
    for below in command.get_subcommands() {
        pages(below, &format!("{name}-{}", below.get_name()), found);
    }
}

fn all_pages() -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    pages(&command(), "bhav", &mut found);
    assert!(found.len() > 20, "{found:?}");
    found
}

#[test]
fn completions_name_every_command_and_flag() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = run(&mut bhav(&["completions", shell]));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{shell}");
        for (name, flags) in all_pages() {
            let last = name.rsplit('-').next().unwrap();
            assert!(ran.out.contains(last), "{shell}: {name}");
            for flag in flags {
                assert!(ran.out.contains(&flag), "{shell}: {name} --{flag}");
            }
        }
    }
    assert_eq!(run(&mut bhav(&["completions", "cobol"])).code, Some(64));
}

#[test]
fn settings_that_take_one_of_some_words_show_them() {
    for help in ["-h", "--help"] {
        let ran = run(&mut bhav(&["serve", help]));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        let flags: Vec<&str> = ran.out.split("\n      --").collect();
        for (flag, values) in [
            ("registration <WORD>", "[possible values: open, first, closed]"),
            ("log-format <WORD>", "[possible values: logfmt, json]"),
            ("public-enabled <WORD>", "[possible values: true, false]"),
        ] {
            let shown = flags.iter().find(|text| text.starts_with(flag));
            let shown = shown.unwrap_or_else(|| panic!("{help}: no {flag}"));
            let one_line = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(one_line.contains(values), "{help}: {shown}");
        }
    }
    let ran = run(&mut bhav(&["completions", "bash"]));
    assert!(ran.out.contains("\"open first closed\""), "nothing to choose from");
    // All faults are reported together, also for the flag's other spellings.
    let ran = run(&mut bhav(&[
        "config",
        "check",
        "--registration=maybe",
        "--log-format=xml",
    ]));
    assert_eq!(ran.code, Some(64));
    assert!(ran.err.contains("2 settings are wrong"), "{}", ran.err);
    let ran = run(&mut bhav(&["config", "check", "--public-enabled=no"]));
    assert!(ran.out.contains("BHAV_PUBLIC_ENABLED=false  # flag"), "{}{}", ran.out, ran.err);
}

#[test]
fn manual_pages_name_every_command_flag_and_setting() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(&mut bhav(&["man", folder.path().to_str().unwrap()]));
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "", ""));
    // A dash is escaped in roff.
    let page = |name: &str| {
        let path = folder.path().join(format!("{name}.1"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        text.replace("\\-", "-")
    };
    for (name, flags) in all_pages() {
        let text = page(&name);
        for flag in flags {
            assert!(text.contains(&format!("--{flag}")), "{name} --{flag}");
        }
    }
    let demo = page("bhav-demo");
    for setting in SETTINGS {
        assert!(demo.contains(&format!("[env: {}]", setting.name)), "{}", setting.name);
    }
    assert!(page("bhav").contains("not investment advice"));
    // Each example is on a line of its own.
    let extra = page("bhav")
        .split(".SH EXTRA\n.nf\n")
        .nth(1)
        .unwrap()
        .to_owned();
    let (extra, rest) = extra.split_once("\n.fi\n").unwrap();
    assert!(
        extra
            .lines()
            .any(|line| line.trim_start().starts_with("bhav demo  ")),
        "{extra}"
    );
    assert!(rest.contains(".SH VERSION"), "{rest}");
    assert!(page("bhav-status").contains("1 degraded"));
    let missing = folder.path().join("missing");
    run(&mut bhav(&["man", missing.to_str().unwrap()])).with_code(74);
}

#[test]
fn settings_are_shown_with_their_origin_and_without_secrets() {
    let ran = run(bhav(&["config", "show", "--max-connections=77"])
        .env("BROKERA_API_KEY", "s3cr3t")
        .env("BHAV_EDGE_THREADS", "3"));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    for part in [
        "BHAV_EDGE_THREADS=3  # environment\n",
        "BHAV_MAX_CONNECTIONS=77  # flag\n",
        "BROKERA_API_KEY=***  # environment\n",
        "BHAV_LISTEN=127.0.0.1:8080  # default\n",
    ] {
        assert!(ran.out.contains(part), "{part} is not in\n{}", ran.out);
    }
    assert!(!ran.out.contains("s3cr3t"));
    let ran = run(bhav(&["config", "show"]).env("BHAV_EDGE_THREADS", "x"));
    assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""));
}
