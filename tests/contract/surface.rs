//! The surface around the answers: methods, unknown paths, request ids, cross-origin access.

use crate::support::{PRICES, SNAPSHOT, Scene, Service, TRADING, bearer};
use bhav::api::ROUTES;

const PATHS: [&str; 4] = [
    "/api/index/snapshot",
    "/api/portfolio/live-prices",
    "/api/health",
    "/brokera/status",
];

fn service(origins: &[&str]) -> (Scene, Service) {
    let (scene, service) = Scene::trading_with(|config| {
        config.http.allowed_origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
    });
    service.fresh_snapshot();
    (scene, service)
}

#[test]
fn another_method_is_told_which_ones_there_are() {
    let (_scene, service) = service(&[]);
    let mut client = service.client();
    for path in PATHS {
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let answer = client.request(method, path, "Content-Length: 0\r\n");
            answer.expect_problem(405, "method_not_allowed");
            assert_eq!(answer.header("allow"), Some("GET, HEAD, OPTIONS"), "{method} {path}");
        }
    }
}

#[test]
fn options_lists_the_methods() {
    let (_scene, service) = service(&[]);
    let mut client = service.client();
    for path in PATHS.into_iter().chain(["*"]) {
        let answer = client.request("OPTIONS", path, "");
        assert_eq!(answer.status, 204, "{path}");
        let allowed = answer.header("allow").unwrap();
        match path {
            // `*` is the server itself, so any method of any path is allowed.
            "*" => assert!(ROUTES.iter().all(|r| allowed.contains(r.method.as_str())), "{allowed}"),
            _ => assert_eq!(allowed, "GET, HEAD, OPTIONS", "{path}"),
        }
        assert_eq!(answer.header("content-length"), None, "{path}");
    }
    client
        .request("OPTIONS", "/nowhere", "")
        .expect_problem(404, "not_found");
}

#[test]
fn an_unknown_path_is_404() {
    let (_scene, service) = service(&[]);
    let mut client = service.client();
    for path in [
        "/portfolio//",
        "/api//",
        "/api/index/snapshot/",
        "/API/health",
        "/api/health%20",
        "//",
    ] {
        client.get(path).expect_problem(404, "not_found");
    }
}

#[test]
fn an_error_carries_the_clients_id_or_a_new_one() {
    let (_scene, service) = service(&[]);
    let mut client = service.client();
    let longest = "a".repeat(64);
    for own in ["x", "A-z_0.9", &longest] {
        let answer = client.request("GET", "/nowhere", &format!("X-Request-Id: {own}\r\n"));
        assert_eq!(answer.header("x-request-id"), Some(own));
    }
    let too_long = "a".repeat(65);
    let mut made = Vec::new();
    for bad in ["", "a b", "a/b", "\"quoted\"", &too_long] {
        let answer = client.request("GET", "/nowhere", &format!("X-Request-Id: {bad}\r\n"));
        let id = answer.header("x-request-id").unwrap().to_owned();
        assert!(id != bad && (1..=64).contains(&id.len()), "{bad:?} gave {id:?}");
        made.push(id);
    }
    made.sort();
    made.dedup();
    assert_eq!(made.len(), 5, "ids repeat");
}

#[test]
fn an_allowed_origin_may_read() {
    let (_scene, service) = service(&["https://app.example"]);
    let mut client = service.client();
    for target in [SNAPSHOT, "/api/health", "/nowhere", &format!("{PRICES}bad")] {
        let answer = client.request("GET", target, "Origin: https://app.example\r\n");
        let allowed = answer.header("access-control-allow-origin");
        assert_eq!(allowed, Some("https://app.example"), "{target}");
        assert!(answer.headers("vary").contains(&"Origin"), "{target}");
    }
    let answer = client.request(
        "OPTIONS",
        SNAPSHOT,
        "Origin: https://app.example\r\nAccess-Control-Request-Method: GET\r\n",
    );
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(answer.header("access-control-allow-methods"), Some("GET, HEAD, OPTIONS"));
    assert!(answer.header("access-control-max-age").is_some());
}

#[test]
fn another_origin_may_not() {
    let (_scene, service) = service(&["https://app.example"]);
    let mut client = service.client();
    for origin in [
        "https://evil.example",
        "https://app.example.evil",
        "http://app.example",
        "null",
    ] {
        for method in ["GET", "OPTIONS"] {
            let headers = format!("Origin: {origin}\r\nAccess-Control-Request-Method: GET\r\n");
            let answer = client.request(method, SNAPSHOT, &headers);
            assert!(!answer.head().contains("Access-Control-"), "{origin}: {}", answer.head());
            // A shared cache must not give this answer to the allowed origin.
            assert!(answer.headers("vary").contains(&"Origin"), "{origin}");
        }
    }
    assert!(client.get(SNAPSHOT).headers("vary").contains(&"Origin"), "no origin at all");
}

/// Requests that the HTTP layer itself refuses, with their status.
fn refused_by_the_layer() -> Vec<(String, u16)> {
    let get = |lines: &str| format!("GET /api/health HTTP/1.1\r\nHost: a\r\nORIGIN{lines}\r\n");
    let put =
        |lines: &str| format!("PUT /api/journal/1 HTTP/1.1\r\nHost: a\r\n{lines}\r\nORIGIN\r\n");
    let chunked = "Transfer-Encoding: chunked";
    let many: String = (0..200)
        .map(|number| format!("X-{number}: y\r\n"))
        .collect();
    vec![
        (get("Content-Length: x\r\n"), 400),
        (get("Host: b\r\n"), 400),
        (get("no header line\r\n"), 400),
        ("GET a HTTP/1.1\r\nHost: a\r\nORIGIN\r\n".into(), 400),
        (put(chunked) + "zz\r\n", 400),
        (get("X-Half: a").trim_end().into(), 408),
        (put("Content-Length: 9"), 408),
        (put("Content-Length: 9999999"), 413),
        (put(chunked) + "fffff\r\n", 413),
        (get("").replace("/api/health", &format!("/{}", "t".repeat(8_192))), 414),
        (get("Expect: magic\r\n"), 417),
        (get(&many), 431),
        (get(&format!("X: {}\r\n", "y".repeat(17_000))), 431),
        (get("").replace("GET", "BREW"), 501),
        (put("Transfer-Encoding: gzip, chunked"), 501),
        (get("").replace("HTTP/1.1", "HTTP/2.0"), 505),
    ]
}

#[test]
fn what_the_http_layer_refuses_may_be_read_by_an_allowed_origin_too() {
    let scene = Scene::at(TRADING);
    let mut config = scene.config();
    config.http.allowed_origins = vec!["https://app.example".into()];
    (config.http.head_timeout_ms, config.http.body_timeout_ms) = (500, 500);
    let service = scene.start_with(&config);
    for (text, status) in refused_by_the_layer() {
        for (origin, allowed) in [
            ("Origin: https://app.example\r\n", Some("https://app.example")),
            ("origin:https://app.example \r\n", Some("https://app.example")),
            ("Origin: https://evil.example\r\n", None),
            ("Origin: https://app.example\r\nOrigin: https://app.example\r\n", None),
            ("", None),
        ] {
            let text = text.replace("ORIGIN", origin);
            let answer = service.client().ask(&text);
            let shown = text.get(..200).unwrap_or(&text);
            assert_eq!(answer.status, status, "{shown}");
            let said = answer.header("access-control-allow-origin");
            assert_eq!(said, allowed, "{status} {shown}: {}", answer.head());
            assert_eq!(answer.headers("vary"), ["Origin"], "{status} {shown}: {}", answer.head());
            let exposed = answer.header("access-control-expose-headers");
            assert_eq!(exposed.is_some(), allowed.is_some());
        }
    }
}

#[test]
fn an_encoded_letter_is_the_letter() {
    let (_scene, service) = Scene::trading();
    let auth = bearer(&service.register("a@b.example", "correct horse"));
    let mut client = service.client();
    let entry = r#"{"traded_on":"2026-11-20","symbol":"A","side":"buy","quantity":1,"price":1}"#;
    client
        .send_json("POST", "/%61pi/journ%61%6C", &auth, entry)
        .with_status(201);
    for (target, status) in [
        ("/%62rokera/st%61tus", 200),
        ("/%61%70%69/%6A%6f%75rnal", 200),
        ("/api/journal/%31", 200),
        ("/api/portfolio/live%2Dprices?s%79mbols=NSE:INFY", 200),
        ("/api/portfolio/pnl?d%61ys=7", 200),
        ("/api/portfolio/positions?incl%75de%5Fclosed=true", 200),
        ("/api/journal?%6C%69%6D%69%74=1&lim%69t=1", 400),
        ("/api/journal?limit=1&%6Cimit=2", 400),
        // A reserved or invalid escape differs from the character that it stands for.
        ("/api%2Fhealth", 404),
        ("/api/health%20", 404),
        ("/api/journal/%30", 404),
        ("/api/%2e%2e/api/health", 404),
        ("/api/%6", 404),
        ("/api/healt%", 404),
        ("/api/%ghealth", 404),
        ("/api/%2568ealth", 404),
    ] {
        let answer = client.request("GET", target, &auth);
        assert_eq!(answer.status, status, "{target}: {}", answer.text());
    }
    let days = client
        .request("GET", "/api/portfolio/pnl?%64%61%79%73=7", &auth)
        .json();
    assert_eq!(sonic_rs::JsonValueTrait::as_u64(&days["days"]), Some(7));
    let wrong = client.request("PATCH", "/api/%68ealth", "Content-Length: 0\r\n");
    wrong.expect_problem(405, "method_not_allowed");
    assert_eq!(wrong.header("allow"), Some("GET, HEAD, OPTIONS"));
    assert_eq!(client.request("OPTIONS", "/api/%68ealth", "").status, 204);
}

#[test]
fn a_part_of_an_entry_cannot_be_put() {
    let (_scene, service) = Scene::trading();
    let auth = bearer(&service.register("a@b.example", "correct horse"));
    let entry = r#"{"traded_on":"2026-11-20","symbol":"A","side":"buy","quantity":1,"price":1}"#;
    assert_eq!(service.post("/api/journal", &auth, entry).status, 201);
    let part = format!("{auth}Content-Range: bytes 0-9/100\r\n");
    let answer = service
        .client()
        .send_json("PUT", "/api/journal/1", &part, entry);
    answer.expect_problem(400, "content_range_not_supported");
    let nobody = service
        .client()
        .send_json("PUT", "/api/journal/1", "Content-Range: x\r\n", entry);
    nobody.expect_problem(401, "token_missing");
    assert_eq!(
        service
            .client()
            .send_json("PUT", "/api/journal/1", &auth, entry)
            .status,
        200
    );
}

#[test]
fn methods_are_refused_as_the_document_says() {
    let (_scene, service) = service(&[]);
    for method in ["PATCH", "TRACE", "CONNECT", "DELETE"] {
        let answer = service
            .client()
            .request(method, "/api/health", "Content-Length: 0\r\n");
        answer.expect_problem(405, "method_not_allowed");
        assert!(answer.header("allow").is_some(), "{method}");
    }
    for method in ["BREW", "get", "PROPFIND", "QUERY"] {
        for path in ["/api/health", "/nowhere"] {
            let answer = service.client().request(method, path, "");
            answer.expect_problem(501, "method_not_implemented");
            assert_eq!(answer.header("allow"), None, "{method}");
        }
    }
    let document = super::openapi::document();
    let description = document["info"]["description"].as_str().unwrap();
    for part in ["405 `method_not_allowed`", "501 `method_not_implemented`"] {
        assert!(description.contains(part), "{part}");
    }
}

#[test]
fn by_default_no_origin_may() {
    let (_scene, service) = service(&[]);
    let headers = "Origin: https://app.example\r\nAccess-Control-Request-Method: GET\r\n";
    for method in ["GET", "OPTIONS"] {
        let answer = service.client().request(method, SNAPSHOT, headers);
        assert!(!answer.head().contains("Access-Control-"), "{}", answer.head());
        assert!(!answer.headers("vary").contains(&"Origin"));
    }
}
