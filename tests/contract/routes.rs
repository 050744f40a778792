//! Every route has all of its parts. What a new one lacks is said at once, with the file that it
//! belongs into.
//!
//! Other tests take every row of the table by themselves: metrics, OPTIONS, preconditions, and for
//! a GET route that needs no parameter the isolation of users and its answers as described.

use bhav::api::{Access, ROUTES, Route};
use bhav::http::Method;
use serde_json::Value;

use super::openapi::{document, needs};
use crate::support::source::root;

const OPERATIONS: &str = "src/api/openapi/operations.json";
/// Tests that make a request to a route by hand where it takes more than its path.
const BY_HAND: [&str; 2] = [
    "tests/contract/preconditions.rs",
    "tests/contract/described",
];
const ISOLATION: &str = "tests/accounts/isolation.rs";

/// The texts in which a route's parts stand.
struct Texts {
    operations: Value,
    document: Value,
    page: String,
}

impl Texts {
    fn read() -> Self {
        let operations: Value = serde_json::from_str(&text(OPERATIONS)).unwrap();
        Self {
            operations: operations["operations"].clone(),
            document: document(),
            page: text("docs/api.md"),
        }
    }
}

/// A file, or all files of a folder.
fn text(path: &str) -> String {
    let path = root().join(path);
    if path.is_file() {
        return std::fs::read_to_string(path).unwrap();
    }
    let files = std::fs::read_dir(path).unwrap();
    files
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect()
}

fn name_of(route: &Route) -> String {
    format!("{} {}", route.method.as_str(), route.path)
}

/// Whether the route's path, up to its parameter, stands in the tests at `path`. `{id}` and a query
/// follow it there.
fn is_tried_in(route: &Route, path: &str) -> bool {
    let before = route.path.split('{').next().unwrap();
    text(path).contains(&format!("\"{before}"))
}

/// What the route lacks: files, and what belongs into them.
fn lacking(route: &Route, texts: &Texts) -> Vec<String> {
    let name = name_of(route);
    let mut lacking = Vec::new();
    let mut note = |lacks: bool, what: String| {
        if lacks {
            lacking.push(format!("{name}: {what}"));
        }
    };
    note(route.doc.is_empty(), "src/api/routes.rs has no line for a person".to_owned());
    let operation = &texts.operations[&name];
    note(operation.is_null(), format!("{OPERATIONS} has no operation `{name}`"));
    let path = &texts.document["paths"][route.path];
    let described = &path[route.method.as_str().to_lowercase()];
    note(
        described["summary"] != route.doc,
        "src/api/openapi.json is old: BHAV_BLESS=1 cargo test --lib openapi".to_owned(),
    );
    if let Some(view) = operation["reply"]["schema"].as_str() {
        note(
            texts.document["components"]["schemas"][view].is_null(),
            format!("`views!` of src/api/openapi_tests.rs has no {view}"),
        );
    }
    note(
        !texts.page.contains(&format!("`{name}")),
        format!("docs/api.md has no row `{name}`"),
    );
    let is_read = route.method == Method::Get;
    let needs = needs(&texts.document, route);
    let is_plain = is_read && needs.is_empty();
    if is_read && !is_plain {
        for tests in BY_HAND {
            note(
                !is_tried_in(route, tests),
                format!("{tests} has no request, which needs {needs:?}"),
            );
        }
    }
    note(
        route.access == Access::User && !is_plain && !is_tried_in(route, ISOLATION),
        format!("{ISOLATION} has no request"),
    );
    lacking
}

#[test]
fn every_route_has_all_its_parts() {
    let texts = Texts::read();
    assert!(!ROUTES.is_empty());
    let mut missing: Vec<String> = ROUTES
        .iter()
        .flat_map(|route| lacking(route, &texts))
        .collect();
    let rows: Vec<String> = ROUTES.iter().map(name_of).collect();
    for name in texts.operations.as_object().unwrap().keys() {
        if !rows.contains(name) {
            missing
                .push(format!("{name}: described, and `ROUTES` of src/api/routes.rs has no row"));
        }
    }
    assert!(missing.is_empty(), "missing:\n{}", missing.join("\n"));
}
