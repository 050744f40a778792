//! Generates the description of the API, `src/api/openapi.json`, from three sources: [`ROUTES`]
//! with the table in `operations`, the schemas of the views, and `frame.json` with the rest
//! (introduction, headers, parameters, and the bodies that clients send).
//!
//! Only a test runs it; the service contains the finished file. After a change run `BHAV_BLESS=1
//! cargo test --lib openapi`.

use serde_json::{Map, Value, json};

use super::operations::{OPERATIONS, Operation};
use super::refusals::{
    BODY_TOO_LARGE, CROSS_SITE, PRECONDITION_FAILED, Refusal, UNIDENTIFIED, UNSUPPORTED_MEDIA_TYPE,
};
use super::service_operations::SERVICE_OPERATIONS;
use super::{layout, schemas};
use crate::api::{Access, ROUTES, Route};
use crate::http::Method;
use crate::ops::version::VERSION;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/api/openapi.json");
const FRAME: &str = include_str!("frame.json");
/// If this variable is set, the test writes the file anew.
const BLESS: &str = "BHAV_BLESS";

fn description() -> Value {
    let mut frame: Map<String, Value> = serde_json::from_str(FRAME).unwrap();
    let mut components = take(&mut frame, "components");
    let parameters = take(&mut components, "parameters");
    let mut responses = take(&mut components, "responses");
    let mut paths = Map::new();
    for operation in OPERATIONS.iter().chain(SERVICE_OPERATIONS) {
        let described = described(operation, &parameters, &mut responses);
        let (method, path) = operation.route;
        let item = paths.entry(path).or_insert_with(|| json!({}));
        item[method.as_str().to_lowercase()] = described;
    }
    let mut info = take(&mut frame, "info");
    info.insert("version".into(), VERSION.into());
    let mut all = schemas::of_views();
    all.append(&mut take(&mut components, "schemas"));
    let shared = parameters.into_iter().filter(|(name, _)| is_shared(name));
    json!({
        "openapi": frame["openapi"],
        "info": info,
        "x-limits": frame["x-limits"],
        "servers": frame["servers"],
        "tags": frame["tags"],
        "paths": paths,
        "components": {
            "securitySchemes": components["securitySchemes"],
            "parameters": shared.collect::<Map<_, _>>(),
            "headers": components["headers"],
            "responses": responses,
            "schemas": all,
        },
    })
}

fn take(object: &mut Map<String, Value>, name: &str) -> Map<String, Value> {
    match object[name].take() {
        Value::Object(members) => members,
        other => panic!("{name} is {other}"),
    }
}

/// Whether a parameter is shared. One that a single operation has is written into that operation.
fn is_shared(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}

fn described(
    operation: &Operation,
    parameters: &Map<String, Value>,
    shared: &mut Map<String, Value>,
) -> Value {
    let (method, path) = operation.route;
    let of_operation = |route: &&Route| route.method == method && route.path == path;
    let route = ROUTES.iter().find(of_operation).expect("an operation is a route");
    let (access, security) = match route.access {
        Access::Public => ("public", json!([])),
        Access::User => ("user", json!([{"bearer": []}, {"cookie": []}])),
        Access::Admin => ("admin", json!([])),
    };
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": route.doc,
        "description": operation.description,
        "x-access": access,
        "security": security,
    });
    if !operation.parameters.is_empty() {
        let own = |name: &&str| match is_shared(name) {
            true => json!({"$ref": format!("#/components/parameters/{name}")}),
            false => parameters[*name].clone(),
        };
        described["parameters"] = operation.parameters.iter().map(own).collect();
    }
    if let Some(body) = operation.body {
        let required = body != BODY_THAT_MAY_MISS;
        described["requestBody"] = json!({"required": required, "content": json_of(body)});
    }
    described["responses"] = responses(route, operation, shared).into();
    described
}

/// Without it a logout ends one token, as it always did.
const BODY_THAT_MAY_MISS: &str = "Logout";

fn json_of(schema: &str) -> Value {
    let reference = format!("#/components/schemas/{schema}");
    json!({"application/json": {"schema": {"$ref": reference}}})
}

fn responses(
    route: &Route,
    operation: &Operation,
    shared: &mut Map<String, Value>,
) -> Map<String, Value> {
    let (status, schema) = operation.reply;
    let mut headers = Map::new();
    for name in ["Cache-Control"].iter().chain(operation.headers) {
        let reference = json!({"$ref": format!("#/components/headers/{name}")});
        headers.insert(name.strip_prefix("May-").unwrap_or(name).to_owned(), reference);
    }
    let success = operation.success;
    let mut responses = Map::new();
    responses.insert(
        status.to_string(),
        json!({"description": success, "headers": headers, "content": json_of(schema)}),
    );
    if route.method == Method::Get {
        let tagged = operation.headers.contains(&"ETag");
        let name = if tagged { "NotModified" } else { "NotModifiedUntagged" };
        let reference = format!("#/components/responses/{name}");
        responses.insert("304".into(), json!({"$ref": reference}));
    }
    let mut refusals = [of_kind(route, operation), operation.refusals.to_vec()].concat();
    refusals.sort_by_key(Refusal::status);
    refusals.iter().for_each(|refusal| refusal.put(&mut responses, shared));
    if route.path == "/api/health" {
        report_of_a_service_that_is_down(&mut responses["503"]);
    }
    if route.path == "/api/index/stream" {
        let events = "Events, one after the other. The data of `snapshot` is a \
                      `Snapshot`, that of `quotes` a `QuotesEvent`.";
        let schema = json!({"type": "string", "description": events});
        let data = json!({
            "snapshot": {"$ref": "#/components/schemas/Snapshot"},
            "quotes": {"$ref": "#/components/schemas/QuotesEvent"},
        });
        let content = json!({"schema": schema, "x-event-data": data});
        responses["200"]["content"] = json!({"text/event-stream": content});
    }
    responses.insert("default".into(), json!({"$ref": "#/components/responses/Protocol"}));
    responses
}

/// The refusals that all operations of this kind of route or body have. A status in the operation's
/// own list replaces the one here.
fn of_kind(route: &Route, operation: &Operation) -> Vec<Refusal> {
    let mut refusals = vec![PRECONDITION_FAILED];
    if route.access == Access::User {
        refusals.push(UNIDENTIFIED);
        if route.method != Method::Get {
            refusals.push(CROSS_SITE);
        }
    }
    if operation.body.is_some() {
        refusals.extend([BODY_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE]);
    }
    let is_own = |status: u16| operation.refusals.iter().any(|own| own.status() == status);
    refusals.retain(|refusal| !is_own(refusal.status()));
    refusals
}

/// Only health answers a 503 with a report as its body.
fn report_of_a_service_that_is_down(response: &mut Value) {
    response["description"] =
        "A report with status `down`, or, while the process is starting, a problem.".into();
    let id = json!({"$ref": "#/components/headers/May-X-Request-Id"});
    response["headers"]["X-Request-Id"] = id;
    response["content"]["application/json"] = json_of("Health")["application/json"].take();
}

#[test]
fn the_openapi_file_equals_what_routes_and_views_generate() {
    let made = layout::pretty(&description());
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(FILE, &made).unwrap();
    }
    let kept = std::fs::read_to_string(FILE).unwrap();
    let differs = kept.lines().zip(made.lines()).position(|(kept, made)| kept != made);
    assert!(kept == made, "openapi.json is old from line {differs:?}; run with {BLESS}=1");
}

#[test]
fn every_route_is_described_once() {
    let mut described: Vec<_> = OPERATIONS
        .iter()
        .chain(SERVICE_OPERATIONS)
        .map(|o| (o.route.1, o.route.0.as_str()))
        .collect();
    let mut routes: Vec<_> = ROUTES.iter().map(|r| (r.path, r.method.as_str())).collect();
    described.sort_unstable();
    routes.sort_unstable();
    assert_eq!(described, routes);
}
