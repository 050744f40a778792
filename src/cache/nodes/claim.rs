//! The leader's claim: a key that lives as long as its holder renews it.
//!
//! The server may lose all keys when it restarts. So it gives no claim to a new holder before it
//! has been up for the length of a lease: a claim that it forgot has run out by then.

use std::sync::Arc;

use redis::{RedisResult, Script};

use crate::base::Epoch;
use crate::base::lease::{Authority, AuthorityError, Grant, Holder, Presence};
use crate::cache::valkey::{Client, Connection, Deadlines, Keys, Namespace, Server, ValkeyError};

/// Less than the margin between a lease and the local deadline.
const DEADLINES: Deadlines = Deadlines { connect_ms: 300, call_ms: 600 };
/// How long the highest epoch is remembered after the last leader. After a database was restored
/// from a backup, epochs are lower, and what is published is refused for this long.
pub(super) const FENCE_MS: u64 = 600_000;

/// The claim on one server.
pub struct ValkeyClaim {
    client: Client,
    keys: Keys,
    lease_ms: u64,
    look: Script,
    claim: Script,
    release: Script,
}

impl ValkeyClaim {
    /// Gives leases of `lease_ms`.
    pub fn new(server: &Arc<Server>, namespace: &Namespace, lease_ms: u64) -> Self {
        Self {
            client: Client::new(server, DEADLINES),
            keys: Keys::of(namespace),
            lease_ms,
            look: Script::new(include_str!("claim/look.lua")),
            claim: Script::new(include_str!("claim/claim.lua")),
            release: Script::new(include_str!("claim/release.lua")),
        }
    }

    fn call<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> RedisResult<T>,
    ) -> Result<T, AuthorityError> {
        self.client.call(work).map_err(|error: ValkeyError| AuthorityError(error.to_string()))
    }

    fn claim(&self, holder: &Holder, epoch: Epoch, takes: bool) -> Result<Grant, AuthorityError> {
        let mut script = self.claim.prepare_invoke();
        script.key(self.keys.leader()).key(self.keys.fence());
        script.arg(holder.as_str()).arg(epoch.0).arg(self.lease_ms).arg(FENCE_MS);
        script.arg(u8::from(takes));
        let granted: bool = self.call(|to| script.invoke(to))?;
        Ok(if granted { Grant::Granted(epoch) } else { Grant::Refused })
    }
}

impl Authority for ValkeyClaim {
    fn look(&self) -> Result<Presence, AuthorityError> {
        let mut script = self.look.prepare_invoke();
        script.key(self.keys.leader()).arg(self.lease_ms);
        let free: bool = self.call(|to| script.invoke(to))?;
        Ok(if free { Presence::Free } else { Presence::Taken })
    }

    fn take(&self, holder: &Holder, epoch: Epoch) -> Result<Grant, AuthorityError> {
        self.claim(holder, epoch, true)
    }

    fn renew(&self, holder: &Holder, epoch: Epoch) -> Result<Grant, AuthorityError> {
        self.claim(holder, epoch, false)
    }

    fn release(&self, holder: &Holder) -> Result<(), AuthorityError> {
        let mut script = self.release.prepare_invoke();
        script.key(self.keys.leader()).arg(holder.as_str());
        self.call(|to| script.invoke(to))
    }
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
