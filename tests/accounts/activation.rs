//! The administrator's routes: permission to activate the shared tokens, and the result.

use sonic_rs::JsonValueTrait;

use crate::support::upstream::{Said, Upstream};
use crate::support::{Answer, Client, Scene, Service, TRADING, members, until};

const A: &str = "/brokera/activate";
const B: &str = "/brokerb/activate";

type Mint = fn(&Scene) -> String;

fn post(service: &Service, path: &str, body: &str) -> Answer {
    service.client().send_json("POST", path, "", body)
}

fn code(name: &str, value: &str) -> String {
    format!("{{\"{name}\":\"{value}\"}}")
}

#[test]
fn broker_a_is_activated_and_the_feed_takes_the_token_at_once() {
    let (scene, service) = Scene::trading_on(Scene::config_without_tokens);
    service.snapshot_where("public", |json| json["market"]["source"] == "public");
    let token = scene.request_token();
    let answer = post(&service, A, &code("request_token", &token));
    assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")));
    let json = answer.json();
    let expected = ["initialized", "valid", "token_type", "set_at", "expires_at"];
    assert_eq!(members(&json), expected);
    assert!(json["initialized"] == true && json["valid"] == true);
    assert_eq!(json["expires_at"], "2026-11-21T06:00:00+05:30");
    assert_eq!(service.get("/brokera/status").json(), json);
    service.snapshot_where("broker A", |json| json["market"]["source"] == "broker_a");

    // A code can be used once, and a refused code leaves the token alone. After a typing error the
    // user may try again at once: the service waits for its own pace.
    for _ in 0..3 {
        let again = post(&service, A, &code("request_token", &token));
        again.expect_problem(401, "broker_session_invalid");
        assert_eq!(again.header("www-authenticate"), Some("Bearer"));
    }
    assert_eq!(service.get("/brokera/status").json()["valid"], true);
}

#[test]
fn broker_b_is_activated_until_midnight() {
    let (scene, service) = Scene::trading_on(Scene::config_without_tokens);
    let status = service.get("/brokerb/status");
    assert_eq!((status.status, status.header("cache-control")), (200, Some("no-store")));
    assert_eq!(members(&status.json()), ["initialized", "valid"]);
    assert!(status.json()["initialized"] == false && status.json()["valid"] == false);
    let answer = post(&service, B, &code("api_session", &scene.api_session()));
    let json = answer.json();
    assert_eq!(answer.status, 200, "{json}");
    assert_eq!(members(&json), ["initialized", "valid", "set_at", "expires_at"]);
    assert_eq!(json["expires_at"], "2026-11-21T00:00:00+05:30");
    assert_eq!(service.get("/brokerb/status").json(), json);
    post(&service, B, &code("api_session", "no-such-session"))
        .expect_problem(401, "broker_session_invalid");
    assert_eq!(service.get("/brokerb/status").json(), json);
}

#[test]
fn without_a_secret_only_a_direct_local_client_may() {
    let (scene, service) = Scene::trading_on(Scene::config_without_tokens);
    for line in [
        "X-Forwarded-For: 203.0.113.7\r\n",
        "Forwarded: for=203.0.113.7\r\n",
        "Origin: https://evil.example\r\n",
        "X-Forwarded-Host: dash.example.com\r\n",
        "X-Forwarded-Proto: https\r\n",
        "X-Client-IP: 203.0.113.7\r\n",
        "CF-Connecting-IP: 203.0.113.7\r\n",
        "Via: 1.1 proxy\r\n",
        "Connection: X-Forwarded-For\r\n",
    ] {
        for path in [A, B] {
            let answer = service.client().send_json("POST", path, line, "{}");
            answer.expect_problem(403, "admin_local_only");
        }
    }
    for host in ["dash.example.com", "10.0.0.1:8080", "bhav"] {
        let lines = "Content-Type: application/json\r\nContent-Length: 2";
        let text = format!("POST {B} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n\r\n{{}}");
        service
            .client()
            .ask(&text)
            .expect_problem(403, "admin_local_only");
    }
    // A local request is admitted, and its missing field named.
    let json = post(&service, B, "{}").expect_problem(400, "validation_failed");
    assert_eq!(json["errors"][0]["field"], "api_session");
    service.stop();
    // A request through a proxy on this machine is not a direct one.
    let mut config = scene.config_without_tokens();
    config.http.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    let service = scene.start_with(&config);
    post(&service, A, "{}").expect_problem(403, "admin_local_only");
    service.stop();
    assert_eq!(
        scene.stats()["requests"]["broker_b.customerdetails"]
            .as_u64()
            .unwrap_or(0),
        0
    );
}

#[test]
fn with_a_secret_it_is_demanded_of_everybody() {
    let scene = Scene::at(TRADING);
    let mut config = scene.config_without_tokens();
    config.broker_a.admin_secret = Some("open sesame".into());
    config.broker_b.admin_secret = Some("another".into());
    let service = scene.start_with(&config);
    let session = scene.api_session();
    let with = |secret: &str| format!("{{\"api_session\":\"{session}\",\"secret\":{secret}}}");
    let refused = |body: &str| post(&service, B, body).expect_problem(403, "admin_secret_invalid");
    refused(&code("api_session", &session));
    refused(&with("null"));
    refused(&with("\"open sesame\""));
    assert_eq!(post(&service, B, &with("\"another\"")).status, 200);
    // With the secret, a request from behind a proxy is admitted too.
    let session = scene.request_token();
    let body = format!("{{\"request_token\":\"{session}\",\"secret\":\"open sesame\"}}");
    let answer = service
        .client()
        .send_json("POST", A, "X-Forwarded-For: 203.0.113.7\r\n", &body);
    assert_eq!(answer.status, 200);
}

#[test]
fn guesses_are_limited_by_address() {
    let scene = Scene::at(TRADING);
    let mut config = scene.config_without_tokens();
    config.broker_b.admin_secret = Some("open sesame".into());
    config.http.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    let service = scene.start_with(&config);
    let from = |address: &str, secret: &str| {
        let body = format!("{{\"api_session\":\"x\",\"secret\":\"{secret}\"}}");
        service
            .client()
            .send_json("POST", B, &format!("X-Forwarded-For: {address}\r\n"), &body)
    };
    let refused = until("the limit", || {
        let answer = from("203.0.113.7", "guess");
        (answer.status != 403).then_some(answer)
    });
    refused.expect_problem(429, "too_many_attempts");
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait));
    // The right secret is not even checked now. Other clients are still admitted.
    from("203.0.113.7", "open sesame").expect_problem(429, "too_many_attempts");
    from("203.0.113.8", "open sesame").expect_problem(401, "broker_session_invalid");
}

#[test]
fn what_the_broker_does_has_its_answer() {
    let scene = Scene::at(TRADING);
    let mut config = scene.config_without_tokens();
    config.upstream.read_timeout_ms = 300;
    config.upstream.total_timeout_ms = 400;
    config.upstream.sync_timeout_ms = 400;
    for (route, path, name, mint) in [
        ("broker_a.session", A, "request_token", Scene::request_token as Mint),
        ("broker_b.customerdetails", B, "api_session", Scene::api_session as Mint),
    ] {
        for (fault, status, problem) in [
            (r#"{"kind":"refuse"}"#, 502, "broker_unavailable"),
            (r#"{"kind":"delay","delay_ms":5000}"#, 504, "broker_timeout"),
            (r#"{"kind":"rate_limit"}"#, 429, "broker_rate_limited"),
            (r#"{"kind":"html_5xx"}"#, 502, "broker_unavailable"),
            (r#"{"kind":"redirect","location":"/elsewhere"}"#, 502, "broker_redirected"),
            (r#"{"kind":"missing_fields"}"#, 502, "broker_answer_invalid"),
        ] {
            let service = scene.start_with(&config);
            scene.fault(route, fault);
            let answer = post(&service, path, &code(name, &mint(&scene)));
            answer.expect_problem(status, problem);
            assert_eq!(scene.control("DELETE", "faults", "").status, 200);
        }
    }
}

#[test]
fn what_broker_a_says_of_the_account_is_not_taken_for_a_bad_code() {
    for (error_type, problem, word) in [
        ("UserException", "broker_account_problem", "the account has a problem"),
        ("TwoFAException", "broker_two_factor_problem", "two-factor"),
    ] {
        let body = format!(r#"{{"status":"error","message":"m","error_type":"{error_type}"}}"#);
        let upstream = Upstream::start(move |_| Said {
            status: 403,
            ..Said::json(body.clone())
        });
        let scene = Scene::at(TRADING);
        let mut config = scene.config_without_tokens();
        config.broker_a.url = upstream.url();
        let service = scene.start_with(&config);
        let answer = post(&service, A, &code("request_token", "x"));
        let detail = answer.expect_problem(403, problem);
        assert!(detail["detail"].as_str().unwrap().contains(word), "{detail}");
        assert_eq!(answer.header("www-authenticate"), None);
    }
}

#[test]
fn without_an_app_there_is_nothing_to_activate() {
    let scene = Scene::at(TRADING);
    let mut config = scene.config_without_tokens();
    config.broker_a.api_secret = None;
    config.broker_b.api_secret = None;
    let service = scene.start_with(&config);
    post(&service, A, &code("request_token", "x")).expect_problem(409, "broker_not_configured");
    post(&service, B, &code("api_session", "x")).expect_problem(409, "broker_not_configured");
}

#[test]
fn bodies_are_json_of_the_right_shape() {
    let (_scene, service) = Scene::trading_on(Scene::config_without_tokens);
    let mut client: Client = service.client();
    let plain = "POST /brokerb/activate HTTP/1.1\r\nHost: bhav\r\nContent-Length: 2\r\n\r\n{}";
    client
        .ask(plain)
        .expect_problem(415, "unsupported_media_type");
    client
        .send_json("POST", B, "", "{")
        .expect_problem(400, "malformed_json");
    let long = code("api_session", &"x".repeat(257));
    client
        .send_json("POST", B, "", &long)
        .expect_problem(400, "validation_failed");
    let huge = code("api_session", &"x".repeat(70_000));
    client
        .send_json("POST", B, "", &huge)
        .expect_problem(413, "body_too_large");
    assert_eq!(service.client().get(B).header("allow"), Some("OPTIONS, POST"));
}
