//! Journal entries as clients send them.

use super::{Fields, JournalFields, entry_view, read};
use crate::http::Problem;
use crate::http::message::request::with_request;
use crate::store::{JournalEntry, Side};

const NOW: &str = "2026-11-20T11:00:00+05:30";

fn read_body(body: &str) -> Result<JournalFields, Problem> {
    let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\r\n";
    let local = std::net::Ipv4Addr::LOCALHOST.into();
    with_request(head, body.as_bytes(), local, |request| {
        read(Fields::of(request)?, NOW.parse().unwrap())
    })
}

const WHOLE: &str = r#"{"traded_on":"2026-11-20","symbol":"NSE:M&M","side":"buy",
    "quantity":1.5e1,"price":3012.05,"fees":0.1,"strategy":"s","notes":"a\nb","tags":["x","y"]}"#;

#[test]
fn a_complete_entry_is_read_and_written_exactly() {
    let fields = read_body(WHOLE).unwrap();
    assert_eq!(fields.side, Side::Buy);
    let mut out = Vec::new();
    let entry = JournalEntry {
        id: 7,
        fields,
        created_ms: 0,
        updated_ms: 1_000,
    };
    crate::views::values::write(&mut out, &entry_view(&entry));
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"id":7,"traded_on":"2026-11-20","symbol":"NSE:M&M","side":"buy","quantity":15,"#
            .to_owned()
            + r#""price":3012.05,"fees":0.1,"strategy":"s","notes":"a\nb","tags":["x","y"],"#
            + r#""created_at":"1970-01-01T05:30:00+05:30","#
            + r#""updated_at":"1970-01-01T05:30:01+05:30","#
            + &format!("\"revision\":\"{}\"}}", entry.revision().0)
    );
}

#[test]
fn a_minimal_entry_leaves_optional_fields_empty() {
    let fields = read_body(
        r#"{"traded_on":"1990-01-01","symbol":"A","side":"sell","quantity":0.000001,"price":0,
            "strategy":"","notes":null}"#,
    );
    let fields = fields.unwrap();
    assert_eq!((fields.fees, fields.strategy, fields.notes), (None, None, None));
    assert!(fields.tags.is_empty());
}

#[test]
fn all_faults_of_an_entry_are_reported() {
    let problem = read_body("{}").unwrap_err();
    let named: Vec<&str> = problem.errors.iter().map(|error| &*error.field).collect();
    assert_eq!(named, ["traded_on", "symbol", "side", "quantity", "price"]);
}

/// Text in quotation marks.
fn long(chars: usize) -> String {
    format!("\"{}\"", "A".repeat(chars))
}

/// A list of this many tags.
fn tags(count: usize) -> String {
    let tags: Vec<String> = (0..count).map(|n| format!("\"t{n}\"")).collect();
    format!("[{}]", tags.join(","))
}

/// Reads an entry that is good but for this member.
fn read_with(name: &str, value: &str) -> Result<JournalFields, Problem> {
    let mut members = vec![
        ("traded_on", "\"2026-11-20\""),
        ("symbol", "\"INFY\""),
        ("side", "\"buy\""),
        ("quantity", "1"),
        ("price", "1"),
    ];
    members.retain(|(key, _)| *key != name);
    members.push((name, value));
    let members: Vec<_> = members
        .iter()
        .map(|(k, v)| format!("\"{k}\":{v}"))
        .collect();
    read_body(&format!("{{{}}}", members.join(",")))
}

#[test]
fn a_good_field_of_an_entry_is_taken() {
    for (name, value) in [
        ("traded_on", "\"2026-11-21\""),
        ("symbol", "\"NIFTY 26NOV 25000 CE\""),
        ("symbol", &long(48)),
        ("strategy", &long(100)),
        ("notes", &long(4_000)),
        ("notes", "\"a\\r\\n\\tb\""),
        ("tags", &tags(20)),
        ("tags", &format!("[{}]", long(40))),
        ("quantity", "999999999999.999999"),
    ] {
        assert!(read_with(name, value).is_ok(), "{name} {value}");
    }
}

#[test]
fn each_field_of_an_entry_is_checked() {
    for (name, value) in [
        ("traded_on", "\"2026-11-22\""),
        ("traded_on", "\"1989-12-31\""),
        ("traded_on", "\"yesterday\""),
        ("symbol", "\"infy\""),
        ("symbol", "\" INFY\""),
        ("symbol", "\"A  B\""),
        ("symbol", "\"A\\u0000\""),
        ("symbol", "\"\""),
        ("symbol", &long(49)),
        ("side", "\"BUY\""),
        ("side", "true"),
        ("quantity", "0"),
        ("quantity", "-1"),
        ("quantity", "\"1\""),
        ("quantity", "1000000000000"),
        ("quantity", "0.0000001"),
        ("price", "-0.01"),
        ("price", "null"),
        ("fees", "-1"),
        ("strategy", &long(101)),
        ("strategy", "\"a\\nb\""),
        ("notes", &long(4_001)),
        ("notes", "\"\\u0000\""),
        ("tags", &tags(21)),
        ("tags", "[\"a\",\"a\"]"),
        ("tags", "[\" a\"]"),
        ("tags", "[\"\"]"),
        ("tags", &format!("[{}]", long(41))),
        ("tags", "\"a\""),
    ] {
        let problem = read_with(name, value).expect_err(value);
        assert_eq!((problem.status, problem.code), (400, "validation_failed"));
        assert_eq!(problem.errors.len(), 1, "{name} {value}: {problem:?}");
        assert_eq!(problem.errors[0].field, name, "{value}");
    }
}
