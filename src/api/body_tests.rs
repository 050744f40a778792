//! Bodies as careless and hostile clients send them.

use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::{any, prop_assert_eq, proptest};
use proptest::test_runner::Config;
use secrecy::ExposeSecret;

use super::{Amount, Fields, Problem, read_decimal};
use crate::http::message::request::with_request;

const PRICE: Amount = Amount {
    zero: true,
    whole_digits: 12,
    places: 4,
};
const QUANTITY: Amount = Amount {
    zero: false,
    ..PRICE
};

/// Reads `body` as sent with `content_type` (none where empty).
fn with<T>(
    content_type: &str,
    body: &[u8],
    read: impl FnOnce(Result<Fields<'_>, Problem>) -> T,
) -> T {
    let header = match content_type {
        "" => String::new(),
        _ => format!("Content-Type: {content_type}\r\n"),
    };
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{header}\r\n");
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    with_request(&head, body, peer, |request| read(Fields::of(request)))
}

fn json<T>(body: &str, read: impl FnOnce(&mut Fields<'_>) -> T) -> (T, Vec<(String, String)>) {
    with("application/json", body.as_bytes(), |fields| {
        let mut fields = fields.unwrap();
        let read = read(&mut fields);
        let errors = match fields.done() {
            Ok(()) => Vec::new(),
            Err(problem) => {
                assert_eq!((problem.status, problem.code), (400, "validation_failed"));
                let reported = |error: crate::http::message::problem::FieldError| {
                    (error.field.into_owned(), error.message.into_owned())
                };
                problem.errors.into_iter().map(reported).collect()
            }
        };
        (read, errors)
    })
}

#[test]
fn only_json_in_utf8_is_accepted() {
    let status = |content_type: &str| {
        with(content_type, b"{}", |fields| fields.err().map(|problem| problem.status))
    };
    for good in [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        "application/json;charset=\"UTF-8\"",
        "application/json ; profile=x",
    ] {
        assert_eq!(status(good), None, "{good}");
    }
    for bad in [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json-patch+json",
        "application/problem+json",
        "multipart/form-data; boundary=application/json",
        "application/json; charset=latin1",
        "application/json, text/plain",
    ] {
        assert_eq!(status(bad), Some(415), "{bad}");
    }
}

#[test]
fn a_body_other_than_one_object_is_malformed() {
    let deep = format!("{{\"a\":{}}}", "[".repeat(60_000));
    let nested = format!("{{\"a\":{}1{}}}", "[".repeat(500), "]".repeat(500));
    for body in [
        "",
        " ",
        "null",
        "[]",
        "\"a\"",
        "1",
        "{",
        "{]",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{a:1}",
        "{}{}",
        "{} x",
        "{\"a\":01}",
        "{\"a\":\"\u{1}\"}",
        "{\"a\":\"\\x\"}",
        "\u{feff}{}",
        "{\"a\":tru}",
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"b":2,"a":null}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"\u0061":1,"\u0061":2}"#,
        &deep,
        &nested,
    ] {
        let problem = with("application/json", body.as_bytes(), Fields::of_err).unwrap();
        assert_eq!((problem.status, problem.code), (400, "malformed_json"), "{body}");
    }
    let not_utf8 = with("application/json", b"{\"a\":\"\xff\"}", Fields::of_err).unwrap();
    assert_eq!(not_utf8.code, "malformed_json");
}

impl Fields<'_> {
    fn of_err(read: Result<Fields<'_>, Problem>) -> Option<Problem> {
        read.err()
    }
}

#[test]
fn texts_are_decoded_and_limited_in_characters() {
    let body = r#"{"a":"\u00e9\n\ud83d\ude00","b":null,"c":"","d":5,"e":"12345","x":[{}]}"#;
    let (read, errors) = json(body, |fields| {
        let absent = fields.optional_text("nowhere", 9);
        (
            fields.text("a", 3),
            fields.optional_text("b", 9),
            absent,
            fields.optional_text("c", 9),
        )
    });
    assert_eq!(read, ("é\n😀".to_owned(), None, None, Some(String::new())));
    assert_eq!(errors, []);
    let (_, errors) = json(body, |fields| {
        fields.text("b", 9);
        fields.text("c", 9);
        fields.text("d", 9);
        fields.text("e", 4);
        fields.secret("nowhere", 9);
        fields.optional_text("a", 2);
    });
    let reported: Vec<(&str, &str)> = errors
        .iter()
        .map(|(f, m)| (f.as_str(), m.as_str()))
        .collect();
    let expected = [
        ("b", "This field is required."),
        ("c", "This field is required."),
        ("d", "This field must be a string."),
        ("e", "At most 4 characters."),
        ("nowhere", "This field is required."),
        ("a", "At most 2 characters."),
    ];
    assert_eq!(reported, expected, "all at once");
}

#[test]
fn secrets_are_read_whole() {
    let (secret, errors) = json(r#"{"s":"a\"b"}"#, |fields| fields.secret("s", 3));
    assert_eq!((secret.expose_secret(), errors.len()), ("a\"b", 0));
    let (_, errors) = json(r#"{"s":"p4ssw0rd"}"#, |fields| fields.secret("s", 3));
    assert!(!format!("{errors:?}").contains("p4ss"));
}

#[test]
fn numbers_are_exact_and_bounded() {
    for (raw, expected) in [
        ("0", "0"),
        ("-0", "0"),
        ("10.50", "10.5"),
        ("1e3", "1000"),
        ("1.5E+2", "150"),
        ("1.25e-2", "0.0125"),
        ("0.1", "0.1"),
        ("999999999999.9999", "999999999999.9999"),
        ("12.50000000", "12.5"),
        ("0.0000000000000000e5", "0"),
        ("0e-40", "0"),
        ("-0e99999999999999999999", "0"),
        ("1.0000000000000000000000000000", "1"),
        ("1.00000000000000000000000000000000000000000000000000", "1"),
        ("0.00000000000000000000000000000000001e35", "1"),
        ("100000000000000000000000000000000000e-35", "1"),
    ] {
        let read = read_decimal(raw, PRICE).map(|value| value.to_string());
        assert_eq!(read.as_deref(), Ok(expected), "{raw}");
    }
    for (raw, message) in [
        ("\"1\"", "a number"),
        ("true", "a number"),
        ("[1]", "a number"),
        ("-1", "negative"),
        ("-1e-4", "negative"),
        ("1000000000000", "digits"),
        ("0.00001", "digits"),
        ("1e-5", "digits"),
        ("1e12", "digits"),
        ("1e28", "digits"),
        ("1e400", "digits"),
        ("1e-400", "digits"),
        ("1e-30", "digits"),
        ("0.00000000000000000000000000000000001", "digits"),
        ("0.00000000000000000000000000000000001e28", "digits"),
        ("1e99999999999999999999", "digits"),
        ("1.00000000000000000000000000001", "digits"),
        ("79228162514264337593543950336", "digits"),
        (&"9".repeat(60_000), "digits"),
    ] {
        let error = read_decimal(raw, PRICE).unwrap_err();
        assert!(error.contains(message), "{raw}: {error}");
    }
    assert!(
        read_decimal("0.0", QUANTITY)
            .unwrap_err()
            .contains("above zero")
    );
}

#[test]
fn an_escaped_member_name_is_recognised() {
    let (text, errors) = json(r#"{"\u0061":"x"}"#, |fields| fields.optional_text("a", 1));
    assert_eq!((text.as_deref(), errors.len()), (Some("x"), 0));
}

/// The number with these digits, the point before the digit at `point`, times ten to `exponent`:
/// its whole part and fraction as text, without exponent and needless zeros.
fn plainly(digits: &str, point: usize, exponent: i32) -> (String, String) {
    let zeros = "0".repeat(80);
    let padded = format!("{zeros}{digits}{zeros}");
    let at = usize::try_from(80 + point as i32 + exponent).unwrap();
    let whole = padded[..at].trim_start_matches('0').to_owned();
    (whole, padded[at..].trim_end_matches('0').to_owned())
}

proptest! {
    #![proptest_config(Config { cases: 2_000, ..Config::default() })]

    #[test]
    fn a_number_is_read_exactly_or_refused(
        digits in "0{0,30}[0-9]{1,20}0{0,30}",
        point in 1..40_usize,
        exponent in -45..45_i32,
        upper in any::<bool>(),
        signed in any::<bool>(),
    ) {
        // JSON has no leading zeros but one before the point.
        let digits = match digits.find(|digit| digit != '0') {
            Some(first) if first >= point => digits,
            Some(first) => digits[first..].to_owned(),
            None => "0".to_owned(),
        };
        let point = if digits.starts_with('0') { 1 } else { point.min(digits.len()) };
        let (whole, fraction) = digits.split_at(point);
        let dot = if fraction.is_empty() { "" } else { "." };
        let e = if upper { 'E' } else { 'e' };
        let sign = if signed && exponent >= 0 { "+" } else { "" };
        let raw = format!("{whole}{dot}{fraction}{e}{sign}{exponent}");
        let (whole, fraction) = plainly(&digits, point, exponent);
        let fits = whole.len() <= 12 && fraction.len() <= 4;
        let dot = if fraction.is_empty() { "" } else { "." };
        let zero = if whole.is_empty() { "0" } else { "" };
        let expected = fits.then(|| format!("{zero}{whole}{dot}{fraction}"));
        let read = read_decimal(&raw, PRICE).ok().map(|value| value.to_string());
        prop_assert_eq!(&read, &expected, "{}", raw);
        let negative = read_decimal(&format!("-{raw}"), PRICE);
        let is_zero = expected.as_deref() == Some("0");
        prop_assert_eq!(negative.is_ok(), is_zero, "-{}", raw);
        prop_assert_eq!(read_decimal(&raw, QUANTITY).is_ok(), fits && !is_zero, "{}", raw);
    }
}

#[test]
fn dates_are_accepted_in_one_form_only() {
    let read = |raw: &str| json(&format!("{{\"d\":{raw}}}"), |fields| fields.optional_date("d"));
    let (date, errors) = read("\"2024-02-29\"");
    assert_eq!((date.unwrap().to_string(), errors.len()), ("2024-02-29".to_owned(), 0));
    assert_eq!(read("null"), (None, Vec::new()));
    for bad in [
        "\"2023-02-29\"",
        "\"2024-2-9\"",
        "\"20240229\"",
        "\"2024-02-29T00:00\"",
        "\"\"",
        "20240229",
        "\"-024-02-29\"",
        "\"２024-02-29\"",
        "{}",
    ] {
        assert_eq!(read(bad).1.len(), 1, "{bad}");
    }
}

#[test]
fn lists_hold_strings_and_are_bounded() {
    let read = |raw: &str| json(&format!("{{\"t\":{raw}}}"), |fields| fields.texts("t", 2, 3));
    assert_eq!(read(r#"["a","\u00e9bc"]"#), (vec!["a".to_owned(), "ébc".to_owned()], vec![]));
    assert_eq!(read("[]").1, []);
    assert_eq!(read("null"), (Vec::new(), Vec::new()));
    for bad in [
        r#""a""#,
        "[1]",
        "[null]",
        r#"["a","b","c"]"#,
        r#"["abcd"]"#,
        r#"[""]"#,
        "[[]]",
    ] {
        assert_eq!(read(bad).1.len(), 1, "{bad}");
    }
    assert_eq!(read(&format!("[{}\"\"]", "\"a\",".repeat(20_000))).1.len(), 1);
}
