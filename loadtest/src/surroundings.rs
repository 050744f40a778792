//! What a result depends on besides the code: machine, kernel, compiler, versions, commit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

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
pub fn prepare(bhav: Option<PathBuf>, is_built: bool) -> Result<Programs> {
    let own = std::env::current_exe().context("find the own program")?;
    let folder = own
        .parent()
        .context("the own program has no folder")?
        .to_owned();
    if !is_built {
        build(&["--release", "--locked", "--workspace"], "Cargo.toml")?;
        // A workspace of its own, put beside the others. Its lock file may follow: it needs
        // whatever bhav has come to depend on.
        let target = folder
            .parent()
            .context("the programs' folder has no parent")?;
        build(&["--release", "--target-dir", &target.to_string_lossy()], "seed/Cargo.toml")?;
    }
    let bhav = bhav.map_or_else(build_bhav, Ok)?;
    let nginx = nginx::find();
    let work_folder = folder.join("loadtest-work");
    fs::create_dir_all(&work_folder).context("create the work folder")?;
    Ok(Programs {
        folder,
        bhav,
        nginx,
        work_folder,
    })
}

fn build_bhav() -> Result<PathBuf> {
    build(&["--profile", "dist", "--locked", "--bin", "bhav"], "../Cargo.toml")?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| Path::new(LOADTEST_FOLDER).join("../target"));
    Ok(target.join("dist/bhav"))
}

fn build(what: &[&str], manifest: &str) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // What `cargo run` says of the driver would make build scripts run again, and all after them.
    for (name, _) in std::env::vars_os() {
        let bytes = name.as_encoded_bytes();
        if bytes.starts_with(b"CARGO_PKG_") || bytes.starts_with(b"CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command.arg("build").args(what).arg("--manifest-path");
    let status = command
        .arg(Path::new(LOADTEST_FOLDER).join(manifest))
        .status();
    ensure!(status.context("run cargo")?.success(), "cargo build of {manifest} failed");
    Ok(())
}

/// Number of cores the run may use.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Busy share of the machine over one second in which the driver does nothing: how quiet the
/// machine is before the run.
pub fn busy_share_at_rest() -> Result<f64> {
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
        ("kernel", after("/proc/sys/kernel/osrelease", "")),
        ("processor", after("/proc/cpuinfo", "model name")),
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
        &[
            "-C",
            LOADTEST_FOLDER,
            "status",
            "--porcelain",
            "--",
            ":/",
            ":(exclude)RESULTS.md",
        ],
    );
    match changes.is_empty() {
        true => short,
        false => format!("{short} with changes"),
    }
}

/// What follows a name in the first line of a file that begins with it.
fn after(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let rest = text
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap_or_default();
    rest.trim_start_matches([' ', '\t', ':']).to_owned()
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
    let versions = lock.split("[[package]]\n").filter_map(|package| {
        let (name, rest) = package
            .strip_prefix("name = \"")?
            .split_once("\"\nversion = \"")?;
        let (version, _) = rest.split_once('"')?;
        NAMED_CRATES
            .contains(&name)
            .then(|| format!("{name} {version}"))
    });
    versions.collect::<Vec<_>>().join(", ")
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
