//! The dependency graph against `deny.toml`: licences, crates that may not be in it, versions that
//! stand beside each other, and where crates come from. Where `cargo deny` can be had it checks the
//! same, and advisories (`.ci/run`).

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};
use toml::Table;

use crate::support::source::root;

/// A crate of the graph.
struct Crate {
    name: String,
    version: String,
    licence: String,
    /// `None` for our own.
    source: Option<String>,
}

fn policy() -> Table {
    std::fs::read_to_string(root().join("deny.toml")).unwrap().parse().unwrap()
}

/// The texts at `section.key`, or the members `crate` of the tables there.
fn listed(policy: &Table, section: &str, key: &str) -> BTreeSet<String> {
    let entries = policy[section][key].as_array().unwrap();
    let text =
        |entry: &toml::Value| entry.get("crate").unwrap_or(entry).as_str().unwrap().to_owned();
    entries.iter().map(text).collect()
}

/// What is built for the first platform of the policy, tests and benches included. No network.
fn graph(policy: &Table) -> Vec<Crate> {
    let platform = policy["graph"]["targets"][0].as_str().unwrap();
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--format-version=1", "--offline", "--locked", "--filter-platform"]);
    let output = command.arg(platform).current_dir(root()).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = sonic_rs::from_slice(&output.stdout).unwrap();
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let used: BTreeSet<&str> = nodes.iter().map(|node| node["id"].as_str().unwrap()).collect();
    let text = |package: &Value, member: &str| package[member].as_str().map(str::to_owned);
    let packages = metadata["packages"].as_array().unwrap().iter();
    let packages = packages.filter(|package| used.contains(package["id"].as_str().unwrap()));
    let of = |package: &Value| Crate {
        name: text(package, "name").unwrap(),
        version: text(package, "version").unwrap(),
        licence: text(package, "license").unwrap_or_default(),
        source: text(package, "source"),
    };
    packages.map(of).collect()
}

/// Whether an SPDX expression can be met with what is allowed, which is then noted as used. `/` is
/// an old spelling of OR.
fn is_met(expression: &str, allowed: &BTreeSet<String>, used: &mut BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let spaced = spaced.replace(" WITH ", "+WITH+");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (met, rest) = either(&words, allowed, used);
    met && rest.is_empty()
}

type Parsed<'a> = (bool, &'a [&'a str]);

fn either<'a>(
    words: &'a [&'a str],
    allowed: &BTreeSet<String>,
    used: &mut BTreeSet<String>,
) -> Parsed<'a> {
    let (mut met, mut rest) = all(words, allowed, used);
    while let ["OR", more @ ..] = rest {
        let (other, after) = all(more, allowed, used);
        (met, rest) = (met || other, after);
    }
    (met, rest)
}

fn all<'a>(
    words: &'a [&'a str],
    allowed: &BTreeSet<String>,
    used: &mut BTreeSet<String>,
) -> Parsed<'a> {
    let (mut met, mut rest) = one(words, allowed, used);
    while let ["AND", more @ ..] = rest {
        let (other, after) = one(more, allowed, used);
        (met, rest) = (met && other, after);
    }
    (met, rest)
}

fn one<'a>(
    words: &'a [&'a str],
    allowed: &BTreeSet<String>,
    used: &mut BTreeSet<String>,
) -> Parsed<'a> {
    match words {
        ["(", rest @ ..] => {
            let (met, rest) = either(rest, allowed, used);
            (met, rest.strip_prefix(&[")"]).unwrap_or(rest))
        }
        [name, rest @ ..] => {
            let met = allowed.contains(*name);
            if met {
                used.insert((*name).to_owned());
            }
            (met, rest)
        }
        [] => (false, words),
    }
}

#[test]
fn licences_are_allowed_ones() {
    let policy = policy();
    let (allowed, mut used) = (listed(&policy, "licenses", "allow"), BTreeSet::new());
    let graph = graph(&policy);
    assert!(graph.len() > 100, "{}", graph.len());
    let refused: Vec<String> = graph
        .iter()
        .filter(|one| !is_met(&one.licence, &allowed, &mut used))
        .map(|one| format!("{} {}: {}", one.name, one.version, one.licence))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
    assert_eq!(used, allowed, "allowed and not needed");
}

#[test]
fn an_expression_is_met_as_it_is_written() {
    let allowed = BTreeSet::from(["MIT", "ISC", "A+WITH+B"].map(str::to_owned));
    let met = |expression| is_met(expression, &allowed, &mut BTreeSet::new());
    for expression in [
        "MIT",
        "MIT/GPL-3.0",
        "GPL-3.0 OR MIT",
        "(GPL-3.0 OR ISC) AND MIT",
        "A WITH B",
        "ISC OR X AND Y",
    ] {
        assert!(met(expression), "{expression}");
    }
    for expression in
        ["", "GPL-3.0", "MIT AND GPL-3.0", "MIT WITH B", "(MIT OR X) AND Y", "MIT ISC"]
    {
        assert!(!met(expression), "{expression}");
    }
}

#[test]
fn no_crate_is_there_that_is_banned_or_from_elsewhere() {
    let policy = policy();
    let banned = listed(&policy, "bans", "deny");
    let registries = listed(&policy, "sources", "allow-registry");
    for one in graph(&policy) {
        assert!(!banned.contains(&one.name), "{} is banned by deny.toml", one.name);
        if let Some(source) = &one.source {
            let registry = source.strip_prefix("registry+").unwrap_or(source);
            assert!(registries.contains(registry), "{} comes from {source}", one.name);
        }
    }
}

/// An exception that is no longer needed fails too.
#[test]
fn older_versions_beside_newer_ones_are_known() {
    let policy = policy();
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in graph(&policy) {
        versions.entry(one.name).or_default().push(one.version);
    }
    let number = |version: &String| {
        let digits = version.split(['.', '-', '+']).map_while(|part| part.parse::<u32>().ok());
        digits.collect::<Vec<_>>()
    };
    let mut older = BTreeSet::new();
    for (name, mut versions) in versions {
        versions.sort_by_key(number);
        versions.pop();
        older.extend(versions.into_iter().map(|version| format!("{name}@{version}")));
    }
    assert_eq!(older, listed(&policy, "bans", "skip"), "found, and excepted in deny.toml");
}
