//! Checks an answer against the description, and records which parts of the description have
//! occurred.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use jsonschema::Validator;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::contract::openapi::{document, object, operations, resolved};
use crate::support::{Answer, EVENT_STREAM};

/// Headers of every answer, or of the connection and the coding.
const HEADERS_OF_ALL: [&str; 7] = [
    "date",
    "x-content-type-options",
    "content-type",
    "content-length",
    "connection",
    "content-encoding",
    "transfer-encoding",
];

const CSV: &str = "text/csv; charset=utf-8";

/// By their schemas. Each is compiled together with every schema of the description, to which its
/// references lead; that takes longer than the answer that it judges.
static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

pub struct Checker {
    pub document: Arc<Value>,
    /// Method, path and status of each answer.
    pub answered: BTreeSet<(String, String, u16)>,
    /// `Schema.property` of successes, present or absent.
    pub present: BTreeSet<String>,
    pub absent: BTreeSet<String>,
}

impl Checker {
    pub fn new() -> Self {
        Self {
            document: Arc::new(document()),
            answered: BTreeSet::new(),
            present: BTreeSet::new(),
            absent: BTreeSet::new(),
        }
    }

    /// Adds what another has seen.
    pub fn add(&mut self, other: Self) {
        self.answered.extend(other.answered);
        self.present.extend(other.present);
        self.absent.extend(other.absent);
    }

    pub fn operation(&self, method: &str, path: &str) -> &Value {
        let found = &self.document["paths"][path][method.to_lowercase()];
        assert!(found.is_object(), "{method} {path} is not described");
        found
    }

    /// The schema of the body that the operation takes, if it takes one.
    pub fn request(&self, method: &str, path: &str) -> Option<Value> {
        let pointer = "/requestBody/content/application~1json/schema";
        self.operation(method, path).pointer(pointer).cloned()
    }

    /// Checks that the operation describes the answer.
    #[track_caller]
    pub fn check(&mut self, method: &str, path: &str, answer: &Answer) {
        let document = Arc::clone(&self.document);
        let place = format!("{method} {path} {}", answer.status);
        let said = format!("{place}: {}{}", answer.head(), String::from_utf8_lossy(&answer.body));
        let responses = &document["paths"][path][method.to_lowercase()]["responses"];
        let response = responses
            .get(answer.status.to_string())
            .or_else(|| responses.get("default").filter(|_| answer.status >= 400))
            .unwrap_or_else(|| panic!("not described: {said}"));
        let response = resolved(&document, response);
        self.headers(&document, response, answer, &said);
        let media = answer.header("content-type");
        let sniffing = answer.header("x-content-type-options");
        assert_eq!(sniffing, media.map(|_| "nosniff"), "{said}");
        let content = media.map(|media| {
            let content = response
                .get("content")
                .and_then(|content| content.get(media));
            content.unwrap_or_else(|| panic!("another type: {said}"))
        });
        if let Some(content) = content {
            let value: Value = match media {
                Some(EVENT_STREAM | CSV) => json!(answer.text()),
                _ => serde_json::from_slice(&answer.body).expect(&said),
            };
            self.valid(&content["schema"], &value, &said);
            if answer.status < 300 {
                self.note(&document, "", &content["schema"], Some(&value));
            }
        } else {
            assert!(response.get("content").is_none() && answer.body.is_empty(), "{said}");
        }
        self.answered
            .insert((method.to_owned(), path.to_owned(), answer.status));
    }

    #[track_caller]
    fn headers(&self, document: &Value, response: &Value, answer: &Answer, said: &str) {
        let described: BTreeMap<String, &Value> = response
            .get("headers")
            .map(object)
            .into_iter()
            .flatten()
            .map(|(name, header)| (name.to_lowercase(), resolved(document, header)))
            .collect();
        for (name, header) in &described {
            match answer.header(name) {
                Some(value) => {
                    let schema = self.compiled(&header["schema"]);
                    assert!(schema.is_valid(&json!(value)), "{name}: {value}: {said}");
                }
                None => assert_ne!(header["required"], true, "no {name}: {said}"),
            }
        }
        for line in answer
            .head()
            .lines()
            .skip(1)
            .filter(|line| !line.is_empty())
        {
            let name = line.split(':').next().unwrap().to_lowercase();
            let known = HEADERS_OF_ALL.contains(&&*name) || described.contains_key(&name);
            assert!(known, "{name} is not described: {said}");
        }
    }

    /// References of `schema` point into the document.
    fn compiled(&self, schema: &Value) -> Arc<Validator> {
        let mut validators = VALIDATORS.lock();
        let compiled = validators.entry(schema.to_string()).or_insert_with(|| {
            let whole = json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "components": { "schemas": self.document["components"]["schemas"] },
                "allOf": [schema],
            });
            Arc::new(
                jsonschema::options()
                    .should_validate_formats(true)
                    .build(&whole)
                    .unwrap(),
            )
        });
        Arc::clone(compiled)
    }

    #[track_caller]
    pub fn valid(&self, schema: &Value, value: &Value, said: &str) {
        let compiled = self.compiled(schema);
        let errors = compiled.iter_errors(value);
        let errors: Vec<String> = errors
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{said}\n{}", errors.join("\n"));
    }

    /// Records the properties that `value` has; without a value, all of the schema.
    fn note(&mut self, document: &Value, place: &str, schema: &Value, value: Option<&Value>) {
        if let Some(reference) = schema.get("$ref") {
            let name = reference.as_str().unwrap().rsplit('/').next().unwrap();
            return self.note(document, name, resolved(document, schema), value);
        }
        for part in ["allOf", "anyOf"] {
            for part in schema
                .get(part)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                self.note(document, place, part, value);
            }
        }
        let required = schema.get("required").and_then(Value::as_array);
        let properties = schema.get("properties").map(object).into_iter().flatten();
        for (name, property) in properties {
            let place = format!("{place}.{name}");
            match value
                .filter(|value| value.is_object())
                .map(|value| value.get(name))
            {
                Some(None) => drop(self.absent.insert(place)),
                Some(found @ Some(_)) => {
                    self.note(document, &place, property, found);
                    self.present.insert(place);
                }
                None if value.is_none() => {
                    self.note(document, &place, property, None);
                    if !required.is_some_and(|names| names.iter().any(|known| known == name)) {
                        self.absent.insert(place.clone());
                    }
                    self.present.insert(place);
                }
                None => {}
            }
        }
        if let Some(items) = schema.get("items") {
            match value {
                None => self.note(document, place, items, None),
                Some(value) => value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .for_each(|item| self.note(document, place, items, Some(item))),
            }
        }
    }

    /// Every success, every property of one, and every optional property.
    pub fn everything(&self) -> Self {
        let mut all = Self::new();
        let document = document();
        for (method, path, operation) in operations(&document) {
            for (status, response) in object(&operation["responses"]) {
                let Some(status) = status.parse().ok().filter(|status: &u16| *status < 400) else {
                    continue;
                };
                let response = resolved(&document, response);
                if let Some(schema) = response.pointer("/content/application~1json/schema") {
                    all.note(&document, "", schema, None);
                }
                all.answered
                    .insert((method.clone(), path.to_owned(), status));
            }
        }
        all
    }
}
