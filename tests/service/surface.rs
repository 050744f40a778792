//! Everything around the answers: methods, unknown paths, request ids, cross-origin access.

use bhav::api::ROUTES;

use super::support::{PRICES, SNAPSHOT, Scene, Service, TRADING};

const PATHS: [&str; 4] =
    ["/api/index/snapshot", "/api/portfolio/live-prices", "/api/health", "/brokera/status"];

fn service(origins: &[&str]) -> (Scene, Service) {
    let scene = Scene::at(TRADING);
    let mut config = scene.config();
    config.http.allowed_origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
    let service = scene.start_with(&config);
    service.fresh_snapshot();
    (scene, service)
}

#[test]
fn another_method_is_told_which_ones_there_are() {
    let (_scene, service) = service(&[]);
    let mut client = service.client();
    for path in PATHS {
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let answer = client.send(method, path, "Content-Length: 0\r\n");
            answer.expect_problem(405, "method_not_allowed");
            assert_eq!(answer.header("allow"), Some("GET, HEAD, OPTIONS"), "{method} {path}");
        }
    }
    service.0.stop();
}

#[test]
fn options_lists_the_methods() {
    let (_scene, service) = service(&[]);
    let mut client = service.client();
    for path in PATHS.into_iter().chain(["*"]) {
        let answer = client.send("OPTIONS", path, "");
        assert_eq!(answer.status, 204, "{path}");
        let allowed = answer.header("allow").unwrap();
        match path {
            // The server itself, and so whatever any of its paths takes.
            "*" => assert!(ROUTES.iter().all(|r| allowed.contains(r.method.as_str())), "{allowed}"),
            _ => assert_eq!(allowed, "GET, HEAD, OPTIONS", "{path}"),
        }
        assert_eq!(answer.header("content-length"), None, "{path}");
    }
    client.send("OPTIONS", "/nowhere", "").expect_problem(404, "not_found");
    service.0.stop();
}

#[test]
fn an_unknown_path_is_404() {
    let (_scene, service) = service(&[]);
    let mut client = service.client();
    for path in ["/", "/api", "/api/index/snapshot/", "/API/health", "/api/health%20", "//"] {
        client.get(path).expect_problem(404, "not_found");
    }
    service.0.stop();
}

#[test]
fn an_error_carries_the_clients_id_or_a_new_one() {
    let (_scene, service) = service(&[]);
    let mut client = service.client();
    let longest = "a".repeat(64);
    for own in ["x", "A-z_0.9", &longest] {
        let answer = client.send("GET", "/nowhere", &format!("X-Request-Id: {own}\r\n"));
        assert_eq!(answer.header("x-request-id"), Some(own));
    }
    let too_long = "a".repeat(65);
    let mut made = Vec::new();
    for bad in ["", "a b", "a/b", "\"quoted\"", &too_long] {
        let answer = client.send("GET", "/nowhere", &format!("X-Request-Id: {bad}\r\n"));
        let id = answer.header("x-request-id").unwrap().to_owned();
        assert!(id != bad && (1..=64).contains(&id.len()), "{bad:?} gave {id:?}");
        made.push(id);
    }
    made.sort();
    made.dedup();
    assert_eq!(made.len(), 5, "ids repeat");
    service.0.stop();
}

#[test]
fn an_allowed_origin_may_read() {
    let (_scene, service) = service(&["https://app.example"]);
    let mut client = service.client();
    for target in [SNAPSHOT, "/api/health", "/nowhere", &format!("{PRICES}bad")] {
        let answer = client.send("GET", target, "Origin: https://app.example\r\n");
        let allowed = answer.header("access-control-allow-origin");
        assert_eq!(allowed, Some("https://app.example"), "{target}");
        assert!(answer.headers("vary").contains(&"Origin"), "{target}");
    }
    let answer = client.send(
        "OPTIONS",
        SNAPSHOT,
        "Origin: https://app.example\r\nAccess-Control-Request-Method: GET\r\n",
    );
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(answer.header("access-control-allow-methods"), Some("GET, HEAD, OPTIONS"));
    assert!(answer.header("access-control-max-age").is_some());
    service.0.stop();
}

#[test]
fn another_origin_may_not() {
    let (_scene, service) = service(&["https://app.example"]);
    let mut client = service.client();
    for origin in ["https://evil.example", "https://app.example.evil", "http://app.example", "null"]
    {
        for method in ["GET", "OPTIONS"] {
            let headers = format!("Origin: {origin}\r\nAccess-Control-Request-Method: GET\r\n");
            let answer = client.send(method, SNAPSHOT, &headers);
            assert!(!answer.head.contains("Access-Control-"), "{origin}: {}", answer.head);
            // A shared cache must not hand this answer to the allowed origin.
            assert!(answer.headers("vary").contains(&"Origin"), "{origin}");
        }
    }
    assert!(client.get(SNAPSHOT).headers("vary").contains(&"Origin"), "no origin at all");
    service.0.stop();
}

#[test]
fn by_default_no_origin_may() {
    let (_scene, service) = service(&[]);
    let headers = "Origin: https://app.example\r\nAccess-Control-Request-Method: GET\r\n";
    for method in ["GET", "OPTIONS"] {
        let answer = service.client().send(method, SNAPSHOT, headers);
        assert!(!answer.head.contains("Access-Control-"), "{}", answer.head);
        assert!(!answer.headers("vary").contains(&"Origin"));
    }
    service.0.stop();
}
