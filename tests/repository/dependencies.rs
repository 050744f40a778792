//! The program's dependencies against `deny.toml`: licences, banned crates, duplicate versions, and
//! registries. `cargo deny`, if installed, checks the same and advisories (`.ci/run`).

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use toml::Table;

use crate::support::source::root;

/// A crate of the graph.
struct Crate {
    name: String,
    version: String,
    licence: String,
}

fn table(path: &str) -> Table {
    std::fs::read_to_string(root().join(path))
        .unwrap()
        .parse()
        .unwrap()
}

fn policy() -> Table {
    table("deny.toml")
}

/// The texts at `section.key`, or the members `crate` of the tables there.
fn listed(policy: &Table, section: &str, key: &str) -> BTreeSet<String> {
    let entries = policy[section][key].as_array().unwrap();
    let text = |entry: &toml::Value| {
        entry
            .get("crate")
            .unwrap_or(entry)
            .as_str()
            .unwrap()
            .to_owned()
    };
    entries.iter().map(text).collect()
}

/// The crates built for the first platform of the policy, without those that only tests need.
/// `cargo metadata` would also name crates that no feature switches on. On a machine that has built
/// the program without its features only, cargo downloads the crates of the others here.
fn graph(policy: &Table) -> Vec<Crate> {
    let platform = policy["graph"]["targets"][0].as_str().unwrap();
    let mut command = Command::new(env!("CARGO"));
    command.args([
        "tree",
        "--locked",
        "--target",
        platform,
        "--edges=normal,build",
    ]);
    let features = listed(policy, "graph", "features")
        .into_iter()
        .collect::<Vec<_>>()
        .join(",");
    command.arg(format!("--features={features}"));
    command.args(["--prefix=none", "--no-dedupe", "--format={p};{l}"]);
    let output = command
        .current_dir(root())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: BTreeSet<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let of = |line: &str| {
        let (package, licence) = line.rsplit_once(';').unwrap();
        let mut words = package.split(' ');
        let (name, version) = (words.next().unwrap(), words.next().unwrap());
        let version = version.strip_prefix('v').unwrap();
        Crate {
            name: name.into(),
            version: version.into(),
            licence: licence.into(),
        }
    };
    lines.into_iter().map(of).collect()
}

#[test]
fn licences_are_allowed_ones() {
    let policy = policy();
    let (allowed, mut used) = (listed(&policy, "licenses", "allow"), BTreeSet::new());
    let graph = graph(&policy);
    assert!(graph.len() > 100, "{}", graph.len());
    let mut refused = Vec::new();
    for Crate {
        name,
        version,
        licence,
    } in &graph
    {
        // Lax: `/` is an old spelling of OR.
        let expression = spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX);
        let expression = expression.unwrap_or_else(|error| panic!("{name}: {error}"));
        let is_met = expression.evaluate(|wanted| {
            let is_allowed = allowed.contains(&wanted.to_string());
            if is_allowed {
                used.insert(wanted.to_string());
            }
            is_allowed
        });
        if !is_met {
            refused.push(format!("{name} {version}: {licence}"));
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
    assert_eq!(used, allowed, "allowed and not needed");
}

/// Banned crates that the named crates may depend on nevertheless.
fn wrapped(policy: &Table) -> BTreeMap<String, BTreeSet<String>> {
    let entries = policy["bans"]["deny"].as_array().unwrap();
    let text = |value: &toml::Value| value.as_str().unwrap().to_owned();
    let wrappers = |entry: &toml::Value| {
        let by = entry
            .get("wrappers")?
            .as_array()?
            .iter()
            .map(text)
            .collect();
        Some((text(&entry["crate"]), by))
    };
    entries.iter().filter_map(wrappers).collect()
}

/// Checks all locked crates, for tests and other platforms too.
#[test]
fn no_crate_is_locked_that_is_banned_or_from_elsewhere() {
    let policy = policy();
    let banned = listed(&policy, "bans", "deny");
    let wrapped = wrapped(&policy);
    let registries = listed(&policy, "sources", "allow-registry");
    let lock = table("Cargo.lock");
    let packages = lock["package"].as_array().unwrap();
    assert!(packages.len() > 100, "{}", packages.len());
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let is_wrapped = wrapped.contains_key(name);
        assert!(is_wrapped || !banned.contains(name), "{name} is banned by deny.toml");
        let needs = package.get("dependencies").and_then(toml::Value::as_array);
        for needed in needs.into_iter().flatten().filter_map(toml::Value::as_str) {
            let needed = needed.split(' ').next().unwrap();
            let may = wrapped.get(needed).is_none_or(|by| by.contains(name));
            assert!(may, "{name} may not depend on {needed}");
        }
        // Our own crate has none.
        if let Some(source) = package.get("source").and_then(toml::Value::as_str) {
            let registry = source.strip_prefix("registry+").unwrap_or(source);
            assert!(registries.contains(registry), "{name} comes from {source}");
        } else {
            assert_eq!(name, "bhav");
        }
    }
}

/// An exception for a crate that is no longer locked fails too.
#[test]
fn older_versions_beside_newer_ones_are_known() {
    let policy = policy();
    let excepted = listed(&policy, "bans", "skip");
    let mut versions: BTreeMap<String, BTreeSet<Vec<u32>>> = BTreeMap::new();
    let number = |version: &str| -> Vec<u32> {
        version
            .split(['.', '-', '+'])
            .map_while(|part| part.parse().ok())
            .collect()
    };
    for one in graph(&policy) {
        versions
            .entry(one.name)
            .or_default()
            .insert(number(&one.version));
    }
    let spelled = |name: &str, version: &Vec<u32>| {
        let parts: Vec<String> = version.iter().map(u32::to_string).collect();
        format!("{name}@{}", parts.join("."))
    };
    for (name, mut versions) in versions {
        versions.pop_last();
        for older in versions.iter().map(|version| spelled(&name, version)) {
            assert!(excepted.contains(&older), "{older} stands beside a newer one");
        }
    }
    let lock = table("Cargo.lock");
    let packages = lock["package"].as_array().unwrap().iter();
    let of = |package: &toml::Value, member: &str| package[member].as_str().unwrap().to_owned();
    let locked: BTreeSet<String> = packages
        .map(|one| format!("{}@{}", of(one, "name"), of(one, "version")))
        .collect();
    let gone: Vec<&String> = excepted.difference(&locked).collect();
    assert!(gone.is_empty(), "excepted in deny.toml and not there: {gone:?}");
}
