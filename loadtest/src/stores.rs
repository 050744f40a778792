//! A PostgreSQL and a Valkey or Redis server of the driver's own, without the rights of root, on
//! Unix sockets.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::process::{Process, not_serving};
use crate::servers::empty_folder;
use crate::wait;

/// Nobody: PostgreSQL refuses root.
const UNPRIVILEGED: u32 = 65_534;
/// The name that a client gives the socket.
pub const SOCKET: &str = ".s.PGSQL.5432";
const START_DEADLINE: Duration = Duration::from_secs(30);
const INSTALLED: &str = "/usr/lib/postgresql";
const VALKEY: [&str; 2] = ["valkey-server", "redis-server"];

/// Of every service on a server that nodes may share.
pub const SIGNING_KEY: &str = "a signing key for measurements alone, of 64 bytes and some more.";

/// A running PostgreSQL. Dropping it ends it and deletes its files.
pub struct Postgres {
    /// Its socket is in it.
    pub folder: PathBuf,
    bin: PathBuf,
    process: Option<Process>,
}

impl Postgres {
    /// Makes a cluster and starts it, on this machine's disk. Commits are synced as in earnest or
    /// not at all.
    pub fn start(name: &str, is_synced: bool) -> Result<Self> {
        // Short, for the names of sockets are.
        let folder = std::env::temp_dir().join(format!("bhav-{name}-{}", std::process::id()));
        empty_folder(&folder)?;
        let bin = bin().context("PostgreSQL is missing (package postgresql)")?;
        let mut server = Self {
            folder,
            bin,
            process: None,
        };
        if is_root() {
            let own = Some(UNPRIVILEGED);
            chown(&server.folder, own, own).context("give PostgreSQL its folder")?;
        }
        let data = server.folder.join("data");
        let mut initdb = server.unprivileged("initdb");
        initdb.args([
            "-U",
            "bhav",
            "-A",
            "trust",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
        ]);
        printed(initdb.arg("-D").arg(&data))?;
        let mut command = server.unprivileged("postgres");
        let sockets = format!("unix_socket_directories={}", server.folder.display());
        command
            .arg("-D")
            .arg(&data)
            .args(["-c", "listen_addresses=", "-c", &sockets]);
        if !is_synced {
            command.args(["-c", "fsync=off"]);
        }
        server.process = Some(Process::start("postgres", command, &server.folder)?);
        let ready = || Ok(server.query("SELECT 1").ok());
        wait::until(START_DEADLINE, ready)?.with_context(|| not_serving("postgres"))?;
        Ok(server)
    }

    /// What a statement answers.
    pub fn query(&self, statement: &str) -> Result<String> {
        let mut psql = Command::new(self.bin.join("psql"));
        psql.args([
            "-X", "-q", "-A", "-t", "-d", "postgres", "-U", "bhav", "-c", statement, "-h",
        ]);
        printed(psql.arg(&self.folder))
    }

    fn unprivileged(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.current_dir(&self.folder);
        if is_root() {
            command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
        }
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.process = None;
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A Valkey or Redis server with nothing on disk, and the URL of its socket, which is in `folder`.
pub fn valkey(folder: &Path) -> Result<(Process, String)> {
    let socket = folder.join("valkey.sock");
    let is_there = |program: &&str| Command::new(program).arg("--version").output().is_ok();
    let program = VALKEY.into_iter().find(is_there);
    let program =
        program.context("valkey-server or redis-server is missing (package so called)")?;
    let mut command = Command::new(program);
    command
        .args([
            "--port",
            "0",
            "--save",
            "",
            "--appendonly",
            "no",
            "--unixsocket",
        ])
        .arg(&socket);
    let process = Process::start("valkey", command, folder)?;
    let ready = || Ok(UnixStream::connect(&socket).ok());
    wait::until(START_DEADLINE, ready)?.with_context(|| not_serving("valkey"))?;
    Ok((process, format!("unix:{}", socket.display())))
}

/// The URL of a PostgreSQL whose socket is there.
pub fn url(folder: &Path) -> String {
    format!("postgres:///postgres?host={}&user=bhav", folder.display())
}

fn is_root() -> bool {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// The programs of the newest version that is installed.
fn bin() -> Option<PathBuf> {
    let versions = fs::read_dir(INSTALLED)
        .ok()?
        .filter_map(Result::ok)
        .map(|entry| entry.path());
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions
        .filter(|path| path.join("bin/postgres").exists())
        .max_by_key(number)?;
    Some(newest.join("bin"))
}

/// What a program printed that ended well.
pub fn printed(command: &mut Command) -> Result<String> {
    let output = command.output().context("run a program")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let program = command.get_program().to_string_lossy();
    ensure!(output.status.success(), "{program}: {}", text(&output.stderr));
    Ok(text(&output.stdout))
}
