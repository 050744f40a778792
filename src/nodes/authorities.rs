//! The authorities of the lease: the row, in the database, and the claim, on the shared server.
//!
//! The claim is a key that lives as long as its holder renews it. The server may lose all keys when
//! it restarts, so it gives no claim to a new holder before it has been up for the length of a
//! lease: a claim that it forgot has run out by then. Both are asked on threads of their own.

use std::sync::Arc;

use redis::{RedisResult, Script};

use crate::nodes::lease::{Authority, AuthorityError, Grant, Holder, Look};
use crate::nodes::valkey::{
    Client, Connection, Deadlines, Installation, Key, Room, Server, script,
};
use crate::store::{Epoch, PostgresLease};

/// Deadlines below the margin between a lease and the local deadline.
const DEADLINES: Deadlines = Deadlines { connect_ms: 300, call_ms: 600 };
/// Time for which the server remembers the highest epoch after the last leader. It is the fence,
/// below which nothing is published. A database restored from a backup has lower epochs; the next
/// leader raises them above the fence.
pub(super) const FENCE_MS: u64 = 600_000;

#[expect(clippy::needless_pass_by_value, reason = "as the end of a result")]
fn not_asked(error: impl ToString) -> AuthorityError {
    AuthorityError(error.to_string())
}

impl Authority for PostgresLease {
    fn look(&self) -> Result<Look, AuthorityError> {
        let (is_free, highest) = self.look().map_err(not_asked)?;
        Ok(Look { is_free, highest })
    }

    fn take(&self, holder: &Holder, epoch: Epoch) -> Result<Grant, AuthorityError> {
        let taken = self.take(holder.as_str(), epoch).map_err(not_asked)?;
        Ok(taken.map_or(Grant::Refused, Grant::Granted))
    }

    fn renew(&self, holder: &Holder, _: Epoch) -> Result<Grant, AuthorityError> {
        let renewed = self.renew(holder.as_str()).map_err(not_asked)?;
        Ok(renewed.map_or(Grant::Refused, Grant::Granted))
    }

    fn release(&self, holder: &Holder) -> Result<(), AuthorityError> {
        self.release(holder.as_str()).map_err(not_asked)
    }
}

/// The claim on one server.
pub struct ValkeyClaim {
    client: Client,
    installation: Arc<Installation>,
    lease_ms: u64,
    look: Script,
    claim: Script,
    release: Script,
}

impl ValkeyClaim {
    /// Gives leases of `lease_ms`.
    pub fn new(server: &Arc<Server>, installation: &Arc<Installation>, lease_ms: u64) -> Self {
        Self {
            client: Client::new(server, DEADLINES),
            installation: Arc::clone(installation),
            lease_ms,
            look: script(include_str!("scripts/look.lua")),
            claim: script(include_str!("scripts/claim.lua")),
            release: script(include_str!("scripts/release.lua")),
        }
    }

    fn call<T>(
        &self,
        work: impl FnOnce(&Room, &mut Connection) -> RedisResult<T>,
    ) -> Result<T, AuthorityError> {
        let room = self.installation.sure_room().map_err(not_asked)?;
        self.client.call(|to| work(&room, to)).map_err(not_asked)
    }

    fn claim(&self, holder: &Holder, epoch: Epoch, takes: bool) -> Result<Grant, AuthorityError> {
        let granted: bool = self.call(|room, to| {
            let mut script = self.claim.prepare_invoke();
            script.key(room.keys.key(Key::Leader)).key(room.keys.key(Key::Fence));
            script.arg(holder.as_str()).arg(epoch.0).arg(self.lease_ms).arg(FENCE_MS);
            script.arg(u8::from(takes)).invoke(to)
        })?;
        Ok(if granted { Grant::Granted(epoch) } else { Grant::Refused })
    }
}

impl Authority for ValkeyClaim {
    fn look(&self) -> Result<Look, AuthorityError> {
        let (is_free, fence): (bool, String) = self.call(|room, to| {
            let mut script = self.look.prepare_invoke();
            script
                .key(room.keys.key(Key::Leader))
                .key(room.keys.key(Key::Fence))
                .arg(self.lease_ms)
                .invoke(to)
        })?;
        Ok(Look { is_free, highest: Epoch(fence.parse().unwrap_or_default()) })
    }

    fn take(&self, holder: &Holder, epoch: Epoch) -> Result<Grant, AuthorityError> {
        self.claim(holder, epoch, true)
    }

    fn renew(&self, holder: &Holder, epoch: Epoch) -> Result<Grant, AuthorityError> {
        self.claim(holder, epoch, false)
    }

    fn release(&self, holder: &Holder) -> Result<(), AuthorityError> {
        self.call(|room, to| {
            let mut script = self.release.prepare_invoke();
            script.key(room.keys.key(Key::Leader)).arg(holder.as_str()).invoke(to)
        })
    }
}

#[cfg(test)]
#[path = "authorities_tests.rs"]
mod tests;
