//! Readers of the stream as one process of the generator: a crowd beside other load, readers that
//! never read, and a crowd that a restart sends away and that comes back.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use openloop::report::ReadersReport;

use crate::figures::{Figures, Key, Slice};
use crate::generator::{self, report};
use crate::harness::{Harness, Programs};
use crate::process::Process;
use crate::render::number;
use crate::servers::{self, More, Server, State};
use crate::wait;

/// Readers of a crowd.
pub const READERS: usize = 10_000;

/// Readers that never read.
const SILENT: usize = 1_000;

/// Room for a crowd, and for others: by default streams have half of 10,000 connections.
pub const SETTINGS: &[(&str, &str)] = &[
    ("BHAV_MAX_CONNECTIONS", "15000"),
    ("BHAV_STREAMS_MAX", "12000"),
];

/// Longest wait for all streams to be open, and for a report.
const OPEN_DEADLINE: Duration = Duration::from_secs(60);

/// Time for a server to come to rest before its memory is read.
const REST: Duration = Duration::from_secs(2);

/// Longest wait until the last silent reader is cut off.
const CUT_DEADLINE: Duration = Duration::from_secs(300);

/// Between two looks at the silent ones.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// In a quick run a silent reader's socket takes little, so that it is noticed sooner.
const QUICK_BUFFER_BYTES: usize = 4_096;

/// Longest wait until everyone is back.
const RETURN_DEADLINE: Duration = Duration::from_secs(30);

/// Readers that are connected; dropping it disconnects them.
pub struct Crowd {
    generator: Process,
    fresh_kib: f64,
    held_kib: f64,
}

impl Crowd {
    /// Connects `readers`, and begins to count.
    pub fn gather(programs: &Programs, server: &Server, readers: usize) -> Result<Self> {
        let fresh_kib = server.process.memory_kib("VmRSS")?;
        let mut generator = start(programs, server, readers, &[])?;
        let open: usize = report(&generator, OPEN_DEADLINE + REST)?;
        ensure!(open == readers, "only {open} of {readers} streams are open");
        thread::sleep(REST);
        let held_kib = server.process.memory_kib("VmRSS")?;
        generator.write_line("go")?;
        let mut crowd = Self {
            generator,
            fresh_kib,
            held_kib,
        };
        // What happens from here on is counted: it has heard it.
        crowd.report()?;
        Ok(crowd)
    }

    /// What it has seen since it was gathered.
    pub fn report(&mut self) -> Result<ReadersReport> {
        self.generator.write_line("report")?;
        report(&self.generator, OPEN_DEADLINE)
    }

    /// The same as values of a slice.
    pub fn values(&mut self) -> Result<BTreeMap<String, f64>> {
        let seen = self.report()?;
        let grown_kib = (self.held_kib - self.fresh_kib).max(0.0);
        let values = [
            ("KiB", grown_kib / seen.open.max(1) as f64),
            ("frames/s", seen.frames as f64 / seen.window_s),
            ("delay p50 ms", seen.delay.p50_us / 1e3),
            ("delay p99 ms", seen.delay.p99_us / 1e3),
            ("delay max ms", seen.delay.max_us / 1e3),
            ("all served p50 ms", seen.all_served.p50_us / 1e3),
            ("all served p99 ms", seen.all_served.p99_us / 1e3),
            ("skipped", seen.skipped as f64),
            ("went back", (seen.went_back + seen.repeated) as f64),
            ("lost", (seen.broken + seen.refused + seen.ended) as f64),
        ];
        Ok(values
            .map(|(name, value)| (format!("readers {name}"), value))
            .into())
    }
}

fn start(programs: &Programs, server: &Server, readers: usize, more: &[&str]) -> Result<Process> {
    let (readers, deadline_ms) = (readers.to_string(), OPEN_DEADLINE.as_millis().to_string());
    let arguments = [
        &["--connections", &readers, "--deadline-ms", &deadline_ms],
        more,
    ]
    .concat();
    let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
    generator::start(programs, server, "openloop-readers", "readers", &arguments)
}

/// CPU time of the server for one frame to one reader: what it used beyond the quiet case.
pub fn cpu_us_per_frame(figures: &Figures, crowd: Key) -> Option<f64> {
    let quiet = (crowd.0, "quiet");
    let per_s = |slice: &Slice| slice.cpu_us_per_request * slice.load.rate_per_s;
    let more_us = figures.median(crowd, per_s)? - figures.median(quiet, per_s)?;
    let frames = figures.median(crowd, |slice| slice.value("readers frames/s"))?;
    (frames > 0.0).then_some(more_us / frames)
}

/// Readers that ask and never read: what they hold, and when they are cut off.
pub fn silent(harness: &Harness) -> Result<String> {
    let server = harness.start_bhav("silent", State::Signals, SETTINGS, More::default())?;
    thread::sleep(REST);
    let (fresh_kib, fresh_kernel_kib) = (server.process.memory_kib("VmRSS")?, kernel_kib()?);
    let bytes = if harness.is_quick {
        QUICK_BUFFER_BYTES
    } else {
        0
    }
    .to_string();
    let more = ["--never-read", "--receive-buffer-bytes", &bytes];
    let generator = start(&harness.programs, &server, SILENT, &more)?;
    let asked: usize = report(&generator, OPEN_DEADLINE + REST)?;
    let began = Instant::now();
    let (mut rss_kib, mut all_kib, mut unread_bytes) = (fresh_kib, fresh_kernel_kib, 0);
    let mut first_cut = None;
    let all_cut = wait::until(CUT_DEADLINE, || {
        let tables = fs::read_to_string("/proc/net/tcp").context("read the table of sockets")?;
        let (connections, unread) = queues(&tables, server.address.port());
        rss_kib = server.process.memory_kib("VmRSS")?.max(rss_kib);
        all_kib = kernel_kib()?.max(all_kib);
        unread_bytes = unread.max(unread_bytes);
        // The table is not of one instant: some connections are twice in it, or not.
        if first_cut.is_none() && connections * 100 < asked * 99 {
            first_cut = Some(began.elapsed());
        }
        let is_over = first_cut.is_some() && connections == 0;
        thread::sleep(LOOK_INTERVAL);
        Ok(is_over.then(|| began.elapsed()))
    })?;
    let seconds = |time: Option<Duration>| number(time.map(|time| time.as_secs_f64()), 1);
    let each = |kib: f64| number(Some(kib / asked.max(1) as f64), 1);
    Ok(format!(
        "{asked} readers that ask and never read. Most that the process grew by: {} KiB for each; \
         most unsent or not acknowledged in its \
         sockets: {} KiB for each; most that the kernel's TCP memory grew by, both ends of each \
         connection: {} KiB for each. A hundredth was cut off after {} s, the last after {} s.\n",
        each(rss_kib - fresh_kib),
        each(unread_bytes as f64 / 1_024.0),
        each(all_kib - fresh_kernel_kib),
        seconds(first_cut),
        seconds(all_cut),
    ))
}

/// Connections of readers to a port, which do not come from the first loopback address, and the
/// bytes that they have not read, in the text of /proc/net/tcp.
fn queues(tables: &str, port: u16) -> (usize, u64) {
    const ESTABLISHED: &str = "01";
    const FIRST_LOOPBACK: &str = "0100007F";
    let local = format!("{FIRST_LOOPBACK}:{port:04X}");
    let (mut connections, mut unread_bytes) = (0, 0);
    for line in tables.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().take(5).collect();
        let &[_, own, other, state, queued] = &fields[..] else {
            continue;
        };
        let is_reader = own == local && !other.starts_with(FIRST_LOOPBACK);
        if is_reader && state == ESTABLISHED {
            let unread = queued.split(':').next().unwrap_or_default();
            connections += 1;
            unread_bytes += u64::from_str_radix(unread, 16).unwrap_or(0);
        }
    }
    (connections, unread_bytes)
}

/// What the kernel has reserved for TCP on this machine.
fn kernel_kib() -> Result<f64> {
    let text = fs::read_to_string("/proc/net/sockstat").context("read /proc/net/sockstat")?;
    let pages = pages_in(&text).context("no TCP memory in /proc/net/sockstat")?;
    // SAFETY: a plain query.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as f64;
    Ok(pages as f64 * page_bytes / 1_024.0)
}

fn pages_in(sockstat: &str) -> Option<u64> {
    let line = sockstat
        .lines()
        .find_map(|line| line.strip_prefix("TCP: "))?;
    let mut words = line.split_whitespace();
    words.find(|word| *word == "mem")?;
    words.next()?.parse().ok()
}

/// A restart with a crowd: how long the process takes to end, and when the readers are back.
pub fn drain(harness: &Harness) -> Result<String> {
    let more = More {
        socket: Some(servers::listen()?),
        ..More::default()
    };
    let mut server = harness.start_bhav("drain", State::Signals, SETTINGS, more)?;
    let mut crowd = Crowd::gather(&harness.programs, &server, READERS)?;
    let ended = server.restart(&harness.programs.work_folder)?;
    let began = Instant::now();
    let mut seen = crowd.report()?;
    while seen.open < READERS && began.elapsed() < RETURN_DEADLINE {
        thread::sleep(LOOK_INTERVAL);
        seen = crowd.report()?;
    }
    let classes = seen
        .returns
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0);
    let classes: Vec<String> = classes
        .map(|(class, count)| format!("{:.1} s: {count}", (class + 1) as f64 / 2.0))
        .collect();
    Ok(format!(
        "SIGTERM to a process with {READERS} readers, whose listening socket the next process \
         takes over: it ended after {:.2} s (wanted: 2). {} streams ended in good order, {} \
         broke, {} attempts were refused, {} of the readers are back, {} snapshots went back. \
         Returns by the time since the signal, up to: {}.\n",
        ended.as_secs_f64(),
        seen.ended,
        seen.broken,
        seen.refused,
        seen.open,
        seen.went_back,
        classes.join(", "),
    ))
}

#[cfg(test)]
mod tests {
    use super::{pages_in, queues};

    #[test]
    fn connections_of_readers_and_what_they_left_unread_are_counted() {
        let tables = "\
            sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0\n\
            1: 0100007F:1F90 0200007F:C001 01 00000400:00000000 00:00000000 00000000 0\n\
            2: 0100007F:1F90 0300007F:C001 01 00000100:00000000 00:00000000 00000000 0\n\
            3: 0100007F:1F90 0100007F:C002 01 00000100:00000000 00:00000000 00000000 0\n\
            4: 0200007F:C001 0100007F:1F90 01 00000007:00000400 00:00000000 00000000 0\n\
            5: 0100007F:1F90 0300007F:C003 06 00000000:00000000 00:00000000 00000000 0\n";
        assert_eq!(queues(tables, 0x1f90), (2, 0x500));
    }

    #[test]
    fn tcp_memory_is_found() {
        let text = "sockets: used 9\nTCP: inuse 5 orphan 0 tw 2 alloc 6 mem 17\nUDP: mem 3\n";
        assert_eq!(pages_in(text), Some(17));
        assert_eq!(pages_in("UDP: mem 3\n"), None);
    }
}
