//! The one way in which the driver starts a program: a server, the simulator, a load generator.
//! Reads its lines, CPU time and memory, and ends it.
//!
//! A server may be several processes (nginx). Figures are sums over the process and its children.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use openloop::sys;

use crate::wait;

/// Longest wait for a server to accept connections or to announce its address.
const START_DEADLINE: Duration = Duration::from_secs(30);

/// Longest wait for a program to end after SIGTERM, before it is killed.
const STOP_DEADLINE: Duration = Duration::from_secs(5);

/// A running program; dropping it stops it.
pub struct Process {
    child: Child,
    name: String,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Process {
    /// Starts `command`. Its standard error goes to `NAME.log` in `log_folder`.
    pub fn start(name: &str, mut command: Command, log_folder: &Path) -> Result<Self> {
        let log =
            File::create(log_folder.join(format!("{name}.log"))).context("create a log file")?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log);
        // SAFETY: prctl is async-signal-safe and touches no memory of the parent.
        unsafe {
            command.pre_exec(|| {
                // A driver that is killed must not leave servers behind.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                Ok(())
            });
        }
        let mut child = command.spawn().context("start a program")?;
        let stdout = child.stdout.take().expect("piped above");
        let input = child.stdin.take();
        let (sender, lines) = mpsc::channel();
        // Reads to the end even when nobody listens, so that the program never blocks on the pipe.
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Ok(Self {
            child,
            name: name.to_owned(),
            input,
            lines,
        })
    }

    /// The next line of standard output.
    pub fn line(&self, deadline: Duration) -> Result<String> {
        self.lines
            .recv_timeout(deadline)
            .with_context(|| not_serving(&self.name))
    }

    /// Writes a line to standard input.
    pub fn write_line(&mut self, line: &str) -> Result<()> {
        let input = self.input.as_mut().context("standard input is closed")?;
        writeln!(input, "{line}").context("write to a program")
    }

    /// Ends standard input.
    pub fn end_input(&mut self) {
        self.input = None;
    }

    /// The address behind `marker` in the line of standard output that starts with it. `before`
    /// gets every line before that one.
    pub fn announced(&self, marker: &str, mut before: impl FnMut(&str)) -> Result<SocketAddr> {
        loop {
            let line = self.line(START_DEADLINE)?;
            if let Some(address) = line.strip_prefix(marker) {
                return address.trim().parse().context(line.clone());
            }
            before(&line);
        }
    }

    /// Waits until the server accepts connections at `address`.
    pub fn wait_until_accepting(&mut self, address: SocketAddr) -> Result<()> {
        let (child, name) = (&mut self.child, &self.name);
        let accepting = wait::until(START_DEADLINE, || {
            ensure!(child.try_wait()?.is_none(), not_serving(name));
            Ok(TcpStream::connect(address).ok().map(drop))
        })?;
        accepting.with_context(|| not_serving(name))
    }

    /// Ends the program as a supervisor does: SIGTERM, and SIGKILL where that does not help.
    pub fn stop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        if let Ok(pid) = libc::pid_t::try_from(self.child.id()) {
            // SAFETY: plain integers; a child has not been waited for, so the id is still its own.
            unsafe { libc::kill(pid, libc::SIGTERM) };
        }
        let ended = wait::until(STOP_DEADLINE, || Ok(self.child.try_wait().ok().flatten()));
        if !matches!(ended, Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    /// CPU time so far, in microseconds.
    pub fn cpu_us(&self) -> Result<f64> {
        let clocks = self.pids().into_iter().map(sys::cpu_ns);
        let total_ns = clocks.sum::<io::Result<u64>>().context("read CPU time")?;
        Ok(total_ns as f64 / 1_000.0)
    }

    /// CPU time so far of the threads whose name begins with `prefix`, in microseconds.
    pub fn threads_cpu_us(&self, prefix: &str) -> Result<f64> {
        let tasks = format!("/proc/{}/task", self.child.id());
        let entries = fs::read_dir(tasks).context("list a server's threads")?;
        let mut total_ns = 0;
        for task in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            // A thread may end between the listing and the reading.
            let read = |file| fs::read_to_string(task.join(file)).unwrap_or_default();
            if read("comm").starts_with(prefix) {
                let ran = read("schedstat");
                total_ns += ran
                    .split(' ')
                    .next()
                    .and_then(|ns| ns.parse().ok())
                    .unwrap_or(0_u64);
            }
        }
        Ok(total_ns as f64 / 1_000.0)
    }

    /// Resident memory now (`VmRSS`) or at its height since the start (`VmHWM`), in KiB. Pages that
    /// processes share count in each of them.
    pub fn memory_kib(&self, field: &str) -> Result<f64> {
        let figure = |pid: u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let rest = status
                .lines()
                .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
            rest.trim().trim_end_matches(" kB").parse::<f64>().ok()
        };
        let kib = self.pids().into_iter().map(figure).sum::<Option<f64>>();
        kib.context("no memory figures in /proc")
    }

    fn pids(&self) -> Vec<u32> {
        let own = self.child.id();
        // Those that its first thread has started, as nginx starts its workers.
        let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children"));
        let children = children.unwrap_or_default();
        children
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .chain([own])
            .collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Why a program ended, or did not get ready in time, is in its log.
pub fn not_serving(name: &str) -> String {
    format!("{name} does not serve; its log is in the work folder")
}

/// CPU time that the whole machine has spent busy so far, in microseconds.
pub fn machine_busy_us() -> Result<f64> {
    let stat = fs::read_to_string("/proc/stat").context("read /proc/stat")?;
    let line = stat.lines().next().unwrap_or_default();
    let fields = line
        .split_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok());
    let ticks: Vec<f64> = fields.collect();
    // user nice system idle iowait irq softirq steal; guest time is already in user.
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = ticks[..] else {
        bail!("short cpu line in /proc/stat");
    };
    // SAFETY: a plain query.
    let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    Ok((user + nice + system + irq + softirq + steal) / ticks_per_s * 1e6)
}
