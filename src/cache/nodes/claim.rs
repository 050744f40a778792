//! The leader's claim: a key that lives as long as its holder renews it.
//!
//! The server may lose all keys when it restarts. So it gives no claim to a new holder before it
//! has been up for the length of a lease: a claim that it forgot has run out by then.

use std::sync::Arc;

use redis::{RedisResult, Script};

use crate::base::Epoch;
use crate::base::lease::{Authority, AuthorityError, Grant, Holder, Look, Presence};
use crate::cache::valkey::{
    Client, Connection, Deadlines, Installation, Room, Server, ValkeyError, script,
};

/// Less than the margin between a lease and the local deadline.
const DEADLINES: Deadlines = Deadlines { connect_ms: 300, call_ms: 600 };
/// How long the highest epoch is remembered after the last leader: the fence, below which nothing
/// is published. After a database was restored from a backup its epochs are lower; whoever leads
/// next raises them above the fence.
pub(super) const FENCE_MS: u64 = 600_000;

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
            look: script(include_str!("claim/look.lua")),
            claim: script(include_str!("claim/claim.lua")),
            release: script(include_str!("claim/release.lua")),
        }
    }

    fn call<T>(
        &self,
        work: impl FnOnce(&Room, &mut Connection) -> RedisResult<T>,
    ) -> Result<T, AuthorityError> {
        let failed = |error: ValkeyError| AuthorityError(error.to_string());
        let room = self.installation.sure_room().map_err(failed)?;
        self.client.call(|to| work(&room, to)).map_err(failed)
    }

    fn claim(&self, holder: &Holder, epoch: Epoch, takes: bool) -> Result<Grant, AuthorityError> {
        let granted: bool = self.call(|room, to| {
            let mut script = self.claim.prepare_invoke();
            script.key(room.keys.leader()).key(room.keys.fence());
            script.arg(holder.as_str()).arg(epoch.0).arg(self.lease_ms).arg(FENCE_MS);
            script.arg(u8::from(takes)).invoke(to)
        })?;
        Ok(if granted { Grant::Granted(epoch) } else { Grant::Refused })
    }
}

impl Authority for ValkeyClaim {
    fn look(&self) -> Result<Look, AuthorityError> {
        let (free, fence): (bool, String) = self.call(|room, to| {
            let mut script = self.look.prepare_invoke();
            script.key(room.keys.leader()).key(room.keys.fence()).arg(self.lease_ms).invoke(to)
        })?;
        let presence = if free { Presence::Free } else { Presence::Taken };
        Ok(Look { presence, highest: Epoch(fence.parse().unwrap_or_default()) })
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
            script.key(room.keys.leader()).arg(holder.as_str()).invoke(to)
        })
    }
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
