//! Every tool is called with what its published schema allows, which is never refused for its form,
//! and with what it forbids, which is always refused by the name of the argument.

use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::assistant::{Assistant, OLD, VERSIONS};
use super::tools::schema_of;
use super::world::World;
use crate::support::say;

/// Values drawn for each argument, beside those at its limits.
const DRAWN: usize = 12;
/// Patterns of an account's or a person's name, and of a financial year.
const NAME: &str = "^[a-z0-9_-]{1,40}$";
const FINANCIAL_YEAR: &str = "^[0-9]{4}-[0-9]{2}$";

/// A schema, with what it refers to.
fn resolved<'a>(schema: &'a Value, input: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(reference) => input.pointer(&reference[1..]).unwrap(),
        None => schema,
    }
}

/// Values that the schema allows: those at its limits.
fn allowed(schema: &Value, input: &Value) -> Vec<Value> {
    let schema = resolved(schema, input);
    if let Some(parts) = schema["anyOf"].as_array() {
        let lists = allowed(&parts[0], input);
        let texts = lists.iter().map(|list| json!(list.to_string()));
        let joined = lists.iter().map(|list| {
            let words: Vec<&str> = list
                .as_array()
                .unwrap()
                .iter()
                .flat_map(Value::as_str)
                .collect();
            json!(words.join(","))
        });
        return lists.iter().cloned().chain(texts).chain(joined).collect();
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.clone();
    }
    let number = |name: &str| schema[name].as_i64();
    match schema["type"].as_str().unwrap() {
        "integer" => {
            let (least, most) = (number("minimum").unwrap(), number("maximum").unwrap());
            let float = |whole: i64| json!(whole as f64);
            vec![
                json!(least),
                json!(most),
                float(least),
                float(most),
                float((least + most) / 2),
            ]
        }
        "boolean" => vec![json!(true), json!(false)],
        "array" => {
            let each = &allowed(&schema["items"], input)[0];
            let of = |count: i64| Value::from(vec![each.clone(); usize::try_from(count).unwrap()]);
            vec![
                of(number("minItems").unwrap()),
                of(2),
                of(number("maxItems").unwrap()),
            ]
        }
        _ if schema["format"] == "date" => vec![json!("2026-01-31"), json!("2024-02-29")],
        _ => match schema["pattern"].as_str() {
            Some(symbol) if symbol.contains("NSE") => vec![json!("NSE:INFY"), json!("BSE:A B")],
            Some(either) if either.contains("{27}|") => vec![json!("A".repeat(27)), json!("0-1")],
            Some(cursor) if cursor.contains("{27}") => vec![json!("A".repeat(27))],
            Some(isin) if isin.starts_with("^[A-Z]{2}") => vec![json!("INE009A01021")],
            Some(NAME) => vec![json!("a"), json!("0-_z".repeat(10))],
            Some(FINANCIAL_YEAR) => vec![json!("2024-25"), json!("1999-00")],
            Some(_) => vec![json!("0-1"), json!("123456789-123456789")],
            None => [number("minLength").unwrap(), number("maxLength").unwrap()]
                .map(|count| json!("a".repeat(usize::try_from(count).unwrap())))
                .to_vec(),
        },
    }
}

/// Values that are forbidden where a list may also be given as text.
fn forbidden_lists(list: &Value, input: &Value) -> Vec<Value> {
    let mut lists = forbidden(list, input);
    let texts: Vec<Value> = lists
        .iter()
        .filter(|list| list.is_array())
        .map(|list| json!(list.to_string()))
        .collect();
    lists.retain(|value| !value.is_string());
    lists.into_iter().chain(texts).collect()
}

/// Values that the schema forbids: those beyond its limits, and those of other kinds.
fn forbidden(schema: &Value, input: &Value) -> Vec<Value> {
    let schema = resolved(schema, input);
    let number = |name: &str| schema[name].as_i64();
    let others = [
        json!({}),
        json!({"a": 1}),
        json!(7),
        json!(7.5),
        json!(true),
        json!([[1]]),
    ];
    if let Some(parts) = schema["anyOf"].as_array() {
        return forbidden_lists(&parts[0], input);
    }
    let texts = ["", "zzz", "NaN", "7", "7.0", "true", "null", "[]"].map(|text| json!(text));
    let is_enum = schema["enum"].is_array();
    let kind = schema["type"].as_str().unwrap();
    let mut values: Vec<Value> = others.to_vec();
    match kind {
        "integer" => {
            let (least, most) = (number("minimum").unwrap(), number("maximum").unwrap());
            values.retain(|value| !value.is_i64());
            values.extend(texts);
            values.extend([json!(least - 1), json!(most + 1), json!(most as f64 + 0.5)]);
            values.extend([json!(1e300), json!(-1e300), json!(1e-300)]);
        }
        "boolean" => {
            values.retain(|value| !value.is_boolean());
            values.extend(texts);
        }
        "array" => {
            let each = &allowed(&schema["items"], input)[0];
            let count = usize::try_from(number("maxItems").unwrap() + 1).unwrap();
            values.extend([
                json!([]),
                Value::from(vec![each.clone(); count]),
                json!([1, {}]),
            ]);
            values.extend([
                json!([each, null]),
                json!(["nse:infy"]),
                json!(["NSE:A,NSE:B"]),
            ]);
        }
        _ if is_enum => values.extend(texts),
        _ if schema["format"] == "date" => {
            values.extend(texts);
            values.extend(
                ["2026-02-30", "20260101", "2026-1-1", "2026-01-01Z"].map(|day| json!(day)),
            );
        }
        _ if schema["pattern"] == NAME => {
            values.extend(["", "NaN", "7.0", "[]", "a b", "\u{e9}"].map(|text| json!(text)));
            values.push(json!("a".repeat(41)));
        }
        _ => {
            if schema["pattern"].is_string() {
                values.extend(texts);
            }
            let most = number("maxLength").unwrap_or(27);
            values.push(json!("a".repeat(usize::try_from(most + 1).unwrap())));
        }
    }
    values
}

/// Random values of the kinds that a schema may know.
fn drawn() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (0_i32..400).prop_map(|number| Value::from(f64::from(number))),
        any::<f64>().prop_map(Value::from),
        "[ -~]{0,12}".prop_map(Value::from),
        Just(json!([])),
        proptest::collection::vec("(NSE|BSE):[A-Z]{1,6}".prop_map(Value::from), 1..4)
            .prop_map(Value::from),
    ]
}

/// The arguments with which a tool can be called at all.
fn usual(input: &Value) -> Value {
    let required = input["required"].as_array().cloned().unwrap_or_default();
    let mut usual = json!({});
    for name in required.iter().flat_map(Value::as_str) {
        let values = allowed(&input["properties"][name], input);
        usual[name] = if name == "q" {
            json!("inf")
        } else {
            values[0].clone()
        };
    }
    usual
}

/// The usual arguments with one of another value.
fn changed(usual: &Value, argument: &str, value: &Value) -> Value {
    let mut arguments = usual.clone();
    arguments[argument] = value.clone();
    // A schema cannot say that one argument needs another.
    if argument == "since" {
        arguments["live"] = json!(true);
    }
    arguments
}

/// Whether a problem has a fault of this argument.
fn is_named(problem: &Value, argument: &str) -> bool {
    let faults = problem["errors"].as_array();
    faults.is_some_and(|faults| faults.iter().any(|fault| fault["field"] == argument))
}

pub fn are_judged_by_the_published_schema(world: &World) {
    let mut runner = TestRunner::deterministic();
    let (mut taken, mut refused) = (0, 0);
    for version in VERSIONS {
        let assistant = Assistant::new(&world.service, &world.key, version);
        for tool in assistant.tools() {
            let input = &tool["inputSchema"];
            let name = tool["name"].as_str().unwrap();
            let validator = schema_of(std::slice::from_ref(&tool), name, "inputSchema");
            let mut expect = |arguments: &Value, argument: &str, is_good: bool| {
                let called = assistant.call(name, arguments);
                if called.result()["isError"] == false {
                    assert!(is_good, "{version} {name} {arguments} was taken");
                    taken += 1;
                    return;
                }
                let (problem, _) = called.refused();
                if is_good {
                    assert_ne!(
                        problem["code"], "validation_failed",
                        "{name} {arguments}: {problem}"
                    );
                    taken += 1;
                } else {
                    let is_named = is_named(&problem, argument);
                    assert!(is_named, "{version} {name} {arguments}: {problem}");
                    refused += 1;
                }
            };
            let usual = usual(input);
            expect(&usual, "", true);
            let with = |argument: &str, value: &Value| changed(&usual, argument, value);
            expect(&with("user_id", &json!(1)), "user_id", false);
            let properties = input["properties"].as_object();
            for (argument, schema) in properties.into_iter().flatten() {
                let is_required = usual.get(argument).is_some();
                expect(&with(argument, &Value::Null), argument, !is_required);
                for value in allowed(schema, input) {
                    assert!(
                        validator.is_valid(&with(argument, &value)),
                        "{name} {argument} {value}"
                    );
                    expect(&with(argument, &value), argument, true);
                }
                for value in forbidden(schema, input) {
                    let is_text = value.as_str().is_some_and(|text| text.starts_with('['));
                    let is_valid = validator.is_valid(&with(argument, &value));
                    assert!(!is_valid || is_text, "{name} {argument} {value}");
                    expect(&with(argument, &value), argument, false);
                }
                for _ in 0..if version == OLD[0] { DRAWN } else { 0 } {
                    let value = drawn().new_tree(&mut runner).unwrap().current();
                    let arguments = with(argument, &value);
                    // Of words to search for, of tags and of a text in the place of a list, more is
                    // asked than a schema can say.
                    let is_plain = !["q", "since"].contains(&argument.as_str());
                    let is_list = schema["anyOf"].is_array() && value.is_string();
                    if is_plain && !is_list {
                        expect(&arguments, argument, validator.is_valid(&arguments));
                    }
                }
            }
        }
    }
    assert!(taken > 300 && refused > 600);
    say(&format!(
        "MCP: {taken} arguments that schemas allow taken, {refused} others refused\n"
    ));
}
