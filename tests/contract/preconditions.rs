//! Preconditions (RFC 9110 13): every route evaluates them, and a change compares its expected
//! state in its own transaction.

use std::sync::Barrier;

use bhav::api::{Access, ROUTES, Route};
use bhav::http::Method;
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use crate::portfolio::user::User;
use crate::support::{Answer, Client, STREAM, Scene, bearer, until};

const JOURNAL: &str = "/api/journal";
const ENTRY: &str = r#"{"traded_on":"2026-11-20","symbol":"NSE:M&M","side":"buy","quantity":10,
    "price":3012.05}"#;

/// A user with a synced portfolio and one journal entry, and the entry's path.
fn user() -> (User, String) {
    let user = User::new();
    user.service.await_instruments();
    user.service.fresh_snapshot();
    user.synced("a");
    let added = user.service.post(JOURNAL, &user.auth, ENTRY);
    let entry = added.header("location").unwrap().to_owned();
    (user, entry)
}

fn ask(user: &User, method: &str, target: &str, lines: &str) -> Answer {
    user.service
        .client()
        .request(method, target, &format!("{}{lines}", user.auth))
}

fn write(user: &User, method: &str, target: &str, lines: &str, body: &str) -> Answer {
    let headers = format!("{}{lines}", user.auth);
    user.service
        .client()
        .send_json(method, target, &headers, body)
}

fn tag(answer: &Answer) -> String {
    assert!(answer.status < 300, "{}{}", answer.head(), answer.text());
    let tag = answer
        .header("etag")
        .unwrap_or_else(|| panic!("no ETag: {}", answer.head()));
    assert!(tag.len() > 2 && tag.starts_with('"') && tag.ends_with('"'), "not strong: {tag}");
    tag.to_owned()
}

fn target(route: &Route, entry: &str) -> String {
    match route.path {
        "/api/portfolio/live-prices" => format!("{}?symbols=NSE:INFY", route.path),
        "/api/journal/{id}" => entry.to_owned(),
        "/api/keys/{id}" => "/api/keys/00000000000".to_owned(),
        "/api/trades/tax/{id}/112a.csv" => route.path.replace("{id}", "2024-25"),
        "/api/market/candles" => format!("{}?symbol=NSE:INFY", route.path),
        "/api/market/search" => format!("{}?q=infy", route.path),
        path => path.to_owned(),
    }
}

#[test]
fn every_read_evaluates_them() {
    let (user, entry) = user();
    let mut read = 0;
    for route in ROUTES.iter().filter(|route| route.method == Method::Get) {
        let target = target(route, &entry);
        // A stream never ends, so its head is requested.
        let is_stream = route.path == STREAM;
        let method = if is_stream { "HEAD" } else { "GET" };
        let get = |lines: &str| ask(&user, method, &target, lines);
        // Health of a service in trouble is a 503 without a problem document. A list may be
        // published between two answers.
        let (plain, failing) = until(&target, || {
            let (answer, failing) = (get(""), get("If-Match: \"x\"\r\n"));
            let is_document = answer.header("content-type") == Some("application/json");
            let is_there = answer.status == 200;
            let agree = is_there == (failing.status == 412);
            (agree && (is_there || !is_document)).then_some((answer, failing))
        });
        if plain.status != 200 {
            // No record has been read. Only a success evaluates preconditions.
            plain.expect_problem(503, "signals_not_ready");
            failing.expect_problem(503, "signals_not_ready");
            continue;
        }
        read += 1;
        if route.access == Access::User {
            tag(&plain);
        }
        let there = get("If-None-Match: *\r\n");
        assert_eq!((there.status, &*there.body), (304, &b""[..]), "{target}");
        assert_eq!(there.header("cache-control"), plain.header("cache-control"), "{target}");
        assert_eq!(there.header("etag").is_some(), plain.header("etag").is_some(), "{target}");
        assert_eq!(get("If-Match: *\r\n").status, 200, "{target}");
        for none in ["\"x\"", "W/\"x\"", "x", "", "\"x\", *", "*\r\nIf-Match: *"] {
            let answer = get(&format!("If-Match: {none}\r\n"));
            precondition_fails(&answer, is_stream);
        }
        // If-Match is evaluated first (13.2.2). Resources have no dates here, so dates do not
        // count.
        let both = get("If-None-Match: *\r\nIf-Match: \"x\"\r\n");
        precondition_fails(&both, is_stream);
        assert_eq!(get("If-Match: *\r\nIf-None-Match: *\r\n").status, 304, "{target}");
        let past = "If-Unmodified-Since: Sat, 01 Jan 2000 00:00:00 GMT\r\n\
                    If-Modified-Since: Fri, 31 Dec 2100 00:00:00 GMT\r\nIf-Range: \"x\"\r\n";
        assert_eq!(get(past).status, 200, "{target}");
        let head = ask(&user, "HEAD", &target, "If-None-Match: *\r\n");
        assert_eq!(head.status, 304, "{target}");
        let head = ask(&user, "HEAD", &target, "If-Match: \"x\"\r\n");
        assert_eq!(head.status, 412, "{target}");
        let head = ask(&user, "HEAD", &target, "");
        assert_eq!(
            (head.status, head.header("etag").is_some()),
            (200, plain.header("etag").is_some())
        );
        if plain.header("etag").is_some() {
            tags_are_compared(&user, &target);
        }
    }
    assert!(read > 10, "{read}");
}

/// A bare head has no document.
#[track_caller]
fn precondition_fails(answer: &Answer, is_head: bool) {
    if is_head {
        assert_eq!(answer.status, 412, "{}", answer.head());
    } else {
        answer.expect_problem(412, "precondition_failed");
    }
}

/// Some content changes each second. Then the pair of requests is repeated.
fn tags_are_compared(user: &User, target: &str) {
    let mut client = user.service.client();
    let mut ask = |lines: &str| client.request("GET", target, &format!("{}{lines}", user.auth));
    for coding in ["identity", "gzip", "br"] {
        let coding = format!("Accept-Encoding: {coding}\r\n");
        for (lines, status) in [
            ("If-None-Match: TAG\r\n", 304),
            ("If-None-Match: W/TAG\r\n", 304),
            ("If-None-Match: \"a\", TAG\r\n", 304),
            ("If-None-Match: \"a\"\r\nIf-None-Match: \"b\", TAG\r\n", 304),
            ("If-None-Match: TAG\r\nIf-None-Match: \"b\"\r\nif-none-match: \"c\"\r\n", 304),
            ("If-None-Match: \"a\"\r\nIf-None-Match: \"b\"\r\n", 200),
            ("If-Match: TAG\r\n", 200),
            ("If-Match: \"a\"\r\nIf-Match: , TAG\r\n", 200),
            ("If-Match: W/TAG\r\n", 412),
            ("If-Match: TAG\r\nIf-None-Match: TAG\r\n", 304),
        ] {
            until(&format!("{status} for {target} {coding}{lines}"), || {
                let now = tag(&ask(&coding));
                let lines = lines.replace("TAG", &now);
                (ask(&format!("{coding}{lines}")).status == status).then_some(())
            });
        }
    }
}

#[test]
fn what_is_refused_anyway_ignores_them() {
    let (user, entry) = user();
    let lines = "If-Match: \"x\"\r\nIf-None-Match: *\r\n";
    ask(&user, "GET", "/api/journal/999999", lines).expect_problem(404, "entry_not_found");
    ask(&user, "DELETE", "/api/journal/999999", lines).expect_problem(404, "entry_not_found");
    write(&user, "PUT", "/api/journal/999999", lines, ENTRY).expect_problem(404, "entry_not_found");
    write(&user, "PUT", &entry, lines, "{}").expect_problem(400, "validation_failed");
    ask(&user, "PATCH", &entry, lines).expect_problem(405, "method_not_allowed");
    assert_eq!(ask(&user, "OPTIONS", &entry, lines).status, 204);
    ask(&user, "GET", "/api/journal?limit=0", lines).expect_problem(400, "validation_failed");
    let nobody = user.service.client().request("DELETE", &entry, lines);
    nobody.expect_problem(401, "token_missing");
    assert_eq!(user.get(&entry).status, 200);
}

#[test]
fn an_entry_is_changed_only_as_it_was_seen() {
    let (user, entry) = user();
    let seen = || tag(&user.get(&entry));
    let first = seen();
    assert_eq!(first, seen());
    let put = |lines: &str, body: &str| write(&user, "PUT", &entry, lines, body);
    let other = ENTRY.replace("NSE:M&M", "NSE:INFY");
    // A PUT stores a document that differs from the one sent, so its answer has no validator
    // (9.3.4).
    let put_once = put(&format!("If-Match: {first}\r\n"), &other);
    assert_eq!((put_once.status, put_once.header("etag")), (200, None), "{}", put_once.text());
    let second = seen();
    assert_ne!(first, second);
    for lines in [
        format!("If-Match: {first}\r\n"),
        format!("If-Match: W/{second}\r\n"),
        "If-Match: \r\n".to_owned(),
        format!("If-Match: {second} {second}\r\n"),
        "If-None-Match: *\r\n".to_owned(),
        format!("If-None-Match: {second}\r\n"),
        format!("If-None-Match: \"a\"\r\nIf-None-Match: W/{second}\r\n"),
        format!("If-Match: {second}\r\nIf-None-Match: {second}\r\n"),
    ] {
        put(&lines, ENTRY).expect_problem(412, "precondition_failed");
        ask(&user, "DELETE", &entry, &lines).expect_problem(412, "precondition_failed");
        assert_eq!(second, seen(), "{lines}");
    }
    for lines in [
        "If-Match: *\r\n".to_owned(),
        "If-None-Match: \"a\", \"b\"\r\n".to_owned(),
        "If-Unmodified-Since: Sat, 01 Jan 2000 00:00:00 GMT\r\n".to_owned(),
        String::new(),
    ] {
        assert_eq!(put(&lines, &other).status, 200, "{lines}");
    }
    let lines = format!("If-Match: \"a\"\r\nIf-Match: {}\r\n", seen());
    assert_eq!(put(&lines, ENTRY).status, 200);
    let gone = ask(&user, "DELETE", &entry, &format!("If-Match: {}\r\n", seen()));
    assert_eq!(gone.status, 200);
    put("If-Match: *\r\n", ENTRY).expect_problem(404, "entry_not_found");
}

#[test]
fn the_list_has_a_tag_for_each_page_and_writing_can_wait_for_it() {
    let (user, entry) = user();
    let list = |query: &str| tag(&user.get(&format!("{JOURNAL}{query}")));
    let (all, one) = (list(""), list("?limit=1"));
    assert_eq!(all, list(""));
    let add = |query: &str, lines: String| {
        write(&user, "POST", &format!("{JOURNAL}{query}"), &lines, ENTRY)
    };
    let added = add("", format!("If-Match: {all}\r\n")).with_status(201);
    // The tag of the new entry.
    assert_eq!(tag(&added), tag(&user.get(added.header("location").unwrap())));
    assert_ne!(all, list(""));
    assert_ne!(one, list("?limit=1"));
    add("", format!("If-Match: {all}\r\n")).expect_problem(412, "precondition_failed");
    add("", "If-None-Match: *\r\n".into()).expect_problem(412, "precondition_failed");
    add("?limit=1", format!("If-Match: {}\r\n", list("")))
        .expect_problem(412, "precondition_failed");
    assert_eq!(add("?limit=1", format!("If-Match: {}\r\n", list("?limit=1"))).status, 201);
    let before = list("");
    assert_eq!(write(&user, "PUT", &entry, "", ENTRY).status, 200);
    assert_ne!(before, list(""));
    assert_eq!(
        user.get(JOURNAL).json()["entries"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

#[test]
fn of_many_who_saw_the_same_entry_one_changes_it() {
    const CLIENTS: usize = 8;
    const ROUNDS: usize = 10;
    let (user, entry) = user();
    let address = user.service.0.address();
    for round in 0..ROUNDS {
        let lines = format!("{}If-Match: {}\r\n", user.auth, tag(&user.get(&entry)));
        let together = Barrier::new(CLIENTS);
        let change = |number: usize| {
            let body = ENTRY.replace("\"quantity\":10", &format!("\"quantity\":{}", number + 1));
            let mut client = Client::connect(address);
            together.wait();
            client.send_json("PUT", &entry, &lines, &body).status
        };
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let change = &change;
            let clients: Vec<_> = (0..CLIENTS)
                .map(|number| scope.spawn(move || change(number)))
                .collect();
            clients
                .into_iter()
                .map(|client| client.join().unwrap())
                .collect()
        });
        let changed = statuses.iter().filter(|status| **status == 200).count();
        let refused = statuses.iter().filter(|status| **status == 412).count();
        assert_eq!((changed, refused), (1, CLIENTS - 1), "round {round}: {statuses:?}");
    }
}

/// A resource without a representation never has the state in `If-Match`, nor one in
/// `If-None-Match`.
#[test]
fn what_cannot_be_read_matches_nothing() {
    let (user, _) = user();
    let reads = |path: &str| {
        ROUTES
            .iter()
            .any(|r| r.method == Method::Get && r.path == path)
    };
    let (_, order) = user.order("a");
    let calls = || user.scene.stats()["requests"]["broker_a.session"].as_u64();
    let before = calls();
    let mut tried = 0;
    let by_login = |route: &&Route| route.access != Access::Key && !reads(route.path);
    for route in ROUTES.iter().filter(by_login) {
        tried += 1;
        let body = match route.path {
            "/api/portfolio/sync" => &order,
            "/api/auth/account" => r#"{"password":"a long enough secret"}"#,
            "/api/auth/register" => {
                r#"{"email":"new@example.com","password":"nine green parrots"}"#
            }
            _ => "{}",
        };
        for lines in ["If-Match: *\r\n", "If-Match: \"x\"\r\n"] {
            let is_key = route.path.starts_with("/api/keys/");
            let path = route
                .path
                .replace("{id}", if is_key { "00000000000" } else { "1" });
            let answer = write(&user, route.method.as_str(), &path, lines, body);
            answer.expect_problem(412, "precondition_failed");
        }
    }
    assert!(tried > 8, "{tried}");
    assert_eq!(calls(), before, "a one-time code was spent");
    let holdings = user.get("/api/portfolio/holdings").json();
    assert_eq!(holdings["holdings"].as_array().unwrap().len(), 12, "nothing was deleted");
    let lines = "If-None-Match: *\r\n";
    assert_eq!(write(&user, "POST", "/api/portfolio/sync", lines, &order).status, 200);
    assert_eq!(ask(&user, "DELETE", "/api/portfolio/data", lines).status, 200);
    let proof = r#"{"password":"a long enough secret"}"#;
    assert_eq!(write(&user, "DELETE", "/api/auth/account", lines, proof).status, 200);
}

#[test]
fn a_page_of_an_allowed_origin_may_send_them() {
    let (_scene, service) = Scene::trading_with(|config| {
        config.http.allowed_origins = vec!["https://app.example".into()];
    });
    let token = bearer(&service.register("a@b.example", "correct horse"));
    let origin = "Origin: https://app.example\r\nAccess-Control-Request-Method: PUT\r\n";
    let preflight =
        service
            .client()
            .request("OPTIONS", "/api/journal/1", &format!("{token}{origin}"));
    let allowed = preflight
        .header("access-control-allow-headers")
        .unwrap()
        .to_lowercase();
    for name in ["if-match", "if-none-match"] {
        assert!(allowed.split(", ").any(|word| word == name), "{allowed}");
    }
}

/// Through a proxy that compresses, reading again brings the same weak tag.
#[test]
fn a_tag_that_a_proxy_has_changed_is_named_and_the_revision_serves_instead() {
    let (user, entry) = user();
    let lists = "/api/watchlists";
    let two = r#"{"watchlists":[{"name":"A","symbols":["NSE:INFY"]}]}"#;
    for (path, body) in [(&*entry, ENTRY), (lists, two)] {
        let etag = tag(&ask(&user, "GET", path, ""));
        let inner = etag.trim_matches('"');
        for changed in [
            format!("W/{etag}"),
            format!("W/\"{inner}-gzip\""),
            format!("\"other\", W/{etag}"),
            format!("W/{etag}\r\nIf-Match: \"other\""),
            format!("\"{inner}-gzip\""),
            format!("\"{inner};gzip\""),
            format!("\"{inner}--gzip\""),
            format!("\"{inner}-br\""),
            format!("\"{inner}-zstd\""),
            format!("\"{inner}-df\""),
        ] {
            for method in ["PUT", "DELETE", "GET"] {
                if (path, method) == (lists, "DELETE") {
                    continue;
                }
                let body = if method == "PUT" { body } else { "" };
                let lines = format!("If-Match: {changed}\r\n");
                let answer = match body {
                    "" => ask(&user, method, path, &lines),
                    body => write(&user, method, path, &lines, body),
                };
                let json = answer.expect_problem(412, "precondition_failed");
                let detail = json["detail"].as_str().unwrap();
                assert!(detail.contains("a proxy that compresses"), "{changed}: {detail}");
                assert!(detail.contains("revision"), "{changed}: {detail}");
                assert_eq!(detail.contains("weak (W/"), changed.contains("W/"), "{detail}");
            }
        }
        // Nothing was done.
        assert_eq!(tag(&ask(&user, "GET", path, "")), etag);
        // A strong tag of another state is told as ever.
        let answer = write(&user, "PUT", path, "If-Match: \"other\"\r\n", body);
        let json = answer.expect_problem(412, "precondition_failed");
        assert!(!json["detail"].as_str().unwrap().contains("proxy"), "{json}");
    }
}

#[test]
fn a_revision_stands_in_each_entry_and_admits_a_change_as_the_tag_does() {
    let (user, entry) = user();
    let revision = |answer: &Answer| {
        assert!(answer.status < 300, "{}", answer.text());
        answer.json()["revision"].as_str().unwrap().to_owned()
    };
    let shown = ask(&user, "GET", &entry, "");
    let first = revision(&shown);
    assert_eq!(tag(&shown), format!("\"{first}\""));
    let page = ask(&user, "GET", JOURNAL, "").json();
    assert_eq!(page["entries"][0]["revision"].as_str(), Some(&*first));
    let found = ask(&user, "GET", "/api/journal/search", "").json();
    assert_eq!(found["entries"][0]["revision"].as_str(), Some(&*first));
    let with = |revision: &str, price: &str| {
        let body = ENTRY.replace("3012.05", price);
        body.replacen('{', &format!("{{\"revision\":\"{revision}\","), 1)
    };
    let by_tag = format!("If-Match: \"{first}\"\r\n");
    let second = revision(&write(&user, "PUT", &entry, &by_tag, &with(&first, "3013")));
    assert_ne!(first, second);
    // In the body alone; the answer has the next one.
    let third = revision(&write(&user, "PUT", &entry, "", &with(&second, "3014")));
    let old = write(&user, "PUT", &entry, "", &with(&second, "3015"));
    old.expect_problem(412, "precondition_failed");
    // Both have to hold.
    let by_third = format!("If-Match: \"{third}\"\r\n");
    for (lines, body) in [
        (&*by_tag, with(&third, "3016")),
        (&*by_third, with(&first, "3016")),
        ("If-Match: *\r\n", with(&first, "3016")),
        ("If-None-Match: *\r\n", with(&third, "3016")),
        ("", with("", "3016")),
        ("", with("\\\"x\\\"", "3016")),
    ] {
        let answer = write(&user, "PUT", &entry, lines, &body);
        answer.expect_problem(412, "precondition_failed");
    }
    for wrong in ["7", "true", "[]", &format!("\"{}\"", "x".repeat(65))] {
        let body = ENTRY.replacen('{', &format!("{{\"revision\":{wrong},"), 1);
        let json = write(&user, "PUT", &entry, "", &body).expect_problem(400, "validation_failed");
        assert_eq!(json["errors"][0]["field"], "revision");
    }
    assert_eq!(revision(&ask(&user, "GET", &entry, "")), third);
    let null = ENTRY.replacen('{', "{\"revision\":null,", 1);
    let fourth = revision(&write(&user, "PUT", &entry, "", &null));
    assert_ne!(fourth, third);
    // A new entry may be a copy of another one.
    let copied = write(&user, "POST", JOURNAL, "", &with(&first, "3017"));
    assert_eq!(copied.status, 201, "{}", copied.text());
    let gone = ask(&user, "DELETE", &entry, &format!("If-Match: \"{fourth}\"\r\n"));
    assert_eq!(gone.status, 200);

    let lists = "/api/watchlists";
    let empty = revision(&ask(&user, "GET", lists, ""));
    let with = |revision: &str| {
        let lists = r#"[{"name":"A","symbols":["NSE:INFY"]}]"#;
        format!("{{\"revision\":\"{revision}\",\"watchlists\":{lists}}}")
    };
    let filled = revision(&write(&user, "PUT", lists, "", &with(&empty)));
    let answer = write(&user, "PUT", lists, "", &with(&empty));
    answer.expect_problem(412, "precondition_failed");
    assert_eq!(revision(&ask(&user, "GET", lists, "")), filled);
}
