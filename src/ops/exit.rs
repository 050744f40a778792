//! Exit codes, after sysexits(3). The unit file relies on 64 not being restarted.

use std::process::ExitCode;

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, or drained after SIGTERM.
    Ok = 0,
    /// Wrong command line, settings or database version (EX_USAGE): restarting cannot help.
    Usage = 64,
    /// Cannot bind, or another instance has the address (EX_UNAVAILABLE).
    Unavailable = 69,
    /// A fault of the program itself (EX_SOFTWARE).
    Internal = 70,
    /// The state directory cannot be made (EX_IOERR).
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
  64  wrong command line or settings, or a database that a newer version wrote or that is not
      ours; restarting cannot help
  69  cannot listen: address in use; or the state directory belongs to a running instance
  70  internal fault
  74  the state directory cannot be made";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_each_code() {
        for exit in [Exit::Ok, Exit::Usage, Exit::Unavailable, Exit::Internal, Exit::StateDir] {
            assert!(HELP.contains(&format!("\n  {:>2}  ", exit as u8)), "{exit:?}");
        }
    }
}
