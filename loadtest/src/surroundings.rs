//! What a result depends on besides the code: machine, kernel, compiler, versions, commit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::error::Error;
use crate::harness::Programs;
use crate::nginx;
use crate::process::machine_busy_us;

/// Folder of this workspace.
const LOADTEST_FOLDER: &str = env!("CARGO_MANIFEST_DIR");

/// Crates whose versions a result names.
const NAMED_CRATES: [&str; 6] = ["may", "may_minihttp", "actix-web", "axum", "hyper", "tokio"];

/// Where `RESULTS.md` goes.
pub fn results_file() -> PathBuf {
    Path::new(LOADTEST_FOLDER).join("RESULTS.md")
}

/// Builds what is needed (an up-to-date build costs nothing) and finds the programs. `is_built`
/// says that the generator, the peers and the seeding program are beside the driver.
pub fn prepare(bhav: Option<PathBuf>, is_built: bool) -> Result<Programs, Error> {
    let own = std::env::current_exe().map_err(Error::io("find the own program"))?;
    let folder = own.parent().ok_or(Error::invalid("the own program has no folder"))?.to_owned();
    if !is_built {
        let manifest = Path::new(LOADTEST_FOLDER).join("Cargo.toml");
        build(&["--release", "--locked", "--workspace"], &manifest)?;
        build_seed(&folder)?;
    }
    let bhav = bhav.map_or_else(build_bhav, Ok)?;
    let nginx = nginx::find();
    let work_folder = folder.join("loadtest-work");
    fs::create_dir_all(&work_folder).map_err(Error::io("create the work folder"))?;
    Ok(Programs { folder, bhav, nginx, work_folder })
}

/// Puts the seeding program, which is a workspace of its own, beside the others. Its lock file may
/// follow: it needs whatever bhav has come to depend on.
fn build_seed(folder: &Path) -> Result<(), Error> {
    let manifest = Path::new(LOADTEST_FOLDER).join("seed").join("Cargo.toml");
    let target = folder.parent().ok_or(Error::invalid("the programs' folder has no parent"))?;
    build(&["--release", "--target-dir", &target.to_string_lossy()], &manifest)
}

fn build_bhav() -> Result<PathBuf, Error> {
    let root = Path::new(LOADTEST_FOLDER)
        .parent()
        .ok_or(Error::invalid("this workspace has no parent folder"))?;
    build(&["--profile", "dist", "--locked", "--bin", "bhav"], &root.join("Cargo.toml"))?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("dist").join("bhav"))
}

fn build(what: &[&str], manifest: &Path) -> Result<(), Error> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // What `cargo run` says of the driver would make build scripts run again, and all after them.
    for (name, _) in std::env::vars_os() {
        let bytes = name.as_encoded_bytes();
        if bytes.starts_with(b"CARGO_PKG_") || bytes.starts_with(b"CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    let status = command
        .arg("build")
        .args(what)
        .arg("--manifest-path")
        .arg(manifest)
        .status()
        .map_err(Error::io("run cargo"))?;
    if !status.success() {
        return Err(Error::Invalid(format!("cargo build of {} failed", manifest.display())));
    }
    Ok(())
}

/// Number of cores the run may use.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Busy share of the machine over one second in which the driver does nothing: how quiet the
/// machine is before the run.
pub fn busy_share_at_rest() -> Result<f64, Error> {
    let before_us = machine_busy_us()?;
    thread::sleep(Duration::from_secs(1));
    Ok((machine_busy_us()? - before_us) / 1e6 / cores() as f64)
}

/// Date and commit: what every section says of itself.
pub fn date_and_commit() -> [(&'static str, String); 2] {
    let date = jiff::Timestamp::now().strftime("%F %R").to_string();
    [("date (UTC)", date), ("commit", commit())]
}

/// Name and value of each circumstance beside date and commit.
pub fn describe(programs: &Programs) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("kernel", first_line("/proc/sys/kernel/osrelease")),
        ("processor", processor()),
        ("cores", cores().to_string()),
        ("rustc", output_of("rustc", &["--version"])),
    ];
    if let Some(nginx) = &programs.nginx {
        facts.push(("nginx", output_of(&nginx.to_string_lossy(), &["-v"])));
    }
    facts.push(("crates", crate_versions(include_str!("../Cargo.lock"))));
    facts
}

fn commit() -> String {
    let short = output_of("git", &["-C", LOADTEST_FOLDER, "rev-parse", "--short", "HEAD"]);
    // RESULTS.md is what a run writes, so it does not make a tree dirty.
    let changes = output_of(
        "git",
        &["-C", LOADTEST_FOLDER, "status", "--porcelain", "--", ":/", ":(exclude)RESULTS.md"],
    );
    match changes.is_empty() {
        true => short,
        false => format!("{short} with changes"),
    }
}

fn processor() -> String {
    fs::read_to_string("/proc/cpuinfo")
        .unwrap_or_default()
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or_else(String::new, |rest| rest.trim_start_matches([' ', '\t', ':']).to_owned())
}

fn first_line(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

/// What a program prints, on whichever stream; empty if it cannot be run.
fn output_of(program: &str, arguments: &[&str]) -> String {
    let Ok(output) = Command::new(program).args(arguments).output() else {
        return String::new();
    };
    let printed = match output.stdout.is_empty() {
        true if output.status.success() => output.stderr,
        _ => output.stdout,
    };
    String::from_utf8_lossy(&printed).trim().to_owned()
}

fn crate_versions(lock: &str) -> String {
    let mut versions = Vec::new();
    let mut lines = lock.lines();
    while let Some(line) = lines.next() {
        let Some(name) = quoted_after(line, "name = ") else {
            continue;
        };
        if NAMED_CRATES.contains(&name)
            && let Some(version) = lines.next().and_then(|l| quoted_after(l, "version = "))
        {
            versions.push(format!("{name} {version}"));
        }
    }
    versions.join(", ")
}

fn quoted_after<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    Some(line.strip_prefix(key)?.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::crate_versions;

    #[test]
    fn versions_come_from_the_lock_file() {
        let lock = "[[package]]\nname = \"axum\"\nversion = \"0.8.9\"\n\n[[package]]\n\
                    name = \"axum-core\"\nversion = \"0.5.6\"\n";
        assert_eq!(crate_versions(lock), "axum 0.8.9");
    }
}
