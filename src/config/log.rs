//! (what this file is)

use crate::config::words::LogFormat;

/// The log.
#[derive(Debug, Clone)]
pub struct LogSettings {
    /// tracing filter.
    pub filter: String,
    pub format: LogFormat,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { filter: "info".into(), format: LogFormat::Logfmt }
    }
}
