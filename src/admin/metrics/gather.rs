//! One scrape: all metric families in their order. Runs on the lane `admin`.

use std::fs;
use std::path::Path;

use rustix::time::ClockId;

use crate::admin::exposition::{Exposition, Kind};
use crate::admin::listener::Watched;
use crate::admin::metrics::{edge, upstream, work};
use crate::ops::{exit, log, panic};
use crate::rt::LaneStats;

/// The text of one scrape. `own` are the counters of the lane `admin`.
pub(in crate::admin) fn gather(watched: &Watched, own: LaneStats) -> String {
    let mut text = Exposition::default();
    edge::write(&mut text, watched);
    work::write(&mut text, watched, own);
    upstream::write(&mut text, watched);
    own_process(&mut text, watched);
    text.finish()
}

fn own_process(text: &mut Exposition, watched: &Watched) {
    let labels =
        [("version", exit::VERSION), ("profile", exit::PROFILE), ("arch", std::env::consts::ARCH)];
    text.family(Kind::Gauge, "bhav_build_info", "Version and build; always 1.").sample(&labels, 1);
    text.counter(
        "bhav_log_lines_dropped_total",
        "Log lines dropped because standard error was read too slowly.",
        log::lines_dropped(),
    );
    text.counter(
        "bhav_log_writes_failed_total",
        "Failed writes to the log, usually because its reader closed it.",
        log::writes_failed(),
    );
    text.counter("bhav_panics_total", "Panics in any thread or coroutine.", panic::PANICS.value());
    if let Some(bytes) = available_bytes(&watched.sources.state_dir) {
        text.gauge(
            "bhav_state_dir_available_bytes",
            "Free space on the file system of the state directory.",
            bytes,
        );
    }
    text.gauge(
        "process_start_time_seconds",
        "Start time of the process, in seconds since the Unix epoch.",
        watched.started_s,
    );
    text.family(Kind::Counter, "process_cpu_seconds_total", "User and system CPU time.")
        .sample(&[], cpu_seconds());
    if let Some(status) = Status::read() {
        if let Some(bytes) = status.resident_bytes() {
            text.gauge("process_resident_memory_bytes", "Resident memory.", bytes);
        }
        if let Some(threads) = status.threads() {
            text.gauge("process_threads", "OS threads of the process.", threads);
        }
    }
    if let Some((open, max)) = descriptors() {
        text.gauge("process_open_fds", "Open file descriptors.", open);
        text.gauge("process_max_fds", "Limit on open file descriptors.", max);
    }
}

// ---- Process
//
// CPU time, memory, threads and descriptors of this process. Runs on the lane `admin`, as it reads
// `/proc/self`. Values that cannot be read are `None`.

/// User and system CPU time used so far, in seconds.
pub(crate) fn cpu_seconds() -> f64 {
    let used = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// The text of `/proc/self/status`, in which sizes are in KiB.
pub(super) struct Status(String);

impl Status {
    pub(super) fn read() -> Option<Self> {
        fs::read_to_string("/proc/self/status").ok().map(Self)
    }

    fn number(&self, name: &str) -> Option<u64> {
        let mut lines = self.0.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        value.split_whitespace().next()?.parse().ok()
    }

    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        self.number("VmRSS")?.checked_mul(1_024)
    }

    pub(super) fn threads(&self) -> Option<u64> {
        self.number("Threads")
    }
}

/// Open file descriptors, and the limit on them.
pub(super) fn descriptors() -> Option<(usize, u64)> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count();
    let (max, _) = rlimit::getrlimit(rlimit::Resource::NOFILE).ok()?;
    // One of the entries is the descriptor by which the directory is read.
    Some((open.saturating_sub(1), max))
}

/// Bytes that this user may still write on the file system of `path`.
pub(crate) fn available_bytes(path: &Path) -> Option<u64> {
    let filesystem = rustix::fs::statvfs(path).ok()?;
    filesystem.f_bavail.checked_mul(filesystem.f_frsize)
}

#[cfg(test)]
mod process_tests {
    use super::*;

    #[test]
    fn every_value_of_the_running_process_is_read() {
        let status = Status::read().unwrap();
        assert!(status.resident_bytes().unwrap() > 1_000_000);
        assert!(status.threads().unwrap() >= 1);
        let (open, max) = descriptors().unwrap();
        assert!(open >= 3 && max >= open as u64, "{open} of {max}");
        assert!(cpu_seconds() > 0.0);
        assert!(available_bytes(Path::new(".")).is_some());
        assert_eq!(available_bytes(Path::new("no/such/path")), None);
    }
}
