//! CPU time, memory, threads and descriptors of this process. Runs on the lane `admin`, as it reads
//! `/proc/self`. Values that cannot be read are `None`.

use std::fs;
use std::path::Path;

use rustix::time::ClockId;

/// User and system CPU time used so far, in seconds.
pub fn cpu_seconds() -> f64 {
    let used = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// The text of `/proc/self/status`, in which sizes are in KiB.
pub struct Status(String);

impl Status {
    pub fn read() -> Option<Self> {
        fs::read_to_string("/proc/self/status").ok().map(Self)
    }

    fn number(&self, name: &str) -> Option<u64> {
        let mut lines = self.0.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        value.split_whitespace().next()?.parse().ok()
    }

    pub fn resident_bytes(&self) -> Option<u64> {
        self.number("VmRSS")?.checked_mul(1_024)
    }

    pub fn threads(&self) -> Option<u64> {
        self.number("Threads")
    }
}

/// Open file descriptors, and the limit on them.
pub fn descriptors() -> Option<(usize, u64)> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count();
    let (max, _) = rlimit::getrlimit(rlimit::Resource::NOFILE).ok()?;
    // One of the entries is the descriptor by which the directory is read.
    Some((open.saturating_sub(1), max))
}

/// Bytes that this user may still write on the file system of `path`.
pub fn available_bytes(path: &Path) -> Option<u64> {
    let filesystem = rustix::fs::statvfs(path).ok()?;
    filesystem.f_bavail.checked_mul(filesystem.f_frsize)
}

#[cfg(test)]
mod tests {
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
