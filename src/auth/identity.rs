//! Identifies the caller of a request, and holds the state of accounts and tokens.
//!
//! [`Auth::identify`] runs on the edge for each request of a user's route, and normally reads only
//! memory.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use secrecy::SecretString;

use crate::auth::api_keys::{ApiKey, ApiKeys, KeyRefusal, NoKey};
use crate::auth::endings::Endings;
use crate::auth::followed::Followed;
use crate::auth::keys::{AuthSettings, Key, KeyError, KeyFile, Keys, Registration};
use crate::auth::known_networks::KnownNetworks;
use crate::auth::passwords::Passwords;
use crate::auth::revocations::{Revocations, Verdict};
use crate::auth::throttle::Throttle;
use crate::auth::tokens::{Earlier, Tokens};
use crate::auth::{key_form, keys, tokens};
use crate::base::Clock;
use crate::base::limiter::{Limiter, Rate, SharedCounts};
use crate::http::Request;
use crate::ops::Counter;
use crate::rt::Lane;
use crate::store::{AccountId, ENDED_LISTED_MS, Store};
use crate::views::states::KeyState;

/// The cookie that may carry a token. A login sets it if the client asks for it.
pub(crate) const COOKIE: &str = "access_token_cookie";

/// The cookie that proves an earlier login and gives no access. A login sets it together with the
/// other, and a logout leaves it.
pub(crate) const EARLIER_COOKIE: &str = "earlier_login_cookie";

/// Most tokens of one login that are checked: one for each place that may carry one, and one to
/// spare.
const EARLIER_MAX: usize = 4;

/// Most cookies of a request whose signature is checked, some microseconds each. A browser has one
/// of ours; other services of its domain may have set more of the same name, which are told by
/// their header and do not count.
pub(crate) const COOKIES_VERIFIED_MAX: usize = 16;

/// Time between two attempts of requests to read the store after a failure.
const LOAD_INTERVAL_MS: u64 = 1_000;
/// Time between two looks for an API key, or for an incarnation of the database, that another node
/// may have made just now.
const LOOK_INTERVAL_MS: u64 = 100;

/// The user of a request, as identified by its token.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub id: AccountId,
    /// The API key, where the request has one instead of a token. The fields of a token are then
    /// empty; no route that needs them takes a key.
    pub key: Option<Arc<ApiKey>>,
    /// The token's `jti`.
    pub token_id: u128,
    /// When the token expires, Unix seconds.
    pub expires_s: i64,
    /// The token's epoch, equal to its account's.
    pub epoch: i64,
    /// Whether the token came in the cookie, so that another site's page may have caused the
    /// request.
    pub by_cookie: bool,
}

impl Caller {
    /// The owner of a key.
    pub(crate) fn by_key(key: Arc<ApiKey>) -> Self {
        let token_id = 0;
        let expires_s = 0;
        let epoch = 0;
        Self {
            id: key.user,
            key: Some(key),
            token_id,
            expires_s,
            epoch,
            by_cookie: false,
        }
    }
}

/// Why a request has no caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unidentified {
    /// No token was sent.
    Missing,
    /// The token is malformed, expired, revoked, of another database, of no account, or not signed
    /// by one of our keys.
    Invalid,
    /// Several cookies are good, for different accounts.
    Ambiguous,
    /// None of the cookies that were checked is good, and there are more than are checked.
    Crowded,
    /// The store was never read, or not lately, so it is not known which tokens are revoked.
    Unready,
}

/// Why a token cannot be judged from memory alone.
enum Undecided {
    /// The token is refused.
    Not(Unidentified),
    /// No state was loaded yet.
    Unloaded,
    /// The loaded state is too old.
    Outdated,
    /// The account or its epoch is not known here. Another node may have made it just now.
    Unknown,
}

/// New settings, with the keys that they give, to be put in force by [`Auth::adopt`].
pub(crate) struct PreparedAuth {
    keys: Keys,
    settings: AuthSettings,
}

/// Accounts, tokens, passwords and their limits.
pub struct Auth {
    pub(super) clock: Clock,
    pub(super) store: Arc<Store>,
    pub(super) keys: Mutex<Vec<Key>>,
    /// The database's incarnation, as loaded last. `None` until the store has been read.
    pub(super) incarnation: Mutex<Option<String>>,
    /// Signs and verifies tokens for that incarnation. `None` until the store has been read.
    tokens: ArcSwapOption<Tokens>,
    /// Check value of the other nodes' secret, if this node does not know that secret.
    pub(super) other_secret: Mutex<Option<String>>,
    /// Set if a new secret has to be recorded in the database.
    pub(super) claim_is_due: AtomicBool,
    /// Locked while the file is checked on disk.
    pub(super) key_file: Mutex<KeyFile>,
    /// State of the file at the last check.
    pub(super) key_state: Mutex<KeyState>,
    pub(super) state_dir: PathBuf,
    pub(crate) passwords: Passwords,
    pub(crate) throttle: Throttle,
    /// Separate from logins, so that neither uses up the other's attempts.
    pub(crate) registrations: Throttle,
    pub(super) known_networks: KnownNetworks,
    pub(super) registration: Mutex<Registration>,
    pub(super) revoked: Revocations,
    /// What users have ended and the store could not take yet.
    pub(crate) endings: Endings,
    pub(crate) api_keys: ApiKeys,
    pub(super) followed: Followed,
    /// Limits readings of the store by requests, after a failure.
    loads: Limiter,
    /// Limits looks for API keys that are not known here.
    key_looks: Limiter,
    /// Limits removals of what is no longer needed.
    pub(super) removals: Limiter,
    pub(super) next_networks_mono_ms: AtomicU64,
    pub(crate) logins: Counter,
    pub(crate) wrong_passwords: Counter,
    /// Requests with more cookies than are checked.
    pub(crate) crowded_cookies: Counter,
}

impl Auth {
    /// Loads or generates the signing key, starts the hashing lane, and loads accounts and
    /// revocations from the store. Blocks; for the main thread.
    ///
    /// # Errors
    /// [`AuthError`]. A store that cannot be read is no error: it is tried again later.
    pub(crate) fn start(
        settings: &AuthSettings,
        state_dir: &Path,
        store: Arc<Store>,
        clock: &Clock,
    ) -> Result<Self, AuthError> {
        let Keys { all, mut file } = keys::load(settings, state_dir)?;
        let key_state = Mutex::new(file.look());
        let known_networks = KnownNetworks::new(clock.clone(), &all);
        let followed = match store.is_shared() {
            true => Followed::since_last_run(state_dir),
            // The mark beside the file names the last change.
            false => Followed::default(),
        };
        let auth = Self {
            clock: clock.clone(),
            store,
            keys: Mutex::new(all),
            incarnation: Mutex::new(None),
            tokens: ArcSwapOption::empty(),
            other_secret: Mutex::new(None),
            claim_is_due: AtomicBool::new(false),
            key_file: Mutex::new(file),
            key_state,
            state_dir: state_dir.to_owned(),
            passwords: Passwords::start(settings, clock)?,
            throttle: Throttle::new(settings.login_attempts_per_minute, clock.clone()),
            registrations: Throttle::new(settings.registration_attempts_per_minute, clock.clone()),
            known_networks,
            registration: Mutex::new(settings.registration),
            revoked: Revocations::default(),
            endings: Endings::default(),
            api_keys: ApiKeys::new(settings.key_requests_per_minute),
            followed,
            loads: Limiter::new(Rate::every_ms(LOAD_INTERVAL_MS)),
            key_looks: Limiter::new(Rate::every_ms(LOOK_INTERVAL_MS)),
            removals: Limiter::new(Rate::every_ms(FORGET_INTERVAL_MS)),
            next_networks_mono_ms: AtomicU64::new(0),
            logins: Counter::new(),
            wrong_passwords: Counter::new(),
            crowded_cookies: Counter::new(),
        };
        auth.load_state();
        if let Some(recorded) = &*auth.other_secret.lock() {
            let own = keys::check_value(&auth.keys.lock()[0]);
            let shown = |check: &str| keys::fingerprint(check).to_owned();
            return Err(AuthError::OtherSecret {
                own: shown(&own),
                recorded: shown(recorded),
            });
        }
        Ok(auth)
    }

    /// `None` until the store has been read. Never inlined, so that the compiler cannot keep the
    /// address of arc-swap's thread-local across a suspension point of the caller.
    #[inline(never)]
    pub(super) fn tokens(&self) -> Option<Arc<Tokens>> {
        self.tokens.load_full()
    }

    /// Puts `keys` in force, if the database's incarnation is known already.
    pub(super) fn put_in_force(&self, keys: &[Key]) {
        if let Some(incarnation) = &*self.incarnation.lock() {
            self.tokens
                .store(Some(Arc::new(Tokens::new(keys, incarnation))));
        }
    }

    /// Prepares new settings without putting them in force. Reads the key file again if they give
    /// no key. Blocks; for the main thread.
    ///
    /// # Errors
    /// [`KeyError`].
    pub(crate) fn prepare(&self, settings: &AuthSettings) -> Result<PreparedAuth, KeyError> {
        let keys = keys::load(settings, &self.state_dir)?;
        Ok(PreparedAuth {
            keys,
            settings: settings.clone(),
        })
    }

    /// The signing key, from which other keys are derived if no setting gives a secret.
    pub(crate) fn kept_key(&self) -> SecretString {
        let keys = self.keys.lock();
        let key = keys.first().map(|key| key.as_slice()).unwrap_or_default();
        let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        digits.into()
    }

    /// Puts prepared settings in force. Tokens signed with a key that is no longer known become
    /// invalid.
    pub(crate) fn adopt(&self, prepared: PreparedAuth) {
        let PreparedAuth {
            keys: Keys { all, file },
            settings,
        } = prepared;
        {
            let mut keys = self.keys.lock();
            *keys = all;
            self.put_in_force(&keys);
            self.known_networks.set_keys(&keys);
        }
        self.claim_is_due.store(true, Ordering::Relaxed);
        *self.key_file.lock() = file;
        self.look_after_key();
        *self.registration.lock() = settings.registration;
        self.throttle.set_rate(settings.login_attempts_per_minute);
        self.registrations
            .set_rate(settings.registration_attempts_per_minute);
        self.api_keys.set_rate(settings.key_requests_per_minute);
    }

    /// From now on counts attempts together with the other nodes, and requests with a key on
    /// `lane`.
    pub(crate) fn join(&self, counts: &Arc<dyn SharedCounts>, lane: &Arc<Lane>) {
        self.throttle.join("login", counts);
        self.registrations.join("register", counts);
        self.api_keys.join(counts, lane);
    }

    /// For accounts whose passwords are public.
    pub(crate) fn count_logins_by_network_alone(&self) {
        self.throttle.count_by_network_alone();
    }

    /// The hashing lane, for its counters.
    pub fn lane(&self) -> &Arc<Lane> {
        &self.passwords.lane
    }

    /// Password attempts that were refused unchecked.
    pub fn refused_attempts(&self) -> u64 {
        self.throttle.refused() + self.passwords.strangers_refused()
    }

    /// Identifies the caller. Normally reads only memory. Parks at the first request after a
    /// failure of the store, and for an account that another node may have made just now.
    ///
    /// # Errors
    /// [`Unidentified`].
    pub(crate) fn identify(&self, request: &Request<'_>) -> Result<Caller, Unidentified> {
        let caller = self.settled(|| self.judged_in_memory(request))?;
        if let Some(address) = request.client_address() {
            self.known_networks.note(caller.id, address);
        }
        Ok(caller)
    }

    /// The key that the request's `Authorization` carries, counted as a request with it. `None` if
    /// it carries none. Normally reads only memory; parks as [`identify`](Self::identify) does, and
    /// for one request in some where nodes count together.
    ///
    /// # Errors
    /// [`NoKey`].
    pub(crate) fn by_key(&self, request: &Request<'_>) -> Result<Option<Arc<ApiKey>>, NoKey> {
        let key_in = |line| bearer(line).filter(|token| token.starts_with(key_form::PREFIX));
        let mut lines = request.headers("authorization").enumerate();
        let found = lines.find_map(|(at, line)| Some((at, key_in(line)?)));
        let Some((at, text)) = found else {
            return Ok(None);
        };
        if at > 0 || lines.next().is_some() {
            return Err(NoKey::SeveralLines);
        }
        let refused = |why| {
            self.api_keys.refused.increment(why);
            NoKey::Refused(why)
        };
        let key = self
            .settled(|| self.key_in_memory(text))
            .map_err(|why| match why {
                Unidentified::Unready => NoKey::Unready,
                _ => refused(KeyRefusal::Invalid),
            })?;
        let now_mono_ms = self.clock.monotonic_ms();
        let now_ms = (!key.is_judged(now_mono_ms)).then(|| self.clock.now_ms());
        if let Some(now_ms) = now_ms.filter(|now_ms| key.has_expired(*now_ms)) {
            let is_listed = !key.has_expired(now_ms - ENDED_LISTED_MS);
            return Err(refused(if is_listed {
                KeyRefusal::Expired
            } else {
                KeyRefusal::Invalid
            }));
        }
        self.api_keys.admit(&key, now_mono_ms).map_err(|early| {
            self.api_keys.refused.increment(KeyRefusal::Rate);
            NoKey::TooEarly(early)
        })?;
        if let Some(now_ms) = now_ms {
            self.api_keys
                .note(&key, (now_ms, now_mono_ms), request.client_address());
        }
        self.api_keys.admitted.increment();
        Ok(Some(key))
    }

    /// Judges from memory. Where that cannot decide, reads the store and judges once more.
    fn settled<T>(&self, judge: impl Fn() -> Result<T, Undecided>) -> Result<T, Unidentified> {
        const INVALID: Unidentified = Unidentified::Invalid;
        let is_settled = match judge() {
            Ok(judged) => return Ok(judged),
            Err(Undecided::Not(why)) => return Err(why),
            Err(Undecided::Unloaded) => self.recover(),
            Err(Undecided::Outdated) => self.may_read() && self.read_changes().is_ok(),
            Err(Undecided::Unknown) if !self.is_shared() => return Err(INVALID),
            Err(Undecided::Unknown) => self.read_changes().is_ok(),
        };
        if !is_settled {
            return Err(Unidentified::Unready);
        }
        judge().map_err(|why| match why {
            Undecided::Not(why) => why,
            Undecided::Unloaded | Undecided::Outdated => Unidentified::Unready,
            Undecided::Unknown => INVALID,
        })
    }

    fn key_in_memory(&self, text: &[u8]) -> Result<Arc<ApiKey>, Undecided> {
        match self.api_keys.matching(text) {
            // A key in memory says that everything was loaded.
            Some(key) if !self.is_outdated() => Ok(key),
            _ if self.tokens().is_none() => Err(Undecided::Unloaded),
            Some(_) => Err(Undecided::Outdated),
            None if self.is_outdated() => Err(Undecided::Outdated),
            // Anybody can make up a key with the right checksum, so not every one is looked for.
            None if self.is_shared()
                && key_form::secret_of(text).is_some()
                && self.key_looks.admit(self.clock.monotonic_ms()).is_ok() =>
            {
                Err(Undecided::Unknown)
            }
            None => Err(Undecided::Not(Unidentified::Invalid)),
        }
    }

    /// Whether memory has the request's token as good. Never parks.
    pub(crate) fn recognises(&self, request: &Request<'_>) -> bool {
        self.judged_in_memory(request).is_ok()
    }

    /// The earlier logins that a request proves, to any accounts, by tokens and cookies that may
    /// have expired or been revoked since. Reads only memory.
    pub(super) fn earlier_logins(&self, request: &Request<'_>) -> Vec<Earlier> {
        let Some(tokens) = self.tokens() else {
            return Vec::new();
        };
        let by_header = request.headers("authorization").filter_map(bearer);
        let by_cookie = cookies(request, COOKIE).chain(cookies(request, EARLIER_COOKIE));
        let now_ms = self.clock.now_ms();
        // Others' tokens take no place from ours.
        let ours = by_header
            .chain(by_cookie)
            .filter(|token| tokens.may_be_ours(token));
        ours.take(EARLIER_MAX)
            .filter_map(|token| tokens.earlier(token, now_ms))
            .collect()
    }

    /// The good logins of the caller's account that the request's cookies carry; `caller` alone if
    /// its token did not come by cookie. Reads only memory.
    pub(crate) fn logins_beside(&self, caller: &Caller, request: &Request<'_>) -> Vec<Caller> {
        let mut all = vec![caller.clone()];
        if caller.by_cookie {
            let others = self.good_cookies(request).unwrap_or_default().into_iter();
            all.extend(others.filter(|o| o.id == caller.id && o.token_id != caller.token_id));
        }
        all
    }

    fn judged_in_memory(&self, request: &Request<'_>) -> Result<Caller, Undecided> {
        if let Some(token) = by_header(request).map_err(Undecided::Not)? {
            return self.judged(token, false);
        }
        let mut good = self.good_cookies(request)?.into_iter();
        let first = good.next().ok_or(Undecided::Not(Unidentified::Missing))?;
        match good.all(|other| other.id == first.id) {
            true => Ok(first),
            false => Err(Undecided::Not(Unidentified::Ambiguous)),
        }
    }

    /// The logins in the request's cookies that are good. Another service of the same domain can
    /// add cookies of this name, before and behind ours, and they are passed over. Empty without
    /// any cookie.
    fn good_cookies(&self, request: &Request<'_>) -> Result<Vec<Caller>, Undecided> {
        let tokens = self.tokens();
        let may_be_ours = |token: &&[u8]| tokens.as_ref().is_none_or(|t| t.may_be_ours(token));
        let mut any = false;
        let mut ours = cookies(request, COOKIE)
            .inspect(|_| any = true)
            .filter(may_be_ours);
        let mut why = Unidentified::Invalid;
        let mut good = Vec::new();
        let mut unclear = None;
        for token in ours.by_ref().take(COOKIES_VERIFIED_MAX) {
            match self.judged(token, true) {
                Ok(caller) => good.push(caller),
                Err(Undecided::Not(_)) => {}
                Err(undecided) => unclear = Some(undecided),
            }
        }
        if ours.next().is_some() {
            self.crowded_cookies.increment();
            why = Unidentified::Crowded;
        }
        drop(ours);
        match unclear {
            _ if !good.is_empty() || !any => Ok(good),
            Some(unclear) => Err(unclear),
            None => Err(Undecided::Not(why)),
        }
    }

    fn judged(&self, token: &[u8], by_cookie: bool) -> Result<Caller, Undecided> {
        const INVALID: Undecided = Undecided::Not(Unidentified::Invalid);
        let Some(tokens) = self.tokens() else {
            // A token that none of our keys signed is invalid for every database.
            let is_ours = tokens::signed_by_any(&self.keys.lock(), token);
            return Err(if is_ours {
                Undecided::Unloaded
            } else {
                INVALID
            });
        };
        let now_ms = self.clock.now_ms();
        let Some(token) = tokens.verify(token, now_ms) else {
            // Another node may have found out before this one that the database went back.
            let may_be_newer = self.is_shared()
                && tokens.earlier(token, now_ms).is_none()
                && tokens::signed_by_any(&self.keys.lock(), token)
                && self.key_looks.admit(self.clock.monotonic_ms()).is_ok();
            return Err(if may_be_newer {
                Undecided::Unknown
            } else {
                INVALID
            });
        };
        match self.revoked.judge(&token) {
            Verdict::Refused => return Err(INVALID),
            _ if self.is_outdated() => return Err(Undecided::Outdated),
            Verdict::Unknown => return Err(Undecided::Unknown),
            Verdict::Good => {}
        }
        Ok(Caller {
            id: token.id,
            key: None,
            token_id: token.token_id,
            expires_s: token.expires_s,
            epoch: token.epoch,
            by_cookie,
        })
    }

    /// Tries to load the missing state, unless that was tried lately. Parks. True if it is loaded.
    pub(super) fn recover(&self) -> bool {
        if self.may_read() {
            self.load_state();
        }
        self.tokens().is_some()
    }

    /// Whether it is time to read the store again; true for one caller at a time.
    fn may_read(&self) -> bool {
        self.loads.admit(self.clock.monotonic_ms()).is_ok()
    }
}

/// The token in the header `Authorization`, which takes precedence over cookies, even if it is
/// malformed. A header with another scheme than `Bearer` is ignored, since it may be meant for a
/// proxy in front.
fn by_header<'a>(request: &Request<'a>) -> Result<Option<&'a [u8]>, Unidentified> {
    let mut headers = request.headers("authorization");
    match (headers.next(), headers.next()) {
        (Some(header), None) if is_of_another_scheme(header) => Ok(None),
        (Some(header), None) => bearer(header).ok_or(Unidentified::Invalid).map(Some),
        (Some(_), Some(_)) => Err(Unidentified::Invalid),
        (None, _) => Ok(None),
    }
}

/// The values of the request's cookies of this name, without the quotes that some clients put round
/// them (RFC 6265 4.1.1).
fn cookies<'a>(request: &Request<'a>, name: &'static str) -> impl Iterator<Item = &'a [u8]> {
    let pairs = request
        .headers("cookie")
        .flat_map(|line| line.split(|byte| *byte == b';'));
    pairs.filter_map(move |pair| {
        let at = memchr::memchr(b'=', pair)?;
        let value = pair[at + 1..].trim_ascii();
        let quoted = value
            .strip_prefix(b"\"")
            .and_then(|inner| inner.strip_suffix(b"\""));
        (pair[..at].trim_ascii() == name.as_bytes()).then(|| quoted.unwrap_or(value))
    })
}

/// Whether the header has another scheme, such as `Basic dXNlcjpwYXNz`. A header without a scheme
/// is a malformed token.
fn is_of_another_scheme(header: &[u8]) -> bool {
    let header = header.trim_ascii();
    let scheme = memchr::memchr(b' ', header).map(|end| &header[..end]);
    scheme.is_some_and(|scheme| !scheme.eq_ignore_ascii_case(b"Bearer"))
}

pub(super) fn bearer(header: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"Bearer ";
    let (scheme, token) = header.split_at_checked(SCHEME.len())?;
    scheme
        .eq_ignore_ascii_case(SCHEME)
        .then(|| token.trim_ascii())
}

// ---- Error
//
// Errors of authentication at start.

/// Why authentication could not be started.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    #[error("{0}")]
    Key(#[from] KeyError),
    /// The other nodes would refuse this node's tokens, and it theirs.
    #[error(
        "JWT_SECRET (fingerprint {own}) is another than the one that nodes of this database sign \
         with (fingerprint {recorded}): give every node the same one; to change it, name the \
         former one in JWT_PREVIOUS_SECRETS; bhav renew-identity forgets it and ends every login"
    )]
    OtherSecret { own: String, recorded: String },
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Time between two removals of revocations of expired tokens.
pub(super) const FORGET_INTERVAL_MS: u64 = 3_600_000;
