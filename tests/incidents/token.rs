//! Broker A's token ends at 06:00 and nobody is awake.

use jiff::Timestamp;
use sonic_rs::JsonValueTrait;

use super::morning::Morning;
use crate::support::{SNAPSHOT, Scene, bhav, run, until};

const LINK: &str = "https://kite.zerodha.com/connect/login?v=3&api_key=simkeya";

#[test]
fn a_token_dies_at_six_and_a_new_one_is_taken_without_a_restart() {
    let morning = Morning::at("2026-11-20T05:59:57+05:30");
    let program = morning.start();
    let mut client = program.client();
    until("data", || (client.get(SNAPSHOT).status == 200).then_some(()));
    let status = morning.told(&program.address, "broker_a_token_dead");
    assert_eq!(status.code, Some(1), "{}", status.screen);
    assert!(status.screen.contains(LINK), "{}", status.screen);
    assert!(status.screen.contains("run: bhav token a"), "{}", status.screen);
    assert_eq!(client.get("/brokera/status").json()["valid"], false);
    // The last closing prices stay served.
    morning.honest(&mut client);
    give_token(&morning, &program.address);
    assert_eq!(client.get("/brokera/status").json()["valid"], true);
    morning.well(&program.address);
}

/// A whole night and morning on one clock that the test advances. The service runs inside the test.
#[test]
fn a_token_given_at_ten_past_nine_serves_the_opening() {
    let morning = Morning::at("2026-11-20T05:59:57+05:30");
    let clock = &morning.scene.clock;
    let mut config = morning.scene.config();
    config.broker_a.api_secret = Some("simsecreta".into());
    let service = Scene::started(&config, clock);
    let mut client = service.client();
    until("data", || (client.get(SNAPSHOT).status == 200).then_some(()));
    // The last session is revalued before the next begins: an interrupted run would be given up.
    until("the close revalued", || {
        let health = client.get("/api/health").json();
        health["close"]["date"] == "2026-11-19" && health["warmers"]["close"] == "paused"
    });
    // Nobody acts until ten past nine.
    clock.jump_ms(
        "2026-11-20T09:10:00+05:30"
            .parse::<Timestamp>()
            .unwrap()
            .as_millisecond()
            - clock.now_ms(),
    );
    let status = morning.told(service.0.address(), "broker_a_token_dead");
    assert!(status.screen.contains(LINK), "{}", status.screen);
    morning.honest(&mut client);
    give_token(&morning, service.0.address());
    clock.jump_ms(
        "2026-11-20T09:15:10+05:30"
            .parse::<Timestamp>()
            .unwrap()
            .as_millisecond()
            - clock.now_ms(),
    );
    until("the opening, fresh from broker A", || {
        let json = client.get(SNAPSHOT).json();
        let market = &json["market"];
        let opened = market["phase"] == "open" && market["source"] == "broker_a";
        (opened && market["stale"] == false).then_some(())
    });
    morning.well(service.0.address());
}

/// The operator logs in and runs the command.
fn give_token(morning: &Morning, address: &str) {
    let json = morning
        .scene
        .control("POST", "broker_a/request_token", "")
        .json();
    let code = json["request_token"].as_str().unwrap();
    let url = format!("--url=http://{address}");
    let ran = run(&mut bhav(&["token", "a", &url, "--code", code])).with_code(0);
    assert!(ran.out.contains("the token is valid until"), "{}", ran.out);
}
