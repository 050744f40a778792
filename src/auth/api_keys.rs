//! API keys: their form, the good ones in memory, and how a request with one is judged.
//!
//! A key is `bhav_`, its id (8 bytes), `_`, its secret (32 bytes) and a checksum of all before
//! (CRC-32), in base62 of fixed width. Scanners of repositories find one by its form, and a
//! mistyped one is refused without a look-up.
//!
//! Judged on the edge, from memory, as tokens are: the keys of every account are loaded at the
//! start, and each change of an account reads its keys anew. No secret is kept, and none is
//! logged: a key that was found right once is recognised by two keyed hashes of its text, which
//! cost a fraction of SHA-256.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use secrecy::SecretString;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::auth::accounts::AccountError;
use crate::auth::identity::{Auth, Caller, bearer};
use crate::auth::throttle::rate;
use crate::base::Scopes;
use crate::base::limiter::{SharedCounts, TooEarly, site};
use crate::base::words;
use crate::http::Request;
use crate::ops::Counter;
use crate::rt::{Lane, Ticket};
use crate::store::{AccountId, ENDED_LISTED_MS, KeyUse, StoreError, StoredKey};

/// The beginning of every key.
pub(crate) const PREFIX: &[u8] = b"bhav_";
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const ID_DIGITS: usize = 11;
const SECRET_DIGITS: usize = 43;
const CHECK_DIGITS: usize = 6;
const ID_AT: usize = PREFIX.len();
const SECRET_AT: usize = ID_AT + ID_DIGITS + 1;
const CHECK_AT: usize = SECRET_AT + SECRET_DIGITS;
/// Length of a key's text.
pub(crate) const KEY_BYTES: usize = CHECK_AT + CHECK_DIGITS;

const MINUTE_MS: i64 = 60_000;
/// Requests that a node takes from the bucket of all nodes at a time, so that it asks for one in
/// ten; of a small rate, as many as come in three seconds.
const PREPAID_MAX: u32 = 10;
/// Deadline of that, on the lane.
const SHARED_WAIT_MS: u64 = 200;
/// Shortest time between two looks for a key that another node may have made just now.
const LOOK_INTERVAL_MS: u64 = 100;

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
    hash: [u8; 32],
    pub expires_ms: Option<i64>,
    /// Keyed hashes of the key's whole text; zeros until it was found right.
    seen: [AtomicU64; 2],
    has_ended: AtomicBool,
    /// Its bucket on this node, as in [`Limiter`](crate::base::limiter).
    full_at_ms: AtomicU64,
    /// Requests that were taken from the bucket of all nodes and not made yet.
    prepaid: AtomicU32,
    used_ms: AtomicI64,
    used_from: Mutex<Option<IpAddr>>,
}

impl ApiKey {
    /// Whether it has been revoked, or has expired.
    pub(crate) fn has_ended(&self, now_ms: i64) -> bool {
        self.has_ended.load(Relaxed) || self.has_expired(now_ms)
    }

    fn has_expired(&self, now_ms: i64) -> bool {
        self.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms)
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
    /// Locked while keys are changed.
    of_user: Mutex<HashMap<AccountId, OfUser>>,
    /// Seeded at random, unknown outside this process.
    hashers: [RandomState; 2],
    per_minute: AtomicU32,
    /// The counts of all nodes, and the lane to ask them on.
    shared: OnceLock<(Arc<dyn SharedCounts>, Arc<Lane>)>,
    /// Keys whose last use is not stored.
    used: Mutex<Vec<Arc<ApiKey>>>,
    next_look_mono_ms: AtomicU64,
    admitted: Counter,
    refused: [Counter; KeyRefusal::ALL.len()],
}

/// Keys in memory, and requests with one since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyCounts {
    pub kept: usize,
    pub admitted: u64,
    /// In the order of [`KeyRefusal::ALL`].
    pub refused: [u64; KeyRefusal::ALL.len()],
}

impl ApiKeys {
    pub(super) fn new(per_minute: u32) -> Self {
        Self {
            by_id: papaya::HashMap::default(),
            of_user: Mutex::default(),
            hashers: [RandomState::new(), RandomState::new()],
            per_minute: AtomicU32::new(per_minute),
            shared: OnceLock::new(),
            used: Mutex::default(),
            next_look_mono_ms: AtomicU64::new(0),
            admitted: Counter::new(),
            refused: [const { Counter::new() }; KeyRefusal::ALL.len()],
        }
    }

    pub(super) fn join(&self, counts: &Arc<dyn SharedCounts>, lane: &Arc<Lane>) {
        // A node joins the others once, at its start.
        let _ = self.shared.set((Arc::clone(counts), Arc::clone(lane)));
    }

    pub(super) fn set_rate(&self, per_minute: u32) {
        self.per_minute.store(per_minute, Relaxed);
    }

    /// Counts a refusal.
    pub(crate) fn refuse(&self, why: KeyRefusal) {
        self.refused[why as usize].increment();
    }

    pub(crate) fn counts(&self) -> KeyCounts {
        KeyCounts {
            kept: self.by_id.len(),
            admitted: self.admitted.value(),
            refused: self.refused.each_ref().map(Counter::value),
        }
    }

    /// Never inlined: the map's pin is bound to the thread, and the caller may park.
    #[inline(never)]
    fn get(&self, id: u64) -> Option<Arc<ApiKey>> {
        self.by_id.pin().get(&id).cloned()
    }

    /// The key with this text, also an expired one.
    fn matching(&self, text: &[u8]) -> Option<Arc<ApiKey>> {
        if text.len() != KEY_BYTES || text[SECRET_AT - 1] != b'_' {
            return None;
        }
        let key = self.get(number(&text[ID_AT..SECRET_AT - 1])?)?;
        let seen = self.hashers.each_ref().map(|hasher| hasher.hash_one(text));
        let differ = seen
            .iter()
            .zip(&key.seen)
            .fold(0, |bits, (one, other)| bits | (one ^ other.load(Relaxed)));
        if differ == 0 {
            return Some(key);
        }
        let secret = secret_of(text)?;
        let hash: [u8; 32] = Sha256::digest(*secret).into();
        if !bool::from(hash.ct_eq(&key.hash)) {
            return None;
        }
        for (one, kept) in seen.iter().zip(&key.seen) {
            kept.store(*one, Relaxed);
        }
        Some(key)
    }

    /// Counts a request with the key. Parks where the bucket of all nodes has to be asked.
    fn admit(&self, key: &ApiKey, now_mono_ms: u64) -> Result<(), TooEarly> {
        let per_minute = self.per_minute.load(Relaxed);
        let Some(rate) = rate(per_minute) else { return Ok(()) };
        rate.admit(&key.full_at_ms, now_mono_ms)?;
        let Some((counts, lane)) = self.shared.get() else { return Ok(()) };
        let spent = |left: u32| left.checked_sub(1);
        if key.prepaid.fetch_update(Relaxed, Relaxed, spent).is_ok() {
            return Ok(());
        }
        let (counts, id) = (Arc::clone(counts), key.id.clone());
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

    /// Remembers the minute and the network of a use.
    fn note(&self, key: &Arc<ApiKey>, now_ms: i64, request: &Request<'_>) {
        let minute_ms = now_ms - now_ms.rem_euclid(MINUTE_MS);
        if key.used_ms.swap(minute_ms, Relaxed) != minute_ms {
            *key.used_from.lock() = request.client_address();
            self.used.lock().push(Arc::clone(key));
        }
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
            let keys = stored.into_iter().filter_map(|key| Some((number(key.id.as_bytes())?, key)));
            let keys: HashMap<u64, &StoredKey> = keys.collect();
            for id in known.ids.iter().filter(|id| !keys.contains_key(id)) {
                if let Some(key) = by_id.remove(id) {
                    key.has_ended.store(true, Relaxed);
                }
            }
            for (id, key) in &keys {
                by_id.get_or_insert_with(*id, || Arc::new(in_memory(key)));
            }
            *known = OfUser { as_of, ids: keys.into_keys().collect() };
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
        by_id.values().for_each(|key| key.has_ended.store(true, Relaxed));
        by_id.clear();
    }
}

fn in_memory(key: &StoredKey) -> ApiKey {
    ApiKey {
        id: key.id.clone(),
        user: key.user,
        name: key.name.clone(),
        scopes: key.scopes,
        hash: key.hash,
        expires_ms: key.expires_ms,
        seen: Default::default(),
        has_ended: AtomicBool::new(false),
        full_at_ms: AtomicU64::new(0),
        prepaid: AtomicU32::new(0),
        used_ms: AtomicI64::new(0),
        used_from: Mutex::new(None),
    }
}

/// A key to make.
pub(crate) struct NewKey {
    pub name: String,
    pub scopes: Scopes,
    pub expires_ms: Option<i64>,
}

impl Auth {
    /// The key that the request's `Authorization` carries, counted as a request with it. `None` if
    /// it carries none. Normally reads only memory; parks as [`identify`](Self::identify) does, and
    /// for one request in some where nodes count together.
    ///
    /// # Errors
    /// [`NoKey`].
    pub(crate) fn by_key(&self, request: &Request<'_>) -> Result<Option<Arc<ApiKey>>, NoKey> {
        let key_in = |line| bearer(line).filter(|token| token.starts_with(PREFIX));
        let mut lines = request.headers("authorization");
        let Some(first) = lines.next() else { return Ok(None) };
        let text = match (key_in(first), lines.next()) {
            (Some(text), None) => text,
            (None, None) => return Ok(None),
            (found, Some(second)) => {
                let mut others = [second].into_iter().chain(lines);
                let has_key = found.is_some() || others.any(|line| key_in(line).is_some());
                return if has_key { Err(NoKey::SeveralLines) } else { Ok(None) };
            }
        };
        let now_ms = self.clock.now_ms();
        let key = self.matching_key(text)?;
        let refused = |why| {
            self.api_keys.refuse(why);
            NoKey::Refused(why)
        };
        let key = key.ok_or_else(|| refused(KeyRefusal::Invalid))?;
        if key.has_expired(now_ms - ENDED_LISTED_MS) {
            return Err(refused(KeyRefusal::Invalid));
        }
        if key.has_expired(now_ms) {
            return Err(refused(KeyRefusal::Expired));
        }
        self.api_keys.admit(&key, self.clock.monotonic_ms()).map_err(|early| {
            self.api_keys.refuse(KeyRefusal::Rate);
            NoKey::TooEarly(early)
        })?;
        self.api_keys.note(&key, now_ms, request);
        self.api_keys.admitted.increment();
        Ok(Some(key))
    }

    fn matching_key(&self, text: &[u8]) -> Result<Option<Arc<ApiKey>>, NoKey> {
        if !self.followed.is_loaded() && !self.recover() {
            return Err(NoKey::Unready);
        }
        if self.is_outdated() && !(self.may_read() && self.read_changes().is_ok()) {
            return Err(NoKey::Unready);
        }
        let found = self.api_keys.matching(text);
        if found.is_some() || !self.is_shared() || secret_of(text).is_none() {
            return Ok(found);
        }
        // Another node may have made it just now. Anybody can make up a key with the right
        // checksum, so not every one is looked for.
        let (now_mono_ms, next) = (self.clock.monotonic_ms(), &self.api_keys.next_look_mono_ms);
        let due_mono_ms = next.load(Relaxed);
        let after = now_mono_ms + LOOK_INTERVAL_MS;
        let is_due = now_mono_ms >= due_mono_ms
            && next.compare_exchange(due_mono_ms, after, Relaxed, Relaxed).is_ok();
        if is_due {
            self.read_changes().map_err(|_| NoKey::Unready)?;
        }
        Ok(self.api_keys.matching(text))
    }

    /// Makes a key for the caller, and returns it with its text, which is not kept.
    ///
    /// # Errors
    /// [`AccountError`]; [`StoreError::TooMany`] if the account has as many as it may have.
    pub(crate) fn make_key(
        &self,
        caller: &Caller,
        new: NewKey,
        password: SecretString,
        client: Option<IpAddr>,
    ) -> Result<(StoredKey, Zeroizing<String>), AccountError> {
        self.verify_caller(caller, password, client)?;
        let (id, text, hash) = generated()?;
        let NewKey { name, scopes, expires_ms } = new;
        let now_ms = self.clock.now_ms();
        let key = StoredKey {
            id,
            user: caller.id,
            name,
            scopes,
            hash,
            created_ms: now_ms,
            expires_ms,
            used_ms: None,
            used_from: None,
        };
        self.store.add_key(key.clone(), now_ms)?;
        self.refresh_keys(caller.id)?;
        self.changed();
        Ok((key, text))
    }

    /// The caller's keys, the newest first: good ones, and those that expired lately.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) fn list_keys(&self, user: AccountId) -> Result<Vec<StoredKey>, StoreError> {
        let ended_ms = self.clock.now_ms() - ENDED_LISTED_MS;
        let mut keys = self.store.keys_of(vec![user])?.keys;
        keys.retain(|key| key.expires_ms.is_none_or(|expires_ms| expires_ms > ended_ms));
        keys.sort_by(|a, b| (b.created_ms, &a.id).cmp(&(a.created_ms, &b.id)));
        for key in &mut keys {
            let kept = number(key.id.as_bytes()).and_then(|id| self.api_keys.get(id));
            if let Some(noted) = kept.and_then(|kept| use_of(&kept))
                && Some(noted.used_ms) > key.used_ms
            {
                (key.used_ms, key.used_from) = (Some(noted.used_ms), noted.used_from);
            }
        }
        Ok(keys)
    }

    /// Revokes a key of the caller: refused from now on here, and within a second on other nodes.
    /// False if the caller has no such key.
    ///
    /// # Errors
    /// [`StoreError`]. If it is late the key may be revoked.
    pub(crate) fn revoke_key(&self, caller: &Caller, id: &str) -> Result<bool, StoreError> {
        let is_there = self.store.remove_key(caller.id, id)?;
        if is_there {
            self.refresh_keys(caller.id)?;
            self.changed();
        }
        Ok(is_there)
    }

    /// Reads an account's keys after a change of this node.
    pub(super) fn refresh_keys(&self, user: AccountId) -> Result<(), StoreError> {
        let read = self.store.keys_of(vec![user])?;
        let incarnation = self.incarnation.lock();
        if incarnation.as_ref() == Some(&read.incarnation) {
            self.api_keys.load(Some(&[user]), read.number, &read.keys);
        }
        Ok(())
    }

    /// Stores when keys were last used. Blocks; for a lane.
    pub(super) fn keep_key_uses(&self) {
        let used = std::mem::take(&mut *self.api_keys.used.lock());
        let ids: HashSet<&str> = used.iter().map(|key| key.id.as_str()).collect();
        if ids.is_empty() {
            return;
        }
        let uses = used.iter().filter_map(|key| use_of(key)).collect();
        if let Err(error) = self.store.note_key_uses(uses) {
            tracing::debug!(%error, "the last uses of API keys not written; they wait");
            self.api_keys.used.lock().extend(used);
        }
    }
}

/// The last use of a key that this node has seen.
fn use_of(key: &ApiKey) -> Option<KeyUse> {
    let used_ms = Some(key.used_ms.load(Relaxed)).filter(|used_ms| *used_ms > 0)?;
    let network = |address: IpAddr| match site(address) {
        network @ IpAddr::V4(_) => format!("{network}/24"),
        network @ IpAddr::V6(_) => format!("{network}/48"),
    };
    let used_from = key.used_from.lock().map(network);
    Some(KeyUse { id: key.id.clone(), used_ms, used_from })
}

// ---- Form

/// The number of an id's digits; `None` if they are not [`ID_DIGITS`] of base62.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    if digits.len() != ID_DIGITS {
        return None;
    }
    digits
        .iter()
        .try_fold(0_u64, |sum, digit| sum.checked_mul(62)?.checked_add(u64::from(value(*digit)?)))
}

/// Inverse of [`number`].
pub(crate) fn id_text(id: u64) -> String {
    spelled(&id.to_be_bytes(), ID_DIGITS)
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'Z' => Some(digit - b'A' + 10),
        b'a'..=b'z' => Some(digit - b'a' + 36),
        _ => None,
    }
}

/// A number as base62 of this many digits.
fn spelled(number: &[u8], digits: usize) -> String {
    let mut rest = Zeroizing::new(number.to_vec());
    let mut text = vec![0; digits];
    for digit in text.iter_mut().rev() {
        let mut remainder = 0;
        for byte in rest.iter_mut() {
            let part = remainder << 8 | u32::from(*byte);
            *byte = (part / 62) as u8;
            remainder = part % 62;
        }
        *digit = DIGITS[remainder as usize];
    }
    String::from_utf8(text).expect("digits are ASCII")
}

fn checksum(text: &[u8]) -> String {
    let mut check = flate2::Crc::new();
    check.update(text);
    spelled(&check.sum().to_be_bytes(), CHECK_DIGITS)
}

/// The secret in a key's text; `None` if the text is malformed or mistyped.
fn secret_of(text: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
    if !has_form(text) || text[CHECK_AT..] != *checksum(&text[..CHECK_AT]).as_bytes() {
        return None;
    }
    number(&text[ID_AT..SECRET_AT - 1])?;
    let mut secret = Zeroizing::new([0; 32]);
    for digit in &text[SECRET_AT..CHECK_AT] {
        let mut carry = u32::from(value(*digit)?);
        for byte in secret.iter_mut().rev() {
            carry += u32::from(*byte) * 62;
            *byte = carry as u8;
            carry >>= 8;
        }
        if carry > 0 {
            return None;
        }
    }
    Some(secret)
}

/// Whether the text is as long as a key and made of the same characters, right or not.
fn has_form(text: &[u8]) -> bool {
    text.len() == KEY_BYTES
        && text.starts_with(PREFIX)
        && text[SECRET_AT - 1] == b'_'
        && text[ID_AT..]
            .iter()
            .enumerate()
            .all(|(at, digit)| at == ID_DIGITS || value(*digit).is_some())
}

/// Whether a text has a key's form somewhere in it.
pub(crate) fn holds_key(text: &[u8]) -> bool {
    memchr::memmem::find_iter(text, PREFIX)
        .any(|at| text.get(at..at + KEY_BYTES).is_some_and(has_form))
}

/// A new key's id, text and hash.
fn generated() -> Result<(String, Zeroizing<String>, [u8; 32]), StoreError> {
    let random = |bytes: &mut [u8]| {
        getrandom::fill(bytes).map_err(|error| StoreError::Unavailable(error.to_string()))
    };
    let (mut id, mut secret) = ([0; 8], Zeroizing::new([0; 32]));
    random(&mut id)?;
    random(&mut *secret)?;
    let id = spelled(&id, ID_DIGITS);
    let digits = Zeroizing::new(spelled(&*secret, SECRET_DIGITS));
    let mut text = Zeroizing::new(String::with_capacity(KEY_BYTES));
    for part in ["bhav_", &id, "_", &digits] {
        text.push_str(part);
    }
    let check = checksum(text.as_bytes());
    text.push_str(&check);
    Ok((id, text, Sha256::digest(*secret).into()))
}

#[cfg(test)]
#[path = "api_keys_tests.rs"]
mod tests;
