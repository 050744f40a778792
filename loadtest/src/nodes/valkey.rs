//! A Valkey or Redis server of the driver's own, on a Unix socket, with nothing on disk.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::link::Address;
use crate::error::Error;
use crate::process::Process;
use crate::wait;

const PROGRAMS: [&str; 2] = ["valkey-server", "redis-server"];
const START_DEADLINE: Duration = Duration::from_secs(10);

/// A server, running or not.
pub struct Valkey {
    folder: PathBuf,
    process: Option<Process>,
}

impl Valkey {
    /// Starts one whose socket is in `folder`.
    pub fn start(folder: PathBuf) -> Result<Self, Error> {
        let mut server = Self { folder, process: None };
        server.launch()?;
        Ok(server)
    }

    /// Starts it empty.
    pub fn launch(&mut self) -> Result<(), Error> {
        let socket = self.socket();
        let _ = std::fs::remove_file(&socket);
        let is_there = |program: &&str| Command::new(program).arg("--version").output().is_ok();
        let program = PROGRAMS.into_iter().find(is_there);
        let none =
            Error::invalid("valkey-server or redis-server is missing (package of that name)");
        let mut command = Command::new(program.ok_or(none)?);
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]);
        command.arg(&socket).arg("--dir").arg(&self.folder);
        self.process = Some(Process::start("valkey", command, &self.folder)?);
        let ready = || Ok(std::os::unix::net::UnixStream::connect(&socket).ok());
        let answers = wait::until(START_DEADLINE, ready)?;
        answers.ok_or(Error::NotServing("valkey".into())).map(drop)
    }

    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Its socket.
    pub fn address(&self) -> Address {
        Address::Unix(self.socket())
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("valkey.sock")
    }
}
