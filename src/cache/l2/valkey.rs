//! L2 on a Valkey or Redis server that several nodes share.
//!
//! Records of a kind are one HASH; a ZSET says when each was stored, for the bound. Storing and
//! trimming is one script, so all of it happens or nothing. With an [`Epoch`] a writer is fenced:
//! once a newer leader has written, what an older one stores is refused. Called on the lane `cache`
//! and at start. While the server is away calls fail, most of them at once, and the service runs on
//! what it has in memory.
//!
//! For the operator: `save ""`, `appendonly no`, `maxmemory-policy noeviction`, and a user that may
//! use `~bhav:*` alone. Sentinel and Cluster are not supported.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use redis::Script;

use super::{KEY_BYTES_MAX, Kind, L2Error, L2Stats, Record, SecondLevel, check_sizes};
use crate::base::Epoch;
use crate::cache::valkey::{Client, Deadlines, Keys, Namespace, Server, ValkeyError};

/// An instrument list of some megabytes must get through, and the end of the service waits for the
/// last write.
const DEADLINES: Deadlines = Deadlines { connect_ms: 1_000, call_ms: 3_000 };
/// Records asked for at once, so that one answer does not hold up the server's other clients.
const PAGE_RECORDS: usize = 500;
/// Keys and values.
type Page = Vec<(Vec<u8>, Vec<u8>)>;
/// What stands before a record's bytes: when it was stored.
const TIME_BYTES: usize = 8;

/// The shared second level.
pub struct ValkeyL2 {
    client: Client,
    keys: Keys,
    records_max: usize,
    store: Script,
    epoch: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
    /// By kind.
    entries: [AtomicU64; 2],
    bytes: [AtomicU64; 2],
}

impl ValkeyL2 {
    /// Holds at most `records_max` records of each kind. Does not connect yet.
    pub fn new(server: &Arc<Server>, namespace: &Namespace, records_max: usize) -> Self {
        Self {
            client: Client::new(server, DEADLINES),
            keys: Keys::of(namespace),
            records_max: records_max.max(1),
            store: Script::new(include_str!("valkey/store.lua")),
            epoch: AtomicU64::new(Epoch::ALONE.0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            entries: Default::default(),
            bytes: Default::default(),
        }
    }

    /// From now on this node stores as the leader of this epoch.
    pub fn set_epoch(&self, epoch: Epoch) {
        self.epoch.store(epoch.0, Relaxed);
    }

    fn count_found(&self, found: usize) {
        if found == 0 {
            self.misses.fetch_add(1, Relaxed);
        } else {
            self.hits.fetch_add(found as u64, Relaxed);
        }
    }

    /// Counts what the server uses for the kind. Access rules may forbid the question, and it is
    /// asked after the store, which has succeeded whatever becomes of it.
    fn measure(&self, kind: Kind, kept: u64) {
        self.entries[kind as usize].store(kept, Relaxed);
        let mut ask = redis::cmd("MEMORY");
        ask.arg("USAGE").arg(self.keys.records(kind));
        let asked = self.client.call(|to| match ask.query::<Option<u64>>(to) {
            Err(error) if !error.is_io_error() => Ok(None),
            answered => answered,
        });
        if let Ok(Some(bytes)) = asked {
            self.bytes[kind as usize].store(bytes, Relaxed);
        }
    }
}

impl From<ValkeyError> for L2Error {
    fn from(error: ValkeyError) -> Self {
        match error {
            ValkeyError::Refused { detail, .. } => Self::Refused { detail },
            error => Self::Unavailable { detail: error.to_string() },
        }
    }
}

fn with_time(bytes: &[u8], stored_ms: i64) -> Vec<u8> {
    [&stored_ms.to_be_bytes()[..], bytes].concat()
}

/// `None` for what this program did not write.
fn record(mut value: Vec<u8>) -> Option<Record> {
    let time = value.first_chunk::<TIME_BYTES>()?;
    let stored_ms = i64::from_be_bytes(*time);
    value.drain(..TIME_BYTES);
    Some(Record { bytes: value, stored_ms })
}

impl SecondLevel for ValkeyL2 {
    fn load(&self, kind: Kind, key: &str) -> Result<Option<Record>, L2Error> {
        let mut command = redis::cmd("HGET");
        command.arg(self.keys.records(kind)).arg(key);
        let value = self.client.call(|to| command.query::<Option<Vec<u8>>>(to))?;
        let found = value.and_then(record);
        self.count_found(usize::from(found.is_some()));
        Ok(found)
    }

    fn load_all(&self, kind: Kind) -> Result<Vec<(String, Record)>, L2Error> {
        let name = self.keys.records(kind);
        // A record may come twice while others are stored.
        let mut found: HashMap<String, Record> = HashMap::new();
        self.client.call(|to| {
            let mut cursor = 0_u64;
            loop {
                let mut command = redis::cmd("HSCAN");
                command.arg(&name).arg(cursor).arg("COUNT").arg(PAGE_RECORDS);
                let (next, page): (u64, Page) = command.query(to)?;
                for (key, value) in page {
                    let Ok(key) = String::from_utf8(key) else { continue };
                    if let Some(record) = record(value).filter(|_| key.len() <= KEY_BYTES_MAX) {
                        found.insert(key, record);
                    }
                }
                cursor = next;
                // Only this program's bound keeps the server from holding more.
                if cursor == 0 || found.len() >= self.records_max {
                    return Ok(());
                }
            }
        })?;
        self.count_found(found.len());
        Ok(found.into_iter().take(self.records_max).collect())
    }

    fn store(&self, kind: Kind, items: &[(String, Vec<u8>)], now_ms: i64) -> Result<(), L2Error> {
        check_sizes(items)?;
        let mut script = self.store.prepare_invoke();
        script.key(self.keys.records(kind)).key(self.keys.ages(kind)).key(self.keys.fence());
        script.arg(self.epoch.load(Relaxed)).arg(now_ms).arg(self.records_max);
        for (key, bytes) in items {
            script.arg(key).arg(with_time(bytes, now_ms));
        }
        let stored: Vec<u64> = self.client.call(|to| script.invoke(to))?;
        let [1, evicted, kept] = stored[..] else { return Err(L2Error::Deposed) };
        self.evictions.fetch_add(evicted, Relaxed);
        self.measure(kind, kept);
        Ok(())
    }

    fn stats(&self) -> L2Stats {
        let sum = |counts: &[AtomicU64]| counts.iter().map(|count| count.load(Relaxed)).sum();
        L2Stats {
            backend: self.client.server_name(),
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            errors: self.client.stats().errors,
            evictions: self.evictions.load(Relaxed),
            set_aside: 0,
            entries: sum(&self.entries),
            bytes: sum(&self.bytes),
        }
    }
}

#[cfg(test)]
#[path = "valkey_tests.rs"]
mod tests;
