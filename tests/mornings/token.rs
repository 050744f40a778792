//! Broker A's token ends at 06:00 and nobody is awake.

use sonic_rs::JsonValueTrait;

use super::morning::Morning;
use crate::commands::{bhav, run};
use crate::service::support::{Client, SNAPSHOT, until};

const LINK: &str = "https://kite.zerodha.com/connect/login?v=3&api_key=simkeya";

#[test]
fn a_token_dies_at_six_and_a_new_one_is_taken_without_a_restart() {
    let morning = Morning::at("2026-11-20T05:59:57+05:30");
    let program = morning.start();
    let mut client = Client::connect(&program.address);
    until("data", || (client.get(SNAPSHOT).status == 200).then_some(()));
    let status = morning.told(&program.address, "broker_a_token_dead");
    assert_eq!(status.code, Some(1), "{}", status.screen);
    assert!(status.screen.contains(LINK), "{}", status.screen);
    assert!(status.screen.contains("run: bhav token a"), "{}", status.screen);
    assert_eq!(client.get("/brokera/status").json()["valid"], false);
    // The last closing prices are served on.
    morning.honest(&mut client);
    give_token(&morning, &program.address);
    assert_eq!(client.get("/brokera/status").json()["valid"], true);
    morning.well(&program.address);
}

/// The operator logs in and runs the command.
pub fn give_token(morning: &Morning, address: &str) {
    let json = morning.scene.control("POST", "broker_a/request_token", "").json();
    let code = json["request_token"].as_str().unwrap();
    let url = format!("--url=http://{address}");
    let ran = run(&mut bhav(&["token", "a", &url, "--code", code]));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("the token is valid until"), "{}", ran.out);
}
