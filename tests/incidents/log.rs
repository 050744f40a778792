//! The log has no reader: the pipe behind standard error is closed.

use std::process::Stdio;

use sonic_rs::JsonContainerTrait;

use super::morning::Morning;
use crate::support::{Program, SNAPSHOT, until};

#[test]
fn a_closed_log_pipe_is_told_and_nothing_else_changes() {
    let morning = Morning::with_public_delay("2026-11-20T11:00:00+05:30", 1);
    let mut command = morning.serve("127.0.0.1:0");
    let mut program = Program::of(command.stderr(Stdio::piped()));
    let mut client = program.client();
    until("data", || (client.get(SNAPSHOT).status == 200).then_some(()));
    morning.well(&program.address);
    drop(program.child.stderr.take());
    // Causes log lines.
    morning.scene.fault("broker_a", r#"{"kind":"refuse"}"#);
    morning.serves(&mut client, "public", false);
    assert_eq!(morning.scene.control("DELETE", "faults", "").status, 200);
    morning.serves(&mut client, "broker_a", false);
    let status = morning.told(&program.address, "log_lost");
    let log = status.json["troubles"].as_array().unwrap().iter();
    let log = log
        .clone()
        .find(|trouble| trouble["name"] == "log_lost")
        .unwrap();
    assert_eq!(log["severity"], "note", "prices are as good as before: {}", status.screen);
    morning.well(&program.address);
    program.ends();
}
