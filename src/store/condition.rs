//! The states of a store, whatever the engine, and the one that was seen last.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::error::StoreError;

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

struct Seen {
    state: State,
    cause: String,
}

/// The state that operations showed last. Used from any thread; the lock is held only to copy it.
pub(crate) struct LastSeen {
    seen: Mutex<Seen>,
    /// Set when the service stops: nothing is opened or written any more.
    closed: AtomicBool,
}

impl LastSeen {
    /// Unavailable so far, because of `cause`.
    pub(crate) fn unavailable(cause: &str) -> Self {
        let seen = Seen { state: State::Unavailable, cause: cause.to_owned() };
        Self { seen: Mutex::new(seen), closed: AtomicBool::new(false) }
    }

    pub(crate) fn state(&self) -> State {
        self.seen.lock().state
    }

    pub(crate) fn cause(&self) -> String {
        self.seen.lock().cause.clone()
    }

    /// Notes a state, and logs it if it is another than before.
    pub(crate) fn set(&self, state: State, cause: &str) {
        let before =
            std::mem::replace(&mut *self.seen.lock(), Seen { state, cause: cause.to_owned() });
        if before.state == state {
            return;
        }
        match state {
            State::Corrupt => tracing::error!(
                cause,
                "the store is damaged and takes no writes: stop the service, put a good copy in \
                 place and start it"
            ),
            State::Ok => tracing::info!(was = before.state.as_str(), "the store can be used"),
            _ => tracing::error!(state = state.as_str(), cause, "the store cannot be used fully"),
        }
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn expect_not_closed(&self) -> Result<(), StoreError> {
        match self.closed.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(StoreError::Unavailable("the service is stopping".to_owned())),
        }
    }
}
