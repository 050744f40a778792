//! A PostgreSQL and a Valkey or Redis server of the driver's own, without the rights of root, on
//! Unix sockets.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::error::Error;
use crate::process::Process;
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
    pub fn start(name: &str, is_synced: bool) -> Result<Self, Error> {
        // Short, for the names of sockets are.
        let folder = std::env::temp_dir().join(format!("bhav-{name}-{}", std::process::id()));
        empty_folder(&folder)?;
        let bin = bin().ok_or(Error::invalid("PostgreSQL is missing (package postgresql)"))?;
        let mut server = Self { folder, bin, process: None };
        if is_root() {
            let own = Some(UNPRIVILEGED);
            chown(&server.folder, own, own).map_err(Error::io("give PostgreSQL its folder"))?;
        }
        let data = server.folder.join("data");
        let mut initdb = server.unprivileged("initdb");
        initdb.args(["-U", "bhav", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"]);
        printed(initdb.arg("-D").arg(&data))?;
        let mut command = server.unprivileged("postgres");
        let sockets = format!("unix_socket_directories={}", server.folder.display());
        command.arg("-D").arg(&data).args(["-c", "listen_addresses=", "-c", &sockets]);
        if !is_synced {
            command.args(["-c", "fsync=off"]);
        }
        server.process = Some(Process::start("postgres", command, &server.folder)?);
        let ready = || Ok(server.query("SELECT 1").ok());
        wait::until(START_DEADLINE, ready)?.ok_or(Error::NotServing("postgres".into()))?;
        Ok(server)
    }

    /// What a statement answers.
    pub fn query(&self, statement: &str) -> Result<String, Error> {
        let mut psql = Command::new(self.bin.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-d", "postgres", "-U", "bhav", "-c", statement, "-h"]);
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
pub fn valkey(folder: &std::path::Path) -> Result<(Process, String), Error> {
    let socket = folder.join("valkey.sock");
    let is_there = |program: &&str| Command::new(program).arg("--version").output().is_ok();
    let none = Error::invalid("valkey-server or redis-server is missing (package of that name)");
    let mut command = Command::new(VALKEY.into_iter().find(is_there).ok_or(none)?);
    command.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]);
    let process = Process::start(
        "valkey",
        {
            command.arg(&socket);
            command
        },
        folder,
    )?;
    let ready = || Ok(UnixStream::connect(&socket).ok());
    wait::until(START_DEADLINE, ready)?.ok_or(Error::NotServing("valkey".into()))?;
    Ok((process, format!("unix:{}", socket.display())))
}

/// The URL of a PostgreSQL whose socket is there.
pub fn url(folder: &std::path::Path) -> String {
    format!("postgres:///postgres?host={}&user=bhav", folder.display())
}

fn is_root() -> bool {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// The programs of the newest version that is installed.
fn bin() -> Option<PathBuf> {
    let versions = fs::read_dir(INSTALLED).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.filter(|path| path.join("bin/postgres").exists()).max_by_key(number)?;
    Some(newest.join("bin"))
}

/// What a program printed that ended well.
pub fn printed(command: &mut Command) -> Result<String, Error> {
    let output = command.output().map_err(Error::io("run a program"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => {
            let program = command.get_program().to_string_lossy();
            Err(Error::Invalid(format!("{program}: {}", text(&output.stderr))))
        }
    }
}
