//! The simulator of the brokers and the public provider: a process of its own, so that none of its
//! CPU time and memory is in the figures of the service, and the settings of a service beside it.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use jiff::Timestamp;

use crate::error::Error;
use crate::fetch;
use crate::process::Process;

/// Start of the line by which the simulator announces where it listens.
const LISTENING: &str = "simulator on http://";

/// A running simulator; dropping it stops it.
pub struct Simulator {
    /// Root of its routes.
    pub root: String,
    _process: Process,
}

impl Simulator {
    /// Starts one whose exchange is at `instant`, with settings as environment variables.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(
        program: &Path,
        log_folder: &Path,
        instant: &str,
        settings: &[(&str, &str)],
    ) -> Result<Self, Error> {
        let mut command = command(program, "sim");
        command.env("BHAV_NOW", instant).envs(settings.iter().copied());
        let mut process = Process::start("simulator", command, log_folder)?;
        let root = format!("http://{}", process.announced(LISTENING)?);
        Ok(Self { root, _process: process })
    }

    /// What the simulated exchange's clock reads.
    ///
    /// # Errors
    /// The simulator does not answer.
    pub fn now(&self) -> Result<Timestamp, Error> {
        let now_ms = fetch::simulator_stats(&self.root)?.now_ms;
        Timestamp::from_millisecond(now_ms).map_err(|_| Error::Unexpected("the simulator's clock"))
    }

    /// A service beside it: its feeds, its app at broker A, its clock and a state folder.
    ///
    /// # Errors
    /// The simulator does not answer.
    pub fn service(&self, program: &Path, state_folder: &Path) -> Result<Command, Error> {
        let mut command = command(program, "serve");
        command
            .env("BHAV_STATE_DIR", state_folder)
            .env("BHAV_BROKERA_URL", format!("{}/a", self.root))
            .env("BHAV_BROKERB_URL", format!("{}/b", self.root))
            .env("BHAV_PUBLIC_URL", format!("{}/p", self.root))
            .env("BROKERA_API_KEY", "simkeya")
            .env("BROKERA_API_SECRET", "simsecreta")
            .env("BROKERA_ACCESS_TOKEN", "simtokena")
            .env("BHAV_NOW", self.now()?.to_string())
            // Several services may run at once.
            .env("BHAV_ADMIN_LISTEN", "127.0.0.1:0");
        Ok(command)
    }
}

/// A command of bhav on a port that is free. The operator's own settings must not decide what is
/// measured.
fn command(program: &Path, name: &str) -> Command {
    let mut command = Command::new(program);
    let is_own = |name: &OsStr| {
        let bytes = name.as_encoded_bytes();
        bytes.starts_with(b"BHAV_") || bytes.starts_with(b"BROKER")
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_own(name)) {
        command.env_remove(name);
    }
    command.args([name, "--listen", "127.0.0.1:0"]);
    command
}
