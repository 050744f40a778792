//! The schemas of the views, simplified for tools that generate clients.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::http::ProblemDocument;
use crate::views::account::{AccountErased, LoggedIn, Message, SessionState};
use crate::views::broker_status::{BrokerAStatus, BrokerBStatus};
use crate::views::candles::Candles;
use crate::views::export::Export;
use crate::views::health::Health;
use crate::views::holdings::Holdings;
use crate::views::journal::{FoundEntries, JournalPage};
use crate::views::pnl::Pnl;
use crate::views::portfolio_deleted::PortfolioDeleted;
use crate::views::positions::Positions;
use crate::views::quotes::{Quotes, QuotesEvent};
use crate::views::search::SearchResults;
use crate::views::signal_record::SignalRecord;
use crate::views::signals::SignalList;
use crate::views::snapshot::Snapshot;
use crate::views::sync::{self, RowName, SyncedBrokerA, SyncedBrokerB};

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
