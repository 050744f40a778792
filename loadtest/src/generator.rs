//! Runs the generator against one server and reads the server's CPU time around the measured part.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use openloop::report::{HeldReport, IdleReport, LoadReport};
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::process::{Process, machine_busy_us};
use crate::servers::Server;

/// What a slice asks for.
#[derive(Debug, Clone)]
pub enum Ask {
    /// One path at a fixed rate.
    Open {
        /// Path.
        path: String,
        /// Connections.
        connections: usize,
        /// Requests a second.
        rate_per_s: u64,
        /// Requests are gathered at the beginning of ticks of so many microseconds.
        tick_us: u64,
    },
    /// The snapshot as fast as it comes.
    Closed {
        /// Path.
        path: String,
        /// Connections.
        connections: usize,
    },
    /// Whole requests, one for each connection in turn, as fast as they are answered or at a rate.
    Requests {
        /// File with the requests, a JSON list of texts.
        file: PathBuf,
        /// Connections.
        connections: usize,
        /// Requests a second; `None` is as fast as they are answered.
        rate_per_s: Option<u64>,
        /// Status that is expected.
        status: u16,
    },
    /// Clients that poll live-prices once a second.
    Mixed {
        /// File with the symbols.
        symbols: PathBuf,
        /// Clients.
        clients: usize,
    },
}

/// One slice: a server under one load for a few seconds.
#[derive(Debug, Clone, Copy)]
pub struct Slice {
    /// The generator's figures.
    pub load: LoadReport,
    /// CPU time of the server per response, in microseconds.
    pub cpu_us_per_request: f64,
    /// Share of all cores that was used by neither the server nor the generator: other programs,
    /// and the kernel's work that it charges to nobody.
    pub foreign_share: f64,
}

/// The generator program.
pub struct Generator {
    program: PathBuf,
    cores: f64,
}

impl Generator {
    /// The generator in `folder`, on a machine with `cores`.
    pub fn new(folder: &Path, cores: usize) -> Self {
        Self { program: folder.join("openloop"), cores: cores as f64 }
    }

    /// Runs one slice.
    ///
    /// # Errors
    /// The generator failed, or the server answered nothing.
    pub fn measure(&self, server: &Server, ask: &Ask, duration_ms: u64) -> Result<Slice, Error> {
        let mut command = Command::new(&self.program);
        command.args(arguments(ask));
        command.arg("--target").arg(server.address.to_string());
        command.arg("--duration-ms").arg(duration_ms.to_string());
        command.arg("--attended");
        let mut attended = Attended::start(command)?;
        attended.expect_ready()?;

        let before = Reading::take(&server.process)?;
        attended.go()?;
        let load: LoadReport = attended.read_json()?;
        let after = Reading::take(&server.process)?;
        attended.finish()?;

        if load.requests == 0 {
            return Err(Error::Invalid(format!("{} answered nothing", server.kind.name())));
        }
        let server_us = after.server_us - before.server_us;
        let capacity_us = after.at.duration_since(before.at).as_secs_f64() * 1e6 * self.cores;
        let busy_us = after.machine_us - before.machine_us;
        let foreign_us = busy_us - server_us - load.generator_cpu_s * 1e6;
        Ok(Slice {
            load,
            cpu_us_per_request: server_us / load.requests as f64,
            foreign_share: (foreign_us / capacity_us).max(0.0),
        })
    }

    /// Opens `connections` idle ones from several generator processes, each with a block of
    /// loopback addresses, and returns when all have settled or the deadline has passed.
    pub fn hold_idle(
        &self,
        target: SocketAddr,
        path: &str,
        connections: usize,
    ) -> Result<IdleHolders, Error> {
        let processes = connections.div_ceil(CONNECTIONS_PER_PROCESS);
        let mut holders = Vec::with_capacity(processes);
        for process in 0..processes {
            let share = connections / processes + usize::from(process < connections % processes);
            let mut command = Command::new(&self.program);
            command.args(["idle", "--path", path]);
            command.arg("--target").arg(target.to_string());
            command.arg("--connections").arg(share.to_string());
            let source_first = 2 + process * SOURCES_PER_PROCESS;
            command.arg("--source-first").arg(source_first.to_string());
            command
                .arg("--source-count")
                .arg(SOURCES_PER_PROCESS.to_string())
                .args(["--deadline-ms", IDLE_DEADLINE_MS]);
            holders.push(Attended::start(command)?);
        }
        let mut report = IdleReport::default();
        for holder in &mut holders {
            let part: IdleReport = holder.read_json()?;
            report.attempted += part.attempted;
            report.connected += part.connected;
            report.answered += part.answered;
            report.non_200 += part.non_200;
            report.failed += part.failed;
        }
        Ok(IdleHolders { holders, report })
    }
}

/// Idle connections of one generator process: well below the usual hard limit of 20,000 files.
const CONNECTIONS_PER_PROCESS: usize = 15_000;

/// Source addresses of one generator process.
const SOURCES_PER_PROCESS: usize = 4;

/// Longest wait for idle connections to settle; a server at its cap leaves some that never do.
const IDLE_DEADLINE_MS: &str = "15000";

/// Generator processes that hold idle connections.
pub struct IdleHolders {
    holders: Vec<Attended>,
    /// What became of the attempts.
    pub report: IdleReport,
}

impl IdleHolders {
    /// Closes the connections; returns how many the server had kept open until then.
    pub fn release(self) -> Result<usize, Error> {
        let mut still_open = 0;
        for mut holder in self.holders {
            holder.end_input();
            let held: HeldReport = holder.read_json()?;
            still_open += held.still_open;
            holder.finish()?;
        }
        Ok(still_open)
    }
}

fn arguments(ask: &Ask) -> Vec<String> {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    match ask {
        Ask::Open { path, connections, rate_per_s, tick_us } => words(&[
            "open",
            "--path",
            path,
            "--connections",
            &connections.to_string(),
            "--rate",
            &rate_per_s.to_string(),
            "--tick-us",
            &tick_us.to_string(),
        ]),
        Ask::Closed { path, connections } => {
            words(&["closed", "--path", path, "--connections", &connections.to_string()])
        }
        Ask::Requests { file, connections, rate_per_s, status } => {
            let file = file.to_string_lossy();
            let (connections, status) = (connections.to_string(), status.to_string());
            let mut all = match rate_per_s {
                Some(rate_per_s) => words(&["open", "--rate", &rate_per_s.to_string()]),
                None => words(&["closed"]),
            };
            all.extend(words(&["--requests", &file, "--connections", &connections]));
            all.extend(words(&["--status", &status]));
            all
        }
        Ask::Mixed { symbols, clients } => words(&[
            "mixed",
            "--symbols",
            &symbols.to_string_lossy(),
            "--clients",
            &clients.to_string(),
        ]),
    }
}

/// Clocks at one moment.
struct Reading {
    at: Instant,
    server_us: f64,
    machine_us: f64,
}

impl Reading {
    fn take(process: &Process) -> Result<Self, Error> {
        Ok(Self {
            at: Instant::now(),
            server_us: process.cpu_us()?,
            machine_us: machine_busy_us()?,
        })
    }
}

/// A generator process and the protocol of `openloop --attended`.
struct Attended {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Attended {
    fn start(mut command: Command) -> Result<Self, Error> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Error::io("start the generator"))?;
        let output = BufReader::new(child.stdout.take().expect("piped above"));
        Ok(Self { child, output })
    }

    fn line(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(Error::io("read from the generator"))?;
        if line.is_empty() {
            return Err(Error::Program("the generator gave up".to_owned()));
        }
        Ok(line)
    }

    fn expect_ready(&mut self) -> Result<(), Error> {
        match self.line()?.trim() {
            "ready" => Ok(()),
            _ => Err(Error::Unexpected("the generator is not ready")),
        }
    }

    fn go(&mut self) -> Result<(), Error> {
        let input = self.child.stdin.as_mut();
        input
            .ok_or(Error::Unexpected("the generator's input is closed"))?
            .write_all(b"go\n")
            .map_err(Error::io("write to the generator"))
    }

    fn read_json<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        serde_json::from_str(&self.line()?)
            .map_err(|_| Error::Unexpected("the generator's figures"))
    }

    fn end_input(&mut self) {
        drop(self.child.stdin.take());
    }

    fn finish(mut self) -> Result<(), Error> {
        self.end_input();
        self.child.wait().map_err(Error::io("wait for the generator"))?;
        Ok(())
    }
}

impl Drop for Attended {
    /// After an error the generator may still be running its load.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
