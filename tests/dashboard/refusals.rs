//! Refusals that a browser shows to a person, and the same for a program.

use sonic_rs::JsonValueTrait;

use crate::support::{Answer, Scene, Service};

const BROWSER: &str =
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8\r\n";

fn ask(service: &Service, request: &str) -> Answer {
    service.client().ask(request)
}

#[track_caller]
fn expect_page(answer: &Answer, status: u16) -> String {
    assert_eq!(answer.status, status, "{}", answer.head());
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    let page = answer.text().to_owned();
    assert!(page.starts_with("<!doctype html>") && page.contains("<h1>"), "{page}");
    assert!(page.contains(answer.header("x-request-id").unwrap()), "{page}");
    page
}

/// What other services on the host name have set.
fn cookies(count: usize, bytes: usize) -> String {
    let all: Vec<String> = (0..count)
        .map(|n| format!("app{n}={}", "v".repeat(bytes)))
        .collect();
    format!("Cookie: {}\r\n", all.join("; "))
}

#[test]
fn too_many_cookies_are_said_with_what_to_do() {
    let (_scene, service) = Scene::trading();
    for path in [
        "/",
        "/portfolio",
        "/login",
        "/nothing/here",
        "/api/index/snapshot",
    ] {
        for cookies in [
            cookies(1, 17_000),
            cookies(17, 1_000),
            cookies(170, 100),
            format!("{}{}", cookies(9, 1_000), cookies(9, 1_000)),
            cookies(20, 1_000).replace("Cookie:", "cookie:"),
        ] {
            let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n");
            let page = ask(&service, &format!("{head}{BROWSER}{cookies}\r\n"));
            let page = expect_page(&page, 431);
            assert!(page.contains("cookies of this host name"), "{page}");
            assert!(page.contains("Delete the cookies") && page.contains("Firefox"), "{page}");
            let answer = ask(&service, &format!("{head}Accept: */*\r\n{cookies}\r\n"));
            let json = answer.expect_problem(431, "head_too_large");
            let detail = json["detail"].as_str().unwrap();
            assert!(detail.contains("Delete the cookies of this host name"), "{detail}");
            assert!(detail.contains("16384"), "{detail}");
        }
    }
    // Something else is too large: cookies are not blamed.
    let other = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nCookie: a=b\r\nX-Large: {}\r\n\r\n",
        "x".repeat(17_000)
    );
    let json = ask(&service, &other).expect_problem(431, "head_too_large");
    assert!(!json["detail"].as_str().unwrap().contains("ookie"), "{json}");
}

#[test]
fn what_is_refused_before_a_route_is_found_is_a_page_for_a_browser() {
    let (_scene, service) = Scene::trading();
    let long = format!("/{}", "x".repeat(9_000));
    let many = "X-A: b\r\n".repeat(101);
    for (line, lines, status, code) in [
        (format!("GET {long} HTTP/1.1"), "", 414, "target_too_long"),
        ("GET https://localhost/ HTTP/1.1".to_owned(), "", 421, "misdirected_request"),
        ("GET / HTTP/1.1".to_owned(), "Content-Length: x\r\n", 400, "malformed_request"),
        ("GET / HTTP/1.1".to_owned(), "Host: twice\r\n", 400, "malformed_request"),
        ("GET /#part HTTP/1.1".to_owned(), "", 400, "malformed_request"),
        ("GET / HTTP/1.1".to_owned(), " folded\r\n", 400, "malformed_request"),
        ("GET / HTTP/1.1".to_owned(), "X: y\n", 400, "malformed_request"),
        ("GET / HTTP/1.1".to_owned(), "Expect: much\r\n", 417, "expectation_failed"),
        ("GET / HTTP/1.1".to_owned(), "Content-Length: 99999\r\n", 413, "body_too_large"),
        ("GET / HTTP/1.1".to_owned(), &many, 431, "head_too_large"),
    ] {
        let head = |accept: &str| format!("{line}\r\nHost: localhost\r\n{accept}{lines}\r\n");
        let page = expect_page(&ask(&service, &head(BROWSER)), status);
        assert!(page.contains(code), "{page}");
        for accept in ["", "Accept: */*\r\n", "Accept: application/json\r\n"] {
            ask(&service, &head(accept)).expect_problem(status, code);
        }
        let posted = head(BROWSER).replacen("GET", "POST", 1);
        let answer = ask(&service, &posted);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{posted}");
    }
    // HEAD has the head of the page alone.
    let head = format!("HEAD {long} HTTP/1.1\r\nHost: localhost\r\n{BROWSER}\r\n");
    let answer = service.client().write(head).head();
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (414, Some("text/html; charset=utf-8"))
    );
}

#[test]
fn what_a_page_path_refuses_is_a_page_and_what_the_api_refuses_is_not() {
    let (_scene, service) = Scene::trading();
    let get = |path: &str| {
        ask(&service, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{BROWSER}\r\n"))
    };
    let page = expect_page(&get("/return/a"), 400);
    assert!(page.contains("request_token"), "{page}");
    expect_page(&get("/return/b?wrong=1"), 400);
    let key = "bhav_00000000000_0000000000000000000000000000000000000000000000000";
    let page = expect_page(&get(&format!("/portfolio?token={key}")), 400);
    assert!(!page.contains(key), "{page}");
    // The dashboard's own page.
    let missing = get("/no/such/page");
    assert_eq!(missing.status, 404);
    assert!(missing.text().contains("There is no such page") || missing.text().contains("app.js"));
    for path in [
        "/api/nothing",
        "/api/journal",
        "/assets/nothing.js",
        "/return/c",
        "/mcp",
    ] {
        let answer = get(path);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{path}");
    }
    // No markup of the request comes back as markup.
    let evil = "GET /return/a?<script>alert(1)</script> HTTP/1.1\r\nHost: localhost\r\n";
    let answer = ask(&service, &format!("{evil}{BROWSER}X-Request-Id: <b>\r\n\r\n"));
    assert!(!answer.text().contains("<script>") && !answer.text().contains("<b>"));
}

#[test]
fn without_the_dashboard_every_refusal_is_a_problem_document() {
    let (_scene, service) = Scene::trading_with(|config| config.web.on = false);
    for (path, status, code) in [
        (format!("/{}", "x".repeat(9_000)), 414, "target_too_long"),
        ("/".to_owned(), 404, "not_found"),
    ] {
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{BROWSER}\r\n");
        ask(&service, &head).expect_problem(status, code);
    }
}
