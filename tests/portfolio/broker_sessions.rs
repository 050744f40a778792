//! The session that a sync opens at broker A: ended after the sync without waiting, and kept if it
//! may be the server's own.

use std::sync::Arc;

use crossbeam_channel::unbounded;
use parking_lot::Mutex;
use sonic_rs::JsonValueTrait;

use crate::support::upstream::{Said, Upstream};
use crate::support::{Scene, Service, bearer, until};

const SYNC: &str = "/api/portfolio/sync";

fn order(key: &str, code: &str) -> String {
    format!(r#"{{"api_key":"{key}","api_secret":"simsecreta","request_token":"{code}"}}"#)
}

fn ends(service: &Service) -> Vec<(&'static str, u64)> {
    service
        .0
        .server()
        .shared()
        .service
        .state()
        .broker_a
        .session_ends()
}

fn count(service: &Service, end: &str) -> u64 {
    ends(service)
        .into_iter()
        .find(|(word, _)| *word == end)
        .unwrap()
        .1
}

#[test]
fn a_session_ends_with_its_sync_and_the_servers_own_lives_on() {
    let (scene, service) = Scene::trading();
    let user = bearer(&service.register("sessions@example.com", "a long enough secret"));
    let sync = |key: &str, code: &str| service.post(SYNC, &user, &order(key, code)).status;
    assert_eq!(sync("simkeya-1", &scene.request_token()), 200);
    until("the end of the session", || count(&service, "ended") == 1);
    // A sync that failed halfway has a session too. One whose code was refused has none.
    scene.fault("broker_a.positions", r#"{"kind":"wrong_types","count":1}"#);
    assert_eq!(sync("simkeya-2", &scene.request_token()), 502);
    until("the end of the second", || count(&service, "ended") == 2);
    assert_eq!(sync("simkeya-3", "no such code"), 401);
    // With the server's own app the session is not ended, since it might be the session of the
    // server's token. Here it belongs to another user, whose login leaves the server's token alone.
    let other = r#"{"user_id":"PF0001"}"#;
    let json = scene
        .control("POST", "broker_a/request_token", other)
        .json();
    let body = order("simkeya", json["request_token"].as_str().unwrap());
    let body = body.replacen('{', r#"{"replace_broker_user":true,"#, 1);
    assert_eq!(service.post(SYNC, &user, &body).status, 200);
    assert_eq!(ends(&service), [("ended", 2), ("failed", 0), ("left", 0), ("kept", 1)]);
    assert_eq!(service.get("/brokera/status").json()["valid"], true);
    let asked = scene.stats()["requests"]["broker_a.session"].as_u64();
    assert_eq!(asked, Some(4 + 2), "four logins, two ends");
    service.fresh_snapshot();
}

#[test]
fn the_end_comes_after_the_data_is_stored_and_nobody_waits_for_it() {
    let (asked, heard) = unbounded();
    let (release, gate) = unbounded::<()>();
    let ended = Arc::new(Mutex::new(0));
    let ends = Arc::clone(&ended);
    let upstream = Upstream::start(move |request| {
        let path = request.target.split('?').next().unwrap();
        Said::json(match (request.head.starts_with("DELETE"), path) {
            (true, _) => {
                asked.send(request.target.clone()).unwrap();
                // Hangs until released.
                let _ = gate.recv();
                *ends.lock() += 1;
                r#"{"status":"success","data":true}"#
            }
            (_, "/session/token") => r#"{"status":"success","data":{"access_token":"token-7"}}"#,
            (_, "/portfolio/holdings") => r#"{"status":"success","data":[]}"#,
            _ => r#"{"status":"success","data":{"net":[],"day":[]}}"#,
        })
    });
    let (_scene, service) = Scene::trading_with(|config| {
        config.broker_a.url = upstream.url();
        config.broker_a.access_token = None;
    });
    let user = bearer(&service.register("waits@example.com", "a long enough secret"));
    for number in 0..3 {
        // The first end hangs meanwhile.
        service
            .post(SYNC, &user, &order(&format!("key-{number}"), "code"))
            .with_status(200);
    }
    assert_eq!(heard.recv().unwrap(), "/session/token?api_key=key-0&access_token=token-7");
    let shown = service
        .client()
        .request("GET", "/api/portfolio/holdings", &user)
        .json();
    assert!(shown["summary"]["synced_at"].is_str(), "stored before");
    // Each end has a second, and no sync fails by it.
    until("an end to be given up", || count(&service, "failed") >= 1);
    let answer = service.post(SYNC, &user, &order("key-9", "code"));
    assert_eq!(answer.status, 200, "the circuit is closed: {}", answer.text());
    drop(release);
    until("all to be settled", || {
        let asked: u64 = ["ended", "failed", "left"]
            .map(|end| count(&service, end))
            .iter()
            .sum();
        asked == 4 && count(&service, "kept") == 0
    });
}
