//! API keys: their form, and the good ones in memory. `identity` judges requests by them.
//!
//! A key is `bhav_`, its id (8 bytes), `_`, its secret (32 bytes) and a checksum of all before
//! (CRC-32), in base62 of fixed width. Scanners of repositories find one by its form, and a
//! mistyped one is refused without a look-up.
//!
//! Judged on the edge, from memory, as tokens are: the keys of every account are loaded at the
//! start, and each change of an account reads its keys anew. No secret is kept, and none is
//! logged: a key that was found right once is recognised by its [`Mark`], a keyed hash of its text,
//! which costs a fraction of SHA-256.

use std::array;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use siphasher::sip128::SipHasher13;
use subtle::ConstantTimeEq;

use crate::auth::key_form::{ID_AT, KEY_BYTES, PREFIX, SECRET_AT, hash_of, number, secret_of};
use crate::auth::throttle::rate;
use crate::base::limiter::{SharedCounts, TooEarly, site};
use crate::base::{Scopes, words};
use crate::ops::Counter;
use crate::ops::counter::Counts;
use crate::rt::{Lane, Ticket};
use crate::store::{AccountId, KeyUse, StoredKey};

const MINUTE_MS: i64 = 60_000;
/// Longest time between two looks at the wall clock for a key in use. A step of that clock past the
/// key's end is noticed as soon as a revocation elsewhere.
const WALL_LOOK_MS: i64 = 1_000;
/// Requests that a node takes from the bucket of all nodes at a time, so that it asks for one in
/// ten; of a small rate, as many as come in three seconds.
const PREPAID_MAX: u32 = 10;
/// Deadline of that, on the lane.
const SHARED_WAIT_MS: u64 = 200;

words! {
    /// Why a request with a key was refused.
    pub(crate) enum KeyRefusal {
        /// Malformed, mistyped, unknown or revoked.
        Invalid = "key_invalid",
        Expired = "key_expired",
        /// It does not have the route's scope.
        Scope = "scope_missing",
        /// The route takes no key.
        Login = "login_required",
        /// It has made too many requests.
        Rate = "too_many_requests",
        /// It stands in a query.
        Query = "key_in_query",
    }
}

/// Why a request has no valid key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoKey {
    Refused(KeyRefusal),
    TooEarly(TooEarly),
    /// There are several `Authorization` lines, one of them with a key.
    SeveralLines,
    /// It is not known which keys are revoked.
    Unready,
}

/// A key in memory.
#[derive(Debug)]
pub(crate) struct ApiKey {
    pub id: String,
    pub user: AccountId,
    pub name: String,
    pub scopes: Scopes,
    hash: String,
    pub expires_ms: Option<i64>,
    /// Set once its text was found right.
    mark: OnceLock<Mark>,
    has_ended: AtomicBool,
    /// Its bucket on this node, as in [`Limiter`](crate::base::limiter).
    full_at_ms: AtomicU64,
    /// Requests that were taken from the bucket of all nodes and not made yet.
    prepaid: AtomicU32,
    used_ms: AtomicI64,
    /// Until then neither its end nor the minute of its use takes a look at the wall clock.
    judged_until_mono_ms: AtomicU64,
    used_from: Mutex<Option<IpAddr>>,
}

impl ApiKey {
    /// Whether it has been revoked, or has expired.
    pub(crate) fn has_ended(&self, now_ms: i64) -> bool {
        self.has_ended.load(Relaxed) || self.has_expired(now_ms)
    }

    pub(super) fn has_expired(&self, now_ms: i64) -> bool {
        self.expires_ms
            .is_some_and(|expires_ms| expires_ms <= now_ms)
    }

    /// Whether it is known that it has not ended and that its use in this minute is noted.
    pub(super) fn is_judged(&self, now_mono_ms: u64) -> bool {
        now_mono_ms < self.judged_until_mono_ms.load(Relaxed)
    }

    /// Whether `mark` is that of its text. Compares in constant time.
    fn is_marked(&self, mark: Mark) -> bool {
        let bits = |own: &Mark| (own[0] ^ mark[0]) | (own[1] ^ mark[1]);
        self.mark.get().is_some_and(|own| bits(own) == 0)
    }
}

/// The keys of one account, as of a change.
#[derive(Debug, Default)]
struct OfUser {
    as_of: i64,
    ids: Vec<u64>,
}

/// All good and expired keys.
pub(crate) struct ApiKeys {
    by_id: papaya::HashMap<u64, Arc<ApiKey>, foldhash::fast::RandomState>,
    /// Keys that were found right lately, by the beginning of their ids: most requests find
    /// theirs here. None is taken from here once it has ended. A lock is tried and never waited
    /// for.
    recent: [RwLock<Option<Arc<ApiKey>>>; RECENT],
    /// Locked while keys are changed.
    of_user: Mutex<HashMap<AccountId, OfUser>>,
    marker: Marker,
    per_minute: AtomicU32,
    /// The counts of all nodes, and the lane to ask them on.
    shared: OnceLock<(Arc<dyn SharedCounts>, Arc<Lane>)>,
    /// Keys whose last use is not stored.
    used: Mutex<Vec<Arc<ApiKey>>>,
    /// Requests with a good key.
    pub admitted: Counter,
    pub refused: Counts<KeyRefusal>,
}

impl ApiKeys {
    pub(super) fn new(per_minute: u32) -> Self {
        Self {
            by_id: papaya::HashMap::default(),
            recent: array::from_fn(|_| RwLock::default()),
            of_user: Mutex::default(),
            marker: Marker::seeded(),
            per_minute: AtomicU32::new(per_minute),
            shared: OnceLock::new(),
            used: Mutex::default(),
            admitted: Counter::new(),
            refused: Counts::default(),
        }
    }

    pub(super) fn join(&self, counts: &Arc<dyn SharedCounts>, lane: &Arc<Lane>) {
        // A node joins the others once, at its start.
        let _ = self.shared.set((Arc::clone(counts), Arc::clone(lane)));
    }

    pub(super) fn set_rate(&self, per_minute: u32) {
        self.per_minute.store(per_minute, Relaxed);
    }

    /// Number of keys in memory.
    pub(crate) fn kept(&self) -> usize {
        self.by_id.len()
    }

    /// Never inlined: the map's pin is bound to the thread, and the caller may park.
    #[inline(never)]
    fn get(&self, id: u64) -> Option<Arc<ApiKey>> {
        self.by_id.pin().get(&id).cloned()
    }

    /// The key with this text, also an expired one.
    pub(super) fn matching(&self, text: &[u8]) -> Option<Arc<ApiKey>> {
        let text: &[u8; KEY_BYTES] = text.try_into().ok().filter(|_| text.starts_with(PREFIX))?;
        let mark = self.marker.of(text);
        let recent = &self.recent[place(text)];
        if let Some(key) = recent.try_read().as_deref().and_then(Option::as_ref)
            && key.is_marked(mark)
            && !key.has_ended.load(Relaxed)
        {
            return Some(Arc::clone(key));
        }
        let key = self.searched(text, mark)?;
        // Only right keys come here, so nobody displaces them by made-up ones.
        if let Some(mut recent) = recent.try_write() {
            *recent = Some(Arc::clone(&key));
        }
        Some(key)
    }

    #[inline(never)]
    fn searched(&self, text: &[u8; KEY_BYTES], mark: Mark) -> Option<Arc<ApiKey>> {
        let key = self.get(number(&text[ID_AT..SECRET_AT - 1])?)?;
        if key.mark.get().is_none() {
            let hash = hash_of(&*secret_of(text)?);
            if !bool::from(hash.as_bytes().ct_eq(key.hash.as_bytes())) {
                return None;
            }
            // Fails where another request was faster with the same text.
            let _ = key.mark.set(mark);
        }
        (key.is_marked(mark) && !key.has_ended.load(Relaxed)).then_some(key)
    }

    /// Counts a request with the key. Parks where the bucket of all nodes has to be asked.
    pub(super) fn admit(&self, key: &ApiKey, now_mono_ms: u64) -> Result<(), TooEarly> {
        let per_minute = self.per_minute.load(Relaxed);
        let Some(rate) = rate(per_minute) else {
            return Ok(());
        };
        rate.admit(&key.full_at_ms, now_mono_ms)?;
        let Some((counts, lane)) = self.shared.get() else {
            return Ok(());
        };
        let spent = |left: u32| left.checked_sub(1);
        if key.prepaid.fetch_update(Relaxed, Relaxed, spent).is_ok() {
            return Ok(());
        }
        let counts = Arc::clone(counts);
        let id = key.id.clone();
        let many = (per_minute / 20).clamp(1, PREPAID_MAX);
        let asked = lane.submit(SHARED_WAIT_MS, move || {
            let ask = |cost| counts.admit("key", &[id.as_bytes()], rate, cost);
            match ask(u64::from(many)) {
                Err(_) if many > 1 => ask(1).map(|()| 0),
                answer => answer.map(|()| many - 1),
            }
        });
        // Without an answer the node's own bucket decides.
        match asked.map(Ticket::wait) {
            Ok(Ok(Ok(more))) => {
                key.prepaid.fetch_add(more, Relaxed);
                Ok(())
            }
            Ok(Ok(Err(early))) => Err(early),
            Ok(Err(_)) | Err(_) => Ok(()),
        }
    }

    /// Remembers the minute and the network of a use, and that the key has not ended.
    pub(super) fn note(
        &self,
        key: &Arc<ApiKey>,
        (now_ms, now_mono_ms): (i64, u64),
        client: Option<IpAddr>,
    ) {
        let minute_ms = now_ms - now_ms.rem_euclid(MINUTE_MS);
        let end_ms = key
            .expires_ms
            .unwrap_or(i64::MAX)
            .min(minute_ms + MINUTE_MS);
        let known_ms = (end_ms - now_ms).clamp(0, WALL_LOOK_MS).cast_unsigned();
        key.judged_until_mono_ms
            .store(now_mono_ms + known_ms, Relaxed);
        if key.used_ms.swap(minute_ms, Relaxed) != minute_ms {
            *key.used_from.lock() = client;
            self.used.lock().push(Arc::clone(key));
        }
    }

    /// Takes the keys whose last use has to be stored.
    pub(super) fn take_used(&self) -> Vec<Arc<ApiKey>> {
        std::mem::take(&mut *self.used.lock())
    }

    /// Puts back keys whose last use could not be stored.
    pub(super) fn give_back(&self, used: Vec<Arc<ApiKey>>) {
        self.used.lock().extend(used);
    }

    /// The last use of a key that this node has seen.
    pub(super) fn last_use(&self, id: &str) -> Option<KeyUse> {
        let key = self.get(number(id.as_bytes())?)?;
        use_of(&key)
    }

    /// Takes over the keys of `users`, or of all accounts, as read together with the change
    /// `as_of`. An older reading than the last one of an account has no effect.
    pub(super) fn load(&self, users: Option<&[AccountId]>, as_of: i64, stored: &[StoredKey]) {
        let mut of_user = self.of_user.lock();
        let mut read: HashMap<AccountId, Vec<&StoredKey>> = HashMap::new();
        match users {
            Some(users) => read.extend(users.iter().map(|user| (*user, Vec::new()))),
            None => read.extend(of_user.keys().map(|user| (*user, Vec::new()))),
        }
        for key in stored {
            read.entry(key.user).or_default().push(key);
        }
        let by_id = self.by_id.pin();
        for (user, stored) in read {
            if stored.is_empty() && !of_user.contains_key(&user) {
                continue;
            }
            let known = of_user.entry(user).or_default();
            if known.as_of > as_of {
                continue;
            }
            let keys = stored
                .into_iter()
                .filter_map(|key| Some((number(key.id.as_bytes())?, key)));
            let keys: HashMap<u64, &StoredKey> = keys.collect();
            for id in known.ids.iter().filter(|id| !keys.contains_key(id)) {
                if let Some(key) = by_id.remove(id) {
                    key.has_ended.store(true, Relaxed);
                }
            }
            for (id, key) in &keys {
                by_id.get_or_insert_with(*id, || Arc::new(in_memory(key)));
            }
            *known = OfUser {
                as_of,
                ids: keys.into_keys().collect(),
            };
        }
    }

    /// Refuses a key of `user` although the store still has it. False if there is none.
    pub(super) fn refuse(&self, user: AccountId, id: &str) -> bool {
        let key = number(id.as_bytes()).and_then(|id| self.get(id));
        let key = key.filter(|key| key.user == user);
        key.inspect(|key| key.has_ended.store(true, Relaxed))
            .is_some()
    }

    /// Refuses all keys of `user` although the store still has them.
    pub(super) fn refuse_all(&self, user: AccountId) {
        let of_user = self.of_user.lock();
        let ids = of_user
            .get(&user)
            .map(|known| known.ids.as_slice())
            .unwrap_or_default();
        for key in ids.iter().filter_map(|id| self.get(*id)) {
            key.has_ended.store(true, Relaxed);
        }
    }

    /// Ends all keys of an erased account.
    pub(super) fn forget(&self, user: AccountId) {
        self.load(Some(&[user]), i64::MAX, &[]);
    }

    /// Ends all keys: the database has another past, whose changes have other numbers.
    pub(super) fn clear(&self) {
        let mut of_user = self.of_user.lock();
        of_user.clear();
        let by_id = self.by_id.pin();
        by_id
            .values()
            .for_each(|key| key.has_ended.store(true, Relaxed));
        by_id.clear();
    }
}

fn in_memory(key: &StoredKey) -> ApiKey {
    ApiKey {
        id: key.id.clone(),
        user: key.user,
        name: key.name.clone(),
        scopes: key.scopes,
        hash: key.hash.clone(),
        expires_ms: key.expires_ms,
        mark: OnceLock::new(),
        has_ended: AtomicBool::new(false),
        full_at_ms: AtomicU64::new(0),
        prepaid: AtomicU32::new(0),
        used_ms: AtomicI64::new(0),
        judged_until_mono_ms: AtomicU64::new(0),
        used_from: Mutex::new(None),
    }
}

/// The last use of a key that this node has seen.
pub(super) fn use_of(key: &ApiKey) -> Option<KeyUse> {
    let used_ms = Some(key.used_ms.load(Relaxed)).filter(|used_ms| *used_ms > 0)?;
    let network = |address: IpAddr| match site(address) {
        network @ IpAddr::V4(_) => format!("{network}/24"),
        network @ IpAddr::V6(_) => format!("{network}/48"),
    };
    let used_from = key.used_from.lock().map(network);
    Some(KeyUse {
        id: key.id.clone(),
        used_ms,
        used_from,
    })
}

// ---- Mark
//
// Recognises the text of a key that was found right before, without keeping its secret.

/// Places for keys that were found right lately.
const RECENT: usize = 64;

/// A keyed hash of a key's text behind the prefix. Whoever does not know the hash's key makes
/// another text with the same one with a chance of 2^-128.
type Mark = [u64; 2];

/// Makes marks, in the same time for every text. SipHash, and not BLAKE3: of a text this short it
/// takes 190 instructions and not 530, a third of what the whole request takes. No mark is shown.
#[derive(Debug)]
struct Marker(SipHasher13);

impl Marker {
    /// With a key that is unknown outside this process.
    fn seeded() -> Self {
        let random = RandomState::new();
        Self(SipHasher13::new_with_keys(random.hash_one(1), random.hash_one(2)))
    }

    #[inline]
    fn of(&self, text: &[u8; KEY_BYTES]) -> Mark {
        let hash = self.0.hash(&text[ID_AT..]);
        [hash.h1, hash.h2]
    }
}

/// Eight bytes of a key's text from `at`, or its last eight.
#[inline]
fn word(text: &[u8; KEY_BYTES], at: usize) -> u64 {
    let at = at.min(KEY_BYTES - 8);
    u64::from_le_bytes(*text[at..].first_chunk().expect("eight bytes are left"))
}

/// The place of a key among the recent ones, by the beginning of its id, which is no secret.
#[inline]
fn place(text: &[u8; KEY_BYTES]) -> usize {
    // Multiplied by the golden ratio, so that the upper bits depend on all digits.
    let mixed = word(text, ID_AT).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> (64 - RECENT.ilog2())) as usize
}

#[cfg(test)]
#[path = "api_keys_tests.rs"]
mod tests;
