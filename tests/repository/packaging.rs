//! The Debian package: every file in its description in `Cargo.toml` exists or is made by
//! `packaging/build-deb`, and no file that belongs to it is missing.

use std::fs;
use std::process::Command;

use toml::{Table, Value};

use crate::support::source::{below, root};

const MADE: &str = "target/package/";

fn manifest() -> Table {
    fs::read_to_string(root().join("Cargo.toml"))
        .unwrap()
        .parse()
        .unwrap()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Source, destination and mode of each file.
fn assets() -> Vec<[String; 3]> {
    let manifest = manifest();
    let listed = manifest["package"]["metadata"]["deb"]["assets"]
        .as_array()
        .unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let row = |row: &Value| {
        let row: Vec<String> = row.as_array().unwrap().iter().map(text).collect();
        row.try_into().unwrap()
    };
    listed.iter().map(row).collect()
}

#[test]
fn every_file_of_the_package_is_there_or_made() {
    let build = read("packaging/build-deb");
    let mut made = 0;
    for [source, dest, _] in assets() {
        assert!(dest.starts_with("usr/") || dest.starts_with("etc/bhav/"), "{dest}");
        if source == "target/release/bhav" {
            continue;
        }
        match source.strip_prefix(MADE) {
            Some(name) => {
                made += 1;
                let name = name.split('/').next().unwrap();
                let by = name.strip_suffix(".gz").unwrap_or(name);
                assert!(build.contains(&format!("$made/{by}")), "nothing makes {source}");
            }
            None => assert!(root().join(&source).is_file(), "{source} is missing"),
        }
    }
    assert!(made >= 5, "manual pages, three completions and notices, but {made}");
}

#[test]
fn everything_an_operator_needs_is_in_the_package() {
    let packaged: Vec<String> = assets().into_iter().map(|[source, ..]| source).collect();
    let ours: Vec<_> = ["systemd", "monitoring", "docs"]
        .into_iter()
        .flat_map(below)
        .collect();
    assert!(ours.len() >= 18);
    // The screen, and the programs that make the pictures, are only for the repository's own pages.
    let not_packaged = [
        "docs/images/make",
        "docs/images/status.svg",
        "docs/images/terminal",
    ];
    for file in ours {
        let tests_alerts = file.path.ends_with(".test.yml");
        let wanted = !tests_alerts && !not_packaged.contains(&file.path.as_str());
        assert_eq!(packaged.contains(&file.path), wanted, "{}", file.path);
    }
}

#[test]
fn settings_are_private_and_the_rest_is_readable() {
    for [source, dest, mode] in assets() {
        let wanted = match source.as_str() {
            "systemd/bhav.env" => "640",
            "target/release/bhav" => "755",
            _ => "644",
        };
        assert_eq!(mode, wanted, "{dest}");
    }
}

#[test]
fn the_changelog_begins_with_this_version() {
    let version = manifest()["package"]["version"]
        .as_str()
        .unwrap()
        .to_owned();
    let changelog = read("packaging/changelog");
    assert!(changelog.starts_with(&format!("bhav ({version}-")), "{changelog}");
    // What packaging/release asks for.
    let dated = format!("\n## [{version}] - 2");
    assert!(
        read("CHANGELOG.md").contains(&dated),
        "CHANGELOG.md has no dated heading {version}"
    );
}

#[test]
fn scripts_are_sound_shell() {
    for (shell, script) in [
        ("sh", "scripts/postinst"),
        ("sh", "scripts/prerm"),
        ("sh", "scripts/postrm"),
        ("bash", "build-deb"),
        ("bash", "notices"),
        ("bash", "image"),
        ("bash", "release"),
        ("bash", "test-deb"),
    ] {
        let path = root().join("packaging").join(script);
        let checked = Command::new(shell).arg("-n").arg(&path).output().unwrap();
        assert!(checked.status.success(), "{script}: {checked:?}");
        assert!(read(&format!("packaging/{script}")).contains("set -e"), "{script}");
    }
}

/// So its files have the names that `--keep` counts, and no shell removes other files.
#[test]
fn the_backup_unit_leaves_names_and_removal_to_the_program() {
    let unit = read("systemd/bhav-backup.service");
    let run: Vec<&str> = unit
        .lines()
        .filter(|line| line.starts_with("Exec"))
        .collect();
    let [run] = run[..] else { panic!("{run:?}") };
    let line = run
        .strip_prefix("ExecStart=/usr/bin/")
        .unwrap()
        .split_whitespace();
    let matches = bhav::cli::command().try_get_matches_from(line).unwrap();
    let (name, given) = matches.subcommand().unwrap();
    assert_eq!(name, "backup");
    assert_eq!(given.get_one::<u32>("keep"), Some(&30));
    let to: &std::path::PathBuf = given.get_one("to").unwrap();
    assert!(unit.contains(&format!("ReadWritePaths={}\n", to.display())), "{unit}");
}
