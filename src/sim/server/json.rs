//! The JSON that the simulator writes: a small tree with members in a chosen order and numbers with
//! exactly the digits that were put in, because digits and order are part of the wire formats, and
//! because faults rewrite a finished answer. Pure values; any thread.

use rust_decimal::Decimal;

use crate::sim::broker_a::ticker::Ticker;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Int(i64),
    /// Written in its shortest form, so that `1075.00` goes out as `1075`.
    Num(Decimal),
    /// A binary float with its noise (`2436.199951171875`), as one upstream sends them.
    Float(f64),
    Text(String),
    List(Vec<Json>),
    Map(Vec<(String, Json)>),
}

/// An object with these members in this order.
pub(crate) fn map<const N: usize>(members: [(&str, Json); N]) -> Json {
    Json::Map(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

impl Json {
    /// The document as bytes, without white space.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = String::new();
        self.write(&mut out);
        out.into_bytes()
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(true) => out.push_str("true"),
            Self::Bool(false) => out.push_str("false"),
            Self::Int(value) => out.push_str(&value.to_string()),
            Self::Num(value) => out.push_str(&value.normalize().to_string()),
            Self::Float(value) => out.push_str(&value.to_string()),
            Self::Text(text) => write_text(out, text),
            Self::List(items) => {
                out.push('[');
                for (position, item) in items.iter().enumerate() {
                    if position > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Self::Map(members) => {
                out.push('{');
                for (position, (name, value)) in members.iter().enumerate() {
                    if position > 0 {
                        out.push(',');
                    }
                    write_text(out, name);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// Calls `visit` on every member of every object, deepest first; a member is dropped when it
    /// answers `false`.
    pub(crate) fn retain_members(&mut self, visit: &mut dyn FnMut(&str, &mut Json) -> bool) {
        match self {
            Self::List(items) => items.iter_mut().for_each(|item| item.retain_members(visit)),
            Self::Map(members) => members.retain_mut(|(name, value)| {
                value.retain_members(visit);
                visit(name, value)
            }),
            _ => {}
        }
    }
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", control as u32)),
            other => out.push(other),
        }
    }
    out.push('"');
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Json {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<Decimal> for Json {
    fn from(value: Decimal) -> Self {
        Self::Num(value)
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Json {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<Vec<Json>> for Json {
    fn from(value: Vec<Json>) -> Self {
        Self::List(value)
    }
}

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

// ---- Answer
//
// What a route of the simulator answers, before faults are applied and it becomes a reply.

/// What a route answers, before faults are applied.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content: Content,
    /// The caller did something wrong.
    pub(crate) rejected: bool,
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum Content {
    Json(Json),
    /// With its media type.
    Text(&'static str, Vec<u8>),
    /// Elsewhere.
    Moved(String),
    /// Always compressed, whatever the request accepts; with its media type.
    Gzipped(&'static str, Vec<u8>),
    /// The key that accepts a WebSocket, and what is sent on it.
    Ticker(String, Ticker),
}

impl Answer {
    pub(crate) fn ok(json: Json) -> Self {
        Self { status: 200, content: Content::Json(json), rejected: false }
    }

    pub(crate) fn rejected(status: u16, json: Json) -> Self {
        Self { status, content: Content::Json(json), rejected: true }
    }

    pub(crate) fn text(status: u16, media_type: &'static str, text: &str) -> Self {
        let content = Content::Text(media_type, text.as_bytes().to_vec());
        Self { status, content, rejected: status >= 400 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_digits_order_and_escapes() {
        let json = map([
            ("b", Decimal::new(107_500, 2).into()),
            ("a", Json::List(vec![Json::Null, true.into(), 7.into(), Json::Float(0.5)])),
            ("t", "say \"x\\y\"\n".into()),
        ]);
        let text = String::from_utf8(json.to_bytes()).unwrap();
        assert_eq!(text, r#"{"b":1075,"a":[null,true,7,0.5],"t":"say \"x\\y\"\u000a"}"#);
    }
}
