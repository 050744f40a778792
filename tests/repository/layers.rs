//! Imports point downwards: a module may use only modules of lower layers.
//!
//! A change of the table needs a review. `lib.rs` and `main.rs` are in no layer.

use std::sync::LazyLock;

use crate::support::source::{Source, expect_none, root, rust, without_comments, word};

/// The table of "Layers" in ARCHITECTURE.md, lowest layer first: its name and its modules. Modules
/// of one layer do not use each other.
static LAYERS: LazyLock<Vec<(String, Vec<String>)>> = LazyLock::new(|| {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = text
        .split("\n## ")
        .find(|section| section.starts_with("Layers\n"))
        .unwrap();
    let mut layers: Vec<_> = section.lines().filter_map(layer).collect();
    layers.reverse();
    layers
});

/// A row of the table: a name in bold, then modules as code.
fn layer(line: &str) -> Option<(String, Vec<String>)> {
    let mut cells = line.strip_prefix("| **")?.split(" | ");
    let name = cells.next()?.trim_end_matches('*').to_owned();
    let modules = cells
        .next()?
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned);
    Some((name, modules.collect()))
}

fn row(module: &str) -> Option<usize> {
    LAYERS
        .iter()
        .position(|(_, modules)| modules.iter().any(|other| other == module))
}

/// `src/http/server/listener.rs` is `http`, three levels below the root of the crate.
fn place(path: &str) -> (&str, usize) {
    let inner = path
        .strip_prefix("src/")
        .unwrap_or(path)
        .trim_end_matches(".rs");
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
            let names = heads(after)
                .into_iter()
                .map(|name| (line_of(&code, offset), name));
            found.extend(names);
        }
    }
    // `super::` repeated as often as the file is deep ends at the root, which has only the layers.
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
    let Some(group) = path.strip_prefix('{') else {
        return vec![word(path).to_owned()];
    };
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
        return vec![format!(
            "{}: {module} is in no layer of ARCHITECTURE.md",
            source.path
        )];
    };
    named_modules(&source.text, depth)
        .into_iter()
        .filter(|(_, name)| name != module)
        .filter_map(|(line, name)| {
            let why = match row(&name) {
                Some(other) if other < own => return None,
                Some(other) => {
                    format!("{} may not use {name} ({})", LAYERS[own].0, LAYERS[other].0)
                }
                None => format!("{name} is in no layer of ARCHITECTURE.md"),
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
               use super::super::warmers::stats;\n\
               use crate::store;\n\
               use crate::nowhere;\n";
    let source = Source {
        path: "src/brokers/wire.rs".into(),
        text: bad.into(),
    };
    let found = complaints(&source);
    let expected = [
        "src/brokers/wire.rs:2: adapters may not use api (service)",
        "src/brokers/wire.rs:4: adapters may not use cache (adapters)",
        "src/brokers/wire.rs:6: adapters may not use store (adapters)",
        "src/brokers/wire.rs:7: nowhere is in no layer of ARCHITECTURE.md",
        "src/brokers/wire.rs:5: adapters may not use warmers (service)",
    ];
    assert_eq!(found, expected);
    let stray = Source {
        path: "src/extra.rs".into(),
        text: String::new(),
    };
    assert_eq!(complaints(&stray).len(), 1);
}

/// The edge runs on may. PostgreSQL's client brings its own runtime, which only blocking threads
/// drive.
#[test]
fn the_second_runtime_stays_with_its_client() {
    let names = ["tokio::", "tokio_postgres", "futures_util::"];
    let offends = |source: &&Source| {
        let code = without_comments(&source.text);
        let there = source.path.starts_with("src/store/postgres/");
        // An error of a transaction may be either engine's.
        let error = code.replace("tokio_postgres::Error", "");
        !there && names.iter().any(|name| error.contains(name))
    };
    let sources = rust(&["src"]);
    let found: Vec<_> = sources
        .iter()
        .filter(offends)
        .map(|source| source.path.clone())
        .collect();
    expect_none(&found);
    let client = sources
        .iter()
        .filter(|source| source.text.contains("tokio_postgres"));
    assert!(client.count() > 3, "the check looks for another name");
}
