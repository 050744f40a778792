//! Exit codes of every command, after sysexits(3). The systemd unit does not restart the service
//! after code 64.

use std::io;
use std::process::ExitCode;

use rustix::io::Errno;

/// An exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The command succeeded, or the service was drained after SIGTERM.
    Ok = 0,
    /// `bhav status`: the service works, and something needs an operator. `bhav healthcheck`: the
    /// probe failed.
    Degraded = 1,
    /// `bhav status` only: the service cannot serve, or does not answer.
    Down = 2,
    /// Wrong command line, settings or database version (EX_USAGE): restarting cannot help.
    Usage = 64,
    /// The given data cannot be used: candles, login code, password or backup (EX_DATAERR).
    Data = 65,
    /// The address or the state directory is in use, or the service or broker does not answer
    /// (EX_UNAVAILABLE).
    Unavailable = 69,
    /// A bug, or the system has no thread or file descriptor left (EX_SOFTWARE).
    Internal = 70,
    /// The state directory, a requested file or the output cannot be written (EX_IOERR).
    StateDir = 74,
}

/// Why a command does not start or go on, and the exit code that says so.
pub type Failed = (String, Exit);

impl Exit {
    /// `otherwise`, except for a temporary shortage (descriptors, memory). A shortage is
    /// [`Exit::Internal`], so that systemd restarts the service, which it does not after
    /// [`Exit::Usage`].
    pub(crate) fn of_io(error: &io::Error, otherwise: Self) -> Self {
        const SHORTAGES: [Errno; 4] = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN];
        match Errno::from_io_error(error) {
            Some(errno) if SHORTAGES.contains(&errno) => Self::Internal,
            _ => otherwise,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The table of exit codes in `--help`.
pub const HELP: &str = "\
Exit codes:
   0  success, or stopped by SIGTERM or SIGINT after open requests were answered
   1  status: degraded; healthcheck: not alive or not ready
   2  status only: down or not reachable
  64  wrong command line or settings, a database that a newer version or another program wrote,
      one that is missing where one stood,
      or a limit on address space that is too low; restarting cannot help
  65  the login code, the new password or the backup cannot be used
  69  the address or the state directory is in use by another instance, or the service or a
      broker does not answer
  70  internal error, or the system has no thread or file descriptor left
  74  the state directory cannot be created, its signing key cannot be used, or a backup
      or the output cannot be written";

// ---- Version
//
// Version and profile of this build.

/// The package version, as in `/api/health`.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `release`, or `debug` for a build with assertions, which is too slow for production.
pub(crate) const PROFILE: &str = if cfg!(debug_assertions) {
    "debug"
} else {
    "release"
};

/// One line for `bhav version` and the first line of the log.
pub(crate) fn line() -> String {
    use std::env::consts::{ARCH, OS};
    format!("bhav {VERSION} ({PROFILE}, {ARCH}-{OS})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_each_exit_code() {
        use Exit::{Data, Degraded, Down, Internal, Ok, StateDir, Unavailable, Usage};
        for exit in [
            Ok,
            Degraded,
            Down,
            Usage,
            Data,
            Unavailable,
            Internal,
            StateDir,
        ] {
            assert!(HELP.contains(&format!("\n  {:>2}  ", exit as u8)), "{exit:?}");
        }
    }
}
