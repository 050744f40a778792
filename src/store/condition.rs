//! The states of a store, whatever the engine.

/// A state of the store, as health reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ok,
    /// The file, its directory, the medium or the server takes no writes.
    ReadOnly,
    Full,
    /// The data is damaged. An operator has to replace it.
    Corrupt,
    /// Another process holds a lock.
    Busy,
    Unavailable,
}

impl State {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ReadOnly => "read_only",
            Self::Full => "full",
            Self::Corrupt => "corrupt",
            Self::Busy => "busy",
            Self::Unavailable => "unavailable",
        }
    }
}
