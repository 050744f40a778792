//! Exit codes, after sysexits(3). The unit file relies on 64 not being restarted.

use std::io;
use std::process::ExitCode;

use rustix::io::Errno;

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, or drained after SIGTERM.
    Ok = 0,
    /// `bhav status` alone: the service serves, and something needs an operator.
    Degraded = 1,
    /// `bhav status` alone: nothing is served, or nobody answers.
    Down = 2,
    /// Wrong command line, settings or database version (EX_USAGE): restarting cannot help.
    Usage = 64,
    /// What was given to work on cannot be used: candles, code, password, backup (EX_DATAERR).
    Data = 65,
    /// Cannot bind, another instance has the address or the state, or none answers
    /// (EX_UNAVAILABLE).
    Unavailable = 69,
    /// A fault of the program itself, or no thread or descriptor to be had (EX_SOFTWARE).
    Internal = 70,
    /// The state directory, a file asked for or the output cannot be written (EX_IOERR).
    StateDir = 74,
}

impl Exit {
    /// `otherwise`, but not for what the system lacks at this moment: it may be there at the next
    /// start, which [`Exit::Usage`] would keep a supervisor from making.
    pub fn of_io(error: &io::Error, otherwise: Self) -> Self {
        const LACKING: [Errno; 4] = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN];
        match Errno::from_io_error(error) {
            Some(errno) if LACKING.contains(&errno) => Self::Internal,
            _ => otherwise,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The table of codes that help shows.
pub const HELP: &str = "\
Exit codes:
   0  done, or stopped by SIGTERM or SIGINT after open requests were answered
   1  status only: degraded
   2  status only: down, or not reachable
  64  wrong command line or settings, a database that a newer version wrote or that is not ours,
      or a limit on address space that is too low; restarting cannot help
  65  the candles to evaluate, the code of a login, the new password or the backup cannot be used
  69  cannot listen: address in use; or the state directory belongs to a running instance; or
      the service or a broker does not answer a command
  70  internal fault, or the system gives no thread or descriptor
  74  the state directory cannot be made, or the signing key in it not be used; or a plot, a
      backup or the output not written";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_each_code() {
        use Exit::{Data, Degraded, Down, Internal, Ok, StateDir, Unavailable, Usage};
        for exit in [Ok, Degraded, Down, Usage, Data, Unavailable, Internal, StateDir] {
            assert!(HELP.contains(&format!("\n  {:>2}  ", exit as u8)), "{exit:?}");
        }
    }
}
