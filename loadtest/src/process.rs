//! The one way in which the driver starts a program: a server, the simulator, a load generator.
//! Reads its lines, CPU time and memory, and ends it.
//!
//! A server may be several processes (nginx). Figures are sums over the process and its children.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use openloop::sys;

use crate::error::Error;
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
    pub fn start(name: &str, mut command: Command, log_folder: &Path) -> Result<Self, Error> {
        let log = File::create(log_folder.join(format!("{name}.log")))
            .map_err(Error::io("create a log file"))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        // SAFETY: prctl is async-signal-safe and touches no memory of the parent.
        unsafe {
            command.pre_exec(|| {
                // A driver that is killed must not leave servers behind.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                Ok(())
            });
        }
        let mut child = command.spawn().map_err(Error::io("start a program"))?;
        let stdout = child.stdout.take().expect("piped above");
        let input = child.stdin.take();
        let (sender, lines) = mpsc::channel();
        // Reads to the end even when nobody listens, so that the program never blocks on the pipe.
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Ok(Self { child, name: name.to_owned(), input, lines })
    }

    /// The next line of standard output.
    pub fn line(&self, deadline: Duration) -> Result<String, Error> {
        let none = |_| Error::NotServing(self.name.clone());
        self.lines.recv_timeout(deadline).map_err(none)
    }

    /// Writes a line to standard input.
    pub fn write_line(&mut self, line: &str) -> Result<(), Error> {
        let input = self.input.as_mut().ok_or(Error::invalid("standard input is closed"))?;
        writeln!(input, "{line}").map_err(Error::io("write to a program"))
    }

    /// Ends standard input.
    pub fn end_input(&mut self) {
        self.input = None;
    }

    /// The address behind `marker` in the line of standard output that starts with it.
    pub fn announced(&self, marker: &str) -> Result<SocketAddr, Error> {
        self.announced_after(marker, |_| {})
    }

    /// The same; `before` gets every line before that one.
    pub fn announced_after(
        &self,
        marker: &str,
        mut before: impl FnMut(&str),
    ) -> Result<SocketAddr, Error> {
        loop {
            let line = self.line(START_DEADLINE)?;
            before(&line);
            if let Some(address) = line.strip_prefix(marker) {
                let unread = |_| Error::Invalid(format!("{} announced {line}", self.name));
                return address.trim().parse().map_err(unread);
            }
        }
    }

    /// Waits until the server accepts connections at `address`.
    pub fn wait_until_accepting(&mut self, address: SocketAddr) -> Result<(), Error> {
        let (child, name) = (&mut self.child, &self.name);
        let accepting = wait::until(START_DEADLINE, || {
            if child.try_wait().map_err(Error::io("watch a server"))?.is_some() {
                return Err(Error::NotServing(name.clone()));
            }
            Ok(TcpStream::connect(address).ok().map(drop))
        })?;
        accepting.ok_or_else(|| Error::NotServing(name.clone()))
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
    pub fn cpu_us(&self) -> Result<f64, Error> {
        let clocks = self.pids().into_iter().map(sys::cpu_ns);
        let total_ns = clocks.sum::<Result<u64, _>>().map_err(Error::io("read CPU time"))?;
        Ok(total_ns as f64 / 1_000.0)
    }

    /// CPU time so far of the threads whose name begins with `prefix`, in microseconds.
    pub fn threads_cpu_us(&self, prefix: &str) -> Result<f64, Error> {
        let tasks = format!("/proc/{}/task", self.child.id());
        let entries = fs::read_dir(tasks).map_err(Error::io("list a server's threads"))?;
        let mut total_ns = 0;
        for task in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            // A thread may end between the listing and the reading.
            let read = |file| fs::read_to_string(task.join(file)).unwrap_or_default();
            if read("comm").starts_with(prefix) {
                let ran = read("schedstat");
                total_ns += ran.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0_u64);
            }
        }
        Ok(total_ns as f64 / 1_000.0)
    }

    /// Resident memory now (`VmRSS`) or at its height since the start (`VmHWM`), in KiB. Pages that
    /// processes share count in each of them.
    pub fn memory_kib(&self, field: &str) -> Result<f64, Error> {
        let mut total_kib = 0;
        for pid in self.pids() {
            let status = fs::read_to_string(format!("/proc/{pid}/status"))
                .map_err(Error::io("read memory use"))?;
            total_kib += status
                .lines()
                .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
                .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok())
                .ok_or(Error::invalid("no memory figures in /proc"))?;
        }
        Ok(total_kib as f64)
    }

    fn pids(&self) -> Vec<u32> {
        let own = self.child.id();
        let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
        let children = entries.filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            (parent_in(&stat)? == own).then_some(pid)
        });
        children.chain([own]).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The parent's id in a line of /proc/PID/stat: the second field after the command, which is in
/// parentheses and may itself hold anything.
fn parent_in(stat: &str) -> Option<u32> {
    let (_, after_command) = stat.rsplit_once(')')?;
    after_command.split_whitespace().nth(1)?.parse().ok()
}

/// CPU time that the whole machine has spent busy so far, in microseconds.
pub fn machine_busy_us() -> Result<f64, Error> {
    let stat = fs::read_to_string("/proc/stat").map_err(Error::io("read /proc/stat"))?;
    let line = stat.lines().next().unwrap_or_default();
    let fields = line.split_whitespace().skip(1).filter_map(|field| field.parse().ok());
    let ticks: Vec<f64> = fields.collect();
    // user nice system idle iowait irq softirq steal; guest time is already in user.
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = ticks[..] else {
        return Err(Error::invalid("short cpu line in /proc/stat"));
    };
    // SAFETY: a plain query.
    let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    Ok((user + nice + system + irq + softirq + steal) / ticks_per_s * 1e6)
}

#[cfg(test)]
mod tests {
    use super::parent_in;

    #[test]
    fn parent_is_found_behind_any_command_name() {
        assert_eq!(parent_in("42 (a) b (c)) S 7 42 42 0"), Some(7));
        assert_eq!(parent_in("garbage"), None);
    }
}
