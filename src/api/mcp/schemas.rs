//! Schemas of what the tools take and return, as parts of the API description.
//!
//! Made once, at the first question. Never blocks.

use serde_json::{Map, Value, json};

use crate::api::mcp::arguments::{EITHER_CURSOR, PAGE_CURSOR};
use crate::api::mcp::pages::NEXT_CURSOR;
use crate::api::mcp::tool::Lists::{Cut, Paged};
use crate::api::mcp::tool::Tool;

fn resolved<'a>(api: &'a Value, value: &'a Value) -> &'a Value {
    let reference = value.get("$ref").and_then(Value::as_str);
    reference
        .and_then(|reference| api.pointer(&reference[1..]))
        .unwrap_or(value)
}

/// The schema of a tool's arguments, the parameters of its first route.
pub(super) fn input_of(tool: &Tool, api: &Value) -> Value {
    let [(_, path), ..] = tool.routes else {
        unreachable!("every tool has a route")
    };
    let mut properties = Map::new();
    let mut required = Vec::new();
    let parameters = api["paths"][path]["get"]["parameters"].as_array();
    for parameter in parameters.into_iter().flatten() {
        let parameter = resolved(api, parameter);
        let name = parameter["name"].as_str().unwrap_or_default();
        if parameter["in"] != "query" {
            continue;
        }
        let mut schema = resolved(api, &parameter["schema"]).clone();
        if schema["type"] == "array" {
            let text = json!({"type": "string", "minLength": 1, "maxLength": LIST_CHARS_MAX});
            schema = json!({"anyOf": [schema, text]});
        }
        schema["description"] = parameter["description"].clone();
        if parameter["required"] == true {
            required.push(name.to_owned());
        }
        properties.insert(name.to_owned(), schema);
    }
    if let Cut(_) = tool.lists {
        let says = "next_cursor of the answer before, with the same other arguments.";
        let schema = json!({"type": "string", "pattern": PAGE_CURSOR, "description": says});
        properties.insert("cursor".into(), schema);
    }
    if let Paged(list) = tool.lists
        && list.has_beside()
    {
        properties["cursor"]["pattern"] = EITHER_CURSOR.into();
    }
    let mut input = json!({"type": "object", "additionalProperties": false});
    if !properties.is_empty() {
        input["properties"] = properties.into();
    }
    if !required.is_empty() {
        input["required"] = json!(required);
    }
    input
}

/// The schema of a tool's answers: that of its route, or of an object with those of its routes.
pub(super) fn output_of(tool: &Tool, api: &Value) -> Value {
    let of = |path: &str| {
        let success = &api["paths"][path]["get"]["responses"]["200"];
        success["content"]["application/json"]["schema"].clone()
    };
    let mut output = match tool.routes {
        [(_, path)] => resolved(api, &of(path)).clone(),
        several => {
            let members = several
                .iter()
                .map(|(name, path)| ((*name).to_owned(), of(path)));
            let names: Vec<&str> = several.iter().map(|(name, _)| *name).collect();
            json!({
                "type": "object",
                "required": names,
                "properties": members.collect::<Map<_, _>>(),
                "additionalProperties": false,
            })
        }
    };
    if let Cut(_) = tool.lists {
        let says = "Only where there is more: the cursor of the next page.";
        output["properties"][NEXT_CURSOR] = json!({"type": "string", "description": says});
    }
    output
}

/// The schema with what it refers to in its own `$defs`. A bare one has no descriptions.
pub(super) fn alone(mut schema: Value, api: &Value, is_bare: bool) -> Value {
    let mut definitions = Map::new();
    let mut wanted = Vec::new();
    prepare(&mut schema, is_bare, &mut wanted);
    while let Some(name) = wanted.pop() {
        if !definitions.contains_key(&name) {
            let mut definition = api["components"]["schemas"][&name].clone();
            prepare(&mut definition, is_bare, &mut wanted);
            definitions.insert(name, definition);
        }
    }
    if is_bare {
        definitions = shortened(&mut schema, definitions);
    }
    if !definitions.is_empty() {
        schema["$defs"] = definitions.into();
    }
    schema
}

/// Puts definitions that only name a type where they are referred to, and returns the others.
fn shortened(schema: &mut Value, definitions: Map<String, Value>) -> Map<String, Value> {
    let (types, mut others): (Map<_, _>, Map<_, _>) = definitions
        .into_iter()
        .partition(|(_, definition)| only_type(definition).is_some());
    others
        .values_mut()
        .for_each(|definition| shorten(definition, &types));
    shorten(schema, &types);
    others
}

fn shorten(schema: &mut Value, types: &Map<String, Value>) {
    match schema {
        Value::Object(members) => {
            members
                .values_mut()
                .for_each(|member| shorten(member, types));
            if let Some(Value::String(reference)) = members.get("$ref")
                && let Some(name) = reference.strip_prefix("#/$defs/")
                && let Some(definition) = types.get(name).filter(|_| members.len() == 1)
            {
                *schema = definition.clone();
            } else if let Some(Value::Array(choices)) = members.get("anyOf")
                && let Some(any) = choices
                    .iter()
                    .map(only_type)
                    .collect::<Option<Vec<&Value>>>()
            {
                let any = json!(any);
                members.remove("anyOf");
                members.insert("type".into(), any);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| shorten(item, types)),
        _ => {}
    }
}

/// The type of a schema that says nothing else.
fn only_type(schema: &Value) -> Option<&Value> {
    let members = schema.as_object().filter(|members| members.len() == 1)?;
    members.get("type").filter(|kind| kind.is_string())
}

/// Turns references inwards, and removes what harms: clients divide binary floats by `multipleOf`,
/// and find that 81234.57 is no multiple of 0.01.
fn prepare(schema: &mut Value, is_bare: bool, wanted: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            members.retain(|name, member| match name.as_str() {
                "multipleOf" | "examples" => member.is_object(),
                "description" => !is_bare || member.is_object(),
                _ => true,
            });
            if let Some(Value::String(reference)) = members.get_mut("$ref") {
                let name = reference.rsplit('/').next().unwrap_or_default().to_owned();
                *reference = format!("#/$defs/{name}");
                wanted.push(name);
            }
            members
                .values_mut()
                .for_each(|member| prepare(member, is_bare, wanted));
        }
        Value::Array(items) => {
            items
                .iter_mut()
                .for_each(|item| prepare(item, is_bare, wanted));
        }
        _ => {}
    }
}

/// Longest list as a text: fifty symbols of the longest kind as JSON.
pub(super) const LIST_CHARS_MAX: usize = 4_096;
