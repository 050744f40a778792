//! Runs a test that measures or starves a whole process in a process of its own: the test binary
//! again, with one test named.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

const MARK: &str = "BHAV_TEST_CHILD";

/// Runs `body` in a process of its own. `test` is the path of the calling test, as `--exact` takes
/// it.
#[track_caller]
pub fn alone(test: &str, body: impl FnOnce()) {
    run(test, Stdio::null(), "exec \"$0\" \"$@\"", body);
}

/// Same as [`alone`], in a process limited to `descriptors_max` descriptors.
#[track_caller]
pub fn alone_with_few_descriptors(test: &str, descriptors_max: usize, body: impl FnOnce()) {
    let limited = format!("ulimit -n {descriptors_max} && exec \"$0\" \"$@\"");
    run(test, Stdio::null(), &limited, body);
}

/// Same as [`alone`], in a process that gets `socket` as systemd passes it.
#[track_caller]
pub fn alone_with_socket(test: &str, socket: OwnedFd, body: impl FnOnce()) {
    let activated = "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\" 3<&0 </dev/null";
    run(test, socket.into(), activated, body);
}

/// Same as [`alone_with_socket`], under a supervisor that does not set the process id.
#[track_caller]
pub fn alone_with_socket_of_nobody(test: &str, socket: OwnedFd, body: impl FnOnce()) {
    run(test, socket.into(), "LISTEN_FDS=1 exec \"$0\" \"$@\" 3<&0 </dev/null", body);
}

#[track_caller]
fn run(test: &str, stdin: Stdio, script: &str, body: impl FnOnce()) {
    if std::env::var_os(MARK).is_some() {
        return body();
    }
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(MARK, "1")
        .stdin(stdin)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 passed"), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Open descriptors of this process.
pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Reads this process's processor time through a file that is opened once, so that it works without
/// a further descriptor.
pub struct CpuMeter(File);

impl CpuMeter {
    pub fn open() -> Self {
        Self(File::open("/proc/self/stat").unwrap())
    }

    /// User and system time so far, in clock ticks (100 a second).
    pub fn ticks(&mut self) -> u64 {
        let mut stat = String::new();
        self.0.rewind().unwrap();
        self.0.read_to_string(&mut stat).unwrap();
        // Fields 14 and 15 of proc(5), counted after the command name, which may contain anything.
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap()
            .split_whitespace()
            .collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }
}

/// Resident memory of this process in KiB.
pub fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
