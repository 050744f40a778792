//! Settings of the log.

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Logfmt,
    Json,
}

/// Settings of the log.
#[derive(Debug, Clone)]
pub struct LogSettings {
    /// Filter: a level, or levels by module, separated by commas.
    pub filter: String,
    pub format: LogFormat,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { filter: "info".into(), format: LogFormat::Logfmt }
    }
}
