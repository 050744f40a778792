//! Finds the caller of a request, and holds what accounts and tokens need.
//!
//! [`Auth::identify`] runs on the edge for each request of a user's route: from memory alone.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use super::settings::{AuthSettings, Registration};
use crate::auth::error::AuthError;
use crate::auth::keys;
use crate::auth::keys::{Key, KeyFile, Keys};
use crate::auth::keys::{KeyError, KeyState};
use crate::auth::known_networks::KnownNetworks;
use crate::auth::passwords::Passwords;
use crate::auth::revocations::Revocations;
use crate::auth::tokens;
use crate::auth::tokens::Tokens;
use crate::base::Clock;
use crate::http::Request;
use crate::limits::throttle::Throttle;
use crate::ops::Counter;
use crate::rt::Lane;
use crate::store::{AccountId, Store};

/// The cookie that may carry a token (contract, section 3). The service never sets one.
const COOKIE: &[u8] = b"access_token_cookie";

/// Between two attempts to load what decides about tokens, where the first failed.
const LOAD_INTERVAL_MS: u64 = 1_000;

/// The user behind a request, as its token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub id: AccountId,
    /// The token's `jti`.
    pub token_id: String,
    /// When the token expires, Unix seconds.
    pub expires_s: i64,
    /// The token came in the cookie, so a foreign page may have sent it.
    pub by_cookie: bool,
}

/// Why a request has no caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unidentified {
    /// No token was sent.
    Missing,
    /// Malformed, expired, revoked, of another database or nobody's account, or signed by nobody we
    /// know.
    Invalid,
    /// Which tokens are good is not known, because the store could not be read yet.
    Unready,
}

/// Keys and limits that are ready to be put in force.
pub struct PreparedAuth {
    keys: Keys,
    registration: Registration,
    logins_per_minute: u32,
    registrations_per_minute: u32,
}

/// Tokens, passwords and their limits.
pub struct Auth {
    pub(super) clock: Clock,
    pub(super) store: Arc<dyn Store>,
    pub(super) keys: Mutex<Vec<Key>>,
    /// Known once the store could be read, and then for good.
    pub(super) database_id: OnceLock<String>,
    /// Of these keys for that database; `None` until everything about tokens has been loaded.
    tokens: ArcSwapOption<Tokens>,
    /// Held over a look at the disk.
    pub(super) key_file: Mutex<KeyFile>,
    /// As the last look found it.
    pub(super) key_state: Mutex<KeyState>,
    state_dir: PathBuf,
    pub(super) passwords: Passwords,
    pub(super) throttle: Throttle,
    /// Apart, so that registering and logging in do not use up each other's attempts.
    pub(super) registrations: Throttle,
    pub(super) familiar: KnownNetworks,
    pub(super) registration_open: AtomicBool,
    pub(super) revoked: Revocations,
    next_load_mono_ms: AtomicU64,
    pub(super) next_forget_mono_ms: AtomicU64,
    pub(super) logins: Counter,
    pub(super) wrong_passwords: Counter,
}

/// What became of attempts, since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuthCounts {
    pub logins: u64,
    pub wrong_passwords: u64,
    /// Attempts at a password refused for too many of them.
    pub throttled: u64,
    /// The same of attempts to make an account.
    pub registrations_throttled: u64,
    /// Attempts of strangers refused because others of theirs waited to be hashed.
    pub strangers_refused: u64,
}

impl Auth {
    /// Loads or makes the signing key, starts the hashing lane, and asks the store what decides
    /// about tokens. Blocks; for the main thread.
    ///
    /// # Errors
    /// [`AuthError`]. A store that cannot be read is none.
    pub fn start(
        settings: &AuthSettings,
        state_dir: &Path,
        store: Arc<dyn Store>,
        clock: &Clock,
    ) -> Result<Self, AuthError> {
        let Keys { all, mut file } = keys::load(settings, state_dir)?;
        let key_state = Mutex::new(file.look());
        let auth = Self {
            clock: clock.clone(),
            store,
            keys: Mutex::new(all),
            database_id: OnceLock::new(),
            tokens: ArcSwapOption::empty(),
            key_file: Mutex::new(file),
            key_state,
            state_dir: state_dir.to_owned(),
            passwords: Passwords::start(settings, clock)?,
            throttle: Throttle::new(settings.login_attempts_per_minute, clock.clone()),
            registrations: Throttle::new(settings.registration_attempts_per_minute, clock.clone()),
            familiar: KnownNetworks::new(clock.clone()),
            registration_open: AtomicBool::new(settings.registration == Registration::Open),
            revoked: Revocations::default(),
            next_load_mono_ms: AtomicU64::new(0),
            next_forget_mono_ms: AtomicU64::new(0),
            logins: Counter::new(),
            wrong_passwords: Counter::new(),
        };
        auth.load_state();
        Ok(auth)
    }

    /// `None` while nobody can be identified. Never inlined: the load takes a thread-local's
    /// address, which must not outlive a wait of the caller.
    #[inline(never)]
    pub(super) fn tokens(&self) -> Option<Arc<Tokens>> {
        self.tokens.load_full()
    }

    /// Puts `keys` in force, as soon as it is known for which database.
    pub(super) fn put_in_force(&self, keys: &[Key]) {
        if let Some(id) = self.database_id.get() {
            self.tokens.store(Some(Arc::new(Tokens::new(keys, id))));
        }
    }

    /// Makes what other settings ask for, without putting it in force. Reads the kept key again
    /// where they give none. Blocks; for the main thread.
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

    /// Puts that in force. Tokens of a key that is no longer known end.
    pub fn adopt(&self, prepared: PreparedAuth) {
        let Keys { all, file } = prepared.keys;
        {
            let mut keys = self.keys.lock();
            *keys = all;
            self.put_in_force(&keys);
        }
        *self.key_file.lock() = file;
        self.look_after_key();
        let open = prepared.registration == Registration::Open;
        self.registration_open.store(open, Ordering::Relaxed);
        self.throttle.set_rate(prepared.logins_per_minute);
        self.registrations.set_rate(prepared.registrations_per_minute);
    }

    /// The lane that hashes, for its counters.
    pub fn lane(&self) -> &Arc<Lane> {
        self.passwords.lane()
    }

    /// What became of attempts so far.
    pub fn counts(&self) -> AuthCounts {
        AuthCounts {
            logins: self.logins.value(),
            wrong_passwords: self.wrong_passwords.value(),
            throttled: self.throttle.refused(),
            registrations_throttled: self.registrations.refused(),
            strangers_refused: self.passwords.strangers_refused(),
        }
    }

    /// The caller, from memory alone.
    ///
    /// # Errors
    /// [`Unidentified`].
    pub fn identify(&self, request: &Request<'_>) -> Result<Caller, Unidentified> {
        let (token, by_cookie) = presented(request)?;
        let Some(tokens) = self.tokens() else {
            // What none of our keys signed is good for no database.
            let is_ours = tokens::signed_by_any(&self.keys.lock(), token);
            return Err(if is_ours { Unidentified::Unready } else { Unidentified::Invalid });
        };
        let token = tokens.verify(token, self.clock.now_ms()).ok_or(Unidentified::Invalid)?;
        if self.revoked.refuses(&token) {
            return Err(Unidentified::Invalid);
        }
        Ok(Caller {
            id: token.id,
            token_id: tokens::spelled(token.token_id),
            expires_s: token.expires_s,
            by_cookie,
        })
    }

    /// After [`Unidentified::Unready`]: loads what is missing if no attempt was made lately. Parks.
    /// True if the caller may be looked for again.
    pub fn recover(&self) -> bool {
        let now_ms = self.clock.monotonic_ms();
        let next = self.next_load_mono_ms.load(Ordering::Relaxed);
        let mine = now_ms >= next
            && self
                .next_load_mono_ms
                .compare_exchange(
                    next,
                    now_ms + LOAD_INTERVAL_MS,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                )
                .is_ok();
        if mine {
            self.load_state();
        }
        self.tokens().is_some()
    }
}

/// The token that was sent, and whether by cookie. The header wins; a header that is not one bearer
/// token is no excuse to look at the cookie. Credentials of another scheme are no token: they may
/// be for a proxy in front, and the cookie counts as if they were not there.
fn presented<'a>(request: &Request<'a>) -> Result<(&'a [u8], bool), Unidentified> {
    let mut headers = request.headers("authorization");
    match (headers.next(), headers.next()) {
        (Some(header), None) if is_of_another_scheme(header) => {}
        (Some(header), None) => return bearer(header).ok_or(Unidentified::Invalid).map(by_header),
        (Some(_), Some(_)) => return Err(Unidentified::Invalid),
        (None, _) => {}
    }
    let pairs = request.headers("cookie").flat_map(|line| line.split(|byte| *byte == b';'));
    let mut found = pairs.filter_map(|pair| {
        let at = memchr::memchr(b'=', pair)?;
        (pair[..at].trim_ascii() == COOKIE).then(|| pair[at + 1..].trim_ascii())
    });
    match (found.next(), found.next()) {
        (Some(token), None) => Ok((token, true)),
        // A page of a neighbouring host can add a cookie, not replace ours: which is meant?
        (Some(_), Some(_)) => Err(Unidentified::Invalid),
        (None, _) => Err(Unidentified::Missing),
    }
}

fn by_header(token: &[u8]) -> (&[u8], bool) {
    (token, false)
}

/// Such as `Basic dXNlcjpwYXNz`. Without a scheme it is a token in a wrong form.
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
