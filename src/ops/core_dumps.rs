//! Disables core dumps and ptrace, so that neither a core file nor a debugger of the same user can
//! read the credentials in this process's memory.
//!
//! Called once on the main thread before anything starts. A privileged user can still read the
//! memory; no process can prevent that.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Whether debuggers are allowed and panic texts that may quote request data are logged.
static DEBUGGABLE: AtomicBool = AtomicBool::new(false);

/// Disables core files and ptrace for this process and the programs that it starts.
///
/// # Errors
/// The error of the system call.
pub fn close_memory() -> io::Result<()> {
    // The limit first: unlike the dumpable flag, it survives `execve`.
    rlimit::setrlimit(rlimit::Resource::CORE, 0, 0)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Leaves core files and ptrace enabled, and allows the panic log to quote request data.
pub fn allow_debugging() {
    DEBUGGABLE.store(true, Ordering::Relaxed);
}

/// Whether [`allow_debugging`] was called.
pub fn is_debuggable() -> bool {
    DEBUGGABLE.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use rustix::process::{DumpableBehavior, dumpable_behavior};

    use crate::ops::child_test;

    #[test]
    fn a_process_with_closed_memory_cannot_be_dumped() {
        // In a child process, because memory that is closed cannot be opened again.
        if child_test::is_child() {
            super::close_memory().unwrap();
            assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
            assert_eq!(rlimit::getrlimit(rlimit::Resource::CORE).unwrap(), (0, 0));
            return;
        }
        child_test::run(module_path!(), "a_process_with_closed_memory_cannot_be_dumped", |_| {});
    }
}
