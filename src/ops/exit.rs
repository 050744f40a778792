//! Exit codes, after sysexits(3). The unit file relies on 64 not being restarted.

use std::process::ExitCode;

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
    /// What was given to work on cannot be used: candles, a code, a backup (EX_DATAERR).
    Data = 65,
    /// Cannot bind, another instance has the address or the state, or none answers
    /// (EX_UNAVAILABLE).
    Unavailable = 69,
    /// A fault of the program itself (EX_SOFTWARE).
    Internal = 70,
    /// The state directory or a file asked for cannot be written (EX_IOERR).
    StateDir = 74,
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
  65  the candles to evaluate, the code of a login or the backup cannot be used
  69  cannot listen: address in use; or the state directory belongs to a running instance; or
      the service or a broker does not answer a command
  70  internal fault
  74  the state directory cannot be made, or a plot or backup not written";

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
