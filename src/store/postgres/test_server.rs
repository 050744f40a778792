//! A PostgreSQL server and a pooler in front of it, for the tests of one process: unprivileged, on
//! sockets in a directory of their own. Both end with the process, however that ends.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

/// The user `nobody`. PostgreSQL refuses to run as root, so it runs as this user if the tests are
/// root's.
const UNPRIVILEGED: u32 = 65_534;
/// If set to `required`, a test fails instead of being left out.
const ENGINES: &str = "BHAV_TEST_ENGINES";
/// The pooler's port, which is part of its socket's name.
const POOLER_PORT: u16 = 6432;
/// Roles that the pooler knows: more than the tests of a process make.
const ROLES_MAX: u32 = 5_000;

/// Starts a server at each line of its input and reports when it answers. Ends it at the end of its
/// input, which the system closes however the tests end.
const KEEPER: &str = r#"
dir=$1; port=$2; bin=$3; end=$4; shift 4
server=
while read -r _; do
    # The one of before was killed.
    [ -z "$server" ] || wait $server
    rm -f "$dir/data/postmaster.pid"
    "$@" >>"$dir/log" 2>&1 </dev/null &
    server=$!
    until "$bin/pg_isready" -q -h "$dir" -p "$port" -U bhav; do
        kill -0 $server 2>/dev/null || { cat "$dir/log" >&2; exit 1; }
        sleep 0.05
    done
    echo started
done
kill -$end $server 2>/dev/null
wait $server
rm -rf "$dir"
"#;

/// A running server that belongs to this process.
pub(crate) struct Server {
    pub(crate) directory: PathBuf,
    pub(crate) port: u16,
    bin: PathBuf,
    /// Lives while its input is open.
    keeper: Mutex<Child>,
}

/// The server of this process; `None`, reported once by name, if PostgreSQL is not installed.
pub(crate) fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER
        .get_or_init(|| found("postgres", bin().is_some()).then(Server::start))
        .as_ref()
}

/// A pooler in transaction mode with one connection for each role.
pub(crate) fn pooler() -> Option<&'static Server> {
    static POOLER: OnceLock<Option<Server>> = OnceLock::new();
    let server = server()?;
    let there = || {
        let paths = ["/usr/sbin", "/usr/bin"].map(|place| Path::new(place).join("pgbouncer"));
        paths.into_iter().find(|path| path.exists())
    };
    let start = |program: PathBuf| server.start_pooler(&program);
    POOLER
        .get_or_init(|| {
            let program = there();
            found("pgbouncer", program.is_some())
                .then(|| program.map(start))
                .flatten()
        })
        .as_ref()
}

#[expect(
    clippy::print_stderr,
    reason = "says what a run of the tests leaves out"
)]
fn found(name: &str, is_there: bool) -> bool {
    if !is_there {
        assert!(std::env::var(ENGINES).as_deref() != Ok("required"), "{name} is not installed");
        eprintln!("left out: {name} is not installed, so tests of PostgreSQL do not run");
    }
    is_there
}

/// The directory of the newest installed server's programs.
fn bin() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let mut found: Vec<_> = versions
        .filter_map(|entry| Some((number(&entry.path())?, entry.path())))
        .collect();
    found.sort();
    Some(found.pop()?.1.join("bin")).filter(|bin| bin.join("postgres").exists())
}

/// A command without root's rights and without a terminal.
fn unprivileged(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(std::env::temp_dir());
    if rustix::process::geteuid().is_root() {
        command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    }
    command
}

/// A short path, since the names of sockets are short.
fn directory() -> PathBuf {
    let directory = tempfile::Builder::new()
        .prefix("bhav-pg")
        .tempdir()
        .unwrap()
        .keep();
    if rustix::process::geteuid().is_root() {
        chown(&directory, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
    }
    directory
}

impl Server {
    fn start() -> Self {
        Self::start_at(5432, |_| (), &["listen_addresses="])
    }

    /// A further server, with settings of its own, after `prepare` has worked on its data.
    pub(crate) fn start_at(port: u16, prepare: impl FnOnce(&Path), settings: &[&str]) -> Self {
        let directory = directory();
        let bin = bin().unwrap();
        let made = unprivileged(bin.join("initdb"))
            .args([
                "-U",
                "bhav",
                "-A",
                "trust",
                "--no-sync",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
            ])
            .arg("-D")
            .arg(directory.join("data"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        prepare(&directory.join("data"));
        Self::run(directory, port, bin, settings)
    }

    /// A standby of this server, which can be promoted.
    #[allow(dead_code, reason = "of the tests over HTTP alone")]
    pub(crate) fn start_standby(&self) -> Self {
        let directory = directory();
        let bin = self.bin.clone();
        let made = unprivileged(bin.join("pg_basebackup"))
            .args([
                "-U",
                "bhav",
                "-X",
                "stream",
                "-c",
                "fast",
                "-R",
                "--no-sync",
                "-h",
            ])
            .arg(&self.directory)
            .args(["-p", &self.port.to_string(), "-D"])
            .arg(directory.join("data"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self::run(directory, self.port, bin, &["listen_addresses="])
    }

    fn run(directory: PathBuf, port: u16, bin: PathBuf, settings: &[&str]) -> Self {
        let sockets = format!("unix_socket_directories={}", directory.display());
        let mut command = vec![bin.join("postgres").display().to_string(), "-D".to_owned()];
        command.push(directory.join("data").display().to_string());
        let usual = ["fsync=off", "shared_buffers=16MB", "max_connections=300"];
        for setting in usual
            .iter()
            .chain(settings)
            .copied()
            .chain([sockets.as_str()])
        {
            command.extend(["-c".to_owned(), setting.to_owned()]);
        }
        // Ends at once, without waiting for clients.
        Self::keep(directory, port, bin, "QUIT", &command)
    }

    fn start_pooler(&self, program: &Path) -> Self {
        let directory = directory();
        let names: String = (0..ROLES_MAX)
            .map(|number| format!("\"t{number}\" \"\"\n"))
            .collect();
        fs::write(directory.join("roles"), format!("\"bhav\" \"\"\n{names}")).unwrap();
        let own = directory.display();
        let server = self.directory.display();
        let settings = format!(
            "[databases]\n* = host={server}\n[pgbouncer]\nlisten_addr =\n\
             listen_port = {POOLER_PORT}\nunix_socket_dir = {own}\nauth_type = trust\n\
             auth_file = {own}/roles\npool_mode = transaction\ndefault_pool_size = 1\n\
             max_client_conn = 1000\nserver_idle_timeout = 5\n"
        );
        fs::write(directory.join("settings"), settings).unwrap();
        let settings = directory.join("settings").display().to_string();
        let command = [program.display().to_string(), settings];
        Self::keep(directory, POOLER_PORT, self.bin.clone(), "TERM", &command)
    }

    fn keep(directory: PathBuf, port: u16, bin: PathBuf, end: &str, command: &[String]) -> Self {
        let keeper = unprivileged("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(&directory)
            .arg(port.to_string())
            .arg(&bin)
            .arg(end)
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let server = Self {
            directory,
            port,
            bin,
            keeper: Mutex::new(keeper),
        };
        server.launch();
        server
    }

    /// Starts it, also anew on what it has kept after it was [killed](Self::signal).
    pub(crate) fn launch(&self) {
        let mut keeper = self.keeper.lock().unwrap();
        keeper.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert!(!line.is_empty(), "the server does not start");
    }

    /// Sends a signal to all of the server's processes.
    #[allow(dead_code, reason = "of the tests over HTTP alone")]
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let file = fs::read_to_string(self.directory.join("data/postmaster.pid")).unwrap();
        let main: i32 = file.lines().next().unwrap().parse().unwrap();
        let children = fs::read_to_string(format!("/proc/{main}/task/{main}/children")).unwrap();
        let children = children
            .split_whitespace()
            .map(|process| process.parse().unwrap());
        for process in std::iter::once(main).chain(children) {
            // A child may have ended since.
            let process = rustix::process::Pid::from_raw(process).unwrap();
            let _ = rustix::process::kill_process(process, signal);
        }
    }

    /// A role with an empty schema of its own, by its name.
    pub(crate) fn fresh_role(&self) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("t{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let made = format!("CREATE ROLE {name} LOGIN; CREATE SCHEMA AUTHORIZATION {name}");
        self.execute("bhav", &made).unwrap();
        name
    }

    /// Runs statements with the server's own tool, and returns what it prints.
    pub(crate) fn execute(&self, role: &str, statements: &str) -> Result<String, String> {
        let ran = Command::new(self.bin.join("psql"))
            .args([
                "-X",
                "-q",
                "-A",
                "-t",
                "-v",
                "ON_ERROR_STOP=1",
                "-d",
                "postgres",
                "-U",
                role,
            ])
            .arg("-h")
            .arg(&self.directory)
            .args(["-p", &self.port.to_string(), "-c", statements])
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if ran.status.success() {
            Ok(text(&ran.stdout))
        } else {
            Err(text(&ran.stderr))
        }
    }

    /// One of the server's own tools, for one of its databases.
    #[allow(dead_code, reason = "of the tests over HTTP alone")]
    pub(crate) fn tool(&self, program: &str, role: &str, database: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.args([
            "-U",
            role,
            "-d",
            database,
            "-p",
            &self.port.to_string(),
            "-h",
        ]);
        command.arg(&self.directory);
        command
    }

    /// The URL for a role.
    pub(crate) fn url(&self, role: &str) -> String {
        let directory = self.directory.display();
        format!("postgres:///postgres?host={directory}&port={}&user={role}", self.port)
    }
}
