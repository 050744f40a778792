//! The budget of the code base: upper bounds on what a reader, an operator or a packager must know.
//! Lines and files have none: a plain line that takes two is better than a dense one. Raising a
//! bound takes a line in a commit that says why.

use std::collections::BTreeSet;

use crate::support::source::{Source, expect_none, root, rust, word};

/// Lines of product code below which a file is small.
const SMALL_LINES: usize = 60;
/// Crates that the lock names, which is what a packager has to read.
const CRATES_MAX: usize = 400;
/// Settings, including the files of secrets.
// With the list of sectors, and how many symbols beyond the universe have candles, which is 0 where
// a feed's calls are dear.
const SETTINGS_MAX: usize = 105;
/// Places that start an OS thread.
const THREADS_MAX: usize = 30;
/// Lines from which a section of another subject is a file that was not made.
const SECTION_LINES_MAX: usize = 60;

/// The files of the product, without those that are tests.
pub(super) fn product() -> Vec<Source> {
    let is_test = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let stem = name.trim_end_matches(".rs");
        ["tests", "testing"].contains(&stem)
            || stem.ends_with("_tests")
            || stem.ends_with("_model")
            || stem.contains("test_server")
            || path.contains("/conformance/")
    };
    rust(&["src"])
        .into_iter()
        .filter(|source| !is_test(&source.path))
        .collect()
}

fn room(path: &str) -> &str {
    word(path.trim_start_matches("src/"))
}

fn is_root(source: &Source) -> bool {
    ["/mod.rs", "/lib.rs", "/main.rs"]
        .iter()
        .any(|name| source.path.ends_with(name))
}

fn expect_at_most(what: &str, found: usize, most: usize) {
    assert!(found <= most, "{what}: {found}, at most {most}: take one away, or say why not");
}

#[test]
fn a_small_file_has_more_than_one_reader() {
    let product = product();
    let code: Vec<(&Source, String)> = product
        .iter()
        .map(|source| (source, source.code_lines().join("\n")))
        .collect();
    let is_small = |source: &&Source| !is_root(source) && source.code_lines().len() < SMALL_LINES;
    let small: Vec<&Source> = product.iter().filter(is_small).collect();
    let mut lonely = Vec::new();
    for source in small {
        let stem = source
            .path
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches(".rs");
        let named = format!("{stem}::");
        let reads = |(other, text): &&(&Source, String)| {
            other.path != source.path
                && !is_root(other)
                && text.match_indices(&named).any(|(at, _)| {
                    let before = text[..at].chars().next_back();
                    !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
                })
        };
        let readers: Vec<&(&Source, String)> = code.iter().filter(reads).collect();
        if let [(only, _)] = readers.as_slice()
            && room(&only.path) == room(&source.path)
        {
            lonely.push(format!("{}: belongs into {}, its only reader", source.path, only.path));
        }
    }
    expect_none(&lonely);
}

/// The words of a name or a heading, without endings of the plural and without small words.
fn words_of(text: &str) -> BTreeSet<String> {
    const SMALL: [&str; 12] = [
        "the", "a", "of", "and", "in", "to", "for", "on", "by", "with", "what", "its",
    ];
    let words = text.split(|letter: char| !letter.is_alphabetic());
    let words = words.map(str::to_lowercase).filter(|word| !word.is_empty());
    let words = words.filter(|word| !SMALL.contains(&word.as_str()));
    words
        .map(|word| word.trim_end_matches('s').to_owned())
        .collect()
}

/// The headings of a file whose section is long and shares no word with the file's name.
fn foreign_sections(source: &Source) -> Vec<String> {
    let name = source
        .path
        .trim_end_matches("/mod.rs")
        .trim_end_matches(".rs");
    let own = words_of(name.rsplit('/').next().unwrap_or(name));
    let mut sections: Vec<(&str, usize)> = Vec::new();
    let mut code = source.code_lines().into_iter().peekable();
    for line in source.text.lines() {
        if let Some(heading) = line.trim().strip_prefix("// ----") {
            sections.push((heading.trim_matches(['-', ' ']), 0));
        } else if code.next_if(|next| std::ptr::eq(*next, line)).is_some()
            && let Some((_, lines)) = sections.last_mut()
        {
            *lines += 1;
        }
    }
    let is_foreign = |(heading, lines): &&(&str, usize)| {
        *lines >= SECTION_LINES_MAX && words_of(heading).is_disjoint(&own)
    };
    let foreign = sections.iter().filter(is_foreign);
    foreign
        .map(|(heading, lines)| format!("{}: {heading}, {lines} lines", source.path))
        .collect()
}

#[test]
fn a_long_section_of_another_subject_is_a_file() {
    let found: Vec<String> = product().iter().flat_map(foreign_sections).collect();
    expect_none(&found);
    let long = "let a = 1;\n".repeat(SECTION_LINES_MAX);
    let text = format!("// ---- Readers\n\n{long}\n// ---- Writer\n\n{long}");
    let source = Source {
        path: "src/store/writer.rs".into(),
        text,
    };
    assert_eq!(foreign_sections(&source), ["src/store/writer.rs: Readers, 60 lines"]);
}

/// Whether a statement binds several names, each to a value of its own, in one tuple.
fn binds_a_tuple(line: &str) -> bool {
    let Some((names, _)) = line
        .trim()
        .strip_prefix("let (")
        .and_then(|rest| rest.split_once(") = ("))
    else {
        return false;
    };
    let is_name = |name: &str| {
        let name = name.trim().trim_start_matches("mut ");
        !name.is_empty()
            && name
                .chars()
                .all(|letter| letter.is_alphanumeric() || letter == '_')
    };
    names.contains(',') && names.split(',').all(is_name)
}

#[test]
fn each_value_is_bound_on_a_line_of_its_own() {
    let mut found = Vec::new();
    for source in rust(&["src"]) {
        let lines = source
            .text
            .lines()
            .enumerate()
            .filter(|(_, line)| binds_a_tuple(line));
        found.extend(lines.map(|(at, line)| format!("{}:{}: {line}", source.path, at + 1)));
    }
    expect_none(&found);
    assert!(binds_a_tuple("    let (a, mut b) = (one(), 2);"));
    assert!(!binds_a_tuple("let (a, b) = pair();") && !binds_a_tuple("let (a,) = (1,);"));
}

#[test]
fn nothing_else_grows_unnoticed() {
    let product = product();
    let lines: Vec<&str> = product.iter().flat_map(Source::code_lines).collect();
    let text = |file: &str| std::fs::read_to_string(root().join(file)).unwrap();
    let crates = text("Cargo.lock").matches("[[package]]").count();
    expect_at_most("crates in the lock", crates, CRATES_MAX);
    let names = text("systemd/bhav.env");
    let settings: BTreeSet<&str> = names
        .lines()
        .filter_map(|line| line.trim_start_matches(['#', ' ']).split_once('='))
        .map(|(name, _)| name)
        .filter(|name| {
            ["BHAV_", "BROKER", "JWT_"]
                .iter()
                .any(|start| name.starts_with(start))
        })
        .collect();
    expect_at_most("settings", settings.len(), SETTINGS_MAX);
    let threads = lines.iter().filter(|line| line.contains("threads::spawn("));
    expect_at_most("places that start a thread", threads.count(), THREADS_MAX);
}
