//! The judge of arguments against the schemas that tools publish, and a validator of schemas as the
//! second opinion.

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert, prop_assert_eq};
use proptest::prelude::{prop_oneof, proptest};
use serde_json::{Value, json};

use super::*;
use crate::base::json::members;

fn schema() -> Value {
    let symbol = json!({
        "type": "string",
        "pattern": "^(NSE|BSE):[A-Z0-9&._*$-]([A-Z0-9&._*$ -]*[A-Z0-9&._*$-])?$",
        "minLength": 5,
        "maxLength": 48,
    });
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["symbols"],
        "properties": {
            "days": {"type": "integer", "minimum": 0, "maximum": 365},
            "live": {"type": "boolean"},
            "broker": {"type": "string", "enum": ["a", "b"]},
            "from": {"type": "string", "format": "date"},
            "tag": {"type": "string", "minLength": 0, "maxLength": 4},
            "symbols": {"anyOf": [
                {
                    "type": "array",
                    "items": {"$ref": "#/$defs/Symbol"},
                    "minItems": 1,
                    "maxItems": 3,
                },
                {"type": "string", "minLength": 1, "maxLength": 200},
            ]},
            "cursor": {"type": "string", "pattern": PAGE_CURSOR},
            "after": {"type": "string", "pattern": ROUTE_CURSOR},
            "next": {"type": "string", "pattern": EITHER_CURSOR},
            "isin": {"type": "string", "pattern": ISIN, "minLength": 12, "maxLength": 12},
            "account": {"type": "string", "pattern": NAME},
            "fy": {"type": "string", "pattern": FINANCIAL_YEAR},
        },
        "$defs": {"Symbol": symbol},
    })
}

fn judge(json: &str) -> Judged {
    judged(&of_schema(&schema()), &members(json.as_bytes()).unwrap())
}

/// The parameter of one argument beside a good list of symbols.
fn parameter(name: &str, raw: &str) -> Option<String> {
    let found = judge(&format!(r#"{{"symbols":["NSE:A"],"{name}":{raw}}}"#));
    if let Some(fault) = found.fault {
        assert_eq!(fault.name, name, "{raw}");
        return None;
    }
    let value = found
        .parameters
        .into_iter()
        .find(|(known, _)| known == name);
    Some(value.map(|(_, text)| text).unwrap_or_default())
}

#[test]
fn a_whole_number_may_be_written_in_any_way_and_a_fraction_in_none() {
    for (raw, expected) in [
        ("7", "7"),
        ("7.0", "7"),
        ("7.000", "7"),
        ("70e-1", "7"),
        ("0.7e1", "7"),
        ("1e2", "100"),
        ("1E+2", "100"),
        ("3.65e2", "365"),
        ("-0.0", "0"),
        ("0e99999999999", "0"),
        ("null", ""),
    ] {
        assert_eq!(parameter("days", raw).as_deref(), Some(expected), "{raw}");
    }
    for raw in [
        "7.5",
        "7.0000000000000000000001",
        "1e-1",
        "1e3",
        "366",
        "-1",
        "1e400",
        "1e99999999999",
        "-1e99999999999",
        "1e-99999999999",
        "18446744073709551623",
        "\"7\"",
        "\"7.0\"",
        "\"NaN\"",
        "\"\"",
        "true",
        "[7]",
        "{}",
    ] {
        assert_eq!(parameter("days", raw), None, "{raw}");
    }
}

#[test]
fn a_list_may_be_the_text_of_its_json_where_a_text_may_stand() {
    let list = |raw: &str| {
        let found = judge(&format!(r#"{{"symbols":{raw}}}"#));
        found.fault.is_none().then(|| found.parameters[0].1.clone())
    };
    for (raw, expected) in [
        (r#"["NSE:INFY","NSE:TCS"]"#, "NSE:INFY,NSE:TCS"),
        (r#"[ "NSE:INFY" , "NSE:TCS" ]"#, "NSE:INFY,NSE:TCS"),
        (r#""[\"NSE:INFY\",\"NSE:TCS\"]""#, "NSE:INFY,NSE:TCS"),
        (r#"" [\"NSE:INFY\"]\n""#, "NSE:INFY"),
        (r#""[\"NSE:M\\u0026M\"]""#, "NSE:M&M"),
        (r#""NSE:INFY,NSE:TCS""#, "NSE:INFY,NSE:TCS"),
    ] {
        assert_eq!(list(raw).as_deref(), Some(expected), "{raw}");
    }
    for raw in [
        "[]",
        r#""[]""#,
        r#"["NSE:A","NSE:B","NSE:C","NSE:D"]"#,
        r#""[\"NSE:A\",\"NSE:B\",\"NSE:C\",\"NSE:D\"]""#,
        r#"["nse:infy"]"#,
        r#"["NSE:A,NSE:B"]"#,
        "[1]",
        "[null]",
        r#"[["NSE:A"]]"#,
        r#""[[\"NSE:A\"]]""#,
        "7",
        "null",
        r#""""#,
        r#"{"0":"NSE:A"}"#,
    ] {
        assert_eq!(list(raw), None, "{raw}");
    }
}

#[test]
fn each_fault_names_its_argument() {
    for (json, name) in [
        ("{}", "symbols"),
        (r#"{"symbols":null}"#, "symbols"),
        (r#"{"symbols":"NSE:A","user_id":1}"#, "user_id"),
        (r#"{"symbols":"NSE:A","Days":1}"#, "Days"),
        (r#"{"symbols":"NSE:A","days":1,"days":2}"#, "days"),
        (r#"{"symbols":"NSE:A","days":1,"d\u0061ys":1}"#, "days"),
        (r#"{"symbols":"NSE:A","live":"true"}"#, "live"),
        (r#"{"symbols":"NSE:A","live":1}"#, "live"),
        (r#"{"symbols":"NSE:A","broker":"A"}"#, "broker"),
        (r#"{"symbols":"NSE:A","from":"2026-02-30"}"#, "from"),
        (r#"{"symbols":"NSE:A","from":"20260101"}"#, "from"),
        (r#"{"symbols":"NSE:A","from":20260101}"#, "from"),
        (r#"{"symbols":"NSE:A","tag":"abcde"}"#, "tag"),
        (r#"{"symbols":"NSE:A","tag":["a"]}"#, "tag"),
        (r#"{"symbols":"NSE:A","cursor":"1-"}"#, "cursor"),
        (r#"{"symbols":"NSE:A","cursor":"next"}"#, "cursor"),
        (r#"{"symbols":"NSE:A","isin":"INE009A0102"}"#, "isin"),
        (r#"{"symbols":"NSE:A","isin":"1NE009A01021"}"#, "isin"),
        (r#"{"symbols":"NSE:A","account":"A"}"#, "account"),
        (r#"{"symbols":"NSE:A","fy":"2025"}"#, "fy"),
        (r#"{"symbols":"NSE:A","fy":"2025-2026"}"#, "fy"),
    ] {
        let fault = judge(json).fault.unwrap_or_else(|| panic!("{json}"));
        assert_eq!(fault.name, name, "{json}");
        let problem = fault.refused(None);
        assert_eq!((problem.code, &*problem.errors[0].field), ("validation_failed", name));
    }
}

#[test]
fn a_refusal_of_the_route_keeps_its_code_and_gets_the_name() {
    let fault = judge("{}").fault.unwrap();
    assert!(fault.is_for_route());
    let problem = fault.refused(Some(Problem::new(400, "symbols_missing", "Give symbols.")));
    assert_eq!((problem.code, &*problem.errors[0].field), ("symbols_missing", "symbols"));
}

/// JSON values of every kind, among them many that the schema knows.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-400_i64..400).prop_map(Value::from),
        (-400_i64..400).prop_map(|number| Value::from(number as f64)),
        any::<f64>().prop_map(Value::from),
        "[a-b]|(NSE|BSE):[A-Z&]{1,4}|20[0-9]{2}-[01][0-9]-[0-3][0-9]|[0-9]{1,10}-[0-9]{1,3}"
            .prop_map(Value::from),
        "[A-Z]{2}[A-Z0-9]{8,10}[0-9]|[a-z0-9_-]{1,42}|20[0-9]{2}-[0-9]{1,3}|[A-Za-z0-9_-]{26,28}"
            .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        proptest::collection::vec(inner, 0..5).prop_map(Value::from)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// What a validator of schemas takes is taken, and what it refuses is refused. Two things are
    /// wider on purpose: `null` for an optional argument, and a text that is the JSON of a list.
    #[test]
    fn the_judge_agrees_with_a_validator(
        name in prop_oneof![
            "days|live|broker|from|tag|symbols",
            "cursor|after|next|isin|account|fy", "[a-z]{1,4}"],
        value in value(),
        with_symbols in any::<bool>(),
    ) {
        let mut given = json!({});
        if with_symbols {
            given["symbols"] = json!(["NSE:A"]);
        }
        given[&name] = value;
        let mut known = given.clone();
        known.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let of_text = |text: &str| serde_json::from_str::<Value>(text).ok();
        if let Some(list) = known["symbols"].as_str().and_then(of_text)
            && list.is_array()
        {
            known["symbols"] = list;
        }
        if known["symbols"].is_null() {
            known.as_object_mut().unwrap().remove("symbols");
        }
        // An unknown name is refused even with null.
        let is_known = schema()["properties"].get(&name).is_some();
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&schema())
            .unwrap();
        let expected = is_known && validator.is_valid(&known);
        let found = judge(&given.to_string());
        prop_assert_eq!(found.fault.is_none(), expected, "{}: {:?}", given, found);
    }

    #[test]
    fn a_number_is_whole_as_exact_arithmetic_says(
        mantissa in -99_999_i64..99_999,
        power in -6_i32..6,
    ) {
        let number = rust_decimal::Decimal::new(mantissa, 0);
        let exact = match power {
            0.. => number * rust_decimal::Decimal::from(10_i64.pow(power.unsigned_abs())),
            _ => number / rust_decimal::Decimal::from(10_i64.pow(power.unsigned_abs())),
        };
        let expected = exact.is_integer().then(|| i64::try_from(exact).unwrap());
        prop_assert_eq!(whole(&format!("{mantissa}e{power}")), expected);
        prop_assert!(whole(&exact.to_string()) == expected, "{}", exact);
    }
}
