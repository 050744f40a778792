//! What settings say by one of a few words. Constant; any thread.

/// One line an event, in which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Logfmt,
    Json,
}

/// Who may make an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// Whoever reaches the service.
    Open,
    /// Nobody.
    Closed,
}
