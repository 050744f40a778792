//! The servers that are compared, and how each is started.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::error::Error;
use crate::fetch::{self, Snapshot};
use crate::nginx;
use crate::process::{Process, free_address};
use crate::simulator::Simulator;

/// Edge threads of bhav: as many as every peer has workers.
const EDGE_THREADS: &str = "2";

/// bhav's clock starts in the middle of an ordinary trading day, so that its warmers work at full
/// speed while it is measured, whatever the day of the test.
pub const TRADING_INSTANT: &str = "2026-10-14T11:00:00+05:30";

/// Start of the line by which bhav announces where it serves.
pub const LISTENING: &str = "listening on http://";

/// How long bhav may take to show signals: for the first ones it asks for years of candles.
const SIGNALS_DEADLINE: Duration = Duration::from_secs(180);

/// Signals that were found once; every bhav with an empty database starts on a copy of it.
const SIGNALS_FOLDER: &str = "state-signals";

/// The setting of bhav's clock, which the simulator shares.
const NOW: &str = "BHAV_NOW";

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The service itself, beside a simulator.
    Bhav,
    /// The yardstick: the usual HTTP server on may, at its best.
    MayMinihttp,
    /// The same with its workers pinned to cores, as may does by default.
    MayPinned,
    /// nginx, answering from its configuration.
    Nginx,
    /// actix-web.
    Actix,
    /// axum.
    Axum,
}

impl Kind {
    /// Every kind, in the order of the tables.
    pub const ALL: [Self; 6] =
        [Self::Bhav, Self::MayMinihttp, Self::Nginx, Self::Actix, Self::Axum, Self::MayPinned];

    /// Name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bhav => "bhav",
            Self::MayMinihttp => "may_minihttp",
            Self::MayPinned => "may_minihttp-pinned",
            Self::Nginx => "nginx",
            Self::Actix => "actix-web",
            Self::Axum => "axum",
        }
    }
}

/// A started server.
pub struct Server {
    /// What it is.
    pub kind: Kind,
    /// Where it listens.
    pub address: SocketAddr,
    /// The process.
    pub process: Process,
    /// What bhav's feeds speak to.
    simulator: Option<Simulator>,
}

impl Server {
    /// Root of the simulator's routes.
    ///
    /// # Errors
    /// The server has none.
    pub fn simulator(&self) -> Result<&str, Error> {
        let simulator = self.simulator.as_ref();
        simulator.map(|simulator| &*simulator.root).ok_or(Error::Unexpected("no simulator"))
    }
}

/// Where the programs are, and where the run keeps its files.
pub struct Programs {
    /// Folder with the peers and the generator.
    pub folder: PathBuf,
    /// bhav, unless the peers are measured alone.
    pub bhav: Option<PathBuf>,
    /// nginx, if it is installed.
    pub nginx: Option<PathBuf>,
    /// Bodies, configurations, logs and bhav's state.
    pub work_folder: PathBuf,
}

impl Programs {
    /// Kinds that can be started.
    pub fn available(&self) -> Vec<Kind> {
        Kind::ALL
            .into_iter()
            .filter(|kind| match kind {
                Kind::Bhav => self.bhav.is_some(),
                Kind::Nginx => self.nginx.is_some(),
                Kind::MayMinihttp | Kind::MayPinned | Kind::Actix | Kind::Axum => true,
            })
            .collect()
    }

    /// Starts a peer that serves `snapshot`, or bhav, which serves its own.
    pub fn start(&self, kind: Kind, snapshot: &Snapshot) -> Result<Server, Error> {
        match kind {
            Kind::Bhav => self.start_bhav(),
            Kind::Nginx => self.start_nginx(snapshot),
            Kind::MayMinihttp | Kind::MayPinned => {
                self.start_peer(kind, "peer-may-minihttp", snapshot)
            }
            Kind::Actix => self.start_peer(kind, "peer-actix", snapshot),
            Kind::Axum => self.start_peer(kind, "peer-axum", snapshot),
        }
    }

    /// Lets bhav find the signals of the simulator's candles and keeps its state for the others, so
    /// that each starts as after a restart: no memory of a measured one is left over from finding.
    ///
    /// # Errors
    /// bhav does not start or finds none.
    pub fn find_signals(&self) -> Result<(), Error> {
        let found = self.work_folder.join(SIGNALS_FOLDER);
        empty_folder(&found)?;
        self.start_bhav_on(&found, &[]).map(drop)
    }

    /// Makes `state_folder` one with signals and nothing else.
    ///
    /// # Errors
    /// A file cannot be copied.
    pub fn copy_signals(&self, state_folder: &Path) -> Result<(), Error> {
        copy_state(&self.work_folder.join(SIGNALS_FOLDER), state_folder)
    }

    /// Starts bhav on a state folder with signals and nothing else.
    ///
    /// # Errors
    /// As [`Self::start_bhav_on`].
    pub fn start_bhav(&self) -> Result<Server, Error> {
        let state_folder = self.work_folder.join("bhav-state");
        self.copy_signals(&state_folder)?;
        self.start_bhav_on(&state_folder, &[])
    }

    /// Starts bhav and a simulator on what is in `state_folder`, with settings as environment
    /// variables, and waits until it shows signals: without them it is not what clients see.
    ///
    /// # Errors
    /// One does not start, or there are no signals.
    pub fn start_bhav_on(
        &self,
        state_folder: &Path,
        settings: &[(&str, &str)],
    ) -> Result<Server, Error> {
        let program = self.bhav.as_ref().ok_or(Error::Unexpected("bhav was left out"))?;
        let instant = settings.iter().find(|(name, _)| *name == NOW).map(|(_, instant)| *instant);
        let simulator =
            Simulator::start(program, &self.work_folder, instant.unwrap_or(TRADING_INSTANT), &[])?;
        let mut command = simulator.service(program, state_folder)?;
        command
            .env("BHAV_EDGE_THREADS", EDGE_THREADS)
            // All load comes from one address and from few users.
            .env("BHAV_HTTP_CONNECTIONS_PER_ADDRESS_MAX", "0")
            .env("BHAV_WRITES_PER_USER_PER_MINUTE", "0")
            .envs(settings.iter().copied().filter(|(name, _)| *name != NOW));
        let mut process = Process::start(Kind::Bhav.name(), command, &self.work_folder)?;
        let address = process.announced(LISTENING)?;
        fetch::wait_for_signals(address, SIGNALS_DEADLINE)?;
        Ok(Server { kind: Kind::Bhav, address, process, simulator: Some(simulator) })
    }

    fn start_peer(&self, kind: Kind, program: &str, snapshot: &Snapshot) -> Result<Server, Error> {
        let body = self.work_folder.join("snapshot.json");
        fs::write(&body, &snapshot.body).map_err(Error::io("write the body"))?;
        let address = free_address().map_err(Error::io("find a port"))?;
        let mut command = Command::new(self.folder.join(program));
        command.arg("--listen").arg(address.to_string()).arg("--body").arg(&body);
        if kind == Kind::MayPinned {
            command.arg("--pin-workers");
        }
        for (name, value) in &snapshot.headers {
            command.arg("--header").arg(format!("{name}: {value}"));
        }
        self.started(kind, command, address)
    }

    fn start_nginx(&self, snapshot: &Snapshot) -> Result<Server, Error> {
        let program = self.nginx.as_ref().ok_or(Error::Unexpected("nginx is not installed"))?;
        let address = free_address().map_err(Error::io("find a port"))?;
        let configuration = nginx::configuration(address, &snapshot.headers, &snapshot.body)?;
        let file = self.work_folder.join("nginx.conf");
        fs::write(&file, configuration).map_err(Error::io("write nginx.conf"))?;
        let mut command = Command::new(program);
        command.arg("-p").arg(&self.work_folder).arg("-c").arg(&file).args(["-e", "stderr"]);
        self.started(Kind::Nginx, command, address)
    }

    fn started(&self, kind: Kind, command: Command, address: SocketAddr) -> Result<Server, Error> {
        let mut process = Process::start(kind.name(), command, &self.work_folder)?;
        process.wait_until_accepting(address)?;
        Ok(Server { kind, address, process, simulator: None })
    }
}

/// Makes `folder`, with nothing in it.
///
/// # Errors
/// The folder cannot be emptied or made.
pub fn empty_folder(folder: &Path) -> Result<(), Error> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(Error::io("empty a folder"))?;
    }
    fs::create_dir(folder).map_err(Error::io("create a folder"))
}

/// Makes `to` the same state as `from`, whose server has ended.
///
/// # Errors
/// A file cannot be copied.
pub fn copy_state(from: &Path, to: &Path) -> Result<(), Error> {
    let copying = Error::io("copy a state folder");
    empty_folder(to)?;
    for entry in fs::read_dir(from).map_err(&copying)?.filter_map(Result::ok) {
        fs::copy(entry.path(), to.join(entry.file_name())).map_err(&copying)?;
    }
    Ok(())
}

/// Installs nginx from the distribution where that can be done without asking: on Debian, as root.
pub fn install_nginx() -> Option<PathBuf> {
    if !Path::new("/usr/bin/apt-get").is_file() {
        return None;
    }
    eprintln!("nginx is missing; installing nginx-light");
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        let command = command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        command.stdout(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let installed = apt(&["update", "-qq"])
        && apt(&["install", "-y", "-qq", "--no-install-recommends", "nginx-light"]);
    installed.then(find_nginx).flatten()
}

/// Looks for nginx where distributions put it.
pub fn find_nginx() -> Option<PathBuf> {
    let from_path = std::env::var_os("PATH")
        .into_iter()
        .flat_map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    from_path
        .chain(["/usr/sbin", "/usr/local/sbin"].map(|folder| Path::new(folder).to_owned()))
        .map(|folder| folder.join("nginx"))
        .find(|file| file.is_file())
}
