//! Valkey or Redis servers for tests: `valkey-server` or `redis-server`, each on a Unix socket of a
//! test's own. Unit tests and integration tests share this file.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// With this value of the variable a missing engine fails the tests that need it.
const REQUIRED: (&str, &str) = ("BHAV_TEST_ENGINES", "required");
const PROGRAMS: [&str; 2] = ["valkey-server", "redis-server"];
const PATIENCE: Duration = Duration::from_secs(10);

/// A running server, killed when this is dropped.
pub(crate) struct TestServer {
    child: Child,
    directory: TempDir,
    options: Vec<String>,
}

impl TestServer {
    /// `None` if there is no such program; the test then reports that it is left out.
    pub(crate) fn start(test: &str) -> Option<Self> {
        Self::with(test, &[])
    }

    /// Same as [`start`](Self::start), with more options.
    pub(crate) fn with(test: &str, options: &[&str]) -> Option<Self> {
        let directory = tempfile::Builder::new().prefix("vk").tempdir().unwrap();
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let Some(child) = spawn(&directory, &options) else {
            let required = std::env::var(REQUIRED.0).is_ok_and(|value| value == REQUIRED.1);
            assert!(!required, "{test} needs valkey-server or redis-server");
            let text = format!("left out without valkey-server or redis-server: {test}\n");
            // Bypasses the harness, which would swallow the text.
            std::io::stderr().write_all(text.as_bytes()).unwrap();
            return None;
        };
        let server = Self {
            child,
            directory,
            options,
        };
        server.wait_until_it_answers();
        Some(server)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("s")
    }

    /// The server's address in the form of the settings.
    pub(crate) fn url(&self) -> String {
        format!("unix:{}", self.socket().display())
    }

    /// Kills the server; its memory is lost.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts the server again, empty.
    pub(crate) fn restart(&mut self) {
        self.kill();
        let _ = std::fs::remove_file(self.socket());
        self.child = spawn(&self.directory, &self.options).unwrap();
        self.wait_until_it_answers();
    }

    /// Returns when a server that is to stop has stopped.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
        if signal == rustix::process::Signal::STOP {
            wait_for("the server does not stop", || {
                let status = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap();
                status.contains(") T ")
            });
        }
    }

    /// The id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// A connection that speaks the server's own protocol.
    pub(crate) fn connect(&self) -> UnixStream {
        UnixStream::connect(self.socket()).unwrap()
    }

    /// Its folder, after it has written there all that it would keep on a disk.
    pub(crate) fn folder_with_dump(&self) -> &Path {
        let mut stream = self.connect();
        stream.write_all(b"SAVE\r\n").unwrap();
        let mut said = [0; 5];
        stream.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"+OK\r\n");
        self.directory.path()
    }

    /// Everything that it would keep on a disk.
    pub(crate) fn dump(&self) -> Vec<u8> {
        std::fs::read(self.folder_with_dump().join("dump.rdb")).unwrap()
    }

    /// Whether the server's memory holds these bytes anywhere.
    pub(crate) fn memory_contains(&self, bytes: &[u8]) -> bool {
        let of = |file: &str| format!("/proc/{}/{file}", self.child.id());
        let maps = std::fs::read_to_string(of("maps")).unwrap();
        let memory = std::fs::File::open(of("mem")).unwrap();
        let writable = maps.lines().filter(|line| line.contains(" rw"));
        writable
            .filter_map(|line| line.split_once(' ')?.0.split_once('-'))
            .any(|(from, to)| {
                let [from, to] = [from, to].map(|hex| u64::from_str_radix(hex, 16).unwrap());
                let mut part = vec![0; (to - from) as usize];
                // Guard pages cannot be read.
                memory.read_exact_at(&mut part, from).is_ok()
                    && memchr::memmem::find(&part, bytes).is_some()
            })
    }

    fn wait_until_it_answers(&self) {
        wait_for("the server does not start", || self.answers());
    }

    /// Whether the server replies. A refusal for lack of a password is a reply too.
    fn answers(&self) -> bool {
        let Ok(mut stream) = UnixStream::connect(self.socket()) else {
            return false;
        };
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"PING\r\n").is_ok() && stream.read_exact(&mut [0]).is_ok()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.kill();
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the tests that share this share no clock"
)]
fn wait_for(failure: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{failure}");
        std::thread::yield_now();
    }
}

fn spawn(directory: &TempDir, options: &[String]) -> Option<Child> {
    let socket = directory.path().join("s");
    PROGRAMS.iter().find_map(|program| {
        Command::new(program)
            .args([
                "--port",
                "0",
                "--save",
                "",
                "--appendonly",
                "no",
                "--unixsocket",
            ])
            .arg(&socket)
            .arg("--dir")
            .arg(directory.path())
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()
    })
}
