//! The session that a sync opened at a broker, and its end.

use std::sync::Arc;

use crate::api::state::BrokerAccess;
use crate::brokers::OpenSession;
use crate::rt::Lane;

/// Longest wait for a thread that ends a session.
const QUEUE_WAIT_MS: u64 = 1_000;

/// The session that a sync opened and that outlives it. On drop a lane ends it, and no request
/// waits for that. A session of the server's own app is kept, because its token may be the same.
pub(super) struct OpenedSession {
    ends: Option<Arc<Lane>>,
    own_key: bool,
    pub(super) session: Option<Box<dyn OpenSession>>,
}

impl OpenedSession {
    /// Before a session is open. `own_key` says that the server's own app opens it.
    pub(super) fn none(access: &BrokerAccess, own_key: bool) -> Self {
        Self {
            ends: access.sessions_lane.clone(),
            own_key,
            session: None,
        }
    }
}

impl Drop for OpenedSession {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        if self.own_key {
            return session.keep();
        }
        if let Some(lane) = &self.ends {
            // A full lane drops the job with the session, which is counted.
            let _ = lane.submit(QUEUE_WAIT_MS, move || session.end());
        }
    }
}
