//! Formats JSON for people: a value that fits on one line is written on one.

use serde_json::Value;

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
