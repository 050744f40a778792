//! The file with the signing key is missing or replaced while the service runs. Only the next start
//! needs it.

use std::fs;
use std::process::Stdio;

use sonic_rs::JsonValueTrait;

use super::morning::Morning;
use crate::support::{Client, Program, SNAPSHOT, bearer, until};

#[test]
fn a_signing_key_that_goes_is_told_before_the_start_that_ends_every_login() {
    let morning = Morning::at("2026-11-20T11:00:00+05:30");
    let log = morning.state.with_extension("log");
    let mut command = morning.serve("127.0.0.1:0");
    command.stderr(Stdio::from(fs::File::create(&log).unwrap()));
    let program = Program::of(&mut command);
    let mut client = program.client();
    until("data", || (client.get(SNAPSHOT).status == 200).then_some(()));
    let answer = client.account("register", "asha@example.com", "nine green parrots");
    let token = answer.field("access_token");
    let state = |client: &mut Client, word: &str| {
        until(word, || (client.get("/api/health").json()["signing_key"] == word).then_some(()));
    };
    state(&mut client, "kept");
    morning.well(&program.address);
    let (key, aside) = (morning.state.join("jwt.key"), morning.state.join("aside"));

    fs::rename(&key, &aside).unwrap();
    let status = morning.told(&program.address, "signing_key_lost");
    assert_eq!(status.code, Some(1), "{}", status.screen);
    let cause = status.json["troubles"][0]["cause"].as_str().unwrap();
    assert!(cause.ends_with("is missing: the next start ends every login"), "{cause}");
    state(&mut client, "missing");
    let answer = client.request("GET", "/api/journal", &bearer(&token));
    assert_eq!(answer.status, 200, "this service goes on with its own");
    assert!(!key.exists(), "removing it is how an operator ends every login");
    let said = fs::read_to_string(&log).unwrap();
    let lines = said
        .lines()
        .filter(|line| line.contains("signing key file removed or changed"));
    assert_eq!(lines.count(), 1, "{said}");

    fs::write(&key, fs::read_to_string(&aside).unwrap().replace(['0', '1'], "2")).unwrap();
    state(&mut client, "changed");
    fs::rename(&aside, &key).unwrap();
    state(&mut client, "kept");
    morning.well(&program.address);
    fs::remove_file(log).unwrap();
}
