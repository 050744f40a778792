//! L2 on a Valkey or Redis server that several nodes share.
//!
//! Records of a kind are one HASH; a ZSET has the time at which each was stored, for the bound.
//! Storing and trimming is one script, so all of it happens or nothing. Writers are fenced by their
//! [`Epoch`]: once a newer leader has written, writes of an older one are refused. Each record is
//! signed with its kind and key ([`Installation`]); one that is not is counted and ignored. The
//! server drops records that nobody stores any more. Called on the lane `cache` and at start. While
//! the server is away calls fail, most of them at once, and the service runs on what it has in
//! memory.
//!
//! The operator sets `save ""`, `appendonly no`, `maxmemory-policy noeviction`, and a user that may
//! use `~bhav:*` alone. Sentinel and Cluster are not supported.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use redis::{RedisResult, Script};

use crate::cache::l2::{Kind, L2Error, L2Stats, Record, SecondLevel, check_sizes};
use crate::nodes::valkey::keys::{FENCE, RECORDS_MS, rows_of};
use crate::nodes::valkey::{
    Client, Connection, Deadlines, Distrust, Installation, KeptKey, Key, NamespaceKeys,
    SIGNED_BYTES, Server, Signed, ValkeyError, script,
};
use crate::store::Epoch;

/// An instrument list of some megabytes must get through, and the end of the service waits for the
/// last write.
const DEADLINES: Deadlines = Deadlines {
    connect_ms: 1_000,
    call_ms: 3_000,
};
/// Records asked for at once, so that one answer does not hold up the server's other clients.
const PAGE_RECORDS: usize = 500;
/// Tries of a store: more than one for an epoch that somebody else wrote.
const TRIES_MAX: usize = 3;
/// Code, dropped and kept records, fence, and what no node has written.
type Told = (u64, u64, u64, Vec<u8>, Vec<usize>);
/// Answer of the storing script.
const STORED: u64 = 1;
/// Keys and values of records.
type Page = Vec<(Vec<u8>, Vec<u8>)>;

/// The rows of the storing script's keys.
const fn rows(kind: Kind) -> [&'static KeptKey; 3] {
    let [records, ages] = rows_of(kind);
    [records, ages, FENCE]
}

/// The shared second level.
pub(crate) struct ValkeyL2 {
    client: Client,
    installation: Arc<Installation>,
    records_max: usize,
    store: Script,
    check: Script,
    epoch: AtomicU64,
    counters: Mutex<Counters>,
}

/// Counters, locked only to count.
#[derive(Default)]
struct Counters {
    found: L2Stats,
    /// Records and bytes of each kind.
    sizes: [(u64, u64); 2],
}

impl ValkeyL2 {
    /// Holds at most `records_max` records of each kind. Does not connect yet.
    pub(crate) fn new(
        server: &Arc<Server>,
        installation: &Arc<Installation>,
        records_max: usize,
    ) -> Self {
        Self {
            client: Client::new(server, DEADLINES),
            installation: Arc::clone(installation),
            records_max: records_max.max(1),
            store: script(include_str!("scripts/store.lua"), &rows(Kind::Quote)),
            check: script(include_str!("scripts/check.lua"), &rows_of(Kind::Quote)[..1]),
            epoch: AtomicU64::new(Epoch::ALONE.0),
            counters: Mutex::default(),
        }
    }

    /// Makes this node store as the leader of this epoch from now on.
    pub(crate) fn set_epoch(&self, epoch: Epoch) {
        self.epoch.store(epoch.0, Relaxed);
    }

    /// Removes a key of another type, whose commands would all fail.
    fn check(
        &self,
        namespace_keys: &NamespaceKeys,
        kind: Kind,
        to: &mut Connection,
    ) -> RedisResult<()> {
        let foreign: Vec<usize> = self
            .check
            .prepare_invoke()
            .key(namespace_keys.keys.records(kind))
            .invoke(to)?;
        self.client.note_foreign(&rows_of(kind), &foreign);
        Ok(())
    }

    /// The record that a node of ours stored under this key.
    fn believed(
        &self,
        namespace_keys: &NamespaceKeys,
        kind: Kind,
        key: &[u8],
        mut value: Vec<u8>,
    ) -> Option<Record> {
        let Some(opened) = namespace_keys.open(Signed::Record(kind), key, &value) else {
            self.installation
                .distrust(Distrust::Forged, Signed::Record(kind));
            return None;
        };
        let stored_ms = i64::try_from(opened.number).ok()?;
        value.drain(..SIGNED_BYTES);
        Some(Record {
            bytes: value,
            stored_ms,
        })
    }

    /// Counts what the server uses for the kind. Access rules may forbid the command, which is sent
    /// after the store has succeeded.
    fn measure(&self, namespace_keys: &NamespaceKeys, kind: Kind, kept: u64) {
        let mut ask = redis::cmd("MEMORY");
        ask.arg("USAGE").arg(namespace_keys.keys.records(kind));
        let asked = self.client.call(|to| match ask.query::<Option<u64>>(to) {
            Err(error) if !error.is_io_error() => Ok(None),
            answered => answered,
        });
        let mut counters = self.counters.lock();
        let (records, bytes) = &mut counters.sizes[kind as usize];
        *records = kept;
        if let Ok(Some(used)) = asked {
            *bytes = used;
        }
    }
}

impl From<ValkeyError> for L2Error {
    fn from(error: ValkeyError) -> Self {
        match error {
            ValkeyError::Refused { detail, .. } => Self::Refused { detail },
            error => Self::Unavailable {
                detail: error.to_string(),
            },
        }
    }
}

impl SecondLevel for ValkeyL2 {
    fn load(&self, kind: Kind, key: &str) -> Result<Option<Record>, L2Error> {
        let namespace_keys = self.installation.namespace_keys()?;
        let mut command = redis::cmd("HGET");
        command.arg(namespace_keys.keys.records(kind)).arg(key);
        let value = self.client.call(|to| {
            self.check(&namespace_keys, kind, to)?;
            command.query::<Option<Vec<u8>>>(to)
        })?;
        let found =
            value.and_then(|value| self.believed(&namespace_keys, kind, key.as_bytes(), value));
        self.counters
            .lock()
            .found
            .count_found(usize::from(found.is_some()));
        Ok(found)
    }

    fn load_all(&self, kind: Kind) -> Result<Vec<(String, Record)>, L2Error> {
        let namespace_keys = self.installation.namespace_keys()?;
        let name = namespace_keys.keys.records(kind);
        // A record may come twice while others are stored.
        let mut found: HashMap<String, Record> = HashMap::new();
        self.client.call(|to| {
            self.check(&namespace_keys, kind, to)?;
            let mut cursor = 0_u64;
            loop {
                let mut command = redis::cmd("HSCAN");
                command
                    .arg(&name)
                    .arg(cursor)
                    .arg("COUNT")
                    .arg(PAGE_RECORDS);
                let (next, page): (u64, Page) = command.query(to)?;
                for (key, value) in page {
                    let record = self.believed(&namespace_keys, kind, &key, value);
                    if let (Some(record), Ok(key)) = (record, String::from_utf8(key)) {
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
        self.counters.lock().found.count_found(found.len());
        Ok(found.into_iter().take(self.records_max).collect())
    }

    fn store(&self, kind: Kind, items: &[(String, Vec<u8>)], now_ms: i64) -> Result<(), L2Error> {
        check_sizes(items)?;
        let namespace_keys = self.installation.namespace_keys()?;
        let epoch = Epoch(self.epoch.load(Relaxed));
        let mut forged = Vec::new();
        for _ in 0..TRIES_MAX {
            let mut script = self.store.prepare_invoke();
            let keys = &namespace_keys.keys;
            script
                .key(keys.records(kind))
                .key(keys.ages(kind))
                .key(keys.key(Key::Fence));
            script
                .arg(namespace_keys.sign(Signed::Fence, "", (epoch, 0), b""))
                .arg(&forged);
            script.arg(now_ms).arg(self.records_max).arg(RECORDS_MS);
            for (key, bytes) in items {
                let place = (epoch, now_ms.unsigned_abs());
                script
                    .arg(key)
                    .arg(namespace_keys.sign(Signed::Record(kind), key, place, bytes));
            }
            let (code, evicted, kept, fence, foreign): Told =
                self.client.call(|to| script.invoke(to))?;
            self.client.note_foreign(&rows(kind), &foreign);
            if code == STORED {
                self.counters.lock().found.evictions += evicted;
                self.measure(&namespace_keys, kind, kept);
                return Ok(());
            }
            if namespace_keys.open(Signed::Fence, b"", &fence).is_some() {
                return Err(L2Error::Deposed);
            }
            self.installation.distrust(Distrust::Forged, Signed::Fence);
            self.client.note_foreign(&[FENCE], &[1]);
            forged = fence;
        }
        let detail = "somebody writes on the server as fast as this node".to_owned();
        Err(L2Error::Unavailable { detail })
    }

    fn stats(&self) -> L2Stats {
        let counters = self.counters.lock();
        L2Stats {
            backend: self.client.server_name(),
            errors: self.client.stats().errors,
            entries: counters.sizes.iter().map(|(records, _)| records).sum(),
            bytes: counters.sizes.iter().map(|(_, bytes)| bytes).sum(),
            distrusted: self.installation.distrusted(),
            ..counters.found
        }
    }
}

#[cfg(test)]
#[path = "second_level_tests.rs"]
mod tests;
