//! Refusals of every route: each is a problem whose code the description lists for that route.

use bhav::api::{Access, ROUTES, Route};
use bhav::http::Method;

use super::checker::Checker;
use super::walk::Walk;
use crate::contract::openapi::resolved;
use crate::support::{Answer, SNAPSHOT, Scene, TRADING, bearer, until};

const LOGIN: &str = r#"{"email":"walk@example.com","password":"nine green parrots"}"#;

/// A target of the route, for an entry that never existed.
fn target(route: &Route) -> String {
    let id = if route.path == "/api/keys/{id}" {
        "00000000000"
    } else {
        "999999"
    };
    route.path.replace("{id}", id)
}

#[track_caller]
fn code(answer: &Answer, status: u16, code: &str) {
    answer.expect_problem(status, code);
}

#[test]
fn nobody_and_the_wrong_ones_are_refused_as_described() {
    let (_scene, service) = Scene::trading();
    let token = service.register("walk@example.com", "nine green parrots");
    let checker = &mut Checker::new();
    let walk = &mut Walk::new(&service, checker);
    let routes = ROUTES.iter().filter(|route| route.access == Access::User);
    for route in routes {
        let (method, target) = (route.method.as_str(), target(route));
        code(&walk.send(method, &target, "", ""), 401, "token_missing");
        let bad = "Authorization: Bearer no.such.token\r\n";
        code(&walk.send(method, &target, bad, ""), 401, "token_invalid");
        if route.method != Method::Get {
            let cookie = format!("Cookie: access_token_cookie={token}\r\n");
            code(&walk.send(method, &target, &cookie, ""), 403, "cross_site_request");
        }
    }
    walk.auth = bearer(&token);
    for method in ["GET", "PUT", "DELETE"] {
        let body = if method == "PUT" {
            super::limits::ENTRY
        } else {
            ""
        };
        code(&walk.send(method, "/api/journal/999999", "", body), 404, "entry_not_found");
        code(&walk.send(method, "/api/journal/0", "", body), 404, "not_found");
    }
    code(&walk.send("GET", "/api/journal?cursor=AAAA", "", ""), 400, "cursor_invalid");
}

#[test]
fn bodies_that_are_none_are_refused_as_described() {
    let (_scene, service) = Scene::trading_with(|config| config.http.body_bytes_max = 4_096);
    let token = service.register("walk@example.com", "nine green parrots");
    let checker = &mut Checker::new();
    let walk = &mut Walk::new(&service, checker);
    walk.auth = bearer(&token);
    let mut tried = 0;
    // What a key alone reaches has tests of its own.
    for route in ROUTES.iter().filter(|route| route.access != Access::Key) {
        let (method, target) = (route.method.as_str(), target(route));
        if walk.checker.request(method, route.path).is_none() {
            continue;
        }
        tried += 1;
        // A logout needs no body.
        let is_optional = route.path == "/api/auth/logout";
        if !is_optional {
            let text = "Content-Type: text/plain\r\nContent-Length: 0\r\n";
            code(&walk.send(method, &target, text, ""), 415, "unsupported_media_type");
        }
        let coded = "Content-Encoding: gzip\r\n";
        code(&walk.send(method, &target, coded, "{}"), 415, "unsupported_media_type");
        code(&walk.send(method, &target, "", "{"), 400, "malformed_json");
        let wrong = if is_optional {
            r#"{"everywhere":7}"#
        } else {
            "{}"
        };
        let json = walk
            .send(method, &target, "", wrong)
            .expect_problem(400, "validation_failed");
        assert!(json.to_string().contains("\"errors\":[{"), "{json}");
        let large = format!("{{\"notes\":\"{}\"}}", "a".repeat(5_000));
        code(&walk.send(method, &target, "", &large), 413, "body_too_large");
    }
    assert!(tried > 8, "{tried}");
    // Faults found before the route is matched.
    let answer = service
        .client()
        .ask("GET /api/health HTTP/9.9\r\nHost: localhost\r\n\r\n");
    walk.checker.check("GET", "/api/health", &answer);
    assert_eq!(answer.status, 505);
}

#[test]
fn what_is_not_there_yet_is_refused_as_described() {
    let scene = Scene::at(TRADING);
    scene.refuse_all();
    let service = scene.start();
    let checker = &mut Checker::new();
    let walk = &mut Walk::new(&service, checker);
    code(&walk.send("GET", SNAPSHOT, "", ""), 503, "snapshot_not_ready");
    for target in ["/api/signals", "/api/signals?direction=bullish"] {
        let list = walk.send("GET", target, "", "");
        let state = list.json()["state"].clone();
        assert!(state == "loading" || state == "unreachable", "{}", list.text());
    }
    let candles = "/api/market/candles?symbol=";
    code(
        &walk.send("GET", &format!("{candles}NSE:NOSUCH"), "", ""),
        404,
        "candles_not_found",
    );
    code(&walk.send("GET", &format!("{candles}INFY"), "", ""), 400, "validation_failed");
    code(&walk.send("GET", "/api/market/search?q=", "", ""), 400, "validation_failed");
    let prices = "/api/portfolio/live-prices?symbols=";
    code(
        &walk.send("GET", &format!("{prices}NSE:INFY"), "", ""),
        503,
        "quotes_unavailable",
    );
    code(&walk.send("GET", prices, "", ""), 400, "symbols_missing");
    code(&walk.send("GET", &format!("{prices}INFY"), "", ""), 400, "symbol_malformed");
    // A health document or, in the first moments, a problem.
    let health = until("health that is down", || {
        let answer = walk.send("GET", "/api/health", "", "");
        (answer.header("content-type") == Some("application/json")).then_some(answer)
    });
    assert_eq!(health.status, 503);
}

#[test]
fn brokers_and_administrators_refuse_as_described() {
    let scene = Scene::at(TRADING);
    let mut config = scene.config_without_tokens();
    config.upstream.breaker_open_ms = 1;
    config.broker_b.admin_secret = Some("open sesame".into());
    let service = scene.start_with(&config);
    let checker = &mut Checker::new();
    let walk = &mut Walk::new(&service, checker);
    let code_a = r#"{"request_token":"nonsense"}"#;
    code(
        &walk.send("POST", "/brokera/activate", "", code_a),
        401,
        "broker_session_invalid",
    );
    let origin = "Origin: https://evil.example\r\n";
    code(&walk.send("POST", "/brokera/activate", origin, code_a), 403, "admin_local_only");
    let wrong = r#"{"api_session":"x","secret":"wrong"}"#;
    for _ in 0..5 {
        code(&walk.send("POST", "/brokerb/activate", "", wrong), 403, "admin_secret_invalid");
    }
    code(&walk.send("POST", "/brokerb/activate", "", wrong), 429, "too_many_attempts");
    let new = walk.expect(201, "POST", "/api/auth/register", LOGIN);
    walk.enter(&new);
    let order = |key: &str, code: &str| {
        format!(r#"{{"api_key":"{key}","api_secret":"simsecreta","request_token":"{code}"}}"#)
    };
    let sync = "/api/portfolio/sync";
    let answer = walk.send("POST", sync, "", &order("simkeya-1", "nonsense"));
    code(&answer, 401, "broker_session_invalid");
    let answer = walk.send("POST", sync, "", &order("other", &scene.request_token()));
    code(&answer, 401, "broker_credentials_invalid");
    scene.fault("broker_a.session", r#"{"kind":"refuse"}"#);
    let answer = walk.send("POST", sync, "", &order("simkeya-2", "x"));
    code(&answer, 502, "broker_unavailable");
}

#[test]
fn accounts_are_refused_as_described() {
    let (_scene, service) = Scene::trading_with(|config| {
        config.auth.login_attempts_per_minute = 3;
        config.auth.registration_attempts_per_minute = 4;
    });
    let checker = &mut Checker::new();
    let walk = &mut Walk::new(&service, checker);
    walk.expect(201, "POST", "/api/auth/register", LOGIN);
    code(&walk.send("POST", "/api/auth/register", "", LOGIN), 400, "email_taken");
    let common = r#"{"email":"b@example.com","password":"password123"}"#;
    code(&walk.send("POST", "/api/auth/register", "", common), 400, "password_too_common");
    let repeated = r#"{"email":"b@example.com","password":"xqzxqzxqz"}"#;
    code(
        &walk.send("POST", "/api/auth/register", "", repeated),
        400,
        "password_repetitive",
    );
    code(&walk.send("POST", "/api/auth/register", "", LOGIN), 429, "too_many_attempts");
    let wrong = LOGIN.replace("nine", "ten");
    let login = "/api/auth/login";
    let refused = until("the limit", || {
        let answer = walk.send("POST", login, "", &wrong);
        if answer.status == 401 {
            code(&answer, 401, "invalid_credentials");
            return None;
        }
        Some(answer)
    });
    code(&refused, 429, "too_many_attempts");
}

#[test]
fn what_no_route_has_is_a_problem_all_the_same() {
    let (_scene, service) = Scene::trading();
    let checker = Checker::new();
    let schema = checker.document["components"]["schemas"]["Problem"].clone();
    assert_eq!(resolved(&checker.document, &schema), &schema);
    for (method, target, status) in [("GET", "/nowhere", 404), ("PATCH", SNAPSHOT, 405)] {
        let answer = service
            .client()
            .request(method, target, "Content-Length: 0\r\n");
        assert_eq!(answer.status, status);
        let value = serde_json::from_slice(&answer.body).unwrap();
        checker.valid(&schema, &value, answer.text());
    }
}
