//! A PostgreSQL server of the driver's own, without the rights of root, on a Unix socket.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::link::Address;
use crate::error::Error;
use crate::process::Process;
use crate::wait;

/// Nobody: PostgreSQL refuses root.
const UNPRIVILEGED: u32 = 65_534;
/// The name that a client gives the socket.
pub const SOCKET: &str = ".s.PGSQL.5432";
const START_DEADLINE: Duration = Duration::from_secs(30);
const INSTALLED: &str = "/usr/lib/postgresql";

/// Where a server keeps its files.
#[derive(Clone, Copy, Default)]
pub enum Disk {
    /// On the machine's disk, synced at no commit: kills of processes are the worst that comes.
    #[default]
    Unsynced,
    /// The same on a disk of so many MiB. That takes the rights of root.
    Small(u32),
    /// On the machine's disk, synced at each commit, as in earnest.
    Synced,
}

/// A server, running or not.
pub struct Postgres {
    folder: PathBuf,
    bin: PathBuf,
    disk: Disk,
    process: Option<Process>,
    is_mounted: bool,
}

impl Postgres {
    /// Makes a cluster in `folder`, which must not exist, and starts it.
    pub fn start(folder: PathBuf, disk: Disk) -> Result<Self, Error> {
        let bin = bin().ok_or(Error::invalid("PostgreSQL is missing (package postgresql)"))?;
        fs::create_dir(&folder).map_err(Error::io("make a folder for PostgreSQL"))?;
        let mut server = Self { folder, bin, disk, process: None, is_mounted: false };
        if let Disk::Small(mib) = disk {
            let mut mount = Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"]);
            ran(mount.arg(&server.folder), "mount")?;
            server.is_mounted = true;
        }
        if is_root() {
            let own = Some(UNPRIVILEGED);
            chown(&server.folder, own, own).map_err(Error::io("give PostgreSQL its folder"))?;
        }
        let mut initdb = server.unprivileged("initdb");
        initdb.args(["-U", "bhav", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"]);
        ran(initdb.arg("-D").arg(server.data()), "initdb")?;
        server.launch()?;
        Ok(server)
    }

    /// Starts it on what is there, and waits until it answers.
    pub fn launch(&mut self) -> Result<(), Error> {
        let _ = fs::remove_file(self.data().join("postmaster.pid"));
        let mut command = self.unprivileged("postgres");
        let sockets = format!("unix_socket_directories={}", self.folder.display());
        command.arg("-D").arg(self.data());
        // Otherwise its own defaults.
        let quick: &[&str] = match self.disk {
            Disk::Unsynced | Disk::Small(_) => &["fsync=off", "shared_buffers=16MB"],
            Disk::Synced => &[],
        };
        for setting in ["listen_addresses=", &sockets].iter().chain(quick) {
            command.args(["-c", setting]);
        }
        let log_folder = self.folder.parent().unwrap_or(&self.folder);
        self.process = Some(Process::start("postgres", command, log_folder)?);
        let ready = || Ok(self.query("SELECT 1").ok());
        wait::until(START_DEADLINE, ready)?.ok_or(Error::NotServing("postgres".into())).map(drop)
    }

    /// Kills every process of it.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.signal_all(libc::SIGKILL);
            process.kill();
        }
    }

    pub fn freeze(&self) {
        self.signal(libc::SIGSTOP);
    }

    pub fn thaw(&self) {
        self.signal(libc::SIGCONT);
    }

    fn signal(&self, signal: libc::c_int) {
        if let Some(process) = &self.process {
            process.signal_all(signal);
        }
    }

    /// What a statement answers.
    pub fn query(&self, statement: &str) -> Result<String, Error> {
        let mut psql = Command::new(self.bin.join("psql"));
        psql.args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            "postgres",
            "-U",
            "bhav",
        ]);
        ran(psql.arg("-h").arg(&self.folder).args(["-c", statement]), "psql")
    }

    /// Its socket.
    pub fn address(&self) -> Address {
        Address::Unix(self.folder.join(SOCKET))
    }

    /// Fills its disk, all but what is in use.
    pub fn fill_disk(&self) -> Result<(), Error> {
        let mut fill = Command::new("dd");
        fill.args(["if=/dev/zero", "bs=64k"]).arg(format!("of={}", self.ballast().display()));
        // It ends with an error when the disk is full.
        fill.output().map(drop).map_err(Error::io("fill a disk"))
    }

    pub fn empty_disk(&self) -> Result<(), Error> {
        fs::remove_file(self.ballast()).map_err(Error::io("empty a disk"))
    }

    fn ballast(&self) -> PathBuf {
        self.folder.join("ballast")
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
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
        self.thaw();
        self.kill();
        if self.is_mounted {
            let _ = Command::new("umount").arg("-l").arg(&self.folder).status();
        }
    }
}

pub fn is_root() -> bool {
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

/// What a program printed.
fn ran(command: &mut Command, name: &str) -> Result<String, Error> {
    let output = command.output().map_err(Error::io("run a program of PostgreSQL"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(Error::Invalid(format!(
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
    }
}
