//! Imports point one way: a module may use modules of lower rows only.
//!
//! Changing the table is a decision for review. `lib.rs` and `main.rs` stand outside it.

use crate::source::{Source, expect_none, rust, without_comments, word};

/// Lowest row first. Modules of one row do not know each other.
const ROWS: &[&[&str]] = &[
    &["base"],
    &["config", "ops"],
    &["rt"],
    &["http"],
    &["market", "signals", "cache", "store", "portfolio", "brokers"],
    &["auth", "sim"],
    &["api", "warm"],
    &["admin"],
    &["app", "cli"],
];

fn row(module: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&module))
}

/// `src/http/conn.rs` is `http`, two levels below the root of the crate.
fn place(path: &str) -> (&str, usize) {
    let inner = path.strip_prefix("src/").unwrap_or(path).trim_end_matches(".rs");
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    (inner.split('/').next().unwrap_or(inner), inner.split('/').count())
}

/// The crate's modules that a line of code names, with the line's number.
fn named_modules(text: &str, depth: usize) -> Vec<(usize, String)> {
    let code = without_comments(text);
    let mut found = Vec::new();
    for (offset, _) in code.match_indices("crate::") {
        let whole_word = !code[..offset].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if whole_word {
            let after = &code[offset + "crate::".len()..];
            let names = heads(after).into_iter().map(|name| (line_of(&code, offset), name));
            found.extend(names);
        }
    }
    // As many `super::` as the file is deep end at the root, where only the layers are.
    let climb = "super::".repeat(depth);
    for (offset, _) in code.match_indices(&climb) {
        let rest = code[offset..].trim_start_matches("super::");
        let layers = heads(rest).into_iter().filter(|name| row(name).is_some());
        found.extend(layers.map(|name| (line_of(&code, offset), name)));
    }
    found
}

fn line_of(code: &str, offset: usize) -> usize {
    code[..offset].matches('\n').count() + 1
}

/// The first segment of a path, or of each path in a group `{a::b, c}`.
fn heads(path: &str) -> Vec<String> {
    let Some(group) = path.strip_prefix('{') else { return vec![word(path).to_owned()] };
    let mut depth = 1;
    let mut at_start = true;
    let mut names = Vec::new();
    for (offset, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => at_start = true,
            letter if letter.is_alphanumeric() && at_start => {
                names.push(word(&group[offset..]).to_owned());
                at_start = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}

fn complaints(source: &Source) -> Vec<String> {
    let (module, depth) = place(&source.path);
    if matches!(source.path.as_str(), "src/lib.rs" | "src/main.rs") {
        return Vec::new();
    }
    let Some(own) = row(module) else {
        return vec![format!("{}: {module} is in no row of tests/layers.rs", source.path)];
    };
    named_modules(&source.text, depth)
        .into_iter()
        .filter(|(_, name)| name != module)
        .filter_map(|(line, name)| {
            let why = match row(&name) {
                Some(other) if other < own => return None,
                Some(other) => format!("row {own} may not use {name} (row {other})"),
                None => format!("{name} is in no row of tests/layers.rs"),
            };
            Some(format!("{}:{line}: {why}", source.path))
        })
        .collect()
}

#[test]
fn imports_point_downwards() {
    let sources = rust(&["src"]);
    assert!(sources.len() > 10, "the walk found only {}", sources.len());
    expect_none(&sources.iter().flat_map(complaints).collect::<Vec<_>>());
}

#[test]
fn offenders_are_found_with_their_line() {
    let bad = "use std::fmt;\n\
               use crate::{base::Clock, api::State, ops::{Counter, log}};\n\
               // use crate::app in words\n\
               fn f() { crate::cache::l1() }\n\
               use super::super::warm::index;\n\
               use crate::store;\n\
               use crate::nowhere;\n";
    let source = Source { path: "src/brokers/wire.rs".into(), text: bad.into() };
    let found = complaints(&source);
    let expected = [
        "src/brokers/wire.rs:2: row 4 may not use api (row 6)",
        "src/brokers/wire.rs:4: row 4 may not use cache (row 4)",
        "src/brokers/wire.rs:6: row 4 may not use store (row 4)",
        "src/brokers/wire.rs:7: nowhere is in no row of tests/layers.rs",
        "src/brokers/wire.rs:5: row 4 may not use warm (row 6)",
    ];
    assert_eq!(found, expected);
    let stray = Source { path: "src/extra.rs".into(), text: String::new() };
    assert_eq!(complaints(&stray).len(), 1);
}
