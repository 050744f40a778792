//! The server's shared session at a broker, and its state.
//!
//! The settings or an activation set it. Every call to broker A and `/brokera/status` read broker
//! A's, `/brokerb/status` reads broker B's. They expire at different times. Reads are lock-free;
//! nothing here blocks, logs the token or calls the broker.
//!
//! A refusal ("dead", "no market data") is recorded on the token that the call used, so a late
//! refusal of an old token does not affect its successor.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use jiff::{SignedDuration, Timestamp, ToSpan};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::base::{Broker, Words, clock};
use crate::brokers::BrokerASettings;
use crate::brokers::call::transport::push_query;
use crate::brokers::readiness::Readiness;
use crate::rt::News;
pub(crate) use crate::views::states::TokenOrigin as Origin;

/// Hour (IST) at which the broker ends all tokens each morning (`wire` documentation, 2.3).
const FLUSH_HOUR_IST: i8 = 6;

/// Interval at which a plan without market data is tried again: the operator may have bought market
/// data, or the refusal may have been the broker's mistake.
const NO_PERMISSION_RETRY: SignedDuration = SignedDuration::from_mins(1);

/// The slot for the current token. The default is broker A's.
#[derive(Debug)]
pub struct SharedToken {
    slot: ArcSwapOption<Token>,
    /// Expiry of a token that was set at a time.
    pub(crate) expiry: fn(Timestamp) -> Timestamp,
    token_type: Option<&'static str>,
    news: News,
}

impl Default for SharedToken {
    fn default() -> Self {
        Self {
            slot: ArcSwapOption::empty(),
            expiry,
            token_type: Some("access_token"),
            news: News::default(),
        }
    }
}

/// A token as a broker gave it. Its `Debug` shows no secret.
#[derive(Clone, Debug)]
pub(crate) struct GivenToken {
    pub access_token: SecretString,
    pub api_key: SecretString,
    pub set_at: Timestamp,
    /// Whether `set_at` is the time of the login. A token that the settings had at the start counts
    /// as set then, and may be older.
    pub dated: bool,
}

/// One token and its state. Its `Debug` shows no secret.
#[derive(Debug)]
pub struct Token {
    pub(crate) given: GivenToken,
    expires_at: Timestamp,
    pub(crate) origin: Origin,
    refused: AtomicBool,
    /// Time at which the broker last refused market data for the plan, in Unix milliseconds; 0 is
    /// never.
    no_permission_ms: AtomicI64,
    /// Number of calls that returned market data.
    worked: AtomicU64,
}

/// The reason for not using a token that was kept over a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Outdated {
    #[error("it has expired")]
    Expired,
    #[error("the settings have another API key")]
    OtherKey,
    #[error("the settings have a newer token")]
    NewerSettings,
    #[error("another node has told a newer one")]
    NewerNode,
}

/// The state that the status routes and health report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenStatus {
    /// A token was set since the start.
    pub initialized: bool,
    /// It has neither expired nor been refused.
    pub valid: bool,
    /// The broker's name of the type; `None` if it has none.
    pub token_type: Option<&'static str>,
    pub set_at: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
    /// The broker reported that the plan has no market data, and has sent none since.
    pub no_permission: bool,
}

impl SharedToken {
    /// An empty slot for tokens that have no type and expire as `expiry` says.
    pub(crate) fn untyped(expiry: fn(Timestamp) -> Timestamp) -> Self {
        Self {
            expiry,
            token_type: None,
            ..Self::default()
        }
    }

    /// A slot with the token of the settings, if there is one. It counts as set at `now`, the start
    /// of the process, because its time is unknown.
    pub(crate) fn from_settings(settings: &BrokerASettings, now: Timestamp) -> Self {
        let shared = Self::default();
        if let (Some(token), Some(key)) = (&settings.access_token, &settings.api_key) {
            let access_token = token.clone();
            let api_key = key.clone();
            let given = GivenToken {
                access_token,
                api_key,
                set_at: now,
                dated: false,
            };
            shared.put(given, Origin::Settings);
        }
        shared
    }

    /// Replaces the token by one of the settings. `set_at` is the broker's login time if it is
    /// known.
    pub fn set(&self, access_token: SecretString, api_key: SecretString, set_at: Timestamp) {
        let given = GivenToken {
            access_token,
            api_key,
            set_at,
            dated: true,
        };
        self.put(given, Origin::Settings);
    }

    /// Replaces the token by one from a login.
    pub(crate) fn activate(&self, token: SecretString, api_key: SecretString, set_at: Timestamp) {
        let given = GivenToken {
            access_token: token,
            api_key,
            set_at,
            dated: true,
        };
        self.put(given, Origin::Login);
    }

    /// Replaces the token by one that the previous process kept, unless it is outdated. `api_key`
    /// and `settings_token` are those of the current settings.
    ///
    /// # Errors
    /// [`Outdated`]; the current token stays.
    pub(crate) fn take_over(
        &self,
        kept: KeptToken,
        now: Timestamp,
        api_key: Option<&SecretString>,
        settings_token: Option<Fingerprint>,
    ) -> Result<(), Outdated> {
        if now >= (self.expiry)(kept.set_at) {
            return Err(Outdated::Expired);
        }
        if api_key.map(ExposeSecret::expose_secret) != Some(kept.api_key.expose_secret()) {
            return Err(Outdated::OtherKey);
        }
        // Settings without a token have no newer one.
        if settings_token.is_some() && settings_token != kept.settings_token {
            return Err(Outdated::NewerSettings);
        }
        let told = self
            .current()
            .filter(|token| token.origin == Origin::OtherNode);
        if told.is_some_and(|told| told.is_valid(now) && told.given.set_at > kept.set_at) {
            return Err(Outdated::NewerNode);
        }
        self.activate(kept.access_token, kept.api_key, kept.set_at);
        Ok(())
    }

    fn put(&self, given: GivenToken, origin: Origin) {
        self.slot.store(Some(self.token(given, origin)));
        self.news.tell();
    }

    fn token(&self, given: GivenToken, origin: Origin) -> Arc<Token> {
        Arc::new(Token {
            expires_at: (self.expiry)(given.set_at),
            given,
            origin,
            refused: AtomicBool::new(false),
            no_permission_ms: AtomicI64::new(0),
            worked: AtomicU64::new(0),
        })
    }

    /// Replaces `seen`, the [current](Self::current) token that the caller read, by one that
    /// another node sent. `None` if the token has changed since.
    pub(crate) fn replace(
        &self,
        seen: Option<&Arc<Token>>,
        told: GivenToken,
    ) -> Option<Arc<Token>> {
        let token = self.token(told, Origin::OtherNode);
        let seen = seen.cloned();
        let before = self.slot.compare_and_swap(&seen, Some(Arc::clone(&token)));
        let replaced = before.as_ref().map(Arc::as_ptr) == seen.as_ref().map(Arc::as_ptr);
        replaced.then(|| self.news.tell()).map(|()| token)
    }

    /// The current token, even if it is expired or refused.
    pub fn current(&self) -> Option<Arc<Token>> {
        self.slot.load_full()
    }

    /// Signals a new token. Waiting threads use it for their other events too.
    pub(crate) fn news(&self) -> &News {
        &self.news
    }

    /// Forgets the token.
    #[cfg(test)]
    pub(crate) fn clear(&self) {
        self.slot.store(None);
        self.news.tell();
    }

    /// The token for a call that needs no market data: set, not expired, not refused.
    pub(crate) fn valid(&self, now: Timestamp) -> Option<Arc<Token>> {
        self.current().filter(|token| token.is_valid(now))
    }

    /// The token for a quote call.
    ///
    /// # Errors
    /// [`Readiness::NoToken`] or [`Readiness::NoPermission`].
    pub(crate) fn usable(&self, now: Timestamp) -> Result<Arc<Token>, Readiness> {
        let token = self.valid(now).ok_or(Readiness::NoToken)?;
        match token.no_permission_since() {
            Some(since) if now.duration_since(since).abs() < NO_PERMISSION_RETRY => {
                Err(Readiness::NoPermission)
            }
            _ => Ok(token),
        }
    }

    /// The state at `now`.
    pub fn status(&self, now: Timestamp) -> TokenStatus {
        let token = self.slot.load();
        let token = token.as_deref();
        TokenStatus {
            initialized: token.is_some(),
            valid: token.is_some_and(|token| token.is_valid(now)),
            token_type: self.token_type,
            set_at: token.map(|token| token.given.set_at),
            expires_at: token.map(|token| token.expires_at),
            no_permission: token.is_some_and(|token| token.no_permission_since().is_some()),
        }
    }
}

impl Token {
    /// Records that the broker refused the token. Returns whether that is new.
    pub(crate) fn mark_dead(&self) -> bool {
        !self.refused.swap(true, Ordering::AcqRel)
    }

    /// Records that the broker accepts the token but its plan has no market data. Returns whether
    /// that is new.
    pub(crate) fn mark_no_permission(&self, now: Timestamp) -> bool {
        self.no_permission_ms
            .swap(now.as_millisecond(), Ordering::AcqRel)
            == 0
    }

    /// Records that the broker sent market data.
    pub(crate) fn mark_works(&self) {
        self.no_permission_ms.store(0, Ordering::Release);
        self.worked.fetch_add(1, Ordering::AcqRel);
    }

    /// Number of calls that returned market data.
    pub(crate) fn worked(&self) -> u64 {
        self.worked.load(Ordering::Acquire)
    }

    /// Whether the next process can get it only from this one.
    pub(crate) fn is_to_keep(&self) -> bool {
        self.origin != Origin::Settings && self.given.dated
    }

    /// Whether the broker refused it.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Acquire)
    }

    /// Whether it may be used at `now`: neither expired nor refused.
    pub(crate) fn is_valid(&self, now: Timestamp) -> bool {
        now < self.expires_at && !self.is_refused()
    }

    /// The parts that the next process needs, in memory that is wiped.
    pub fn to_keep(&self, broker: Broker, settings_token: Option<Fingerprint>) -> KeptToken {
        let GivenToken {
            access_token,
            api_key,
            set_at,
            ..
        } = self.given.clone();
        KeptToken {
            broker,
            access_token,
            api_key,
            set_at,
            settings_token,
        }
    }

    /// The value of the `Authorization` header.
    pub(crate) fn authorization(&self) -> Zeroizing<String> {
        authorization(&self.given.api_key, &self.given.access_token)
    }

    /// The URL of broker A's ticker at `root`, in memory that is wiped.
    pub(crate) fn ticker_url(&self, root: &str) -> Zeroizing<String> {
        let GivenToken {
            access_token,
            api_key,
            ..
        } = &self.given;
        let key = api_key.expose_secret();
        let token = access_token.expose_secret();
        // A percent-encoded byte takes three bytes. Names and separators take under forty.
        let bytes = root.len() + 3 * (key.len() + token.len()) + 40;
        let mut url = Zeroizing::new(String::with_capacity(bytes));
        url.push_str(root);
        // A URL without a path gets the path `/`.
        if root.matches('/').count() < 3 {
            url.push('/');
        }
        push_query(&mut url, "api_key", key);
        push_query(&mut url, "access_token", token);
        url
    }

    fn no_permission_since(&self) -> Option<Timestamp> {
        match self.no_permission_ms.load(Ordering::Acquire) {
            0 => None,
            ms => Timestamp::from_millisecond(ms).ok(),
        }
    }
}

/// Broker A's `Authorization`, in memory that never grew by copying.
pub(crate) fn authorization(
    api_key: &SecretString,
    access_token: &SecretString,
) -> Zeroizing<String> {
    let parts = [
        "token ",
        api_key.expose_secret(),
        ":",
        access_token.expose_secret(),
    ];
    let bytes = parts.iter().map(|part| part.len()).sum();
    let mut value = Zeroizing::new(String::with_capacity(bytes));
    parts.iter().for_each(|part| value.push_str(part));
    value
}

/// The first 06:00 IST after `login`. A token of 05:50 lives ten minutes.
pub(crate) fn expiry(login: Timestamp) -> Timestamp {
    let civil = clock::zoned(login).datetime();
    let today = civil.date().at(FLUSH_HOUR_IST, 0, 0, 0);
    let flush = if civil < today {
        today
    } else {
        today.saturating_add(1.day())
    };
    clock::instant(flush)
}

// ---- Token file
//
// The document in which one process leaves a login's token to the next. It is written to and read
// from wiped memory.
//
// Pure. Where the document is kept is decided elsewhere. Nothing of it is ever printed.

/// Far more than the brokers' tokens need; a setting may have 4096 characters.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024;

const MAGIC: &[u8] = b"bhav-token";
/// Stands behind the magic; the rest is the JSON of [`Document`].
const VERSION: u8 = 2;

/// A kept token as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<'a> {
    /// The broker's letter.
    broker: &'a str,
    #[serde(borrow)]
    access_token: Cow<'a, str>,
    #[serde(borrow)]
    api_key: Cow<'a, str>,
    set_at: String,
    settings_token: Option<Fingerprint>,
}

/// Hash of a token of the settings, to detect a change without keeping the token.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a token. Tokens have some hundred bits, too many to guess.
    pub(crate) fn of(token: &SecretString) -> Self {
        Self(Sha256::digest(token.expose_secret()).into())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Fingerprint")
    }
}

/// A token and the circumstances in which it was kept. Its `Debug` shows no secret.
#[derive(Clone, Debug)]
pub struct KeptToken {
    pub broker: Broker,
    pub access_token: SecretString,
    pub api_key: SecretString,
    /// Time at which it was first set, in whichever process.
    pub set_at: Timestamp,
    /// The settings' own access token at that time.
    pub settings_token: Option<Fingerprint>,
}

/// The document would be longer than [`DOCUMENT_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("longer than {DOCUMENT_BYTES_MAX} bytes")]
pub struct TooLong;

/// The reason why a document cannot be read. Contains nothing of it but its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("not a document of ours")]
    Foreign,
    #[error("written in version {0}, which this program does not know")]
    Version(u8),
    #[error("damaged or cut short")]
    Damaged,
}

impl KeptToken {
    /// The document.
    ///
    /// # Errors
    /// [`TooLong`].
    pub(crate) fn encode(&self) -> Result<Zeroizing<Vec<u8>>, TooLong> {
        let document = Document {
            broker: self.broker.as_str(),
            access_token: self.access_token.expose_secret().into(),
            api_key: self.api_key.expose_secret().into(),
            set_at: self.set_at.to_string(),
            settings_token: self.settings_token,
        };
        // All of it is reserved: a Vec that grows leaves copies behind until they are freed.
        let mut bytes = Zeroizing::new(Vec::with_capacity(DOCUMENT_BYTES_MAX));
        bytes.extend_from_slice(MAGIC);
        bytes.push(VERSION);
        serde_json::to_writer(&mut *bytes, &document).map_err(|_| TooLong)?;
        if bytes.len() > DOCUMENT_BYTES_MAX {
            Err(TooLong)
        } else {
            Ok(bytes)
        }
    }

    /// Reads a document, every byte of it.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn decode(document: &[u8]) -> Result<Self, Unreadable> {
        let rest = document.strip_prefix(MAGIC).ok_or(Unreadable::Foreign)?;
        let json = match rest {
            [VERSION, json @ ..] => json,
            [other, ..] => return Err(Unreadable::Version(*other)),
            [] => return Err(Unreadable::Damaged),
        };
        let read: Document<'_> = serde_json::from_slice(json).map_err(|_| Unreadable::Damaged)?;
        let has_texts = !read.access_token.is_empty() && !read.api_key.is_empty();
        let broker = Broker::parse(read.broker).filter(|_| has_texts);
        Ok(Self {
            broker: broker.ok_or(Unreadable::Damaged)?,
            access_token: read.access_token.as_ref().into(),
            api_key: read.api_key.as_ref().into(),
            set_at: read.set_at.parse().map_err(|_| Unreadable::Damaged)?,
            settings_token: read.settings_token,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ist_time(text: &str) -> Timestamp {
        clock::instant(text.parse().unwrap())
    }

    fn set(shared: &SharedToken, token: &str, at: Timestamp) {
        shared.set(token.into(), "key".into(), at);
    }

    #[test]
    fn expiry_is_the_next_six_in_the_morning() {
        for (login, expected) in [
            ("2026-11-20T05:50:00", "2026-11-20T06:00:00"),
            ("2026-11-20T06:00:00", "2026-11-21T06:00:00"),
            ("2026-11-20T08:30:00", "2026-11-21T06:00:00"),
            ("2026-12-31T23:59:59", "2027-01-01T06:00:00"),
        ] {
            assert_eq!(expiry(ist_time(login)), ist_time(expected), "{login}");
        }
    }

    #[test]
    fn never_set_is_neither_initialized_nor_valid() {
        let shared = SharedToken::default();
        let now = ist_time("2026-11-20T09:00:00");
        let status = shared.status(now);
        assert!(!status.initialized && !status.valid && !status.no_permission);
        assert_eq!((status.set_at, status.expires_at), (None, None));
        assert_eq!(shared.usable(now).unwrap_err(), Readiness::NoToken);
    }

    #[test]
    fn validity_ends_at_the_very_moment_of_expiry() {
        let shared = SharedToken::default();
        let set_at = ist_time("2026-11-20T09:00:00");
        set(&shared, "t", set_at);
        let last = ist_time("2026-11-21T05:59:59.999");
        assert!(shared.status(last).valid);
        assert!(shared.usable(last).is_ok());
        let over = ist_time("2026-11-21T06:00:00");
        let status = shared.status(over);
        assert!(status.initialized && !status.valid);
        assert_eq!((status.set_at, status.expires_at), (Some(set_at), Some(over)));
        assert_eq!(shared.usable(over).unwrap_err(), Readiness::NoToken);
    }

    #[test]
    fn a_late_refusal_of_an_old_token_does_not_kill_the_new_one() {
        let shared = SharedToken::default();
        let now = ist_time("2026-11-20T09:00:00");
        set(&shared, "old", now);
        let old = shared.usable(now).unwrap();
        set(&shared, "new", now);
        assert!(old.mark_dead());
        assert!(!old.mark_dead(), "told once");
        assert!(shared.status(now).valid);
        shared.usable(now).unwrap().mark_dead();
        assert!(!shared.status(now).valid);
        assert!(shared.status(now).initialized);
        shared.clear();
        assert!(!shared.status(now).initialized);
    }

    #[test]
    fn the_tickers_url_has_both_values_encoded_and_never_grew() {
        let shared = SharedToken::default();
        let now = ist_time("2026-11-20T09:00:00");
        shared.set("t&/ =".into(), "k+1".into(), now);
        let token = shared.valid(now).unwrap();
        for (root, path) in [
            ("wss://ws.kite.trade", "/"),
            ("ws://127.0.0.1:1/a/ticker", ""),
        ] {
            let url = token.ticker_url(root);
            let expected = format!("{root}{path}?api_key=k%2B1&access_token=t%26%2F%20%3D");
            assert_eq!(*url, expected);
            let bytes_max = root.len() + 3 * "t&/ =k+1".len() + 40;
            assert_eq!(url.capacity(), bytes_max);
        }
    }

    #[test]
    fn no_permission_is_retried_rarely_or_on_a_new_token() {
        let shared = SharedToken::default();
        let now = ist_time("2026-11-20T09:00:00");
        set(&shared, "t", now);
        assert!(shared.usable(now).unwrap().mark_no_permission(now));
        let status = shared.status(now);
        assert!(status.valid && status.no_permission);
        let soon = now + SignedDuration::from_secs(59);
        assert_eq!(shared.usable(soon).unwrap_err(), Readiness::NoPermission);
        let later = now + SignedDuration::from_mins(1);
        let token = shared.usable(later).unwrap();
        assert!(shared.status(later).no_permission, "until data came");
        token.mark_works();
        assert!(!shared.status(later).no_permission);
        token.mark_no_permission(later);
        set(&shared, "new", later);
        assert!(shared.usable(later).is_ok());
    }

    #[test]
    fn what_was_kept_is_used_until_it_expires_or_the_settings_say_otherwise() {
        let settings = Fingerprint::of(&"of the settings".into());
        let newer = Fingerprint::of(&"newer".into());
        let login = ist_time("2026-11-20T09:00:00");
        let before = SharedToken::default();
        before.activate("t".into(), "key".into(), login);
        let token = before.valid(login).unwrap();
        assert_eq!(token.origin, Origin::Login);
        let kept = token.to_keep(Broker::A, Some(settings));
        let without = token.to_keep(Broker::A, None);
        let now = ist_time("2026-11-21T05:59:59");
        let six = ist_time("2026-11-21T06:00:00");
        let key = SecretString::from("key");
        let other = SecretString::from("other");
        for (kept, now, key, settings, expected) in [
            (&kept, now, Some(&key), Some(settings), Ok(())),
            (&kept, now, Some(&key), None, Ok(())),
            (&without, now, Some(&key), None, Ok(())),
            (&kept, six, Some(&key), Some(settings), Err(Outdated::Expired)),
            (&kept, now, Some(&other), Some(settings), Err(Outdated::OtherKey)),
            (&kept, now, None, Some(settings), Err(Outdated::OtherKey)),
            (&kept, now, Some(&key), Some(newer), Err(Outdated::NewerSettings)),
            (&without, now, Some(&key), Some(settings), Err(Outdated::NewerSettings)),
        ] {
            let shared = SharedToken::default();
            set(&shared, "there", now);
            let taken = shared.take_over(kept.clone(), now, key, settings);
            assert_eq!(taken, expected);
            let token = shared.valid(now).unwrap();
            let (text, origin) = match expected {
                Ok(()) => ("token key:t", Origin::Login),
                Err(_) => ("token key:there", Origin::Settings),
            };
            assert_eq!((token.authorization().as_str(), token.origin), (text, origin));
            if taken.is_ok() {
                assert_eq!(shared.status(now).set_at, Some(login));
            }
        }
    }

    #[test]
    fn what_another_node_told_replaces_only_what_was_seen_and_is_kept_for_the_next_process() {
        let shared = SharedToken::default();
        let at = ist_time("2026-11-20T09:00:00");
        let told = |text: &str, dated| GivenToken {
            access_token: text.into(),
            api_key: "key".into(),
            set_at: at,
            dated,
        };
        set(&shared, "one", at);
        let seen = shared.current();
        set(&shared, "two", at);
        assert!(shared.replace(seen.as_ref(), told("late", true)).is_none());
        assert_eq!(shared.valid(at).unwrap().authorization().as_str(), "token key:two");
        assert!(!shared.current().unwrap().is_to_keep(), "the settings have it");
        let seen = shared.current();
        let token = shared.replace(seen.as_ref(), told("three", true)).unwrap();
        assert!(Arc::ptr_eq(&token, &shared.current().unwrap()));
        assert!(token.is_to_keep() && token.origin == Origin::OtherNode);
        // The previous process had an older one.
        let kept = KeptToken {
            broker: Broker::A,
            access_token: "kept".into(),
            api_key: "key".into(),
            set_at: ist_time("2026-11-20T08:00:00"),
            settings_token: None,
        };
        let taken = shared.take_over(kept, at, Some(&"key".into()), None);
        assert_eq!(taken, Err(Outdated::NewerNode));
        let seen = shared.current();
        let token = shared
            .replace(seen.as_ref(), told("of a start", false))
            .unwrap();
        assert!(!token.is_to_keep(), "the next process asks again");
    }

    #[test]
    fn secrets_do_not_show() {
        let shared = SharedToken::default();
        set(&shared, "s3cret", ist_time("2026-11-20T09:00:00"));
        assert!(!format!("{shared:?}").contains("s3cret"));
        let token = shared.usable(ist_time("2026-11-20T09:00:00")).unwrap();
        assert_eq!(token.authorization().as_str(), "token key:s3cret");
    }
}

#[cfg(test)]
#[path = "token_file_tests.rs"]
mod token_file_tests;
