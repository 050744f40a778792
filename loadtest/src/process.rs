//! One server process under load: start, readiness, CPU time, memory, end.
//!
//! A server may be several processes (nginx); figures are sums over the process and its children.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use openloop::sys;

use crate::error::Error;

/// Longest wait for a server to accept connections or to announce its address.
const START_DEADLINE: Duration = Duration::from_secs(30);

/// Longest wait for a server to end by itself before it is killed.
const STOP_DEADLINE: Duration = Duration::from_secs(5);

/// Pause between two looks at a server that is starting or stopping.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A running server; dropping it stops it.
pub struct Process {
    child: Child,
    name: String,
    lines: Receiver<String>,
}

impl Process {
    /// Starts `command`. Its standard error goes to `NAME.log` in `log_folder`.
    pub fn start(name: &str, mut command: Command, log_folder: &Path) -> Result<Self, Error> {
        let log = File::create(log_folder.join(format!("{name}.log")))
            .map_err(Error::io("create a log file"))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        // SAFETY: prctl is async-signal-safe and touches no memory of the parent.
        unsafe {
            command.pre_exec(|| {
                // A driver that is killed must not leave servers behind.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                Ok(())
            });
        }
        let mut child = command.spawn().map_err(Error::io("start a server"))?;
        let stdout = child.stdout.take().expect("piped above");
        let (sender, lines) = mpsc::channel();
        // Reads to the end even when nobody listens, so that the server never blocks on the pipe.
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Ok(Self { child, name: name.to_owned(), lines })
    }

    /// Waits until the server accepts connections at `address`.
    pub fn wait_until_accepting(&mut self, address: SocketAddr) -> Result<(), Error> {
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            self.check_alive(started)?;
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Waits for the line of standard output that starts with `marker`; the address after it.
    pub fn announced(&mut self, marker: &str) -> Result<SocketAddr, Error> {
        let started = Instant::now();
        loop {
            match self.lines.recv_timeout(POLL_INTERVAL) {
                Ok(line) => {
                    if let Some(address) = line.strip_prefix(marker) {
                        let unread = |_| Error::Unexpected("the address that was announced");
                        return address.trim().parse().map_err(unread);
                    }
                }
                Err(_) => self.check_alive(started)?,
            }
        }
    }

    fn check_alive(&mut self, started: Instant) -> Result<(), Error> {
        let ended = self.child.try_wait().map_err(Error::io("watch a server"))?;
        if ended.is_some() || started.elapsed() > START_DEADLINE {
            return Err(Error::NotServing(self.name.clone()));
        }
        Ok(())
    }

    /// CPU time so far, in microseconds.
    pub fn cpu_us(&self) -> Result<f64, Error> {
        let mut total_ns = 0;
        for pid in self.pids() {
            total_ns += sys::cpu_ns(pid).map_err(Error::io("read CPU time"))?;
        }
        Ok(total_ns as f64 / 1_000.0)
    }

    /// CPU time so far of the threads whose name begins with `prefix`, in microseconds.
    pub fn threads_cpu_us(&self, prefix: &str) -> Result<f64, Error> {
        let tasks = format!("/proc/{}/task", self.child.id());
        let entries = fs::read_dir(tasks).map_err(Error::io("list a server's threads"))?;
        let mut total_ns = 0;
        for task in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            // A thread may end between the listing and the look.
            let read = |file| fs::read_to_string(task.join(file)).unwrap_or_default();
            if read("comm").starts_with(prefix) {
                let ran = read("schedstat");
                total_ns += ran.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0_u64);
            }
        }
        Ok(total_ns as f64 / 1_000.0)
    }

    /// Resident memory, in KiB. Pages shared between processes count in each of them.
    pub fn rss_kib(&self) -> Result<u64, Error> {
        self.memory_kib("VmRSS:")
    }

    /// The most resident memory since the start, in KiB.
    pub fn rss_peak_kib(&self) -> Result<u64, Error> {
        self.memory_kib("VmHWM:")
    }

    fn memory_kib(&self, what: &str) -> Result<u64, Error> {
        let mut total_kib = 0;
        for pid in self.pids() {
            let status = fs::read_to_string(format!("/proc/{pid}/status"))
                .map_err(Error::io("read memory use"))?;
            total_kib += status
                .lines()
                .find_map(|line| line.strip_prefix(what))
                .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok())
                .ok_or(Error::Unexpected("no memory figures in /proc"))?;
        }
        Ok(total_kib)
    }

    fn pids(&self) -> Vec<u32> {
        let own = self.child.id();
        let mut pids = children_of(own);
        pids.push(own);
        pids
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(pid) = libc::pid_t::try_from(self.child.id()) {
            // SAFETY: the child has not been waited for, so the id is still its own.
            unsafe { libc::kill(pid, libc::SIGTERM) };
        }
        let asked = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if asked.elapsed() > STOP_DEADLINE {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Processes whose parent is `pid`.
fn children_of(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&child| {
            fs::read_to_string(format!("/proc/{child}/stat")).ok().and_then(|stat| parent_in(&stat))
                == Some(pid)
        })
        .collect()
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
    let ticks: Vec<f64> = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal; guest time is already in user.
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = ticks[..] else {
        return Err(Error::Unexpected("short cpu line in /proc/stat"));
    };
    // SAFETY: a plain query.
    let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    Ok((user + nice + system + irq + softirq + steal) / ticks_per_s * 1e6)
}

/// A loopback address with a port that was free a moment ago, for servers that cannot report
/// the port the kernel chose.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
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
