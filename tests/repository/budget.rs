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

/// The files of the product, without those that are tests.
fn product() -> Vec<Source> {
    let is_test = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let stem = name.trim_end_matches(".rs");
        ["tests", "testing"].contains(&stem)
            || stem.ends_with("_tests")
            || stem.ends_with("_model")
            || stem.contains("test_server")
            || path.contains("/conformance/")
    };
    rust(&["src"]).into_iter().filter(|source| !is_test(&source.path)).collect()
}

fn room(path: &str) -> &str {
    word(path.trim_start_matches("src/"))
}

fn is_root(source: &Source) -> bool {
    ["/mod.rs", "/lib.rs", "/main.rs"].iter().any(|name| source.path.ends_with(name))
}

fn expect_at_most(what: &str, found: usize, most: usize) {
    assert!(found <= most, "{what}: {found}, at most {most}: take one away, or say why not");
}

#[test]
fn a_small_file_has_more_than_one_reader() {
    let product = product();
    let code: Vec<(&Source, String)> =
        product.iter().map(|source| (source, source.code_lines().join("\n"))).collect();
    let is_small = |source: &&Source| !is_root(source) && source.code_lines().len() < SMALL_LINES;
    let small: Vec<&Source> = product.iter().filter(is_small).collect();
    let mut lonely = Vec::new();
    for source in small {
        let stem = source.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
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
        .filter(|name| ["BHAV_", "BROKER", "JWT_"].iter().any(|start| name.starts_with(start)))
        .collect();
    expect_at_most("settings", settings.len(), SETTINGS_MAX);
    let threads = lines.iter().filter(|line| line.contains("threads::spawn("));
    expect_at_most("places that start a thread", threads.count(), THREADS_MAX);
}
