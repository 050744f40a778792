//! The described limits are enforced: a value at the limit is accepted, one past it is refused by
//! field.

use serde_json::{Map, Value, json};

use super::checker::Checker;
use super::walk::Walk;
use crate::contract::openapi::{document, operations, resolved};
use crate::support::{Answer, Scene, bearer};

pub const ENTRY: &str =
    r#"{"traded_on":"2026-11-20","symbol":"INFY","side":"buy","quantity":1,"price":2}"#;

/// The refusal's fault of `field`; `None` without one, or if nothing was refused.
fn fault(answer: &Answer, field: &str) -> Option<String> {
    let json: Value = serde_json::from_slice(&answer.body).ok()?;
    let errors = json.get("errors")?.as_array()?;
    let found = errors.iter().find(|error| error["field"] == field)?;
    Some(found["message"].as_str().unwrap().to_owned())
}

/// A text of this length that the field accepts.
fn text(field: &str, schema: &Value, chars: usize) -> String {
    match (schema.get("format").and_then(Value::as_str), field) {
        (Some("email"), _) if chars < 200 => format!("{}@b", "a".repeat(chars.saturating_sub(2))),
        (Some("email"), _) => {
            let domain = format!("{}.{}.{}", "b".repeat(63), "c".repeat(63), "d".repeat(61));
            let local = "a".repeat(chars - domain.len() - 1);
            format!("{local}@{domain}")
        }
        (_, "symbol") => "A".repeat(chars),
        // Characters of more than one byte.
        _ => "\u{e9}".repeat(chars),
    }
}

/// A valid body whose credentials no broker knows.
fn good(path: &str) -> Map<String, Value> {
    let body = match path {
        "/api/auth/register" => json!({"email": "x@example.com", "password": "nine parrots"}),
        "/api/auth/login" => json!({"email": "walk@example.com", "password": "no"}),
        "/api/auth/password" => json!({"current_password": "no", "new_password": "nine parrots"}),
        "/api/auth/account" => json!({"password": "no"}),
        "/api/portfolio/sync" => json!({"api_key": "k", "api_secret": "s", "request_token": "t"}),
        "/api/portfolio/brokerb-sync" => {
            json!({"api_key": "k", "api_secret": "s", "api_session": "t"})
        }
        "/brokera/activate" => json!({"request_token": "t"}),
        "/brokerb/activate" => json!({"api_session": "t"}),
        "/api/keys" => json!({
            "name": "a", "scopes": ["market:read"], "current_password": "no",
        }),
        "/api/watchlists" => json!({"watchlists": []}),
        "/api/trades" => json!({"confirm": "no"}),
        "/api/trades/accounts/{id}" => json!({"person": "self"}),
        "/api/trades/conflicts/{id}" => json!({"keep": "first"}),
        "/api/trades/corrections/{id}" => json!({"kind": "fmv_indexed", "isin": "INE040A01034"}),
        path if path.starts_with("/api/journal") => serde_json::from_str(ENTRY).unwrap(),
        _ => panic!("{path} needs its body here"),
    };
    body.as_object().unwrap().clone()
}

struct Bench<'a, 'w> {
    walk: &'a mut Walk<'w>,
    method: String,
    path: &'a str,
    field: &'a str,
    tried: usize,
}

impl Bench<'_, '_> {
    /// The fault of the field with this value. A request with an unknown field reaches no broker,
    /// since another field has the wrong type.
    fn said(&mut self, value: Value) -> Option<String> {
        let mut body = good(self.path);
        let other = body.keys().find(|name| *name != self.field).cloned();
        if let Some(other) = other {
            body.insert(other, json!({"no": "text"}));
        }
        body.insert(self.field.to_owned(), value);
        let target = self.path.replace("{id}", "1");
        let body = Value::Object(body).to_string();
        self.tried += 1;
        let answer = self.walk.send(&self.method, &target, "", &body);
        // The rest of these bodies is valid whatever the field is.
        let is_whole = ["/api/auth/account", "/api/watchlists", "/api/trades"].contains(&self.path);
        assert!(answer.status >= 400 || is_whole, "{}", answer.text());
        fault(&answer, self.field)
    }

    #[track_caller]
    fn expect(&mut self, good: Value, bad: Value) {
        let place = format!("{} {} {}", self.method, self.path, self.field);
        let (shown_good, shown_bad) = (good.to_string(), bad.to_string());
        assert_eq!(self.said(good), None, "{place}: {shown_good}");
        assert!(self.said(bad).is_some(), "{place}: {shown_bad}");
    }

    /// Lists of objects, each with its own limits.
    fn lists(&mut self, schema: &Value) {
        let max = |schema: &Value, word: &str| usize::try_from(schema[word].as_u64().unwrap());
        let lists = |count: usize| {
            let list = |n: usize| json!({"name": format!("n{n}"), "symbols": []});
            json!((0..count).map(list).collect::<Vec<_>>())
        };
        let count = max(schema, "maxItems").unwrap();
        self.expect(lists(count), lists(count + 1));
        let document = document();
        let properties = &resolved(&document, &schema["items"])["properties"];
        let chars = max(&properties["name"], "maxLength").unwrap();
        let named = |name: &str| json!([{"name": name, "symbols": []}]);
        self.expect(named(&"\u{20b9}".repeat(chars)), named(&"\u{20b9}".repeat(chars + 1)));
        self.expect(named("a"), named(""));
        let symbols = |count: usize| {
            let symbols: Vec<_> = (0..count).map(|n| format!("NSE:X{n}")).collect();
            json!([{"name": "a", "symbols": symbols}])
        };
        let count = max(&properties["symbols"], "maxItems").unwrap();
        self.expect(symbols(count), symbols(count + 1));
    }

    fn property(&mut self, schema: &Value) {
        let field = self.field;
        if let Some(max) = schema.get("maxLength").and_then(Value::as_u64) {
            let max = usize::try_from(max).unwrap();
            // In a login only a text far too long for an address is a fault of the field.
            if !(field == "email" && self.path == "/api/auth/login") {
                let of = |chars| json!(text(field, schema, chars));
                self.expect(of(max), of(max + 1));
            }
        }
        if let Some(min) = schema.get("minLength").and_then(Value::as_u64) {
            let of = |chars| json!(text(field, schema, chars));
            let min = usize::try_from(min).unwrap();
            if min > 0 {
                self.expect(of(min), of(min - 1));
            } else {
                assert_eq!(self.said(of(0)), None, "{} {field}", self.path);
            }
        }
        if let Some(min) = schema.get("minimum") {
            self.expect(min.clone(), json!(-0.01));
        }
        if schema.get("exclusiveMinimum").is_some() {
            self.expect(json!(0.000_001), json!(0));
        }
        if let Some(over) = schema.get("exclusiveMaximum") {
            self.expect(json!(over.as_u64().unwrap() - 1), over.clone());
        }
        if let Some(unit) = schema.get("multipleOf").and_then(Value::as_f64) {
            self.expect(json!(unit), json!(unit / 10.0));
        }
        if let Some(words) = schema.get("enum").and_then(Value::as_array) {
            words
                .iter()
                .for_each(|word| self.expect(word.clone(), json!("nonsense")));
        }
        if field == "watchlists" {
            self.lists(schema);
        } else if field == "scopes" {
            let (one, twice) = (json!(["market:read"]), json!(["market:read", "market:read"]));
            for bad in [twice, json!([]), json!(["orders:write"])] {
                self.expect(one.clone(), bad);
            }
        } else if let Some(max) = schema.get("maxItems").and_then(Value::as_u64) {
            let of = |count| json!((0..count).map(|n| format!("t{n}")).collect::<Vec<_>>());
            self.expect(of(max), of(max + 1));
            self.expect(json!(["a", "b"]), json!(["a", "a"]));
            let chars = schema["items"]["maxLength"].as_u64().unwrap();
            let of = |chars| json!(["x".repeat(usize::try_from(chars).unwrap())]);
            self.expect(of(chars), of(chars + 1));
        }
    }
}

#[test]
fn bodies_are_kept_to_the_limits_that_are_described() {
    let (_scene, service) = Scene::trading();
    let token = service.register("walk@example.com", "nine green parrots");
    let checker = &mut Checker::new();
    let walk = &mut Walk::new(&service, checker);
    walk.auth = bearer(&token);
    let document = document();
    let mut tried = 0;
    for (method, path, operation) in operations(&document) {
        let Some(body) = operation.pointer("/requestBody/content/application~1json/schema") else {
            continue;
        };
        // An envelope, whose faults are those of JSON-RPC: see `tests/mcp`.
        if path == "/mcp" {
            continue;
        }
        let body = resolved(&document, body);
        for (field, schema) in body["properties"].as_object().unwrap() {
            // Without a secret in the settings the field is not checked: see `activation.rs`.
            if field == "secret" {
                continue;
            }
            let (walk, method) = (&mut *walk, method.clone());
            let mut bench = Bench {
                walk,
                method,
                path,
                field,
                tried: 0,
            };
            bench.property(resolved(&document, schema));
            tried += bench.tried;
        }
    }
    assert!(tried > 80, "{tried}");
}

#[test]
fn parameters_are_kept_to_the_limits_that_are_described() {
    let (_scene, service) = Scene::trading();
    let token = service.register("walk@example.com", "nine green parrots");
    service.fresh_snapshot();
    let checker = &mut Checker::new();
    let walk = &mut Walk::new(&service, checker);
    walk.auth = bearer(&token);
    let document = document();
    let mut tried = 0;
    for (method, path, operation) in operations(&document) {
        let parameters = operation.get("parameters").and_then(Value::as_array);
        for parameter in parameters.into_iter().flatten() {
            let parameter = resolved(&document, parameter);
            let name = parameter["name"].as_str().unwrap();
            // Any `last_event_id` is accepted; an invalid one counts as none.
            if parameter["in"] != "query" || ["symbols", "last_event_id"].contains(&name) {
                continue;
            }
            tried += 1;
            let schema = resolved(&document, &parameter["schema"]);
            // Other parameters that the route needs.
            let others = match (path, name) {
                ("/api/market/candles", "days") => "symbol=NSE:INFY&",
                ("/api/trades/imports", "force") => "account=a&",
                _ => "",
            };
            let mut said = |value: &str| {
                let target = format!("{path}?{others}{name}={value}").replace("{id}", "2024-25");
                let answer = walk.send(&method, &target, "", "");
                (answer.status, fault(&answer, name))
            };
            let (good, bad) = examples(schema);
            for value in good {
                let (status, fault) = said(&value);
                assert!(status != 400 && fault.is_none(), "{path} {name}={value}: {fault:?}");
            }
            for value in bad {
                let (status, fault) = said(&value);
                assert!(status == 400 && fault.is_some(), "{path} {name}={value}: {status}");
            }
            let twice = format!("1&{name}=1");
            assert_eq!(said(&twice).0, 400, "{path} {name} twice");
        }
    }
    assert!(tried > 8, "{tried}");
}

/// Values at the schema's limits, and values just past them.
fn examples(schema: &Value) -> (Vec<String>, Vec<String>) {
    let number = |word: &str| schema[word].as_i64().unwrap();
    match schema["type"].as_str().unwrap() {
        "integer" => {
            let (min, max) = (number("minimum"), number("maximum"));
            let good = vec![min.to_string(), max.to_string()];
            (
                good,
                vec![
                    (min - 1).to_string(),
                    (max + 1).to_string(),
                    "x".into(),
                    "1.5".into(),
                ],
            )
        }
        "boolean" => (vec!["true".into(), "false".into()], vec!["1".into(), "yes".into()]),
        _ if schema.get("enum").is_some() => {
            let words = schema["enum"].as_array().unwrap().iter();
            let words = words
                .map(|word| word.as_str().unwrap().to_owned())
                .collect();
            (words, vec!["nonsense".into(), String::new()])
        }
        _ if schema.get("examples").is_some() => {
            let good = schema["examples"].as_array().unwrap().iter();
            let good = good
                .map(|word| word.as_str().unwrap().replace('&', "%26"))
                .collect();
            (
                good,
                vec![
                    "INFY".into(),
                    "NSE:infy".into(),
                    format!("NSE:{}", "A".repeat(45)),
                ],
            )
        }
        // A cursor: only values that the service issued.
        _ => (Vec::new(), Vec::new()),
    }
}

/// JSON text of `depth` nested arrays.
fn nested(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

/// An entry of `bytes` bytes, padded by an unknown member.
fn padded(bytes: usize) -> String {
    let entry = |padding: &str| ENTRY.replacen('{', &format!("{{\"x\":\"{padding}\","), 1);
    entry(&"y".repeat(bytes - entry("").len()))
}

#[test]
fn requests_are_kept_to_the_limits_that_are_described() {
    let (_scene, service) = Scene::trading();
    let auth = bearer(&service.register("walk@example.com", "nine green parrots"));
    let document = document();
    let limits = document["x-limits"].as_object().unwrap();
    let mut tried = 0;
    for (name, limit) in limits {
        let limit = usize::try_from(limit.as_u64().unwrap()).unwrap();
        let post = |body: &str| {
            let answer = service
                .client()
                .send_json("POST", "/api/journal", &auth, body);
            (answer.status, answer.text().to_owned())
        };
        let get = |target: &str, lines: &str| {
            let text = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
            let answer = service.client().ask(&text);
            (answer.status, answer.text().to_owned())
        };
        let with_member = |value: &str| ENTRY.replacen('{', &format!("{{\"x\":{value},"), 1);
        let members = |count: usize| {
            let more: String = (5..count)
                .map(|number| format!("\"x{number}\":0,"))
                .collect();
            ENTRY.replacen('{', &format!("{{{more}"), 1)
        };
        let head = |bytes: usize| {
            let empty = "GET /brokera/status HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n".len();
            format!("X: {}\r\n", "y".repeat(bytes - empty))
        };
        let lines = |count: usize| {
            (1..count)
                .map(|n| format!("X-{n}: y\r\n"))
                .collect::<String>()
        };
        let ask = |size: usize| match name.as_str() {
            "target_bytes" => get(&format!("/brokera/status?{}", "q".repeat(size - 16)), ""),
            "head_bytes" => get("/brokera/status", &head(size)),
            "header_lines" => get("/brokera/status", &lines(size)),
            "body_bytes" => post(&padded(size)),
            // The object around it counts too.
            "json_depth" => post(&with_member(&nested(size - 1))),
            "json_members" => post(&members(size)),
            "json_elements" => {
                let tags = vec!["\"a\""; size].join(",");
                post(&ENTRY.replacen('{', &format!("{{\"tags\":[{tags}],"), 1))
            }
            other => panic!("nobody tries {other}"),
        };
        let ((good, said), (bad, told)) = (ask(limit), ask(limit + 1));
        let expected = match name.as_str() {
            "target_bytes" => (200, 414, "target_too_long"),
            "head_bytes" | "header_lines" => (200, 431, "head_too_large"),
            "body_bytes" => (201, 413, "body_too_large"),
            "json_elements" => (400, 400, "must be a short list of strings"),
            _ => (201, 400, "malformed_json"),
        };
        assert_eq!((good, bad), (expected.0, expected.1), "{name}: {said} {told}");
        assert!(told.contains(expected.2) && !said.contains(expected.2), "{name}: {said} {told}");
        tried += 1;
    }
    assert!(tried >= 7, "{tried}");
}

#[test]
fn symbols_are_as_many_as_described() {
    let (_scene, service) = Scene::trading();
    service.await_instruments();
    let checker = &mut Checker::new();
    let walk = &mut Walk::new(&service, checker);
    let parameters = &walk.checker.operation("GET", "/api/portfolio/live-prices")["parameters"];
    let max = parameters[0]["schema"]["maxItems"].as_u64().unwrap();
    let of = |count: u64| {
        let symbols: Vec<String> = (0..count).map(|number| format!("NSE:X{number}")).collect();
        format!("/api/portfolio/live-prices?symbols={}", symbols.join(","))
    };
    // Broker A's list is complete, so none of the symbols exists.
    assert_eq!(walk.get(&of(max)).unavailable().len() as u64, max);
    let refused = walk.expect(400, "GET", &of(max + 1), "");
    refused.expect_problem(400, "too_many_symbols");
}
