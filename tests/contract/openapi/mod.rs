//! The description of the API, checked without a service: it has exactly the routes, is OpenAPI 3.1
//! in form, and has every error code of the source.

pub mod codes;

use std::collections::{BTreeMap, BTreeSet};

use bhav::api::{Access, Keys, ROUTES, Route};
use serde_json::{Map, Value};

use crate::support::EVENT_STREAM;
use crate::support::source::{expect_none, root};
use codes::{OF_NO_OPERATION, codes_of};

pub use codes::expect_listed;

pub fn document() -> Value {
    let text = std::fs::read_to_string(root().join("src/api/openapi.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The target of a reference, or the value itself.
pub fn resolved<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    match value.get("$ref") {
        Some(reference) => {
            let pointer = reference.as_str().unwrap().strip_prefix('#').unwrap();
            document
                .pointer(pointer)
                .unwrap_or_else(|| panic!("{pointer} leads nowhere"))
        }
        None => value,
    }
}

pub fn object(value: &Value) -> &Map<String, Value> {
    value
        .as_object()
        .unwrap_or_else(|| panic!("no object: {value}"))
}

/// Method, path and content of every operation.
pub fn operations(document: &Value) -> Vec<(String, &str, &Value)> {
    let paths = object(&document["paths"]).iter();
    let all = paths.flat_map(|(path, item)| {
        object(item)
            .iter()
            .map(|(method, what)| (method.to_uppercase(), path.as_str(), what))
    });
    all.collect()
}

/// The parameters without which the route cannot be asked: of its path, and required ones.
pub fn needs(document: &Value, route: &Route) -> Vec<String> {
    let operation = &document["paths"][route.path][route.method.as_str().to_lowercase()];
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let required = parameters
        .map(|parameter| resolved(document, parameter))
        .filter(|parameter| parameter["required"] == true);
    required
        .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn it_has_every_route_as_the_table_has_it() {
    let document = document();
    let operations = operations(&document);
    // Whether each has a description is for `routes.rs` to say.
    let described = |route: &&Route| {
        operations
            .iter()
            .any(|(method, path, _)| method == route.method.as_str() && *path == route.path)
    };
    for route in ROUTES.iter().filter(described) {
        let of_route = |(method, path, _): &&(String, &str, &Value)| {
            method == route.method.as_str() && *path == route.path
        };
        let (method, path, operation) = operations.iter().find(of_route).unwrap();
        assert_eq!(operation["summary"], route.doc, "{method} {path}");
        let (key, by_key) = match route.keys {
            Keys::With(scope) => (scope.as_str(), format!(r#",{{"key":["{scope}"]}}"#)),
            Keys::Any => ("any", String::new()),
            Keys::Never => ("never", String::new()),
        };
        let (word, security) = match route.access {
            Access::Public => ("public", "[]".to_owned()),
            Access::User => ("user", format!(r#"[{{"bearer":[]}},{{"cookie":[]}}{by_key}]"#)),
            Access::Admin => ("admin", "[]".to_owned()),
            Access::Key => ("key", r#"[{"key":[]}]"#.to_owned()),
        };
        assert_eq!(operation["x-key"], key, "{method} {path}");
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
        // A login by cookie is also accepted only from a page of this site.
        let logs_in = ["/api/auth/login", "/api/auth/register"].contains(path);
        let of_pages = logs_in || route.access == Access::User && method != "GET";
        let of_pages = of_pages || route.access == Access::Key;
        assert_eq!(all(&[("403", "cross_site_request")]), of_pages, "{method} {path}");
        assert_eq!(all(&[("401", "key_missing")]), route.access == Access::Key, "{path}");
        let with_body = operation
            .pointer("/requestBody/content/application~1json")
            .is_some();
        let with_file = operation.get("requestBody").is_some() && !with_body;
        let of_bodies = [("415", "unsupported_media_type"), ("400", "malformed_json")];
        // JSON-RPC has errors of its own.
        let of_bodies = if *path == "/mcp" {
            &of_bodies[..1]
        } else {
            &of_bodies
        };
        assert_eq!(all(of_bodies), with_body, "{method} {path}");
        assert!(!with_file || all(&of_bodies[..1]), "{method} {path}");
    }
}

#[test]
fn it_is_of_this_version_and_says_what_a_person_must_read() {
    let document = document();
    let info = &document["info"];
    assert_eq!(info["version"], bhav::ops::exit::VERSION);
    assert_eq!(info["license"]["identifier"], "MIT OR Apache-2.0");
    let description = info["description"].as_str().unwrap();
    for needed in [
        "not investment advice",
        "not registered as an investment adviser",
        "`stale`",
        "`simulated`",
        "+05:30",
        OF_NO_OPERATION,
    ] {
        assert!(description.contains(needed), "{needed}");
    }
}

/// The members that an object of OpenAPI 3.1 may have here, and those it must have.
/// Media types of files that are sent, and of tables that are answered.
const OF_FILES: [&str; 3] = [
    "text/csv",
    "text/csv; charset=utf-8",
    "application/octet-stream",
];

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
        members
            .keys()
            .filter(|n| !known(n))
            .map(|name| format!("{place}: {name} is unknown")),
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
        let ours = ["application/json", "application/problem+json", EVENT_STREAM];
        if !ours.contains(&media.as_str()) && !OF_FILES.contains(&media.as_str()) {
            complaints.push(format!("{place}: not ours"));
        }
    }
}

fn parameters(document: &Value, complaints: &mut Vec<String>, place: &str, operation: &Value) {
    let mut names = BTreeSet::new();
    for parameter in operation
        .get("parameters")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
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
    let in_path = names
        .iter()
        .filter(|(kind, _)| *kind == "path")
        .map(|(_, name)| *name);
    let template = place
        .split('{')
        .skip(1)
        .map(|rest| rest.split('}').next().unwrap());
    if !in_path.eq(template) {
        complaints.push(format!("{place}: the path's parameters are others"));
    }
}

/// Checks the form; the meta-schema of their dialect checks the schemas.
#[test]
fn it_is_an_openapi_document() {
    let document = document();
    let mut wrong = Vec::new();
    let must = [
        "openapi",
        "info",
        "x-limits",
        "servers",
        "tags",
        "paths",
        "components",
    ];
    form(&mut wrong, "the document", &document, &must, &[]);
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."));
    let must = ["title", "version", "summary", "description", "license"];
    form(&mut wrong, "info", &document["info"], &must, &[]);
    form(
        &mut wrong,
        "license",
        &document["info"]["license"],
        &["name", "identifier"],
        &[],
    );
    let tags: BTreeSet<_> = document["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| tag["name"].to_string())
        .collect();
    let mut ids = BTreeMap::new();
    for (method, path, operation) in operations(&document) {
        let place = format!("{method} {path}");
        let must = [
            "operationId",
            "tags",
            "summary",
            "description",
            "security",
            "responses",
            "x-access",
            "x-key",
        ];
        let may = ["parameters", "requestBody"];
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

/// Calls `visit` with every object of the document and its place.
fn each_object<'d>(value: &'d Value, place: &str, visit: &mut impl FnMut(&str, &'d Value)) {
    match value {
        Value::Object(members) => {
            visit(place, value);
            members
                .iter()
                .for_each(|(key, v)| each_object(v, &format!("{place}/{key}"), visit));
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

/// Constructs on which client generators fail: an optional constant is no valid Python, an unnamed
/// object gets the same name twice if its owner is used twice, and properties next to a single part
/// of `allOf` are lost. `.ci/clients` generates clients and lets them make calls.
#[test]
fn clients_can_be_generated_from_it() {
    let document = document();
    let mut wrong = Vec::new();
    let schemas = &document["components"]["schemas"];
    each_object(schemas, "/components/schemas", &mut |place, value| {
        let required = value.get("required").and_then(Value::as_array);
        for (name, property) in value
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let constant = property.get("const").is_some();
            if constant && !required.is_some_and(|names| names.iter().any(|known| known == name)) {
                wrong.push(format!("{place}: {name} is constant and may be absent"));
            }
            if constant && property.get("type").is_none() {
                wrong.push(format!("{place}: {name} is constant and of no type"));
            }
        }
        let is_object = value.get("properties").is_some_and(Value::is_object);
        if is_object && place.matches('/').count() > 3 && !place.ends_with("/allOf") {
            wrong.push(format!("{place}: an object without a name"));
        }
        if is_object && value.get("allOf").is_some() {
            wrong.push(format!("{place}: properties beside allOf, not in a part of it"));
        }
    });
    expect_none(&wrong);
}

/// The limits that a value of this schema lacks.
fn without_limits(document: &Value, schema: &Value) -> Vec<&'static str> {
    let schema = resolved(document, schema);
    if schema.get("enum").is_some() || schema["format"] == "date" || schema["format"] == "date-time"
    {
        return Vec::new();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| *kind != "null").unwrap(),
        kind => kind,
    };
    let wanted: &[&str] = match kind.as_str() {
        // A pattern with a count limits the length.
        Some("string")
            if schema["pattern"]
                .as_str()
                .is_some_and(|p| p.ends_with("}$")) =>
        {
            &[]
        }
        Some("string") => &["minLength", "maxLength"],
        Some("integer") => &["minimum", "maximum"],
        Some("number") => &["minimum", "maximum", "multipleOf"],
        Some("array") => &["minItems", "maxItems", "items"],
        Some("boolean") => &[],
        _ => &["type"],
    };
    let exclusive = |word: &str| match word {
        "minimum" => schema.get("exclusiveMinimum").is_some(),
        "maximum" => schema.get("exclusiveMaximum").is_some(),
        _ => false,
    };
    let mut missing: Vec<&str> = wanted.to_vec();
    missing.retain(|word| schema.get(*word).is_none() && !exclusive(word));
    if let Some(items) = schema.get("items") {
        missing.extend(without_limits(document, items));
    }
    missing
}

/// `described/limits.rs` tests that they are enforced.
#[test]
fn whatever_a_client_sends_has_its_limits_in_it() {
    let document = document();
    let members = &document["x-limits"]["json_members"];
    let mut wrong = Vec::new();
    for (method, path, operation) in operations(&document) {
        let parameters = operation.get("parameters").and_then(Value::as_array);
        for parameter in parameters.into_iter().flatten() {
            let parameter = resolved(&document, parameter);
            let missing = without_limits(&document, &parameter["schema"]);
            if parameter["in"] != "header" && !missing.is_empty() {
                wrong.push(format!("{method} {path} {}: {missing:?}", parameter["name"]));
            }
        }
        let body = operation.pointer("/requestBody/content/application~1json/schema");
        let Some(body) = body.map(|body| resolved(&document, body)) else {
            continue;
        };
        if body["maxProperties"] != *members {
            wrong.push(format!("{method} {path}: maxProperties is not {members}"));
        }
        for (name, property) in object(&body["properties"]) {
            let missing = without_limits(&document, property);
            if !missing.is_empty() {
                wrong.push(format!("{method} {path} {name}: {missing:?}"));
            }
        }
    }
    for (name, places) in [("Money", 0.01), ("Percent", 0.01), ("Share", 0.0001)] {
        let unit = &document["components"]["schemas"][name]["multipleOf"];
        assert_eq!(unit.as_f64(), Some(places), "{name}");
    }
    expect_none(&wrong);
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
    // Schemas that are closed where they are used, and a part of a request.
    let open =
        ["RowName", "SyncReport", "NewWatchlist"].map(|name| format!("/components/schemas/{name}"));
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
        let closed = closed
            .iter()
            .any(|word| value.get(*word) == Some(&Value::Bool(false)));
        let may_be_open = open.iter().any(|name| name == place)
            || place.ends_with("/allOf")
            || requests.contains(place)
            || place == "/components/schemas/Document";
        if is_object && closed == may_be_open {
            wrong.push(format!("{place}: closed is {closed}"));
        }
        let names = |word| {
            value
                .get(word)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        };
        for name in names("required").filter(|_| is_object) {
            if value["properties"].get(name.as_str().unwrap()).is_none() {
                wrong.push(format!("{place}: {name} is required and not there"));
            }
        }
    });
    expect_none(&wrong);
}
