//! Generates the description of the API, `src/api/openapi.json`, from three sources: [`ROUTES`]
//! with the table in `operations`, the schemas of the views, and `frame.json` with the rest
//! (introduction, headers, parameters, and the bodies that clients send).
//!
//! Only a test runs it; the service contains the finished file. After a change run `BHAV_BLESS=1
//! cargo test --lib openapi`.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::api::openapi::operations::{OPERATIONS, Operation, SERVICE_OPERATIONS};
use crate::api::{Access, ROUTES, Route};
use crate::http::{Method, ProblemDocument};
use crate::ops::exit::VERSION;
use crate::views::account::{
    AccountErased, BrokerAStatus, BrokerBStatus, LoggedIn, Message, SessionState,
};
use crate::views::export::{Export, FoundEntries, JournalPage};
use crate::views::health::Health;
use crate::views::holdings::{Holdings, Pnl, PortfolioDeleted, Positions};
use crate::views::quotes::{Candles, Quotes, QuotesEvent, SearchResults};
use crate::views::signals::{SignalList, SignalRecord};
use crate::views::snapshot::Snapshot;
use crate::views::sync;
use crate::views::sync::{RowName, SyncedBrokerA, SyncedBrokerB};

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
    let mut all = of_views();
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
    let made = pretty(&description());
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

// ---- Layout
//
// Formats JSON for people: a value that fits on one line is written on one.

const LINE_CHARS_MAX: usize = 100;

/// Formats `value`, with a line end after it.
pub(super) fn pretty(value: &Value) -> String {
    let mut out = String::new();
    put(&mut out, value, 0, 0);
    out.push('\n');
    out
}

/// Appends `value`. `column` is the column at which it begins.
fn put(out: &mut String, value: &Value, depth: usize, column: usize) {
    let line = on_one_line(value);
    let is_empty_or_plain = match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    };
    if is_empty_or_plain || column + line.chars().count() <= LINE_CHARS_MAX {
        out.push_str(&line);
        return;
    }
    let indent = "  ".repeat(depth + 1);
    let (open, close) = if value.is_object() { ('{', '}') } else { ('[', ']') };
    out.push(open);
    let mut first = true;
    let mut begin = |out: &mut String, name: &str| {
        out.push_str(if first { "\n" } else { ",\n" });
        first = false;
        out.push_str(&indent);
        out.push_str(name);
        indent.len() + name.chars().count()
    };
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let column = begin(out, &format!("\"{name}\": "));
                put(out, member, depth + 1, column);
            }
        }
        Value::Array(items) => {
            for item in items {
                let column = begin(out, "");
                put(out, item, depth + 1, column);
            }
        }
        _ => {}
    }
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
    out.push(close);
}

fn on_one_line(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, v)| format!("\"{name}\": {}", on_one_line(v)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(on_one_line).collect::<Vec<_>>().join(", "))
        }
        plain => plain.to_string(),
    }
}

// ---- Refusals
//
// How operations refuse: statuses with their error codes. Those that several operations have get a
// name.

/// A status with its possible error codes.
#[derive(Clone, Copy)]
pub(super) struct Refusal {
    status: u16,
    /// Name in `components.responses`; `None` if it is written into its operation.
    name: Option<&'static str>,
    codes: &'static [&'static str],
}

const fn shared(name: &'static str, status: u16, codes: &'static [&'static str]) -> Refusal {
    Refusal { status, name: Some(name), codes }
}

/// A refusal of a single operation.
pub(super) const fn own(status: u16, codes: &'static [&'static str]) -> Refusal {
    Refusal { status, name: None, codes }
}

pub(super) const BODY_INVALID: Refusal =
    shared("BodyInvalid", 400, &["malformed_json", "validation_failed", "malformed_request"]);
pub(super) const QUERY_INVALID: Refusal =
    shared("QueryInvalid", 400, &["validation_failed", "malformed_request"]);
pub(super) const SYNC_UNAUTHORIZED: Refusal = shared(
    "SyncUnauthorized",
    401,
    &["token_missing", "token_invalid", "broker_session_invalid", "broker_credentials_invalid"],
);
pub(super) const CODE_REFUSED: Refusal = shared("CodeRefused", 401, &["broker_session_invalid"]);
pub(super) const PASSWORD_UNAUTHORIZED: Refusal =
    shared("PasswordUnauthorized", 401, &["token_missing", "token_invalid", "invalid_credentials"]);
pub(super) const UNIDENTIFIED: Refusal =
    shared("Unidentified", 401, &["token_missing", "token_invalid"]);
pub(super) const NOT_THE_ADMINISTRATOR: Refusal =
    shared("NotTheAdministrator", 403, &["admin_local_only", "admin_secret_invalid"]);
pub(super) const ACTIVATION_FORBIDDEN: Refusal = shared(
    "ActivationForbidden",
    403,
    &[
        "admin_local_only",
        "admin_secret_invalid",
        "broker_account_problem",
        "broker_two_factor_problem",
    ],
);
pub(super) const SYNC_FORBIDDEN: Refusal = shared(
    "SyncForbidden",
    403,
    &[
        "cross_site_request",
        "broker_not_permitted",
        "broker_account_problem",
        "broker_two_factor_problem",
    ],
);
pub(super) const CROSS_SITE: Refusal = shared("CrossSite", 403, &["cross_site_request"]);
pub(super) const NO_SUCH_ENTRY: Refusal =
    shared("NoSuchEntry", 404, &["entry_not_found", "not_found"]);
pub(super) const NO_CANDLES: Refusal =
    shared("NoCandles", 404, &["candles_not_found", "not_found"]);
pub(super) const BROKER_NOT_READY: Refusal =
    shared("BrokerNotReady", 409, &["broker_not_configured", "broker_key_refused"]);
pub(super) const JOURNAL_FULL: Refusal = shared("JournalFull", 409, &["limit_reached"]);
pub(super) const SYNC_CONFLICT: Refusal =
    shared("SyncConflict", 409, &["sync_in_progress", "broker_user_changed", "limit_reached"]);
pub(super) const PRECONDITION_FAILED: Refusal =
    shared("PreconditionFailed", 412, &["precondition_failed"]);
pub(super) const BODY_TOO_LARGE: Refusal = shared("BodyTooLarge", 413, &["body_too_large"]);
pub(super) const UNSUPPORTED_MEDIA_TYPE: Refusal =
    shared("UnsupportedMediaType", 415, &["unsupported_media_type"]);
pub(super) const BROKER_LIMITED: Refusal =
    shared("BrokerLimited", 429, &["too_many_attempts", "broker_rate_limited"]);
pub(super) const TOO_MANY_WRITES: Refusal = shared("TooManyWrites", 429, &["too_many_writes"]);
pub(super) const TOO_MANY_ATTEMPTS: Refusal =
    shared("TooManyAttempts", 429, &["too_many_attempts"]);
pub(super) const SYNC_BAD_GATEWAY: Refusal = shared(
    "SyncBadGateway",
    502,
    &["broker_unavailable", "broker_answer_invalid", "broker_address_refused", "broker_redirected"],
);
pub(super) const ACTIVATION_BAD_GATEWAY: Refusal = shared(
    "ActivationBadGateway",
    502,
    &["broker_unavailable", "broker_answer_invalid", "broker_redirected"],
);
pub(super) const PASSWORD_UNAVAILABLE: Refusal = shared(
    "PasswordUnavailable",
    503,
    &["login_busy", "store_busy", "store_late", "store_unavailable"],
);
pub(super) const PORTFOLIO_UNAVAILABLE: Refusal = shared(
    "PortfolioUnavailable",
    503,
    &["store_unavailable", "store_busy", "store_late", "portfolio_busy"],
);
pub(super) const CANDLES_UNAVAILABLE: Refusal = shared(
    "CandlesUnavailable",
    503,
    &["store_unavailable", "store_busy", "store_late", "portfolio_busy", "candles_busy"],
);
pub(super) const SIGNALS_NOT_READY: Refusal =
    shared("SignalsNotReady", 503, &["signals_not_ready"]);
pub(super) const STORE_UNAVAILABLE: Refusal =
    shared("StoreUnavailable", 503, &["store_unavailable", "store_busy", "store_late"]);
pub(super) const LOGOUT_UNAVAILABLE: Refusal =
    shared("LogoutUnavailable", 503, &["store_unavailable", "store_busy", "store_late"]);
pub(super) const SYNC_UNAVAILABLE: Refusal =
    shared("SyncUnavailable", 503, &["store_unavailable", "sync_busy", "store_busy", "store_late"]);
pub(super) const ACTIVATION_UNAVAILABLE: Refusal =
    shared("ActivationUnavailable", 503, &["upstream_busy"]);
pub(super) const BROKER_TIMEOUT: Refusal = shared("BrokerTimeout", 504, &["broker_timeout"]);

impl Refusal {
    pub(super) fn status(&self) -> u16 {
        self.status
    }

    /// Adds it to the `responses` of an operation and, if it has a name, to the `shared` responses
    /// of the document.
    pub(super) fn put(&self, responses: &mut Map<String, Value>, shared: &mut Map<String, Value>) {
        let described = match self.name {
            Some(name) => {
                shared.entry(name).or_insert_with(|| self.described());
                json!({"$ref": format!("#/components/responses/{name}")})
            }
            None => self.described(),
        };
        responses.insert(self.status.to_string(), described);
    }

    fn described(&self) -> Value {
        let Self { status, codes, .. } = self;
        let mut headers = Map::new();
        for name in ["X-Request-Id", "Cache-Control"].iter().chain(self.headers()) {
            let reference = json!({"$ref": format!("#/components/headers/{name}")});
            headers.insert(name.strip_prefix("May-").unwrap_or(name).to_owned(), reference);
        }
        json!({
            "description": self.meaning(),
            "headers": headers,
            "content": {"application/problem+json": {"schema": {
                "allOf": [{"$ref": "#/components/schemas/Problem"}],
                "properties": {"status": {"const": status}, "code": {"enum": codes}},
            }}},
        })
    }

    fn headers(&self) -> &'static [&'static str] {
        match (self.status, self.name) {
            (401, _) => &["WWW-Authenticate"],
            (409 | 502, _) => &["May-Retry-After"],
            (415, _) => &["May-Accept-Encoding"],
            (503, Some("LogoutUnavailable")) => &["Retry-After", "May-Set-Cookie"],
            (429 | 503, _) => &["Retry-After"],
            _ => &[],
        }
    }

    fn meaning(&self) -> &'static str {
        match (self.status, self.name) {
            (400, _) => "The request is not valid; nothing was done.",
            (401, Some("CodeRefused")) => {
                "The broker does not accept the one-time code: it is wrong, used or expired."
            }
            (401, _) => "No valid access token, or wrong credentials.",
            (403, Some("ActivationForbidden")) => "Not permitted, by the service or by the broker.",
            (403, _) => "Not permitted.",
            (404, _) => "Not found.",
            (409, _) => "Conflicts with the current state.",
            (412, _) => "`If-Match` or `If-None-Match` does not hold; nothing was done.",
            (413, _) => "The body is larger than the limit, 64 KiB by default.",
            (415, _) => "The body is not `application/json` in UTF-8, or has a `Content-Encoding`.",
            (429, Some("TooManyWrites")) => {
                "The user has changed too much within a minute, 600 changes at once by default \
                 and ten a second after that; nothing was written."
            }
            (429, _) => "Too many attempts.",
            (502, _) => "The broker failed; nothing was changed.",
            (503, _) => "Temporarily unavailable; retry after `Retry-After`.",
            (504, _) => "The broker did not answer in time; nothing was changed.",
            (other, _) => panic!("{other} has no meaning yet"),
        }
    }
}

// ---- Schemas
//
// The schemas of the views, simplified for tools that generate clients.

/// Structs that are embedded in others but keep schemas of their own: the whole and its part.
const PARTS: [(&str, &str); 5] = [
    ("CountedHolding", "RowName"),
    ("ChangedHolding", "RowName"),
    ("SuspectedAction", "RowName"),
    ("SyncedBrokerA", "SyncReport"),
    ("SyncedBrokerB", "SyncReport"),
];

/// Order of a schema's members in the file.
const ORDER: [&str; 6] =
    ["type", "description", "allOf", "required", "properties", "additionalProperties"];

/// The members that the answers to both syncs have, without each broker's own counts.
#[derive(JsonSchema)]
struct SyncReport {}

/// Schemas by name, with those that they refer to.
pub(super) fn of_views() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with(|s| s.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    macro_rules! views {
        ($($view:ty),* $(,)?) => { $(generator.subschema_for::<$view>();)* };
    }
    views!(
        ProblemDocument<'_>,
        LoggedIn<'_>,
        SessionState<'_>,
        Message,
        AccountErased,
        BrokerAStatus,
        BrokerBStatus,
        Health,
        Snapshot<'_>,
        Quotes<'_>,
        QuotesEvent<'_>,
        Candles<'_>,
        SearchResults<'_>,
        SignalList<'_>,
        SignalRecord,
        Holdings<'_>,
        Positions<'_>,
        Pnl,
        PortfolioDeleted,
        JournalPage<'_>,
        FoundEntries<'_>,
        Export<'_>,
        RowName<'_>,
        sync::SyncReport<'_, SyncReport>,
        sync::SyncReport<'_, SyncedBrokerA>,
        sync::SyncReport<'_, SyncedBrokerB>,
    );
    let mut schemas = generator.take_definitions(true);
    schemas.values_mut().for_each(plain);
    for (whole, part) in PARTS {
        if let Some(of_part) = schemas.get(part).cloned() {
            share(&mut schemas[whole], part, &of_part);
        }
    }
    for (name, schema) in &mut schemas {
        if !PARTS.iter().any(|(_, part)| part == name) {
            close(schema);
        }
        order(schema);
    }
    schemas
}

/// Removes what is of no use to a client: widths of integers, line breaks in descriptions, and null
/// for members that are left out instead.
fn plain(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    let widths = ["uint", "int", "double", "float"];
    let format = members.get("format").and_then(Value::as_str).unwrap_or_default();
    if widths.iter().any(|width| format.starts_with(width)) {
        members.shift_remove("format");
    }
    if let Some(Value::String(text)) = members.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    let required = members.get("required").cloned().unwrap_or_default();
    let is_required = |name: &String| {
        required.as_array().is_some_and(|names| names.iter().any(|known| known == name))
    };
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        let absent = properties.iter_mut().filter(|(name, _)| !is_required(name));
        absent.for_each(|(_, property)| never_null(property));
    }
    each_schema(members, plain);
}

/// Calls `visit` with each schema within a schema. Names of properties are not schema keywords.
fn each_schema(members: &mut Map<String, Value>, visit: fn(&mut Value)) {
    for (word, member) in members {
        match member {
            Value::Object(properties) if word == "properties" => {
                properties.values_mut().for_each(visit);
            }
            Value::Array(items) => items.iter_mut().for_each(visit),
            member => visit(member),
        }
    }
}

fn never_null(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    if let Some(Value::Array(kinds)) = members.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = &mut kinds[..] {
            members["type"] = only.take();
        }
    }
    if let Some(Value::Array(mut either)) = members.shift_remove("anyOf") {
        either.retain(|one| one["type"] != "null");
        if let [Value::Object(only)] = &mut either[..] {
            members.append(only);
        }
    }
}

/// Replaces the members of `part` by a reference to it.
fn share(whole: &mut Value, part: &str, of_part: &Value) {
    let Value::Object(members) = whole else { return };
    let mut rest = Map::from_iter([("type".into(), "object".into())]);
    let is_of_part = |name: &str| of_part["properties"].get(name).is_some();
    if let Some(Value::Array(mut names)) = members.shift_remove("required") {
        names.retain(|name| !name.as_str().is_some_and(is_of_part));
        if !names.is_empty() {
            rest.insert("required".into(), names.into());
        }
    }
    if let Some(Value::Object(mut properties)) = members.shift_remove("properties") {
        properties.retain(|name, _| !is_of_part(name));
        rest.insert("properties".into(), properties.into());
    }
    members.shift_remove("type");
    // A struct without a comment would have its part's description.
    if members.get("description") == of_part.get("description") {
        members.shift_remove("description");
    }
    let reference = format!("#/components/schemas/{part}");
    members.insert("allOf".into(), json!([{"$ref": reference}, rest]));
}

/// Declares that there are no members but those described.
fn close(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    if members.contains_key("properties") {
        members.insert("additionalProperties".into(), false.into());
    } else if members.contains_key("allOf") {
        members.insert("unevaluatedProperties".into(), false.into());
    }
}

fn order(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    for name in ORDER {
        if let Some(member) = members.shift_remove(name) {
            members.insert(name.into(), member);
        }
    }
    each_schema(members, order);
}
