//! Tests of preconditions with tags and lists in every form. Over real connections, for every
//! route: `tests/contract/preconditions.rs`.

use proptest::prelude::{Strategy, any, prop, prop_assert, proptest};

use super::*;
use crate::http::message::head::Parsed;

const CURRENT: &[u8] = br#""abc-br""#;

/// Passes `judge` the preconditions of a request with these header lines.
fn with<T>(lines: &str, judge: impl FnOnce(Preconditions<'_>) -> T) -> T {
    let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
    let mut head = Head::default();
    assert_eq!(head.parse(text.as_bytes(), 100, 16_384), Parsed::Complete, "{text}");
    judge(Preconditions::of(&head, text.as_bytes()))
}

fn verdict(lines: &str) -> Result<Verdict, PreconditionFailed> {
    with(lines, |preconditions| preconditions.judge(Some(CURRENT)))
}

#[test]
fn if_none_match_compares_weakly() {
    for hit in [
        r#""abc-br""#,
        r#"W/"abc-br""#,
        "*",
        " * ",
        r#""x", "abc-br""#,
        r#""x",W/"abc-br", "y""#,
        r#""with, comma" , "abc-br""#,
        r#", ,"abc-br""#,
        r#"  "abc-br"  "#,
        "\"a\"\r\nIf-None-Match: \"abc-br\"",
        "\"abc-br\"\r\nIf-None-Match: nonsense\r\nif-none-match: \"a\"",
    ] {
        assert_eq!(
            verdict(&format!("If-None-Match: {hit}\r\n")),
            Ok(Verdict::NotModified),
            "{hit}"
        );
    }
    for miss in [
        "",
        r#""abc-gz""#,
        r#""abc""#,
        "abc-br",
        r#"w/"abc-br""#,
        r#"W/ "abc-br""#,
        r#""abc-br"#,
        r#""x" "abc-br""#,
        r#"x, "abc-br""#,
        r#"*, "abc-br""#,
        r#"""abc-br"""#,
        "\"a\"\r\nIf-None-Match: \"b\"",
        "*\r\nIf-None-Match: *",
    ] {
        assert_eq!(verdict(&format!("If-None-Match: {miss}\r\n")), Ok(Verdict::Full), "{miss}");
    }
}

#[test]
fn if_match_compares_strongly_and_is_evaluated_first() {
    for hit in [
        r#""abc-br""#,
        "*",
        "\t*",
        r#""x",,"abc-br""#,
        r#"W/"abc-br", "abc-br""#,
        "\"a\"\r\nIf-Match: \"abc-br\"",
    ] {
        assert_eq!(verdict(&format!("If-Match: {hit}\r\n")), Ok(Verdict::Full), "{hit}");
        let both = format!("If-None-Match: *\r\nIf-Match: {hit}\r\n");
        assert_eq!(verdict(&both), Ok(Verdict::NotModified), "{hit}");
    }
    for miss in [
        "",
        r#""abc""#,
        r#"W/"abc-br""#,
        r#""abc-br", x"#,
        r#""abc-br" "x""#,
        r#""abc-br", *"#,
        "\"abc-br\"\r\nIf-Match: *",
        "*\r\nIf-Match: *",
    ] {
        let both = format!("If-None-Match: *\r\nIf-Match: {miss}\r\n");
        for lines in [&format!("If-Match: {miss}\r\n"), &both] {
            assert_eq!(verdict(lines), Err(PreconditionFailed), "{lines}");
        }
    }
    assert_eq!(verdict(""), Ok(Verdict::Full));
}

#[test]
fn a_resource_without_a_tag_matches_the_asterisk_only() {
    for (lines, expected) in [
        ("If-Match: *\r\n", Ok(Verdict::Full)),
        ("If-Match: \"a\"\r\n", Err(PreconditionFailed)),
        ("If-None-Match: *\r\n", Ok(Verdict::NotModified)),
        ("If-None-Match: \"a\"\r\n", Ok(Verdict::Full)),
        ("If-None-Match: \"a\"\r\nIf-None-Match: \"b\"\r\n", Ok(Verdict::Full)),
    ] {
        assert_eq!(with(lines, |given| given.judge(None)), expected, "{lines}");
    }
}

#[test]
fn the_tags_of_both_fields_are_listed() {
    let tag = |weak, opaque: &'static str| EntityTag {
        weak,
        opaque: opaque.as_bytes(),
    };
    with("If-Match: \"a\", W/\"b\"\r\nIf-None-Match: *\r\n", |given| {
        let tags = vec![tag(false, "\"a\""), tag(true, "\"b\"")];
        assert_eq!(given.named_if_match(), Some(Named::Tags(tags)));
        assert_eq!(given.named_if_none_match(), Some(Named::Anything));
    });
    with("If-Match: \"a\", b\r\nIf-None-Match: \"a\", b\r\n", |given| {
        assert_eq!(given.named_if_match(), Some(Named::Tags(Vec::new())), "no list");
        let tags = vec![tag(false, "\"a\"")];
        assert_eq!(given.named_if_none_match(), Some(Named::Tags(tags)), "up to there");
    });
    assert!(Preconditions::NONE.is_empty());
    assert_eq!(Preconditions::NONE.named_if_match(), None);
}

fn tag_list() -> impl Strategy<Value = (Vec<String>, Vec<bool>)> {
    prop::collection::vec(("[a-c,*]{0,3}", any::<bool>()), 0..6)
        .prop_map(|tags| tags.into_iter().unzip())
}

proptest! {
    #[test]
    fn each_tag_of_any_bytes_is_a_part_of_them(
        value in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let tags: usize = EntityTags(&value).count();
        prop_assert!(tags <= value.len());
        let hit = Preconditions::if_none_match(&value).judge(Some(b"\"a\""));
        let has_tag = value.windows(3).any(|three| three == b"\"a\"");
        prop_assert!(hit != Ok(Verdict::NotModified) || has_tag || value.contains(&b'*'));
    }

    #[test]
    fn a_malformed_list_matches_only_if_it_contains_the_tag(value in "[\"W/*, a\t;=]{0,40}") {
        let given = Preconditions::if_none_match(value.as_bytes());
        let hit = given.judge(Some(b"\"a\"")) == Ok(Verdict::NotModified);
        assert!(!hit || value.contains("\"a\"") || value.trim_matches([' ', '\t']) == "*");
    }

    #[test]
    fn a_well_formed_list_matches_exactly_if_it_contains_the_tag(
        (tags, weak) in tag_list(),
        wanted in "[a-c,*]{0,3}",
        lines in 1..3_usize,
    ) {
        let written: Vec<String> = tags
            .iter()
            .zip(&weak)
            .map(|(tag, weak)| format!("{}\"{tag}\"", if *weak { "W/" } else { "" }))
            .collect();
        let (first, rest) = written.split_at(written.len() * (lines - 1) / lines);
        let field = |name: &str| {
            format!("{name}: {}\r\n{name}: {}\r\n", first.join(" , "), rest.join(","))
        };
        let etag = format!("\"{wanted}\"");
        let judged = |lines: &str| with(lines, |given| given.judge(Some(etag.as_bytes())));
        let hit = judged(&field("If-None-Match")) == Ok(Verdict::NotModified);
        assert_eq!(hit, tags.contains(&wanted), "{written:?}");
        let strong = tags.iter().zip(&weak).any(|(tag, weak)| !weak && *tag == wanted);
        assert_eq!(judged(&field("If-Match")).is_ok(), strong, "{written:?}");
    }
}
