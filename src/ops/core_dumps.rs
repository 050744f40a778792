//! Keeps the process's memory to itself: no core file and no debugger of the same user gets at
//! credentials in flight.
//!
//! Called once on the main thread before anything starts. A privileged user can still look; the
//! kernel lets nobody refuse that.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Whether texts that may quote data of a request are shown, and debuggers let in.
static DEBUGGABLE: AtomicBool = AtomicBool::new(false);

/// Switches core files and ptrace off, for this process and what it may start.
///
/// # Errors
/// What the system says.
pub fn close_memory() -> io::Result<()> {
    // The limit first: it needs no further call to hold, and the kernel keeps it over `execve`.
    rlimit::setrlimit(rlimit::Resource::CORE, 0, 0)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Leaves the memory open and lets the panic log quote what a panic was about.
pub fn allow_debugging() {
    DEBUGGABLE.store(true, Ordering::Relaxed);
}

/// Whether [`allow_debugging`] was called.
pub fn is_debuggable() -> bool {
    DEBUGGABLE.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::process::{DumpableBehavior, dumpable_behavior};

    /// Set in the child process: what is switched off stays off.
    const CHILD: &str = "PRIVACY_CHILD";

    #[test]
    fn a_closed_process_cannot_be_dumped() {
        if std::env::var_os(CHILD).is_some() {
            super::close_memory().unwrap();
            assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
            assert_eq!(rlimit::getrlimit(rlimit::Resource::CORE).unwrap(), (0, 0));
            return;
        }
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "ops::privacy::tests::a_closed_process_cannot_be_dumped"])
            .env(CHILD, "1")
            .status()
            .unwrap();
        assert!(status.success());
    }
}
