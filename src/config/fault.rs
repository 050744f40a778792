//! One thing wrong with the settings, and the report of all of them.

use std::fmt::{self, Write as _};

use super::origin::Origin;

/// One thing wrong with the settings, and its cure.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The environment variable.
    pub name: String,
    /// Its value; `***` for a secret.
    pub value: Option<String>,
    /// Where the value came from; `None` if the fault is not one of a single place.
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
        Self { name: name.into(), value, origin: None, problem, cure: cure.into() }
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
pub fn report(faults: &[Fault]) -> String {
    let mut text = match faults.len() {
        1 => "1 setting is wrong:\n".to_owned(),
        many => format!("{many} settings are wrong:\n"),
    };
    for fault in faults {
        let _ = writeln!(text, "  {fault}");
    }
    text
}
