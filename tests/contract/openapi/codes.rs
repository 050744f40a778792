//! Error codes: the description has each code of the source, and lists each code that a route gives
//! for that route.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use bhav::api::ROUTES;
use serde_json::Value;

use super::{document, object, operations, resolved};
use crate::support::source::rust;

/// The code for an unsupported method, described once for all paths.
pub const OF_NO_OPERATION: &str = "method_not_allowed";

/// Status (or `default`) and code of every problem in an operation.
pub fn codes_of(document: &Value, operation: &Value) -> BTreeSet<(String, String)> {
    let mut codes = BTreeSet::new();
    for (status, response) in object(&operation["responses"]) {
        let response = resolved(document, response);
        let problem = response.pointer("/content/application~1problem+json/schema/properties");
        let Some(problem) = problem else { continue };
        assert_eq!(problem.get("status").is_some(), status != "default", "{status}");
        if status != "default" {
            assert_eq!(problem["status"]["const"].to_string(), *status);
        }
        for code in problem["code"]["enum"].as_array().unwrap() {
            let new = codes.insert((status.clone(), code.as_str().unwrap().to_owned()));
            assert!(new, "{code} twice");
        }
    }
    codes
}

/// Method, path, status (or `default`) and code of every problem that the document lists.
fn listed() -> &'static BTreeSet<[String; 4]> {
    static LISTED: OnceLock<BTreeSet<[String; 4]>> = OnceLock::new();
    LISTED.get_or_init(|| {
        let document = document();
        let mut all = BTreeSet::new();
        for (method, path, operation) in operations(&document) {
            for (status, code) in codes_of(&document, operation) {
                all.insert([method.clone(), path.to_owned(), status, code]);
            }
        }
        all
    })
}

/// Fails if a route refuses with a code that the document does not list for it. Called with every
/// answer of every scenario.
#[track_caller]
pub fn expect_listed(method: &str, target: &str, status: u16, body: &[u8]) {
    let path = target.split('?').next().unwrap();
    let is_id = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit());
    let path = match path.strip_prefix("/api/journal/") {
        Some(rest) if is_id(rest) => "/api/journal/{id}",
        _ if path.starts_with("/api/keys/") => "/api/keys/{id}",
        _ if path.starts_with("/api/trades/") => of_ledger(path),
        _ => path,
    };
    let is_route = ROUTES
        .iter()
        .any(|r| r.method.as_str() == method && r.path == path);
    if status < 400 || !is_route {
        return;
    }
    let Ok(problem) = serde_json::from_slice::<Value>(body) else {
        return;
    };
    // Health that is down is no problem document.
    let Some(code) = problem.get("code").and_then(Value::as_str) else {
        return;
    };
    // Described once for all paths; a public demo answers so where something would change.
    if (status, code) == (405, OF_NO_OPERATION) {
        return;
    }
    let of = |status: &str| [method, path, status, code].map(str::to_owned);
    let known = listed().contains(&of(&status.to_string())) || listed().contains(&of("default"));
    assert!(known, "the document does not list {status} {code} for {method} {path}");
}

/// The path of a route of the ledger.
pub fn of_ledger(path: &str) -> &str {
    const WITH_ID: [&str; 4] = ["imports", "accounts", "corrections", "conflicts"];
    let parts: Vec<&str> = path.trim_start_matches("/api/trades/").split('/').collect();
    let named = |name: &str| {
        ROUTES
            .iter()
            .map(|route| route.path)
            .find(|path| path.ends_with(name))
            .unwrap()
    };
    match parts[..] {
        [_, _, "confirm"] => named("/{id}/confirm"),
        ["tax", _, "112a.csv"] => named("/112a.csv"),
        [of, _] if WITH_ID.contains(&of) => named(&format!("/{of}/{{id}}")),
        _ => path,
    }
}

/// The string literal at the start of `text`, after blanks.
fn literal(text: &str) -> Option<&str> {
    text.trim_start().strip_prefix('"')?.split('"').next()
}

/// Status and code after each `Problem::new(` and similar calls.
fn codes_in(text: &str) -> Vec<(u16, String)> {
    let code = text.split("#[cfg(test)]").next().unwrap();
    let mut found = Vec::new();
    let after = |opening: &'static str| {
        code.match_indices(opening)
            .map(move |(at, _)| &code[at + opening.len()..])
    };
    for (opening, status) in [
        ("unavailable(", 503),
        ("unauthorized(", 401),
        ("too_early(", 429),
    ] {
        found.extend(
            after(opening)
                .filter_map(literal)
                .map(|word| (status, word.to_owned())),
        );
    }
    // Calls of `Problem::new` and `Self::new`, and the HTTP layer's own table.
    for rest in after("(") {
        let Some((status, rest)) = rest.split_once(',') else {
            continue;
        };
        let status = status
            .trim()
            .parse()
            .ok()
            .filter(|status: &u16| *status >= 400);
        found.extend(status.zip(literal(rest).map(str::to_owned)));
    }
    found
}

#[test]
fn it_names_every_code_that_the_source_has_and_no_other() {
    let document = document();
    let mut written = BTreeSet::new();
    for source in rust(&["src/api", "src/http"]) {
        if !source.path.ends_with("tests.rs") {
            written.extend(codes_in(&source.text));
        }
    }
    assert!(written.len() > 30, "{written:?}");
    let words: BTreeSet<&str> = written.iter().map(|(_, word)| word.as_str()).collect();
    let mut told = BTreeSet::from([OF_NO_OPERATION.to_owned()]);
    for (method, path, operation) in operations(&document) {
        for (status, code) in codes_of(&document, operation) {
            let right =
                status == "default" || written.contains(&(status.parse().unwrap(), code.clone()));
            assert!(right, "{method} {path} never says {status} {code}");
            told.insert(code);
        }
    }
    let told: BTreeSet<&str> = told.iter().map(String::as_str).collect();
    assert_eq!(told, words);
}

#[test]
fn codes_are_found_where_they_are_written() {
    let text = "Problem::new(409, \"a_b\", x); Problem::new(\n  400,\n  \"c\",\n y);\n\
                Problem::unavailable(\"d\", e); unauthorized(\n \"f\",\n g);\n\
                too_early(\"j\", detail, x);\n\
                A => (408, \"h\", x),\nB => (\n 414,\n \"i\", y), (200, \"OK\")\n\
                Problem::new(status, code, detail)\n\
                #[cfg(test)]\nProblem::new(400, \"never\", x)";
    let found: Vec<String> = codes_in(text)
        .into_iter()
        .map(|(status, word)| format!("{status} {word}"))
        .collect();
    assert_eq!(
        found,
        [
            "503 d", "401 f", "429 j", "409 a_b", "400 c", "408 h", "414 i"
        ]
    );
}

#[test]
fn a_code_that_is_not_listed_is_noticed() {
    let body = |code: &str| format!("{{\"code\":\"{code}\"}}").into_bytes();
    let missing = || body("token_missing");
    expect_listed("GET", "/api/journal/7?x=1", 401, &missing());
    expect_listed("GET", "/api/health", 505, &body("http_version_not_supported"));
    expect_listed("GET", "/nowhere", 404, &body("whatever"));
    for (target, status) in [("/api/journal/7", 403), ("/api/health", 401)] {
        let caught = std::panic::catch_unwind(|| expect_listed("GET", target, status, &missing()));
        assert!(caught.is_err(), "{target}");
    }
}
