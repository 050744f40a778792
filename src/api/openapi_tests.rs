//! Generates the description of the API, `openapi.json`, from four sources: the table of routes,
//! the schemas of the views, `openapi/operations.json` (what each operation takes, returns and
//! refuses), and `openapi/frame.json` with the rest (introduction, headers, parameters, and the
//! schemas of bodies and of single values).
//!
//! After a change run `BHAV_BLESS=1 cargo test --lib openapi`.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::api::journal::LIMIT_MAX;
use crate::api::portfolio::pnl;
use crate::api::symbols::SYMBOLS_MAX;
use crate::api::watchlists::LISTS_MAX;
use crate::api::{Access, Keys, ROUTES, Route, candles};
use crate::auth::TOKEN_LIFE_S;
use crate::base::{Broker, PositionKind, Scope, Source, Symbol};
use crate::cache::movers;
use crate::http::{Method, ProblemDocument};
use crate::ledger::file::RefusedReason;
use crate::market::universe::SYMBOLS_MAX as UNIVERSE_MAX;
use crate::market::{Origin, Phase};
use crate::ops::exit::VERSION;
use crate::portfolio::PointSource;
use crate::portfolio::outcome::LISTED_MAX;
use crate::signals::Direction;
use crate::signals::list::TOP_MAX;
use crate::store::Side;
use crate::views::account::{
    AccountErased, ApiKeys, BrokerAStatus, LoggedIn, Message, NewApiKey, SessionState,
    SessionStatus, Watchlists,
};
use crate::views::export::Export;
use crate::views::health::Health;
use crate::views::holdings::{Holdings, Pnl, PortfolioDeleted, Positions};
use crate::views::journal::{FoundEntries, JournalPage};
use crate::views::quotes::joined::{Candles, Quotes, QuotesEvent};
use crate::views::quotes::{Movers, SearchResults};
use crate::views::signal_record::SignalRecord;
use crate::views::signals::SignalList;
use crate::views::snapshot::Snapshot;
use crate::views::states::{
    CacheBackend, DataState, ExposedReason, FeedState, KeyState, RelayState, Role, ServiceState,
    Severity, StoreState, TickerState, TokenOrigin, WarmerState,
};
use crate::views::sync::{self, NetPositions, OpenPositions, RowName, TradesReason};
use crate::views::trades;
use crate::views::trades::reconciliation::CorrectionText;
use crate::views::values::{
    Day, Delay, Exact, Instant, Mark, Money, Percent, Quantity, Share, Simulated,
};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/api/openapi.json");
const FRAME: &str = include_str!("openapi/frame.json");
const OPERATIONS: &str = include_str!("openapi/operations.json");
/// The media type of files. Generators of clients know no other; what else is taken is in words.
const FILE_TYPE: &str = "application/octet-stream";
/// If this variable is set, the test writes the file anew.
const BLESS: &str = "BHAV_BLESS";

/// `openapi/operations.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Operations {
    statuses: HashMap<u16, Status>,
    /// Refusals that several operations have, by their names in `components.responses`.
    refusals: HashMap<String, Refusal>,
    /// By `METHOD /path`, in the order of the document.
    operations: Map<String, Value>,
}

/// Description and headers of every refusal with a status, unless it has its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Status {
    description: String,
    headers: Vec<String>,
}

/// A status with its possible error codes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusal {
    status: u16,
    codes: Vec<String>,
    description: Option<String>,
    headers: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Operation {
    #[serde(rename = "operationId")]
    id: String,
    tag: String,
    description: String,
    /// Names of parameters in `frame.json`.
    #[serde(default)]
    parameters: Vec<String>,
    /// Schema of the request body.
    body: Option<String>,
    #[serde(default)]
    body_may_miss: bool,
    /// Whether the body is a file.
    #[serde(default)]
    takes_file: bool,
    reply: Reply,
    /// Refusals that not every operation of this kind has. One of them replaces the common one with
    /// the same status.
    refusals: Vec<Refused>,
    /// Is merged into the responses at the end.
    #[serde(default)]
    responses: BTreeMap<String, Map<String, Value>>,
}

/// The response to a request that succeeds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    status: u16,
    description: String,
    schema: Option<String>,
    /// Headers besides `Cache-Control`.
    headers: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Refused {
    Shared(String),
    Own(Refusal),
}

fn description() -> Value {
    let mut frame: Map<String, Value> = serde_json::from_str(FRAME).unwrap();
    let mut components = take(&mut frame, "components");
    let parameters = take(&mut components, "parameters");
    let mut responses = take(&mut components, "responses");
    let mut source: Operations = serde_json::from_str(OPERATIONS).unwrap();
    let mut paths = Map::new();
    for (name, operation) in std::mem::take(&mut source.operations) {
        let operation: Operation = serde_json::from_value(operation).expect(&name);
        let Some(route) = ROUTES.iter().find(|route| name_of(route) == name) else {
            panic!("{name} has no row: cargo test --test main routes says all that is missing");
        };
        let described = described(route, &operation, &parameters);
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        let method = route.method.as_str().to_lowercase();
        item[&method] = described;
        item[&method]["responses"] = source.responses(route, operation, &mut responses).into();
    }
    let mut info = take(&mut frame, "info");
    info.insert("version".into(), VERSION.into());
    let mut schemas = of_views();
    schemas.append(&mut take(&mut components, "schemas"));
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
            "schemas": schemas,
        },
    })
}

/// The name of an operation in `operations.json`.
fn name_of(route: &Route) -> String {
    format!("{} {}", route.method.as_str(), route.path)
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

fn described(route: &Route, operation: &Operation, parameters: &Map<String, Value>) -> Value {
    let (access, mut security) = match route.access {
        Access::Public => ("public", json!([])),
        Access::User => ("user", json!([{"bearer": []}, {"cookie": []}])),
        Access::Admin => ("admin", json!([])),
        Access::Key => ("key", json!([{"key": []}])),
    };
    let key = match route.keys {
        Keys::With(scope) => scope.as_str(),
        Keys::Any => "any",
        Keys::Never => "never",
    };
    if let (Access::User, Keys::With(scope), Value::Array(ways)) =
        (route.access, route.keys, &mut security)
    {
        ways.push(json!({"key": [scope]}));
    }
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": route.doc,
        "description": operation.description,
        "x-access": access,
        "x-key": key,
        "security": security,
    });
    if !operation.parameters.is_empty() {
        let parameter = |name: &String| match is_shared(name) {
            true => json!({"$ref": format!("#/components/parameters/{name}")}),
            false => parameters[name].clone(),
        };
        described["parameters"] = operation.parameters.iter().map(parameter).collect();
    }
    if let Some(body) = &operation.body {
        let required = !operation.body_may_miss;
        described["requestBody"] = json!({"required": required, "content": json_of(body)});
    }
    if operation.takes_file {
        let binary = json!({"schema": {"type": "string", "format": "binary"}});
        let content = json!({FILE_TYPE: binary});
        described["requestBody"] = json!({"required": true, "content": content});
    }
    described
}

fn json_of(schema: &str) -> Value {
    let reference = format!("#/components/schemas/{schema}");
    json!({"application/json": {"schema": {"$ref": reference}}})
}

/// References to the headers of a response. A name that begins with `May-` stands for a header that
/// does not come with every such response.
fn headers<'a>(names: impl Iterator<Item = &'a str>) -> Map<String, Value> {
    let reference = |name: &str| json!({"$ref": format!("#/components/headers/{name}")});
    names
        .map(|name| (name.trim_start_matches("May-").to_owned(), reference(name)))
        .collect()
}

impl Operations {
    /// Responses of `operation`; shared refusals are added to `shared` at their first use.
    fn responses(
        &self,
        route: &Route,
        operation: Operation,
        shared: &mut Map<String, Value>,
    ) -> Map<String, Value> {
        let Reply {
            status,
            description,
            schema,
            headers: names,
        } = &operation.reply;
        let names = ["Cache-Control"]
            .into_iter()
            .chain(names.iter().map(String::as_str));
        let mut success = json!({"description": description, "headers": headers(names)});
        if let Some(schema) = schema {
            success["content"] = json_of(schema);
        }
        let mut responses = Map::from_iter([(status.to_string(), success)]);
        if route.method == Method::Get {
            let tagged = operation.reply.headers.iter().any(|name| name == "ETag");
            let name = if tagged {
                "NotModified"
            } else {
                "NotModifiedUntagged"
            };
            let reference = format!("#/components/responses/{name}");
            responses.insert("304".into(), json!({"$ref": reference}));
        }
        let mut refusals = common_refusals(route, &operation);
        let is_own = |status| {
            operation
                .refusals
                .iter()
                .any(|own| self.status(own) == status)
        };
        refusals.retain(|common| !is_own(self.status(common)));
        refusals.extend(operation.refusals);
        refusals.sort_by_key(|refused| self.status(refused));
        for refused in &refusals {
            let described = match refused {
                Refused::Own(refusal) => self.refusal(refusal),
                Refused::Shared(name) => {
                    let entry = shared.entry(name);
                    entry.or_insert_with(|| self.refusal(&self.refusals[name]));
                    json!({"$ref": format!("#/components/responses/{name}")})
                }
            };
            responses.insert(self.status(refused).to_string(), described);
        }
        for (status, members) in operation.responses {
            merge(responses.entry(status).or_insert_with(|| json!({})), members);
        }
        responses.insert("default".into(), json!({"$ref": "#/components/responses/Protocol"}));
        responses
    }

    fn status(&self, refused: &Refused) -> u16 {
        match refused {
            Refused::Shared(name) => self.refusals[name].status,
            Refused::Own(refusal) => refusal.status,
        }
    }

    fn refusal(&self, refusal: &Refusal) -> Value {
        let Refusal { status, codes, .. } = refusal;
        let usual = &self.statuses[status];
        let names = refusal
            .headers
            .as_ref()
            .unwrap_or(&usual.headers)
            .iter()
            .map(String::as_str);
        json!({
            "description": refusal.description.as_ref().unwrap_or(&usual.description),
            "headers": headers(["X-Request-Id", "Cache-Control"].into_iter().chain(names)),
            "content": {"application/problem+json": {"schema": {
                "allOf": [{"$ref": "#/components/schemas/Problem"}],
                "properties": {"status": {"const": status}, "code": {"enum": codes}},
            }}},
        })
    }
}

/// The refusals that all operations of this kind of route or body have.
fn common_refusals(route: &Route, operation: &Operation) -> Vec<Refused> {
    let mut names = vec!["PreconditionFailed"];
    if route.access == Access::User {
        names.push("Unidentified");
        if route.method != Method::Get {
            names.push("CrossSite");
        }
    }
    if operation.body.is_some() {
        names.extend(["BodyTooLarge", "UnsupportedMediaType"]);
    }
    names
        .into_iter()
        .map(|name| Refused::Shared(name.to_owned()))
        .collect()
}

/// Sets `members` in an object; objects within it are merged in turn.
fn merge(object: &mut Value, members: Map<String, Value>) {
    for (name, member) in members {
        match member {
            Value::Object(inner) if object[&name].is_object() => merge(&mut object[&name], inner),
            member => object[&name] = member,
        }
    }
}

#[test]
fn the_openapi_file_equals_what_routes_and_views_generate() {
    let made = pretty(&description());
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(FILE, &made).unwrap();
    }
    let kept = std::fs::read_to_string(FILE).unwrap();
    let differs = kept
        .lines()
        .zip(made.lines())
        .position(|(kept, made)| kept != made);
    assert!(kept == made, "openapi.json is old from line {differs:?}; run with {BLESS}=1");
}

// ---- Layout
//
// Formats JSON for people: a value that fits on one line is written on one.

const LINE_CHARS_MAX: usize = 100;

/// Formats `value`, with a line end after it.
fn pretty(value: &Value) -> String {
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
    let (open, close) = if value.is_object() {
        ('{', '}')
    } else {
        ('[', ']')
    };
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
            let members = members
                .iter()
                .map(|(name, v)| format!("\"{name}\": {}", on_one_line(v)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(on_one_line).collect::<Vec<_>>().join(", "))
        }
        plain => plain.to_string(),
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
const ORDER: [&str; 6] = [
    "type",
    "description",
    "allOf",
    "required",
    "properties",
    "additionalProperties",
];

/// The members that the answers to both syncs have, without each broker's own counts.
#[derive(JsonSchema)]
struct SyncReport {}

/// The documents of the ledger.
fn add_ledger(generator: &mut SchemaGenerator) {
    macro_rules! views {
        ($($view:ty),* $(,)?) => { $(generator.subschema_for::<$view>();)* };
    }
    views!(
        trades::accounts::AccountPerson<'_>,
        trades::accounts::Accounts<'_>,
        trades::agreement::AgreementView<'_>,
        trades::corrections::Corrections,
        trades::corrections::StatedCorrection,
        trades::gains::GainsView<'_>,
        trades::imports::ImportConfirmed,
        trades::imports::Imports<'_>,
        trades::imports::PreviewView<'_>,
        trades::list::Trades<'_>,
        trades::lots::Lots<'_>,
        trades::reconciliation::LedgerProof<'_>,
        trades::returns::ReturnsView<'_>,
    );
}

/// Schemas by name, with those that they refer to.
fn of_views() -> Map<String, Value> {
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
        ApiKeys<'_>,
        NewApiKey<'_>,
        Watchlists<'_>,
        Message,
        AccountErased,
        BrokerAStatus,
        SessionStatus,
        Health,
        Snapshot<'_>,
        Quotes<'_>,
        QuotesEvent<'_>,
        Candles<'_>,
        Movers<'_>,
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
        sync::SyncReport<'_, NetPositions>,
        sync::SyncReport<'_, OpenPositions>,
    );
    add_ledger(&mut generator);
    let mut schemas = generator.take_definitions(true);
    for (names, member, keywords) in bounds() {
        for name in names {
            let schema = &mut schemas.get_mut(*name).expect(name)["properties"][member];
            let Value::Object(schema) = schema else {
                panic!("{name} has no {member}")
            };
            schema.extend(keywords.as_object().unwrap().clone());
        }
    }
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

/// What the type of a member does not say: the schemas that have the member, its name, and the
/// keywords. Of structs that are embedded in others, each has it.
type Bound = (&'static [&'static str], &'static str, Value);

fn bounds() -> Vec<Bound> {
    [bounds_of_lists(), bounds_of_values()].concat()
}

fn bounds_of_lists() -> Vec<Bound> {
    let up_to = |count: usize| json!({"maxItems": count});
    let some = || json!({"minItems": 1});
    let symbols = || up_to(SYMBOLS_MAX);
    let listed = || up_to(LISTED_MAX);
    vec![
        (&["Quotes", "QuotesEvent"], "quotes", symbols()),
        (&["Quotes", "QuotesEvent"], "unavailable", symbols()),
        (&["QuotesEvent"], "pending", symbols()),
        (&["Watchlist"], "symbols", symbols()),
        (&["Watchlists"], "watchlists", up_to(LISTS_MAX)),
        (&["Candles"], "candles", up_to(candles::DAYS_MAX)),
        (&["SearchResults"], "instruments", symbols()),
        (&["Movers"], "gainers", up_to(movers::LISTED_MAX)),
        (&["Movers"], "losers", up_to(movers::LISTED_MAX)),
        (&["Movers"], "list", up_to(UNIVERSE_MAX)),
        (&["Snapshot"], "signals", up_to(TOP_MAX)),
        (&["JournalPage", "FoundEntries"], "entries", up_to(LIMIT_MAX)),
        (&["Pnl"], "days", json!({"minimum": 1, "maximum": pnl::DAYS_MAX})),
        (&["Pnl"], "trend", up_to(pnl::DAYS_MAX.into())),
        (&["TrendPoint", "ExportedPoint"], "brokers", up_to(Broker::ALL.len())),
        (&["MergedHolding"], "parts", some()),
        (&["SyncReport"], "unresolved", listed()),
        (&["SyncReport"], "suspected_corporate_actions", listed()),
        (&["SyncReport"], "warnings", some()),
        (&["SyncChanges"], "added", listed()),
        (&["SyncChanges"], "removed", listed()),
        (&["SyncChanges"], "changed", listed()),
    ]
}

fn bounds_of_values() -> Vec<Bound> {
    let id = || json!({"minimum": 1});
    let share = || json!({"minimum": 0, "maximum": 1});
    let error = || json!({"minimum": 0});
    vec![
        (&["SyncWarning"], "code", json!({"enum": ["shared_token_may_have_ended"]})),
        (
            &["Reconciliation"],
            "reason",
            json!({"enum": ["no_broker_figure", "rounding", "t1_quantity", "unexplained", null]}),
        ),
        (
            &["SuspectedAction"],
            "reason",
            json!({"enum": [
                "inverse_ratios", "price_leap", "shares_arrived", "broker_discrepancy",
            ]}),
        ),
        (
            &["Signal", "ListedSignal"],
            "pattern",
            json!({"pattern": "^[a-z0-9_]+$", "examples": ["bullish_engulfing"]}),
        ),
        (&["ListedSignal"], "prior_dates", id()),
        (&["Brier"], "confidence", share()),
        (&["Brier"], "base_rate", share()),
        (&["BrierComparison", "Interval"], "standard_error", error()),
        (
            &["BrierComparison"],
            "verdict",
            json!({"examples": ["not distinguishable from the base rate"]}),
        ),
        (&["LoggedIn"], "token_type", json!({"const": "Bearer"})),
        (&["LoggedIn"], "expires_in", json!({"const": TOKEN_LIFE_S})),
        (&["SessionState"], "registration", json!({"enum": ["open", "closed"]})),
        (
            &[
                "User",
                "SessionUser",
                "ExportedUser",
                "Watchlist",
                "JournalEntry",
            ],
            "id",
            id(),
        ),
        (&["ApiKey", "NewApiKey"], "id", json!({"pattern": "^[0-9A-Za-z]{11}$"})),
        (
            &["NewApiKey"],
            "key",
            json!({"pattern": "^bhav_[0-9A-Za-z]{11}_[0-9A-Za-z]{49}$"}),
        ),
        (&["Watchlists"], "revision", json!({"pattern": "^[0-9a-f]{24}$"})),
        (&["JournalEntry"], "side", json!({"enum": Side::ALL})),
    ]
}

/// Removes what is of no use to a client: widths of integers, line breaks in descriptions, and null
/// for members that are left out instead.
fn plain(schema: &mut Value) {
    let Value::Object(members) = schema else {
        return;
    };
    let widths = ["uint", "int", "double", "float"];
    let format = members
        .get("format")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if widths.iter().any(|width| format.starts_with(width)) {
        members.shift_remove("format");
    }
    // The service sends every member. Readers alone have defaults.
    members.shift_remove("default");
    if let Some(Value::String(text)) = members.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    let required = members.get("required").cloned().unwrap_or_default();
    let is_required = |name: &String| {
        required
            .as_array()
            .is_some_and(|names| names.iter().any(|known| known == name))
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
    let Value::Object(members) = schema else {
        return;
    };
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
    let Value::Object(members) = whole else {
        return;
    };
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
    let Value::Object(members) = schema else {
        return;
    };
    if members.contains_key("properties") {
        members.insert("additionalProperties".into(), false.into());
    } else if members.contains_key("allOf") {
        members.insert("unevaluatedProperties".into(), false.into());
    }
}

fn order(schema: &mut Value) {
    let Value::Object(members) = schema else {
        return;
    };
    for name in ORDER {
        if let Some(member) = members.shift_remove(name) {
            members.insert(name.into(), member);
        }
    }
    each_schema(members, order);
}

// ---- Values
//
// The schemas of single values. Those with a name stand in `frame.json`; here they get only the
// name by which members refer to them.

macro_rules! named {
    ($($value:ty = $name:literal),* $(,)?) => {$(
        impl JsonSchema for $value {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({})
            }
        }
    )*};
}

/// Schemas that are written into the member that uses them.
macro_rules! inline {
    ($($value:ty, $name:literal, $schema:tt;)*) => {$(
        impl JsonSchema for $value {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

named! {
    Instant = "Instant",
    Day = "Date",
    Symbol = "Symbol",
    Money = "Money",
    Percent = "Percent",
    Quantity = "Quantity",
    Exact = "Exact",
    Share = "Share",
    Broker = "Broker",
    Source = "Source",
    Phase = "Phase",
    Direction = "Direction",
    Delay = "Delay",
    Scope = "Scope",
    WarmerState = "WarmerState",
}

inline! {
    Mark, "Mark", {"type": "boolean", "enum": [true]};
    Simulated, "Simulated", {
        "type": "boolean",
        "enum": [true],
        "description":
            "Present, and true, if the value comes from the simulator; absent otherwise.",
    };
    CacheBackend, "CacheBackend", {"type": "string", "enum": CacheBackend::ALL};
    ExposedReason, "ExposedReason", {"type": "string", "enum": ExposedReason::ALL};
    DataState, "DataState", {"type": "string", "enum": DataState::ALL};
    FeedState, "FeedState", {"type": "string", "enum": FeedState::ALL};
    KeyState, "KeyState", {"type": "string", "enum": KeyState::ALL};
    Origin, "Origin", {"type": "string", "enum": Origin::ALL};
    RelayState, "RelayState", {"type": "string", "enum": RelayState::ALL};
    Role, "Role", {"type": "string", "enum": Role::ALL};
    ServiceState, "ServiceState", {"type": "string", "enum": ServiceState::ALL};
    Severity, "Severity", {"type": "string", "enum": Severity::ALL};
    StoreState, "StoreState", {"type": "string", "enum": StoreState::ALL};
    TickerState, "TickerState", {"type": "string", "enum": TickerState::ALL};
    TokenOrigin, "TokenOrigin", {"type": "string", "enum": TokenOrigin::ALL};
    CorrectionText<'_>, "CorrectionText", {
        "type": "object",
        "required": ["kind"],
        "description":
            "A correction to put. What only the person knows is null in it.",
    };
    RefusedReason, "RefusedReason", {"type": "string", "enum": RefusedReason::ALL};
    TradesReason, "TradesReason", {"type": "string", "enum": TradesReason::ALL};
    PointSource, "PointSource", {"type": "string", "enum": ["sync", "close"]};
    PositionKind, "PositionKind", {"type": "string", "enum": ["day", "net"]};
}
