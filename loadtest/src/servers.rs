//! The servers that are compared: how each is started, and on which state.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};
use std::{fs, io};

use anyhow::{Context, Result, bail, ensure};

use crate::harness::Harness;
use crate::process::Process;
use crate::simulator::Simulator;
use crate::snapshot::Snapshot;
use crate::{http, nginx, wait};

/// bhav's clock starts in the middle of an ordinary trading day, so that its warmers work at full
/// speed while it is measured, whatever the day of the test.
const TRADING_TIME: &str = "2026-10-14T11:00:00+05:30";

/// The setting of bhav's clock, which the simulator shares.
const NOW: &str = "BHAV_NOW";

/// Start of the line by which bhav announces where it serves.
const LISTENING: &str = "listening on http://";

/// Start of the line, before that one, by which it announces where its metrics are.
const METRICS: &str = "metrics on http://";

/// How long bhav may take to show signals: for the first ones it asks for years of candles.
const SIGNALS_DEADLINE: Duration = Duration::from_secs(180);

/// Settings of every bhav.
const SETTINGS: [(&str, &str); 5] = [
    // As many as every peer has workers.
    ("BHAV_EDGE_THREADS", "2"),
    // All load comes from one address and from few users.
    ("BHAV_HTTP_CONNECTIONS_PER_ADDRESS_MAX", "0"),
    // Prices by calls; the section of the ticker has it on.
    ("BHAV_BROKERA_TICKER", "false"),
    ("BHAV_WRITES_PER_USER_PER_MINUTE", "0"),
    ("BHAV_LOGIN_ATTEMPTS_PER_MINUTE", "0"),
];

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The service itself, beside a simulator.
    Bhav,
    /// The usual HTTP server on may, at its best: the yardstick.
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

/// What a bhav finds in its state folder. Each starts on a copy, as after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    Empty,
    /// Signals.
    Signals,
    /// Signals, and the larger list of instruments.
    MoreShares,
    /// Signals and the small database of users.
    FewUsers,
    /// Signals and the large database of users.
    ManyUsers,
}

/// A started server.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// The process.
    pub process: Process,
    /// Where bhav's metrics are.
    metrics: Option<String>,
    bhav: Option<Bhav>,
}

/// What only bhav has.
struct Bhav {
    simulator: Rc<Simulator>,
    name: String,
    program: PathBuf,
    state_folder: PathBuf,
    settings: Vec<(String, String)>,
    /// The listening socket that each process takes over, as from a socket unit.
    socket: Option<TcpListener>,
}

impl Server {
    /// What bhav's feeds speak to.
    pub fn simulator(&self) -> Result<&Rc<Simulator>> {
        let bhav = self.bhav.as_ref().context("a peer has no simulator")?;
        Ok(&bhav.simulator)
    }

    /// bhav's metrics, as Prometheus reads them.
    pub fn metrics(&self) -> Result<String> {
        let url = self.metrics.as_ref().context("a peer has no metrics")?;
        Ok(String::from_utf8_lossy(&http::get(url, &[])?.expect(200)?.body).into_owned())
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Waits until bhav shows signals: without them it is not what clients see.
    pub fn wait_for_signals(&self) -> Result<()> {
        let shown = || {
            Ok(Snapshot::of(self.address)
                .is_ok_and(|s| s.signals() > 0)
                .then_some(()))
        };
        wait::until(SIGNALS_DEADLINE, shown)?.with_context(|| {
            format!("no signals after {} s; clients see signals", SIGNALS_DEADLINE.as_secs())
        })
    }

    /// Stops bhav as a supervisor does and starts it again on what it left; gives how long it
    /// took to end.
    pub fn restart(&mut self, work_folder: &Path) -> Result<Duration> {
        let began = Instant::now();
        self.process.stop();
        let ended = began.elapsed();
        let bhav = self.bhav.as_ref().context("only bhav is restarted")?;
        (self.process, self.address, self.metrics) = bhav.start(work_folder)?;
        Ok(ended)
    }
}

impl Bhav {
    fn start(&self, work_folder: &Path) -> Result<(Process, SocketAddr, Option<String>)> {
        let mut command = self.simulator.service(&self.program, &self.state_folder)?;
        command.envs(SETTINGS).envs(self.settings.iter().cloned());
        if let Some(socket) = &self.socket {
            pass(&mut command, socket);
        }
        let process = Process::start(&self.name, command, work_folder)?;
        let mut metrics = None;
        let address = process.announced(LISTENING, |line| {
            metrics = line
                .strip_prefix(METRICS)
                .map(|url| format!("http://{url}"))
                .or(metrics.take());
        })?;
        Ok((process, address, metrics))
    }
}

/// The first descriptor that a supervisor passes.
const PASSED: i32 = 3;

/// Connections that the kernel holds while no process accepts them, as a socket unit has it.
const BACKLOG: i32 = 4_096;

/// A listening socket on a free port.
pub fn listen() -> Result<TcpListener> {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a port")?;
    // SAFETY: plain integers; the socket is open.
    let refused = unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) } < 0;
    ensure!(!refused, "listen: {}", io::Error::last_os_error());
    Ok(socket)
}

/// Passes a listening socket, as systemd does.
fn pass(command: &mut Command, socket: &TcpListener) {
    let descriptor = socket.as_raw_fd();
    command.env("LISTEN_FDS", "1");
    // SAFETY: dup2 and fcntl are async-signal-safe and touch no memory; the descriptor is open,
    // since the socket outlives the start.
    unsafe {
        command.pre_exec(move || {
            let done = match descriptor == PASSED {
                // It must stay open over exec.
                true => libc::fcntl(descriptor, libc::F_SETFD, 0),
                false => libc::dup2(descriptor, PASSED),
            };
            if done < 0 {
                Err(io::Error::last_os_error())
            } else {
                Ok(())
            }
        });
    }
}

/// What a bhav is given that it otherwise has of its own.
#[derive(Default)]
pub struct More {
    /// The listening socket that each process takes over, as from a socket unit.
    pub socket: Option<TcpListener>,
    /// The simulator of another one.
    pub simulator: Option<Rc<Simulator>>,
}

/// Starts bhav and its simulator on what is in `state_folder`, with settings as environment
/// variables; those of the simulator begin with `BHAV_SIM_`, and both have one clock.
pub fn start_bhav(
    harness: &Harness,
    name: &str,
    state_folder: PathBuf,
    settings: &[(&str, &str)],
    more: More,
) -> Result<Server> {
    let program = harness.programs.bhav.clone();
    let work_folder = &harness.programs.work_folder;
    let is_simulated =
        |(setting, _): &&(&str, &str)| setting.starts_with("BHAV_SIM_") || *setting == NOW;
    let (simulated, own): (Vec<(&str, &str)>, Vec<_>) = settings.iter().partition(is_simulated);
    let simulator = match more.simulator {
        Some(simulator) => simulator,
        None => {
            // The last one counts.
            let simulated = [&[(NOW, TRADING_TIME)][..], &simulated].concat();
            Rc::new(Simulator::start(&program, work_folder, &simulated)?)
        }
    };
    let settings = own
        .into_iter()
        .map(|(setting, value)| (setting.to_owned(), value.to_owned()));
    let (name, settings, socket) = (name.to_owned(), settings.collect(), more.socket);
    let bhav = Bhav {
        simulator,
        name,
        program,
        state_folder,
        settings,
        socket,
    };
    let (process, address, metrics) = bhav.start(work_folder)?;
    Ok(Server {
        address,
        process,
        metrics,
        bhav: Some(bhav),
    })
}

/// Starts a peer that serves `snapshot`, and checks that it does.
pub fn start_peer(harness: &Harness, kind: Kind, name: &str) -> Result<Server> {
    let snapshot = harness.snapshot()?;
    // A port that was free a moment ago: the peers cannot report one that the kernel chose.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener
        .and_then(|l| l.local_addr())
        .context("find a port")?;
    let programs = &harness.programs;
    let rust_peer = |program: &str| -> Result<Command> {
        let body = programs.work_folder.join("snapshot.json");
        fs::write(&body, &snapshot.body).context("write the body")?;
        let mut command = Command::new(programs.folder.join(program));
        command
            .arg("--listen")
            .arg(address.to_string())
            .arg("--body")
            .arg(&body);
        for (name, value) in &snapshot.headers {
            command.arg("--header").arg(format!("{name}: {value}"));
        }
        Ok(command)
    };
    let command = match kind {
        Kind::Nginx => nginx::command(programs, address, &snapshot)?,
        Kind::Actix => rust_peer("peer-actix")?,
        Kind::Axum => rust_peer("peer-axum")?,
        Kind::MayMinihttp => rust_peer("peer-may-minihttp")?,
        Kind::MayPinned => {
            let mut command = rust_peer("peer-may-minihttp")?;
            command.arg("--pin-workers");
            command
        }
        Kind::Bhav => bail!("bhav is no peer"),
    };
    let mut process = Process::start(name, command, &programs.work_folder)?;
    process.wait_until_accepting(address)?;
    let served = Snapshot::of(address)?;
    let same = if served.body == snapshot.body {
        "the same"
    } else {
        "another"
    };
    let (got, wanted) = (&served.headers, &snapshot.headers);
    ensure!(served == snapshot, "{name} serves {same} body, headers {got:?} for {wanted:?}");
    Ok(Server {
        address,
        process,
        metrics: None,
        bhav: None,
    })
}

/// Makes `folder`, with nothing in it.
pub fn empty_folder(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).context("empty a folder")?;
    }
    fs::create_dir(folder).context("create a folder")
}

/// Makes `to` the same state as `from`, whose server has ended.
pub fn copy_state(from: &Path, to: &Path) -> Result<()> {
    empty_folder(to)?;
    for entry in fs::read_dir(from)
        .context("copy a state folder")?
        .filter_map(io::Result::ok)
    {
        fs::copy(entry.path(), to.join(entry.file_name())).context("copy a state folder")?;
    }
    Ok(())
}
