//! Rate limits that hold over all nodes together.
//!
//! The node's own limiter decides first, then this one, off the edge and within 50 ms. While the
//! server is late or away there is no verdict, and the node's own limiter decides alone. N nodes
//! then allow N times as many attempts.
//!
//! The algorithm is that of [`Limiter`](crate::base::limiter), by the server's clock. The server
//! sees no address and no e-mail: a bucket's name is a keyed hash of the limited value.

use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use parking_lot::Mutex;
use redis::Script;
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

use crate::base::hex::hex;
use crate::base::limiter::{Rate, SharedCounts, SharedTally, TooEarly};
use crate::nodes::valkey::keys::BUCKETS;
use crate::nodes::valkey::{
    Client, Deadlines, Installation, NamespaceKeys, Server, ValkeyError, derive, script,
};

/// Deadline of the whole call. A login waits for it before its password is hashed.
const DEADLINES: Deadlines = Deadlines {
    connect_ms: 50,
    call_ms: 50,
};
/// Purpose of the key of the hash.
const PURPOSE: &str = "rate limits";
/// Bytes of the hash that name a bucket: enough that no two of them meet.
const NAME_BYTES: usize = 16;

/// The answer of the limits; `None` if the server did not reply in time.
type Asked = Option<Result<(), TooEarly>>;

/// Buckets on one server.
pub(crate) struct SharedLimits {
    client: Client,
    installation: Arc<Installation>,
    /// The secret in force, and the hash that it gives.
    hash: Mutex<(Arc<SecretString>, Hmac<Sha256>)>,
    admit: Script,
    tally: Mutex<SharedTally>,
}

impl SharedLimits {
    /// All nodes have the same secret. After a reload with another, buckets are new.
    pub(crate) fn new(server: &Arc<Server>, installation: &Arc<Installation>) -> Self {
        let in_force = installation.secret.load();
        let hash = hash_of(&in_force);
        Self {
            client: Client::new(server, DEADLINES),
            installation: Arc::clone(installation),
            hash: Mutex::new((in_force, hash)),
            admit: script(include_str!("scripts/admit.lua"), &[BUCKETS]),
            tally: Mutex::default(),
        }
    }

    /// Counts `cost` attempts in the bucket of every value, or none if any refuses. Values of
    /// another `kind` have other buckets. Blocks for 50 ms at most.
    fn ask(&self, kind: &str, values: &[&[u8]], rate: Rate, cost: u64) -> Asked {
        let ask = || -> Result<u64, ValkeyError> {
            let namespace_keys = self.installation.namespace_keys()?;
            let mut script = self.admit.prepare_invoke();
            for value in values {
                script.key(self.bucket(&namespace_keys, kind, value));
            }
            script
                .arg(rate.interval_ms())
                .arg(rate.tolerance_ms())
                .arg(cost);
            let (wait_ms, foreign): (u64, Vec<usize>) = self.client.call(|to| script.invoke(to))?;
            self.client.note_foreign(&[BUCKETS], &foreign);
            Ok(wait_ms)
        };
        match ask() {
            Ok(0) => Some(Ok(())),
            Ok(retry_after_ms) => {
                self.tally.lock().refused += 1;
                Some(Err(TooEarly { retry_after_ms }))
            }
            Err(_) => {
                self.tally.lock().unknown += 1;
                None
            }
        }
    }

    /// The hash of the secret in force.
    fn hash(&self) -> Hmac<Sha256> {
        let secret = self.installation.secret.load();
        let mut known = self.hash.lock();
        if !Arc::ptr_eq(&known.0, &secret) {
            *known = (Arc::clone(&secret), hash_of(&secret));
        }
        known.1.clone()
    }

    fn bucket(&self, namespace_keys: &NamespaceKeys, kind: &str, value: &[u8]) -> String {
        let mut hash = self.hash();
        // A kind has no zero byte, so no kind and value read as another.
        hash.update(kind.as_bytes());
        hash.update(&[0]);
        hash.update(value);
        let hash = hash.finalize().into_bytes();
        namespace_keys.keys.limit(&hex(&hash[..NAME_BYTES]))
    }
}

impl SharedCounts for SharedLimits {
    fn admit(
        &self,
        kind: &'static str,
        values: &[&[u8]],
        rate: Rate,
        cost: u64,
    ) -> Result<(), TooEarly> {
        self.ask(kind, values, rate, cost).unwrap_or(Ok(()))
    }

    /// Fills the buckets of this value again. If the server does not reply, the attempts stay
    /// counted.
    fn forgive(&self, kind: &'static str, value: &[u8]) {
        let Ok(namespace_keys) = self.installation.namespace_keys() else {
            return;
        };
        let mut delete = redis::cmd("DEL");
        delete.arg(self.bucket(&namespace_keys, kind, value));
        drop(self.client.call(|to| delete.exec(to)));
    }

    fn tally(&self) -> SharedTally {
        *self.tally.lock()
    }
}

fn hash_of(secret: &SecretString) -> Hmac<Sha256> {
    let key = derive(secret.expose_secret().as_bytes(), PURPOSE);
    Hmac::new_from_slice(&*key).expect("a hash takes keys of any length")
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
