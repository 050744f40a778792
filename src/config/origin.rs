//! Where the value of a setting came from, for faults and for `config show`.

use std::fmt;
use std::path::PathBuf;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    Flag,
    Environment,
    /// A line of the file that `BHAV_ENV_FILE` names.
    EnvFile(PathBuf, usize),
    /// `$STATE_DIRECTORY`, which systemd sets.
    StateDirectory,
    /// The state directory of the package's unit, assumed by commands about an installed service.
    Unit,
    /// The file that `<NAME>_FILE` names.
    File(PathBuf),
    /// A file in `$CREDENTIALS_DIRECTORY`.
    Credential(PathBuf),
}

impl Origin {
    /// The kind of origin as text.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Flag => "flag",
            Self::Environment => "environment",
            Self::EnvFile(..) => "settings file",
            Self::StateDirectory => "$STATE_DIRECTORY",
            Self::Unit => "the installed unit",
            Self::File(_) => "file",
            Self::Credential(_) => "credential",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) | Self::Credential(path) => {
                write!(f, "{} {}", self.kind(), path.display())
            }
            Self::EnvFile(path, line) => write!(f, "{} line {line}", path.display()),
            plain => f.write_str(plain.kind()),
        }
    }
}
