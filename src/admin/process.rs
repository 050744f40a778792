//! What the system knows of this process. Runs on the admin lane: reads files of `/proc/self`,
//! which a hardened unit leaves visible. What cannot be read is left out.

use std::fs;
use std::path::Path;

use rustix::time::ClockId;

/// Processor time used so far, user and system, in seconds.
pub fn cpu_seconds() -> f64 {
    let used = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// A number of `/proc/self/status`; sizes are in KiB there.
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

/// Open descriptors, and how many there may be.
pub fn descriptors() -> Option<(usize, u64)> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count();
    let (max, _) = rlimit::getrlimit(rlimit::Resource::NOFILE).ok()?;
    // The one that reads the folder is open meanwhile.
    Some((open.saturating_sub(1), max))
}

/// Bytes that this user may still write where `path` is.
pub fn available_bytes(path: &Path) -> Option<u64> {
    let filesystem = rustix::fs::statvfs(path).ok()?;
    filesystem.f_bavail.checked_mul(filesystem.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_known() {
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
