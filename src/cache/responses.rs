//! Finished responses of users. While a user's data does not change, a request costs a look-up and
//! a copy.
//!
//! The edge looks responses up; lane threads make and store them. Code that acknowledges a change
//! invalidates first. A response is stored only with a [`FillToken`] that was taken before its data
//! was read. If the user was invalidated after the token was taken, the fill is dropped, so a stale
//! response is never stored. If other nodes change the same data, each look-up first passes on the
//! version that the store has ([`Responses::expect`]). Locks are per shard and held for a look-up,
//! never over a wait. Nothing here compresses on the edge.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use foldhash::fast::RandomState;
use jiff::civil::Date;
use parking_lot::Mutex;

use crate::base::{Broker, PositionKind};
use crate::http::{CachePolicy, Variants};
use crate::views::health::HealthCacheAnswers;

/// Number of shards, each with a lock. Far more than edge workers, so that two workers rarely want
/// the same lock.
const SHARDS: usize = 16;
/// Views of one user: three of holdings, six of positions, the rest for spans of the trend.
const VIEWS_PER_USER_MAX: usize = 32;
/// Users sampled to choose one to evict, as in L1.
const EVICTION_SAMPLE: usize = 8;
/// Memory of a user besides the responses: keys, slot, entry in the list.
const USER_BYTES: usize = 256;
/// Lifetime of a response. A write that was reported as late may still happen, without an
/// invalidation. So every response is made anew after this time.
const LIFE_MS: u64 = 60_000;

/// The client may store the response and must revalidate it each time.
const POLICY: CachePolicy = CachePolicy {
    cache_control: "private, no-cache",
    vary: "Accept-Encoding, Authorization, Cookie",
    // A smaller body fits into one packet anyway.
    compressed_from_bytes: 1_024,
    ..CachePolicy::JSON
};

/// Identifies one response of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum View {
    /// Holdings of one broker or of both, with the change on a trading date.
    Holdings {
        broker: Option<Broker>,
        day: Option<Date>,
    },
    /// Positions of one of the broker's lists or of both, on a trading date.
    Positions {
        kind: Option<PositionKind>,
        closed: bool,
        today: Date,
    },
    /// The trend of the days up to a date, with the change on a trading date.
    Pnl {
        days: u16,
        today: Date,
        day: Option<Date>,
    },
}

/// Allows storing responses of a user until the user's next invalidation.
#[derive(Debug, Clone)]
pub(crate) struct FillToken {
    user: i64,
    number: u64,
}

/// The responses of all users, bounded in bytes.
#[derive(Debug)]
pub struct Responses {
    shards: Vec<Mutex<Shard>>,
    hasher: RandomState,
    shard_bytes_max: AtomicUsize,
    numbers: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    users: HashMap<i64, Slot, RandomState>,
    /// Every key of the map, in no order. A sample for eviction is drawn from it.
    keys: Vec<i64>,
    bytes: usize,
    random: fastrand::Rng,
    /// Counts look-ups, to find the user looked up longest ago.
    looks: u64,
}

#[derive(Debug)]
struct Slot {
    number: u64,
    /// Version of the user's data as last passed to [`Responses::expect`]; 0 if none was.
    version: i64,
    /// Index of this user in `keys`.
    at: usize,
    looked: u64,
    bytes: usize,
    responses: Vec<StoredResponse>,
}

#[derive(Debug)]
struct StoredResponse {
    view: View,
    answer: Arc<Variants>,
    until_mono_ms: u64,
}

impl Responses {
    /// An empty cache of about `bytes_max`.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let hasher = RandomState::default();
        let shard = |number: usize| {
            let seed = std::hash::BuildHasher::hash_one(&hasher, number);
            Mutex::new(Shard {
                random: fastrand::Rng::with_seed(seed),
                ..Shard::default()
            })
        };
        Self {
            shards: (0..SHARDS).map(shard).collect(),
            hasher,
            shard_bytes_max: AtomicUsize::new(bytes_max / SHARDS),
            numbers: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Makes a response of a JSON body, to be sent with
    /// [`Response::send_document`](crate::http::Response::send_document). It compresses, so it
    /// belongs on an OS thread.
    pub(crate) fn make(json: &[u8]) -> Arc<Variants> {
        Arc::new(Variants::new(json, &POLICY))
    }

    /// Changes the bound on bytes. A lower bound takes effect shard by shard, as responses are
    /// stored.
    pub(crate) fn set_bytes_max(&self, bytes_max: usize) {
        self.shard_bytes_max.store(bytes_max / SHARDS, Relaxed);
    }

    fn shard_bytes_max(&self) -> usize {
        self.shard_bytes_max.load(Relaxed)
    }

    /// The user's response if it is stored. Counts a hit or a miss.
    pub(crate) fn find(&self, user: i64, view: View, now_mono_ms: u64) -> Option<Arc<Variants>> {
        let found = self.shard(user).lock().find(user, view, now_mono_ms);
        let counter = if found.is_some() {
            &self.hits
        } else {
            &self.misses
        };
        counter.fetch_add(1, Relaxed);
        found
    }

    /// Compares a user's responses with the version of the data just read from the store. If they
    /// are of another version, they are dropped and every earlier token becomes worthless. Data
    /// read after this call is of this version or a newer one.
    pub(crate) fn expect(&self, user: i64, version: i64) {
        let mut shard = self.shard(user).lock();
        if shard
            .users
            .get(&user)
            .is_none_or(|slot| slot.version != version)
        {
            shard.remove(user);
            self.add(&mut shard, user, version);
        }
    }

    /// A token for storing a response of `user`. To be taken before the data of the response is
    /// read.
    pub(crate) fn fill_token(&self, user: i64) -> FillToken {
        let mut shard = self.shard(user).lock();
        if let Some(slot) = shard.users.get(&user) {
            return FillToken {
                user,
                number: slot.number,
            };
        }
        FillToken {
            user,
            number: self.add(&mut shard, user, 0),
        }
    }

    /// Makes room for the responses of a user who has none, and returns its number.
    fn add(&self, shard: &mut Shard, user: i64, version: i64) -> u64 {
        let number = self.numbers.fetch_add(1, Relaxed);
        self.make_room(shard, USER_BYTES, user);
        let at = shard.keys.len();
        let looked = shard.looks;
        shard.keys.push(user);
        shard.bytes += USER_BYTES;
        let slot = Slot {
            number,
            version,
            at,
            looked,
            bytes: USER_BYTES,
            responses: Vec::new(),
        };
        shard.users.insert(user, slot);
        number
    }

    /// Stores a response, unless the user was invalidated or evicted since the token was taken.
    /// Returns whether it was stored.
    pub(crate) fn keep(
        &self,
        token: &FillToken,
        view: View,
        answer: &Arc<Variants>,
        now_mono_ms: u64,
    ) -> bool {
        let bytes = answer.bytes();
        let mut shard = self.shard(token.user).lock();
        let stands = shard
            .users
            .get(&token.user)
            .is_some_and(|slot| slot.number == token.number);
        if !stands || bytes + USER_BYTES > self.shard_bytes_max() {
            self.refused.fetch_add(1, Relaxed);
            return false;
        }
        self.make_room(&mut shard, bytes, token.user);
        let Some(slot) = shard.users.get_mut(&token.user) else {
            return false;
        };
        let same = slot.responses.iter().position(|kept| kept.view == view);
        let crowded = (slot.responses.len() >= VIEWS_PER_USER_MAX).then_some(0);
        let freed = same
            .or(crowded)
            .map_or(0, |at| slot.responses.remove(at).answer.bytes());
        let until_mono_ms = now_mono_ms.saturating_add(LIFE_MS);
        slot.responses.push(StoredResponse {
            view,
            answer: Arc::clone(answer),
            until_mono_ms,
        });
        slot.bytes = slot.bytes + bytes - freed;
        shard.bytes = shard.bytes + bytes - freed;
        true
    }

    /// Drops a user's responses and makes every token taken before worthless. To be called after a
    /// change was stored and before it is acknowledged.
    pub(crate) fn invalidate(&self, user: i64) {
        self.shard(user).lock().remove(user);
    }

    /// Sizes and counters, which are not all of the same instant.
    pub fn stats(&self) -> HealthCacheAnswers {
        let mut stats = HealthCacheAnswers {
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            evictions: self.evictions.load(Relaxed),
            refused: self.refused.load(Relaxed),
            ..HealthCacheAnswers::default()
        };
        for shard in &self.shards {
            let shard = shard.lock();
            stats.users += shard.users.len();
            stats.bytes += shard.bytes;
        }
        stats
    }

    fn shard(&self, user: i64) -> &Mutex<Shard> {
        let hash = std::hash::BuildHasher::hash_one(&self.hasher, user);
        &self.shards[hash as usize % SHARDS]
    }

    /// Evicts other users until `bytes` more fit, and responses of `user` last.
    fn make_room(&self, shard: &mut Shard, bytes: usize, user: i64) {
        while shard.bytes + bytes > self.shard_bytes_max() {
            let Some(victim) = shard.victim(user) else {
                // The user is alone in the shard: its oldest responses are dropped.
                let Some(slot) = shard.users.get_mut(&user) else {
                    return;
                };
                if slot.responses.is_empty() {
                    return;
                }
                let freed = slot.responses.remove(0).answer.bytes();
                slot.bytes -= freed;
                shard.bytes -= freed;
                continue;
            };
            shard.remove(victim);
            self.evictions.fetch_add(1, Relaxed);
        }
    }
}

impl Shard {
    fn find(&mut self, user: i64, view: View, now_mono_ms: u64) -> Option<Arc<Variants>> {
        self.looks += 1;
        let slot = self.users.get_mut(&user)?;
        slot.looked = self.looks;
        let kept = slot.responses.iter().find(|kept| kept.view == view)?;
        (now_mono_ms < kept.until_mono_ms).then(|| Arc::clone(&kept.answer))
    }

    fn remove(&mut self, user: i64) {
        let Some(slot) = self.users.remove(&user) else {
            return;
        };
        self.bytes -= slot.bytes;
        self.keys.swap_remove(slot.at);
        if let Some(moved) = self.keys.get(slot.at)
            && let Some(moved) = self.users.get_mut(moved)
        {
            moved.at = slot.at;
        }
    }

    /// The user of a random sample that was looked up longest ago; never `spared`.
    fn victim(&mut self, spared: i64) -> Option<i64> {
        let others = self.keys.len() - usize::from(self.users.contains_key(&spared));
        if others == 0 {
            return None;
        }
        let mut least: Option<(u64, i64)> = None;
        while least.is_none() {
            for _ in 0..EVICTION_SAMPLE {
                let user = self.keys[self.random.usize(..self.keys.len())];
                let looked = self.users.get(&user).map_or(0, |slot| slot.looked);
                if user != spared && least.is_none_or(|(oldest, _)| looked < oldest) {
                    least = Some((looked, user));
                }
            }
        }
        least.map(|(_, user)| user)
    }
}

#[cfg(test)]
#[path = "responses_tests.rs"]
mod tests;
