//! What runs in a node that is one of several, beside what runs in every service.

use std::io;
use std::sync::Arc;

use crate::auth::{Auth, ChangesParts, ChangesReader};
use crate::warmers::{Lease, LeaseParts};

/// What it is started with.
pub(super) struct MembershipParts {
    pub(super) lease: LeaseParts,
    pub(super) changes: ChangesParts,
}

/// The running parts.
pub(super) struct Membership {
    lease: Lease,
    changes: ChangesReader,
}

impl Membership {
    pub(super) fn start(parts: MembershipParts, auth: &Arc<Auth>) -> io::Result<Self> {
        let changes = ChangesReader::start(auth, parts.changes)?;
        Ok(Self { lease: Lease::start(parts.lease)?, changes })
    }

    /// Ends the leadership, so that another node can take it, and everything else.
    pub(super) fn stop(self) {
        self.lease.stop();
        self.changes.stop();
    }
}
