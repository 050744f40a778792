//! Real servers for tests: `redis-server` or `valkey-server` on a Unix socket of its own.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use tempfile::TempDir;

use super::address::Address;
use super::dial::Server;
use crate::base::Clock;

/// With this value of the variable a missing engine fails the tests that need it.
const REQUIRED: (&str, &str) = ("BHAV_TEST_ENGINES", "required");
const PROGRAMS: [&str; 2] = ["valkey-server", "redis-server"];
const START_MS: u64 = 10_000;

/// A running server, killed when this is dropped.
pub(crate) struct TestServer {
    child: Child,
    directory: TempDir,
    options: Vec<String>,
}

impl TestServer {
    /// `None` where there is no such program; the test then says what is left out.
    pub(crate) fn start(test: &str) -> Option<Self> {
        Self::with(test, &[])
    }

    /// The same with more options.
    pub(crate) fn with(test: &str, options: &[&str]) -> Option<Self> {
        let directory = tempfile::Builder::new().prefix("vk").tempdir().unwrap();
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let Some(child) = spawn(&directory, &options) else {
            let required = std::env::var(REQUIRED.0).is_ok_and(|value| value == REQUIRED.1);
            assert!(!required, "{test} needs valkey-server or redis-server");
            let text = format!("left out without valkey-server or redis-server: {test}\n");
            // Past the harness, which would swallow it.
            std::io::stderr().write_all(text.as_bytes()).unwrap();
            return None;
        };
        let server = Self { child, directory, options };
        server.wait_until_it_answers();
        Some(server)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("s")
    }

    pub(crate) fn address(&self) -> Address {
        Address::parse(&format!("unix:{}", self.socket().display())).unwrap()
    }

    /// A way to it, as the service has one.
    pub(crate) fn server(&self) -> Arc<Server> {
        Arc::new(Server::new(self.address(), None, None).unwrap())
    }

    /// Kills it; its memory is lost.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again, empty.
    pub(crate) fn restart(&mut self) {
        self.kill();
        let _ = std::fs::remove_file(self.socket());
        self.child = spawn(&self.directory, &self.options).unwrap();
        self.wait_until_it_answers();
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Whether the server's memory holds these bytes anywhere.
    pub(crate) fn memory_contains(&self, bytes: &[u8]) -> bool {
        let of = |file: &str| format!("/proc/{}/{file}", self.child.id());
        let maps = std::fs::read_to_string(of("maps")).unwrap();
        let memory = std::fs::File::open(of("mem")).unwrap();
        let writable = maps.lines().filter(|line| line.contains(" rw"));
        writable.filter_map(|line| line.split_once(' ')?.0.split_once('-')).any(|(from, to)| {
            let [from, to] = [from, to].map(|hex| u64::from_str_radix(hex, 16).unwrap());
            let mut part = vec![0; (to - from) as usize];
            // Guard pages cannot be read.
            std::os::unix::fs::FileExt::read_exact_at(&memory, &mut part, from).is_ok()
                && memchr::memmem::find(&part, bytes).is_some()
        })
    }

    fn wait_until_it_answers(&self) {
        let timer = Clock::system();
        let server = self.server();
        // A password refuses, which is an answer too.
        while let Err(error) = server.connect(timer.monotonic_ms() + 500) {
            if matches!(error, super::ValkeyError::Refused { .. }) {
                return;
            }
            assert!(timer.monotonic_ms() < START_MS, "the server does not start: {error}");
            std::thread::yield_now();
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(directory: &TempDir, options: &[String]) -> Option<Child> {
    let socket = directory.path().join("s");
    PROGRAMS.iter().find_map(|program| {
        Command::new(program)
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
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
