//! A fault in the settings with its cure, and the report of all faults.

use std::fmt;
use std::fmt::Write as _;
use std::path::PathBuf;

/// A fault in the settings, and its cure.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The environment variable.
    pub name: String,
    /// Its value; `***` for a secret.
    pub value: Option<String>,
    /// Origin of the value; `None` if the fault has no single place.
    pub origin: Option<String>,
    pub problem: String,
    pub cure: String,
}

impl Fault {
    pub(super) fn not_text(name: &str) -> Self {
        Self {
            name: name.into(),
            value: None,
            origin: Some(Origin::Environment.kind().to_owned()),
            problem: "is not UTF-8 text".into(),
            cure: "set it again, in UTF-8".into(),
        }
    }

    pub(super) fn of_secret(name: &str, problem: String, cure: &str) -> Self {
        let value = Some("***".into());
        Self {
            name: name.into(),
            value,
            origin: None,
            problem,
            cure: cure.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(value) = &self.value {
            // Escape control characters, which could manipulate the terminal.
            write!(f, "={}", value.escape_debug())?;
        }
        if let Some(origin) = &self.origin {
            write!(f, " ({origin})")?;
        }
        write!(f, " {}\n    cure: {}", self.problem, self.cure)
    }
}

/// All faults as one text.
pub(crate) fn report(faults: &[Fault]) -> String {
    let mut text = match faults.len() {
        1 => "1 setting is wrong:\n".to_owned(),
        many => format!("{many} settings are wrong:\n"),
    };
    for fault in faults {
        let _ = writeln!(text, "  {fault}");
    }
    text
}

// ---- Origin
//
// Origin of a setting's value, for faults and for `config show`.

/// Origin of a value.
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
    pub(crate) fn kind(&self) -> &'static str {
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
