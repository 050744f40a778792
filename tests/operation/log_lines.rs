//! Log lines for an operator: their time has its zone, in each format.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use crate::support::without_admin;
use bhav::base::Clock;
use jiff::Timestamp;
use sonic_rs::{JsonValueTrait, Value};

/// Every line of a start that is refused because its address is taken.
fn lines(arrange: impl FnOnce(&mut Command)) -> Vec<String> {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("--listen={}", taken.local_addr().unwrap());
    let mut command = without_admin(&["serve", &listen]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    arrange(&mut command);
    let mut log = String::new();
    let mut child = command.spawn().unwrap();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut log).unwrap();
    }
    assert_eq!(child.wait().unwrap().code(), Some(69), "{log}");
    log.lines().map(str::to_owned).collect()
}

/// An instant in India's time, within a minute of now.
#[track_caller]
fn expect_now_in_ist(text: &str) {
    assert!(text.ends_with("+05:30") && text.len() == "2026-11-20T11:00:00.123+05:30".len());
    let at: Timestamp = text.parse().unwrap();
    let off = Clock::system().now().duration_since(at).as_secs();
    assert!(off.abs() < 60, "{text} is {off} s from now");
}

#[test]
fn a_line_of_logfmt_begins_with_its_time_in_ist() {
    let lines = lines(|_| {});
    assert!(lines.len() >= 2, "{lines:?}");
    for line in &lines {
        let rest = line
            .strip_prefix("ts=")
            .unwrap_or_else(|| panic!("no time: {line}"));
        let (at, rest) = rest.split_once(' ').unwrap();
        expect_now_in_ist(at);
        assert!(rest.starts_with("level="), "{line}");
    }
}

#[test]
fn a_line_of_json_has_its_time_in_ist() {
    let lines = lines(|command| {
        command.arg("--log-format=json");
    });
    assert!(lines.len() >= 2, "{lines:?}");
    for line in &lines {
        let line: Value = sonic_rs::from_str(line).unwrap();
        expect_now_in_ist(line["timestamp"].as_str().unwrap());
    }
}

/// journald stamps each line itself and shows it in the reader's zone.
#[test]
fn lines_for_the_journal_carry_no_second_time() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let lines = lines(|command| {
        let stream = File::from(OwnedFd::from(writer));
        let about = stream.metadata().unwrap();
        command.env("JOURNAL_STREAM", format!("{}:{}", about.dev(), about.ino()));
        command.stderr(stream);
    });
    assert!(lines.is_empty(), "standard error is the journal's");
    let mut log = String::new();
    reader.read_to_string(&mut log).unwrap();
    assert!(log.lines().count() >= 2, "{log}");
    assert!(log.lines().all(|line| line.starts_with("level=")), "{log}");
}
