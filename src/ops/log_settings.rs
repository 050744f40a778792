//! Settings of the log.

/// One line an event, in which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Logfmt,
    Json,
}

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
