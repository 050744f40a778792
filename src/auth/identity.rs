//! Identifies the caller of a request, and holds the state of accounts and tokens.
//!
//! [`Auth::identify`] runs on the edge for each request of a user's route, and reads memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use secrecy::SecretString;

use super::changes::Followed;
use super::settings::{AuthSettings, Registration};
use crate::auth::error::AuthError;
use crate::auth::keys;
use crate::auth::keys::{Key, KeyFile, Keys};
use crate::auth::keys::{KeyError, KeyState};
use crate::auth::known_networks::KnownNetworks;
use crate::auth::passwords::Passwords;
use crate::auth::revocations::{Revocations, Verdict};
use crate::auth::tokens;
use crate::auth::tokens::{Earlier, Tokens};
use crate::base::Clock;
use crate::http::Request;
use crate::limits::shared::SharedCounts;
use crate::limits::throttle::Throttle;
use crate::ops::Counter;
use crate::rt::Lane;
use crate::store::{AccountId, Store};

/// The cookie that may carry a token. A login sets it where the client asks for that.
pub const COOKIE: &str = "access_token_cookie";

/// The cookie that proves an earlier login and gives access to nothing. A login sets it beside the
/// other, and a logout leaves it.
pub const EARLIER_COOKIE: &str = "earlier_login_cookie";

/// Most tokens of a login that are looked at: one of each place where one may be, and one to spare.
const EARLIER_MAX: usize = 4;

/// Time between two attempts of requests to read the store, where the first failed.
const LOAD_INTERVAL_MS: u64 = 1_000;

/// The user of a request, as identified by its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub id: AccountId,
    /// The token's `jti`.
    pub token_id: String,
    /// When the token expires, Unix seconds.
    pub expires_s: i64,
    /// The token's epoch, which is its account's.
    pub epoch: i64,
    /// The token came in the cookie, so another site's page may have caused the request.
    pub by_cookie: bool,
}

/// Why a request has no caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unidentified {
    /// No token was sent.
    Missing,
    /// The token is malformed, expired, revoked, of another database, of no account, or not signed
    /// by one of our keys.
    Invalid,
    /// The store could not be read yet, or lately, so it is not known which tokens are revoked.
    Unready,
}

/// Why a token cannot be judged from memory alone.
enum Undecided {
    /// It never can.
    Not(Unidentified),
    /// Nothing was loaded yet.
    Unloaded,
    /// What was loaded is too old.
    Outdated,
    /// Another node may have made its account or its epoch just now.
    Unknown,
}

/// New keys and limits, read and checked, to be put in force by [`Auth::adopt`].
pub struct PreparedAuth {
    keys: Keys,
    registration: Registration,
    logins_per_minute: u32,
    registrations_per_minute: u32,
}

/// Accounts, tokens, passwords and their limits.
pub struct Auth {
    pub(super) clock: Clock,
    pub(super) store: Arc<dyn Store>,
    pub(super) keys: Mutex<Vec<Key>>,
    /// The database's, as it was loaded last. `None` until the store has been read.
    pub(super) incarnation: Mutex<Option<String>>,
    /// Signs and verifies tokens with these keys for that incarnation. `None` until the store has
    /// been read.
    tokens: ArcSwapOption<Tokens>,
    /// Check value of the secret of other nodes, where this one does not know it.
    pub(super) other_secret: Mutex<Option<String>>,
    /// Set where the database has to be told of a new secret.
    pub(super) claim_is_due: AtomicBool,
    /// Locked while the file is checked on disk.
    pub(super) key_file: Mutex<KeyFile>,
    /// State of the file at the last check.
    pub(super) key_state: Mutex<KeyState>,
    pub(super) state_dir: PathBuf,
    pub(super) passwords: Passwords,
    pub(super) throttle: Throttle,
    /// A throttle of its own, so that registrations and logins do not use up each other's attempts.
    pub(super) registrations: Throttle,
    pub(super) known_networks: KnownNetworks,
    pub(super) registration: Mutex<Registration>,
    pub(super) revoked: Revocations,
    pub(super) followed: Followed,
    next_load_mono_ms: AtomicU64,
    pub(super) next_forget_mono_ms: AtomicU64,
    pub(super) next_networks_mono_ms: AtomicU64,
    pub(super) logins: Counter,
    pub(super) wrong_passwords: Counter,
}

/// Counters of logins and refused attempts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuthCounts {
    pub logins: u64,
    pub wrong_passwords: u64,
    /// Password attempts refused by the rate limit.
    pub throttled: u64,
    /// Registrations refused by the rate limit.
    pub registrations_throttled: u64,
    /// Password attempts from unknown networks refused because their share of the hashing queue was
    /// full.
    pub strangers_refused: u64,
}

impl Auth {
    /// Loads or generates the signing key, starts the hashing lane, and loads accounts and
    /// revocations from the store. Blocks; for the main thread.
    ///
    /// # Errors
    /// [`AuthError`]. A store that cannot be read is no error: it is tried again later.
    pub fn start(
        settings: &AuthSettings,
        state_dir: &Path,
        store: Arc<dyn Store>,
        clock: &Clock,
    ) -> Result<Self, AuthError> {
        let Keys { all, mut file } = keys::load(settings, state_dir)?;
        let key_state = Mutex::new(file.look());
        let known_networks = KnownNetworks::new(clock.clone(), &all);
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
            followed: Followed::since_last_run(state_dir),
            next_load_mono_ms: AtomicU64::new(0),
            next_forget_mono_ms: AtomicU64::new(0),
            next_networks_mono_ms: AtomicU64::new(0),
            logins: Counter::new(),
            wrong_passwords: Counter::new(),
        };
        auth.load_state();
        if let Some(recorded) = &*auth.other_secret.lock() {
            let own = keys::check_value(&auth.keys.lock()[0]);
            let shown = |check: &str| keys::fingerprint(check).to_owned();
            return Err(AuthError::OtherSecret { own: shown(&own), recorded: shown(recorded) });
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
            self.tokens.store(Some(Arc::new(Tokens::new(keys, incarnation))));
        }
    }

    /// Prepares new settings without putting them in force. Reads the key file again if they give
    /// no key. Blocks; for the main thread.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn prepare(&self, settings: &AuthSettings) -> Result<PreparedAuth, KeyError> {
        let keys = keys::load(settings, &self.state_dir)?;
        Ok(PreparedAuth {
            keys,
            registration: settings.registration,
            logins_per_minute: settings.login_attempts_per_minute,
            registrations_per_minute: settings.registration_attempts_per_minute,
        })
    }

    /// The signing key, for what else keys are derived from where no setting gives a secret.
    pub fn kept_key(&self) -> SecretString {
        let keys = self.keys.lock();
        let key = keys.first().map(|key| key.as_slice()).unwrap_or_default();
        let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        digits.into()
    }

    /// Puts prepared settings in force. Tokens signed with a key that is no longer known become
    /// invalid.
    pub fn adopt(&self, prepared: PreparedAuth) {
        let Keys { all, file } = prepared.keys;
        {
            let mut keys = self.keys.lock();
            *keys = all;
            self.put_in_force(&keys);
            self.known_networks.set_keys(&keys);
        }
        self.claim_is_due.store(true, Ordering::Relaxed);
        *self.key_file.lock() = file;
        self.look_after_key();
        *self.registration.lock() = prepared.registration;
        self.throttle.set_rate(prepared.logins_per_minute);
        self.registrations.set_rate(prepared.registrations_per_minute);
    }

    /// Counts attempts with those of the other nodes from now on.
    pub fn join(&self, counts: &Arc<dyn SharedCounts>) {
        self.throttle.join("login", counts);
        self.registrations.join("register", counts);
    }

    /// The hashing lane, for its counters.
    pub fn lane(&self) -> &Arc<Lane> {
        self.passwords.lane()
    }

    /// Current values of the counters.
    pub fn counts(&self) -> AuthCounts {
        AuthCounts {
            logins: self.logins.value(),
            wrong_passwords: self.wrong_passwords.value(),
            throttled: self.throttle.refused(),
            registrations_throttled: self.registrations.refused(),
            strangers_refused: self.passwords.strangers_refused(),
        }
    }

    /// Identifies the caller. Uses memory only, but for the first request after something that
    /// memory does not have: the state of the store after a failure, or an account that another
    /// node has made just now. Then it parks.
    ///
    /// # Errors
    /// [`Unidentified`].
    pub fn identify(&self, request: &Request<'_>) -> Result<Caller, Unidentified> {
        let caller = self.judged(request)?;
        if let Some(address) = request.client_address() {
            self.known_networks.note(caller.id, address);
        }
        Ok(caller)
    }

    fn judged(&self, request: &Request<'_>) -> Result<Caller, Unidentified> {
        const INVALID: Unidentified = Unidentified::Invalid;
        let is_settled = match self.judged_in_memory(request) {
            Ok(caller) => return Ok(caller),
            Err(Undecided::Not(why)) => return Err(why),
            Err(Undecided::Unloaded) => self.recover(),
            Err(Undecided::Outdated) => self.may_read() && self.read_changes().is_ok(),
            Err(Undecided::Unknown) if !self.is_shared() => return Err(INVALID),
            Err(Undecided::Unknown) => self.read_changes().is_ok(),
        };
        if !is_settled {
            return Err(Unidentified::Unready);
        }
        self.judged_in_memory(request).map_err(|why| match why {
            Undecided::Not(why) => why,
            Undecided::Unloaded | Undecided::Outdated => Unidentified::Unready,
            Undecided::Unknown => INVALID,
        })
    }

    /// Whether the request has a good token, as far as memory says. Never parks.
    pub fn recognises(&self, request: &Request<'_>) -> bool {
        self.judged_in_memory(request).is_ok()
    }

    /// The earlier logins that a request proves, to whatever accounts: by tokens and cookies that
    /// were good once, and may have ended since. Memory only.
    pub(super) fn earlier_logins(&self, request: &Request<'_>) -> Vec<Earlier> {
        let Some(tokens) = self.tokens() else { return Vec::new() };
        let by_header = request.headers("authorization").filter_map(bearer);
        let by_cookie = cookies(request, COOKIE).chain(cookies(request, EARLIER_COOKIE));
        let now_ms = self.clock.now_ms();
        let presented = by_header.chain(by_cookie).take(EARLIER_MAX);
        presented.filter_map(|token| tokens.earlier(token, now_ms)).collect()
    }

    fn judged_in_memory(&self, request: &Request<'_>) -> Result<Caller, Undecided> {
        const INVALID: Undecided = Undecided::Not(Unidentified::Invalid);
        let (token, by_cookie) = presented(request).map_err(Undecided::Not)?;
        let Some(tokens) = self.tokens() else {
            // A token that none of our keys signed is invalid for every database.
            let is_ours = tokens::signed_by_any(&self.keys.lock(), token);
            return Err(if is_ours { Undecided::Unloaded } else { INVALID });
        };
        let token = tokens.verify(token, self.clock.now_ms()).ok_or(INVALID)?;
        match self.revoked.judge(&token) {
            Verdict::Refused => return Err(INVALID),
            _ if self.is_outdated() => return Err(Undecided::Outdated),
            Verdict::Unknown => return Err(Undecided::Unknown),
            Verdict::Good => {}
        }
        Ok(Caller {
            id: token.id,
            token_id: tokens::spelled(token.token_id),
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

    /// Whether it is time to try again to read the store; true for one caller at a time.
    fn may_read(&self) -> bool {
        let now_ms = self.clock.monotonic_ms();
        let next = self.next_load_mono_ms.load(Ordering::Relaxed);
        now_ms >= next
            && self
                .next_load_mono_ms
                .compare_exchange(
                    next,
                    now_ms + LOAD_INTERVAL_MS,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                )
                .is_ok()
    }
}

/// The token in the request, and whether it came by cookie. The header `Authorization` takes
/// precedence, even if it is malformed. If it has another scheme than `Bearer` it is ignored, since
/// it may be meant for a proxy in front, and the cookie counts.
fn presented<'a>(request: &Request<'a>) -> Result<(&'a [u8], bool), Unidentified> {
    let mut headers = request.headers("authorization");
    match (headers.next(), headers.next()) {
        (Some(header), None) if is_of_another_scheme(header) => {}
        (Some(header), None) => return bearer(header).ok_or(Unidentified::Invalid).map(by_header),
        (Some(_), Some(_)) => return Err(Unidentified::Invalid),
        (None, _) => {}
    }
    let mut found = cookies(request, COOKIE);
    match (found.next(), found.next()) {
        (Some(token), None) => Ok((token, true)),
        // A page of another host in the same domain can add a second cookie of this name. Which one
        // is the user's cannot be told.
        (Some(_), Some(_)) => Err(Unidentified::Invalid),
        (None, _) => Err(Unidentified::Missing),
    }
}

/// The values of the request's cookies of this name.
fn cookies<'a>(request: &Request<'a>, name: &'static str) -> impl Iterator<Item = &'a [u8]> {
    let pairs = request.headers("cookie").flat_map(|line| line.split(|byte| *byte == b';'));
    pairs.filter_map(move |pair| {
        let at = memchr::memchr(b'=', pair)?;
        (pair[..at].trim_ascii() == name.as_bytes()).then(|| pair[at + 1..].trim_ascii())
    })
}

fn by_header(token: &[u8]) -> (&[u8], bool) {
    (token, false)
}

/// Whether the header has another scheme, such as `Basic dXNlcjpwYXNz`. A header without a scheme
/// is a malformed token.
fn is_of_another_scheme(header: &[u8]) -> bool {
    let header = header.trim_ascii();
    let scheme = memchr::memchr(b' ', header).map(|end| &header[..end]);
    scheme.is_some_and(|scheme| !scheme.eq_ignore_ascii_case(b"Bearer"))
}

fn bearer(header: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"Bearer ";
    let (scheme, token) = header.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim_ascii())
}
