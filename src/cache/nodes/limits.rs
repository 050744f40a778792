//! Rate limits that hold over all nodes together.
//!
//! The node's own limiter is asked first; this is asked after it, off the edge, within 50 ms. While
//! the server is late or away there is no verdict, and the node's own limiter alone counts: then
//! N nodes allow N times as many attempts.
//!
//! The algorithm is that of [`Limiter`](crate::base::limiter), by the server's clock. The server
//! sees no address and no e-mail: a bucket's name is a keyed hash of what is limited.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hmac::{Hmac, KeyInit, Mac};
use redis::Script;
use sha2::Sha256;

use super::tokens::derive;
use crate::base::limiter::{Rate, TooEarly};
use crate::cache::valkey::{Client, Deadlines, Keys, Namespace, Server};

/// The whole call. A login waits for it before its password is hashed.
const DEADLINES: Deadlines = Deadlines { connect_ms: 50, call_ms: 50 };
/// What the key of the hash is derived for.
const PURPOSE: &str = "rate limits";
/// Bytes of the hash that name a bucket: enough that no two of them meet.
const NAME_BYTES: usize = 16;

/// The limits' answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Admitted,
    TooEarly(TooEarly),
    /// No answer in time: the node's own limiter decides alone.
    Unknown,
}

/// Buckets on one server.
pub struct SharedLimits {
    client: Client,
    keys: Keys,
    hash: Hmac<Sha256>,
    admit: Script,
    refused: AtomicU64,
    unknown: AtomicU64,
}

impl SharedLimits {
    /// All nodes have the same `secret`, which signs tokens.
    pub fn new(server: &Arc<Server>, namespace: &Namespace, secret: &[u8]) -> Self {
        let key = derive(secret, PURPOSE);
        Self {
            client: Client::new(server, DEADLINES),
            keys: Keys::of(namespace),
            hash: Hmac::new_from_slice(&*key).expect("a hash takes keys of any length"),
            admit: Script::new(include_str!("limits/admit.lua")),
            refused: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
        }
    }

    /// Counts one attempt in the bucket of every value, or in none if any refuses. Values of
    /// another `kind` have other buckets. Blocks for 50 ms at most.
    pub fn admit(&self, kind: &str, values: &[&[u8]], rate: Rate) -> Verdict {
        let mut script = self.admit.prepare_invoke();
        for value in values {
            script.key(self.bucket(kind, value));
        }
        script.arg(rate.interval_ms()).arg(rate.tolerance_ms());
        match self.client.call(|to| script.invoke::<u64>(to)) {
            Ok(0) => Verdict::Admitted,
            Ok(retry_after_ms) => {
                self.refused.fetch_add(1, Relaxed);
                Verdict::TooEarly(TooEarly { retry_after_ms })
            }
            Err(_) => {
                self.unknown.fetch_add(1, Relaxed);
                Verdict::Unknown
            }
        }
    }

    /// Forgets the attempts of a value: its bucket is full again. Without an answer they stay.
    pub fn forgive(&self, kind: &str, value: &[u8]) {
        let mut delete = redis::cmd("DEL");
        delete.arg(self.bucket(kind, value));
        drop(self.client.call(|to| delete.exec(to)));
    }

    /// Attempts refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Attempts without a verdict.
    pub fn unknown(&self) -> u64 {
        self.unknown.load(Relaxed)
    }

    fn bucket(&self, kind: &str, value: &[u8]) -> String {
        let mut hash = self.hash.clone();
        // A kind has no zero byte, so no kind and value read as another.
        hash.update(kind.as_bytes());
        hash.update(&[0]);
        hash.update(value);
        let hash = hash.finalize().into_bytes();
        let name: String = hash[..NAME_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
        self.keys.limit(&name)
    }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
