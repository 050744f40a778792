//! One node: a process of bhav on a port and a state folder of its own, with its ways to all that
//! it speaks to.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::link::{Address, Link, Mode};
use super::postgres::SOCKET;
use crate::error::Error;
use crate::process::Process;

/// Whether a node could answer, for those who ask it.
#[derive(Default)]
pub struct Living {
    is_running: AtomicBool,
    starts: AtomicU32,
}

impl Living {
    /// The number of its present start; `None` while it is killed, stopped or ending.
    pub fn now(&self) -> Option<u32> {
        let is_running = self.is_running.load(Ordering::SeqCst);
        is_running.then(|| self.start())
    }

    /// The number of its last start, whether it still runs or not.
    pub fn start(&self) -> u32 {
        self.starts.load(Ordering::SeqCst)
    }
}

/// A node, running or not. Its links outlive its processes.
pub struct Node {
    pub name: String,
    pub port: u16,
    pub living: Arc<Living>,
    /// Its ways.
    pub postgres: Link,
    pub valkey: Link,
    pub broker: Link,
    folder: PathBuf,
    process: Option<Process>,
}

impl Node {
    /// One that is not started yet, whose files are in `folder`.
    pub fn new(
        name: &str,
        folder: PathBuf,
        postgres: Address,
        valkey: Address,
        broker: Link,
    ) -> Result<Self, Error> {
        fs::create_dir(&folder).map_err(Error::io("make a folder for a node"))?;
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        Ok(Self {
            name: name.to_owned(),
            port: port.map_err(Error::io("find a port"))?.port(),
            living: Arc::default(),
            postgres: Link::unix(folder.join(SOCKET), postgres)?,
            valkey: Link::unix(folder.join("valkey.sock"), valkey)?,
            broker,
            folder,
            process: None,
        })
    }

    /// Where it keeps its state.
    pub fn state_folder(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// What it is to be started with, beside where the simulator's other parts are.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let folder = self.folder.display();
        let Address::Tcp(broker) = self.broker.address else { return Vec::new() };
        vec![
            ("BHAV_NODE", self.name.clone()),
            ("BHAV_STORE_URL", format!("postgres:///postgres?host={folder}&user=bhav")),
            ("BHAV_CACHE_URL", format!("unix:{folder}/valkey.sock")),
            ("BHAV_BROKERA_URL", format!("http://{broker}/a")),
        ]
    }

    /// Starts a process with this command.
    pub fn launch(&mut self, command: Command, log_folder: &Path) -> Result<(), Error> {
        let start = self.living.starts.fetch_add(1, Ordering::SeqCst) + 1;
        let name = format!("{}-{start}", self.name);
        self.process = Some(Process::start(&name, command, log_folder)?);
        self.living.is_running.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// As the system's memory killer does.
    pub fn kill(&mut self) {
        self.living.is_running.store(false, Ordering::SeqCst);
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Tells it to end, as a supervisor does.
    pub fn begin_stop(&mut self) {
        self.living.is_running.store(false, Ordering::SeqCst);
        self.signal(libc::SIGTERM);
    }

    /// Waits for its end after that.
    pub fn end_stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.stop();
        }
    }

    pub fn freeze(&mut self) {
        self.living.is_running.store(false, Ordering::SeqCst);
        self.signal(libc::SIGSTOP);
    }

    pub fn thaw(&mut self) {
        self.signal(libc::SIGCONT);
        self.living.is_running.store(self.process.is_some(), Ordering::SeqCst);
    }

    /// Opens all its ways.
    pub fn heal(&self) {
        for link in [&self.postgres, &self.valkey, &self.broker] {
            link.set(Mode::Open);
        }
    }

    /// Whether it runs, or ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| !process.is_running())
    }

    /// Its process, for what it costs.
    pub fn process(&self) -> Option<&Process> {
        self.process.as_ref()
    }

    fn signal(&self, signal: libc::c_int) {
        if let Some(process) = &self.process {
            process.signal(signal);
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // What is stopped could not end.
        self.signal(libc::SIGCONT);
    }
}
