//! A Valkey or Redis server of a test's own, on a Unix socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bhav::cache::valkey::Address;

use super::wait::{say, until};

/// A running server, killed when this is dropped.
pub struct SharedServer {
    child: Child,
    directory: tempfile::TempDir,
}

impl SharedServer {
    /// `None` where there is no such program; says then which test is left out, unless
    /// `BHAV_TEST_ENGINES=required` forbids that.
    pub fn start(test: &str) -> Option<Self> {
        let directory = tempfile::Builder::new().prefix("vk").tempdir().unwrap();
        let Some(child) = spawn(&directory) else {
            let required = std::env::var("BHAV_TEST_ENGINES").is_ok_and(|set| set == "required");
            assert!(!required, "{test} needs valkey-server or redis-server");
            say(&format!("left out without valkey-server or redis-server: {test}\n"));
            return None;
        };
        let server = Self { child, directory };
        server.await_socket();
        Some(server)
    }

    pub fn address(&self) -> Address {
        Address::parse(&format!("unix:{}", self.socket().display())).unwrap()
    }

    /// Kills it and what it knew.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again, empty.
    pub fn restart(&mut self) {
        self.kill();
        let _ = std::fs::remove_file(self.socket());
        self.child = spawn(&self.directory).unwrap();
        self.await_socket();
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// A connection that speaks the server's own protocol.
    pub fn connect(&self) -> UnixStream {
        UnixStream::connect(self.socket()).unwrap()
    }

    /// Its folder, into which it has written all that it would keep on a disk.
    pub fn folder_with_dump(&self) -> &Path {
        let mut stream = self.connect();
        stream.write_all(b"SAVE\r\n").unwrap();
        let mut said = [0; 5];
        stream.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"+OK\r\n");
        self.directory.path()
    }

    /// Everything that it would keep on a disk.
    pub fn dump(&self) -> Vec<u8> {
        std::fs::read(self.folder_with_dump().join("dump.rdb")).unwrap()
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("s")
    }

    fn await_socket(&self) {
        until("the shared server", || UnixStream::connect(self.socket()).ok());
    }
}

impl Drop for SharedServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(directory: &tempfile::TempDir) -> Option<Child> {
    ["valkey-server", "redis-server"].iter().find_map(|program| {
        Command::new(program)
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(directory.path().join("s"))
            .arg("--dir")
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()
    })
}
