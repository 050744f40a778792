//! The description of the API, judged without a service: it has every route and nothing else, it is
//! OpenAPI 3.1 by its form, and it knows every error code that the code can give.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use bhav::api::{Access, ROUTES};
use serde_json::{Map, Value};

use crate::source::{expect_none, root, rust};

/// What takes no method of its own: said once for all paths.
const OF_NO_OPERATION: &str = "method_not_allowed";

pub fn document() -> Value {
    let text = std::fs::read_to_string(root().join("src/api/openapi.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// What stands behind a reference, or the value itself.
pub fn resolved<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    match value.get("$ref") {
        Some(reference) => {
            let pointer = reference.as_str().unwrap().strip_prefix('#').unwrap();
            document.pointer(pointer).unwrap_or_else(|| panic!("{pointer} leads nowhere"))
        }
        None => value,
    }
}

pub fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("no object: {value}"))
}

/// Method, path and content of every operation.
pub fn operations(document: &Value) -> Vec<(String, &str, &Value)> {
    let paths = object(&document["paths"]).iter();
    let all = paths.flat_map(|(path, item)| {
        object(item).iter().map(|(method, what)| (method.to_uppercase(), path.as_str(), what))
    });
    all.collect()
}

#[test]
fn it_has_every_route_as_the_table_has_it_and_no_other() {
    let document = document();
    let operations = operations(&document);
    let described: BTreeSet<_> =
        operations.iter().map(|(method, path, _)| (method.as_str(), *path)).collect();
    let routes: BTreeSet<_> = ROUTES.iter().map(|r| (r.method.as_str(), r.path)).collect();
    assert_eq!(described, routes);
    for route in ROUTES {
        let of_route = |(method, path, _): &&(String, &str, &Value)| {
            method == route.method.as_str() && *path == route.path
        };
        let (method, path, operation) = operations.iter().find(of_route).unwrap();
        assert_eq!(operation["summary"], route.doc, "{method} {path}");
        let (word, security) = match route.access {
            Access::Public => ("public", "[]"),
            Access::User => ("user", r#"[{"bearer":[]},{"cookie":[]}]"#),
            Access::Admin => ("admin", "[]"),
        };
        assert_eq!(operation["x-access"], word, "{method} {path}");
        assert_eq!(operation["security"].to_string(), security, "{method} {path}");
        let codes = codes_of(&document, operation);
        let all = |wanted: &[(&str, &str)]| {
            wanted
                .iter()
                .all(|(status, code)| codes.contains(&((*status).to_owned(), (*code).to_owned())))
        };
        let unidentified = [("401", "token_missing"), ("401", "token_invalid")];
        assert_eq!(all(&unidentified), route.access == Access::User, "{method} {path}");
        let administrators = [("403", "admin_local_only"), ("403", "admin_secret_invalid")];
        assert_eq!(all(&administrators), route.access == Access::Admin, "{method} {path}");
        let by_cookie = route.access == Access::User && method != "GET";
        assert_eq!(all(&[("403", "cross_site_request")]), by_cookie, "{method} {path}");
        let with_body = operation.get("requestBody").is_some();
        let of_bodies = [("400", "malformed_json"), ("415", "unsupported_media_type")];
        assert_eq!(all(&of_bodies), with_body, "{method} {path}");
    }
}

#[test]
fn it_is_of_this_version_and_says_what_a_person_must_read() {
    let document = document();
    let info = &document["info"];
    assert_eq!(info["version"], bhav::ops::version::VERSION);
    assert_eq!(info["license"]["identifier"], "MIT OR Apache-2.0");
    let description = info["description"].as_str().unwrap();
    for needed in [
        "not investment advice",
        "not registered as an investment adviser",
        "`stale`",
        "`simulated`",
        "`provisional`",
        "+05:30",
        OF_NO_OPERATION,
    ] {
        assert!(description.contains(needed), "{needed}");
    }
}

/// Status (or `default`) and code of every problem that an operation names.
fn codes_of(document: &Value, operation: &Value) -> BTreeSet<(String, String)> {
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

/// Fails if a route refuses with a code that the document does not list for it. Every answer of
/// every scenario comes by here.
#[track_caller]
pub fn expect_listed(method: &str, target: &str, status: u16, body: &[u8]) {
    let path = target.split('?').next().unwrap();
    let is_id = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit());
    let path = match path.strip_prefix("/api/journal/") {
        Some(rest) if is_id(rest) => "/api/journal/{id}",
        _ => path,
    };
    let is_route = ROUTES.iter().any(|r| r.method.as_str() == method && r.path == path);
    if status < 400 || !is_route {
        return;
    }
    let Ok(problem) = serde_json::from_slice::<Value>(body) else { return };
    // Health that is down is a report.
    let Some(code) = problem.get("code").and_then(Value::as_str) else { return };
    let of = |status: &str| [method, path, status, code].map(str::to_owned);
    let known = listed().contains(&of(&status.to_string())) || listed().contains(&of("default"));
    assert!(known, "the document does not list {status} {code} for {method} {path}");
}

/// The word in quotes at the start of `text`, blanks aside.
fn literal(text: &str) -> Option<&str> {
    text.trim_start().strip_prefix('"')?.split('"').next()
}

/// Status and code of what follows `Problem::new(` and its like.
fn codes_in(text: &str) -> Vec<(u16, String)> {
    let code = text.split("#[cfg(test)]").next().unwrap();
    let mut found = Vec::new();
    let after = |opening: &'static str| {
        code.match_indices(opening).map(move |(at, _)| &code[at + opening.len()..])
    };
    for rest in after("Problem::new(").chain(after("Self::new(")) {
        let Some((status, rest)) = rest.split_once(',') else { continue };
        found.extend(status.trim().parse().ok().zip(literal(rest).map(str::to_owned)));
    }
    for (opening, status) in [("unavailable(", 503), ("unauthorized(", 401)] {
        found.extend(after(opening).filter_map(literal).map(|word| (status, word.to_owned())));
    }
    // The HTTP layer's own table.
    for line in code.lines() {
        let Some((status, word)) = line.split_once(" => ") else { continue };
        let word = literal(word).filter(|_| line.trim_end().ends_with("\",")).map(str::to_owned);
        let status = match status.trim() {
            "_" => Some(400),
            digits => digits.parse().ok(),
        };
        found.extend(status.zip(word).filter(|(status, _): &(u16, _)| *status >= 400));
    }
    found
}

#[test]
fn it_names_every_code_that_the_source_has_and_no_other() {
    let document = document();
    let mut written = BTreeSet::new();
    for source in rust(&["src/api", "src/http"]) {
        let of_surface = source.path.starts_with("src/api") || source.path.ends_with("problem.rs");
        if of_surface && !source.path.ends_with("tests.rs") {
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
                408 => \"h\",\n _ => \"i\",\n 200 => \"OK\",\nProblem::new(status, code, detail)\n\
                #[cfg(test)]\nProblem::new(400, \"never\", x)";
    let found: Vec<String> =
        codes_in(text).into_iter().map(|(status, word)| format!("{status} {word}")).collect();
    assert_eq!(found, ["409 a_b", "400 c", "503 d", "401 f", "408 h", "400 i"]);
}

/// The members that an object of OpenAPI 3.1 may have here, and those it must have.
fn form(complaints: &mut Vec<String>, place: &str, value: &Value, must: &[&str], may: &[&str]) {
    let Some(members) = value.as_object() else {
        complaints.push(format!("{place}: no object"));
        return;
    };
    for name in must.iter().filter(|name| !members.contains_key(**name)) {
        complaints.push(format!("{place}: {name} is missing"));
    }
    let known = |name: &str| must.contains(&name) || may.contains(&name) || name.starts_with("x-");
    complaints.extend(
        members.keys().filter(|n| !known(n)).map(|name| format!("{place}: {name} is unknown")),
    );
}

fn headers(document: &Value, complaints: &mut Vec<String>, place: &str, response: &Value) {
    for (name, header) in response.get("headers").map(object).into_iter().flatten() {
        let place = format!("{place} {name}");
        let header = resolved(document, header);
        form(complaints, &place, header, &["schema"], &["description", "required"]);
    }
    for (media, content) in response.get("content").map(object).into_iter().flatten() {
        let place = format!("{place} {media}");
        form(complaints, &place, content, &["schema"], &[]);
        if !matches!(media.as_str(), "application/json" | "application/problem+json") {
            complaints.push(format!("{place}: not ours"));
        }
    }
}

fn parameters(document: &Value, complaints: &mut Vec<String>, place: &str, operation: &Value) {
    let mut names = BTreeSet::new();
    for parameter in operation.get("parameters").and_then(Value::as_array).into_iter().flatten() {
        let parameter = resolved(document, parameter);
        let name = parameter["name"].as_str().unwrap();
        let place = format!("{place} {name}");
        let must = ["name", "in", "schema", "description"];
        form(complaints, &place, parameter, &must, &["required", "style", "explode"]);
        if !names.insert((parameter["in"].as_str().unwrap(), name)) {
            complaints.push(format!("{place}: twice"));
        }
        if parameter["in"] == "path" && parameter["required"] != true {
            complaints.push(format!("{place}: not required"));
        }
    }
    let in_path = names.iter().filter(|(kind, _)| *kind == "path").map(|(_, name)| *name);
    let template = place.split('{').skip(1).map(|rest| rest.split('}').next().unwrap());
    if !in_path.eq(template) {
        complaints.push(format!("{place}: the path's parameters are others"));
    }
}

/// By its form; the schemas are judged by the meta-schema of their dialect.
#[test]
fn it_is_an_openapi_document() {
    let document = document();
    let mut wrong = Vec::new();
    let must = ["openapi", "info", "servers", "tags", "paths", "components"];
    form(&mut wrong, "the document", &document, &must, &[]);
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."));
    let must = ["title", "version", "summary", "description", "license"];
    form(&mut wrong, "info", &document["info"], &must, &[]);
    form(&mut wrong, "license", &document["info"]["license"], &["name", "identifier"], &[]);
    let tags: BTreeSet<_> =
        document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].to_string()).collect();
    let mut ids = BTreeMap::new();
    for (method, path, operation) in operations(&document) {
        let place = format!("{method} {path}");
        let must = ["operationId", "tags", "summary", "security", "responses", "x-access"];
        let may = ["description", "parameters", "requestBody"];
        form(&mut wrong, &place, operation, &must, &may);
        let id = operation["operationId"].to_string();
        if let Some(other) = ids.insert(id, place.clone()) {
            wrong.push(format!("{place}: the operationId of {other}"));
        }
        let known = operation["tags"].as_array().unwrap().iter();
        if known.clone().count() != 1 || known.clone().any(|tag| !tags.contains(&tag.to_string())) {
            wrong.push(format!("{place}: one tag that the document has"));
        }
        if let Some(body) = operation.get("requestBody") {
            form(&mut wrong, &place, body, &["required", "content"], &[]);
            headers(&document, &mut wrong, &place, body);
        }
        parameters(&document, &mut wrong, &place, operation);
        for (status, response) in object(&operation["responses"]) {
            let place = format!("{place} {status}");
            let response = resolved(&document, response);
            form(&mut wrong, &place, response, &["description"], &["headers", "content"]);
            headers(&document, &mut wrong, &place, response);
            let of_status = status.parse::<u16>().is_ok_and(|status| status < 600);
            if !of_status && status != "default" {
                wrong.push(format!("{place}: no status"));
            }
        }
    }
    expect_none(&wrong);
}

/// Calls `visit` with every object of the document and where it is.
fn each_object<'d>(value: &'d Value, place: &str, visit: &mut impl FnMut(&str, &'d Value)) {
    match value {
        Value::Object(members) => {
            visit(place, value);
            members.iter().for_each(|(key, v)| each_object(v, &format!("{place}/{key}"), visit));
        }
        Value::Array(items) => items.iter().for_each(|v| each_object(v, place, visit)),
        _ => {}
    }
}

#[test]
fn references_lead_somewhere_and_nothing_stands_unused() {
    let document = document();
    let mut used = BTreeSet::new();
    each_object(&document, "", &mut |_, value| {
        if let Some(reference) = value.get("$ref") {
            resolved(&document, value);
            used.insert(reference.as_str().unwrap());
        }
    });
    let mut unused = Vec::new();
    for kind in ["schemas", "responses", "headers", "parameters"] {
        for name in object(&document["components"][kind]).keys() {
            let reference = format!("#/components/{kind}/{name}");
            if !used.contains(reference.as_str()) {
                unused.push(format!("{reference} is not used"));
            }
        }
    }
    expect_none(&unused);
}

#[test]
fn schemas_are_valid_and_those_of_replies_are_closed() {
    let document = document();
    let mut wrong = Vec::new();
    let mut requests = BTreeSet::new();
    for (_, _, operation) in operations(&document) {
        let body = operation.pointer("/requestBody/content/application~1json/schema/$ref");
        requests.extend(body.map(|reference| reference.as_str().unwrap().replacen('#', "", 1)));
    }
    // What is closed where it is used.
    let open = ["/components/schemas/RowName", "/components/schemas/SyncReport"];
    let schemas = &document["components"]["schemas"];
    for (name, schema) in object(schemas) {
        if let Err(error) = jsonschema::meta::validate(schema) {
            wrong.push(format!("{name}: {error}"));
        }
    }
    each_object(schemas, "/components/schemas", &mut |place, value| {
        let is_object =
            value.get("properties").is_some_and(Value::is_object) && value["type"] == "object";
        let closed = ["additionalProperties", "unevaluatedProperties"];
        let closed = closed.iter().any(|word| value.get(*word) == Some(&Value::Bool(false)));
        let may_be_open = open.contains(&place)
            || requests.contains(place)
            || place == "/components/schemas/Document";
        if is_object && closed == may_be_open {
            wrong.push(format!("{place}: closed is {closed}"));
        }
        let names = |word| value.get(word).and_then(Value::as_array).into_iter().flatten();
        for name in names("required").filter(|_| is_object) {
            if value["properties"].get(name.as_str().unwrap()).is_none() {
                wrong.push(format!("{place}: {name} is required and not there"));
            }
        }
    });
    expect_none(&wrong);
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
