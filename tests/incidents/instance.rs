//! A second instance is started on the state of the first.

use std::net::TcpListener;

use super::morning::Morning;
use crate::commands::expect_screen;
use crate::support::{Program, SNAPSHOT, bhav, refused, run, state_flag, until};

#[test]
fn a_second_instance_on_the_state_is_refused_and_the_first_goes_on() {
    let morning = Morning::at("2026-11-20T11:00:00+05:30");
    let program = morning.start();
    let mut client = program.client();
    until("data", || (client.get(SNAPSHOT).status == 200).then_some(()));
    let flags = morning.flags("127.0.0.1:0");
    let flags: Vec<&str> = flags
        .iter()
        .skip(1)
        .map(String::as_str)
        .filter(|flag| !flag.starts_with("--admin-listen"))
        .collect();
    let (code, said) = refused(&flags);
    assert_eq!(code, Some(69), "{said}");
    assert!(said.contains("in use by another instance"), "{said}");
    assert!(said.contains(morning.state.to_str().unwrap()), "{said}");
    morning.serves(&mut client, "broker_a", false);
    // A command with the second instance's address learns of the first.
    let nowhere = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = nowhere.local_addr().unwrap().to_string();
    drop(nowhere);
    let status = morning.told(&address, "silent");
    assert_eq!(status.code, Some(2), "{}", status.screen);
    morning.well(&program.address);
}

/// The kernel accepts and no process does, as with all connections taken.
#[test]
fn a_service_that_takes_no_connection_is_told_from_one_that_is_not_there() {
    let morning = Morning::at("2026-11-20T11:00:00+05:30");
    let program = morning.start();
    let crowded = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("--url=http://{}", crowded.local_addr().unwrap());
    let ran = run(&mut bhav(&["status", &url, &state_flag(&morning.state)]));
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    expect_screen(&ran.out);
    for part in [
        "takes no further connection or hangs",
        "raise BHAV_MAX_CONNECTIONS",
    ] {
        assert!(ran.out.contains(part), "{part} is not in\n{}", ran.out);
    }
    drop(program);
}

/// The operator's listener reports that the service lives.
#[test]
fn every_connection_taken_is_told_from_a_service_that_hangs() {
    let morning = Morning::at("2026-11-20T11:00:00+05:30");
    let mut command = morning.serve("127.0.0.1:0");
    let program = Program::of(command.arg("--max-connections=1"));
    let mut only = program.client();
    until("data", || (only.get(SNAPSHOT).status == 200).then_some(()));
    let mut lines = program.printed.lines();
    let admin = lines
        .find_map(|line| line.strip_prefix("metrics on http://"))
        .unwrap();
    let ran = run(bhav(&["status", &state_flag(&morning.state)])
        .env("BHAV_LISTEN", &program.address)
        .env("BHAV_ADMIN_LISTEN", admin.strip_suffix("/metrics").unwrap()));
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    expect_screen(&ran.out);
    for part in [
        "is alive, but takes no further connection",
        "raise BHAV_MAX_CONNECTIONS",
    ] {
        assert!(ran.out.contains(part), "{part} is not in\n{}", ran.out);
    }
    assert_eq!(only.get(SNAPSHOT).status, 200, "who is connected is served");
}
