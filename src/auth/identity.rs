//! Identifies the caller of a request, and holds the state of accounts and tokens.
//!
//! [`Auth::identify`] runs on the edge for each request of a user's route, and normally reads only
//! memory.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use crossbeam_channel::{Receiver, Sender, bounded, select};
use parking_lot::Mutex;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::auth::api_keys::{self, ApiKey, ApiKeys, KeyRefusal, NoKey};
use crate::auth::endings::{Ending, Endings};
use crate::auth::keys::{AuthSettings, Key, KeyError, KeyFile, Keys, Registration};
use crate::auth::known_networks::{FORGOTTEN_MS, KnownNetworks};
use crate::auth::passwords::Passwords;
use crate::auth::revocations::{Revocations, Verdict};
use crate::auth::throttle::Throttle;
use crate::auth::tokens::{Earlier, Tokens};
use crate::auth::{keys, tokens};
use crate::base::Clock;
use crate::base::limiter::{Limiter, Rate, SharedCounts};
use crate::http::Request;
use crate::ops::Counter;
use crate::rt::Lane;
use crate::rt::threads::Stoppable;
use crate::store::{
    AccountId, CHANGES_KEPT, CHANGES_PAGE, Change, Changes, Continuity, ENDED_LISTED_MS, KeyUse,
    KeysRead, LastRead, PAGE_DEADLINE_MS, Store, StoreError, small_file,
};
use crate::views::health::KeyState;

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
        let (token_id, expires_s, epoch) = (0, 0, 0);
        Self { id: key.user, key: Some(key), token_id, expires_s, epoch, by_cookie: false }
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
    removals: Limiter,
    next_networks_mono_ms: AtomicU64,
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
    pub(crate) fn prepare(&self, settings: &AuthSettings) -> Result<PreparedAuth, KeyError> {
        let keys = keys::load(settings, &self.state_dir)?;
        Ok(PreparedAuth { keys, settings: settings.clone() })
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
        let PreparedAuth { keys: Keys { all, file }, settings } = prepared;
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
        self.registrations.set_rate(settings.registration_attempts_per_minute);
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
        let key_in = |line| bearer(line).filter(|token| token.starts_with(api_keys::PREFIX));
        let mut lines = request.headers("authorization").enumerate();
        let found = lines.find_map(|(at, line)| Some((at, key_in(line)?)));
        let Some((at, text)) = found else { return Ok(None) };
        if at > 0 || lines.next().is_some() {
            return Err(NoKey::SeveralLines);
        }
        let refused = |why| {
            self.api_keys.refused.increment(why);
            NoKey::Refused(why)
        };
        let key = self.settled(|| self.key_in_memory(text)).map_err(|why| match why {
            Unidentified::Unready => NoKey::Unready,
            _ => refused(KeyRefusal::Invalid),
        })?;
        let now_mono_ms = self.clock.monotonic_ms();
        let now_ms = (!key.is_judged(now_mono_ms)).then(|| self.clock.now_ms());
        if let Some(now_ms) = now_ms.filter(|now_ms| key.has_expired(*now_ms)) {
            let is_listed = !key.has_expired(now_ms - ENDED_LISTED_MS);
            return Err(refused(if is_listed { KeyRefusal::Expired } else { KeyRefusal::Invalid }));
        }
        self.api_keys.admit(&key, now_mono_ms).map_err(|early| {
            self.api_keys.refused.increment(KeyRefusal::Rate);
            NoKey::TooEarly(early)
        })?;
        if let Some(now_ms) = now_ms {
            self.api_keys.note(&key, (now_ms, now_mono_ms), request.client_address());
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
                && api_keys::secret_of(text).is_some()
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
        let Some(tokens) = self.tokens() else { return Vec::new() };
        let by_header = request.headers("authorization").filter_map(bearer);
        let by_cookie = cookies(request, COOKIE).chain(cookies(request, EARLIER_COOKIE));
        let now_ms = self.clock.now_ms();
        // Others' tokens take no place from ours.
        let ours = by_header.chain(by_cookie).filter(|token| tokens.may_be_ours(token));
        ours.take(EARLIER_MAX).filter_map(|token| tokens.earlier(token, now_ms)).collect()
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
        let mut ours = cookies(request, COOKIE).inspect(|_| any = true).filter(may_be_ours);
        let mut why = Unidentified::Invalid;
        let (mut good, mut unclear) = (Vec::new(), None);
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
            return Err(if is_ours { Undecided::Unloaded } else { INVALID });
        };
        let now_ms = self.clock.now_ms();
        let Some(token) = tokens.verify(token, now_ms) else {
            // Another node may have found out before this one that the database went back.
            let may_be_newer = self.is_shared()
                && tokens.earlier(token, now_ms).is_none()
                && tokens::signed_by_any(&self.keys.lock(), token)
                && self.key_looks.admit(self.clock.monotonic_ms()).is_ok();
            return Err(if may_be_newer { Undecided::Unknown } else { INVALID });
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
    let pairs = request.headers("cookie").flat_map(|line| line.split(|byte| *byte == b';'));
    pairs.filter_map(move |pair| {
        let at = memchr::memchr(b'=', pair)?;
        let value = pair[at + 1..].trim_ascii();
        let quoted = value.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\""));
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
    scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim_ascii())
}

// ---- Changes
//
// Keeps the state that decides about tokens equal to the database's: applies the changes that this
// service, other nodes and operators' commands have made.
//
// A service that has the database to itself reads them with the store's checks. One node of several
// reads them each second, on the thread `changes`, and at once when another node reports one. A
// node that could not read them for [`UNREAD_MS_MAX`] does not know any more which tokens are
// revoked, so it accepts none until it can.
//
// A database can go back in time: a copy of it is restored, or a standby takes over that lacks the
// last commits. So each change has a random mark next to its number. If the last change read is
// missing or has another mark, the reader gives the database a new incarnation, which ends every
// login, and reloads everything. Of a database on a server the last change read is also kept in the
// state directory, for the check at the next start; the store does so of a file.

/// Longest time that a change goes unread while the database answers.
const READ_INTERVAL: Duration = Duration::from_secs(1);
/// Longest wait of the service's end for a reading.
const STOP_WAIT: Duration = Duration::from_secs(10);
/// Age of the last reading after which no token is accepted.
const UNREAD_MS_MAX: u64 = 30_000;
/// Most pages of one reading: all that are kept, and as many again.
const PAGES_MAX: usize = 2 * CHANGES_KEPT / CHANGES_PAGE;

/// The file in the state directory with the last change read.
const MARK_FILE: &str = "changes.mark";

/// Content of that file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    incarnation: String,
    number: i64,
    mark: Option<i64>,
}

/// Progress of reading the changes.
#[derive(Default)]
pub(super) struct Followed {
    /// The last change that was applied. Locked while changes are applied, never while something
    /// parks.
    pub(super) read: Mutex<LastRead>,
    /// Content of the file.
    kept: Mutex<Option<Mark>>,
    /// Start of the last complete reading; monotonic.
    read_mono_ms: AtomicU64,
    /// Set on one node of several.
    bell: OnceLock<ChangesBell>,
    is_failing: AtomicBool,
}

impl Followed {
    /// Starts with the mark of the last run, if its file can be read. Blocks.
    fn since_last_run(state_dir: &Path) -> Self {
        let bytes = small_file::read(&state_dir.join(MARK_FILE)).ok().flatten();
        let kept = bytes.and_then(|bytes| sonic_rs::from_slice(&bytes).ok());
        Self { kept: Mutex::new(kept), ..Self::default() }
    }
}

/// Figures for health and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangesReading {
    /// Number of the last change that was applied.
    pub applied: i64,
    /// Age of the last complete reading, from its beginning.
    pub age_ms: u64,
    /// Whether the reading is too old to accept tokens.
    pub is_outdated: bool,
}

/// Wakes the thread `changes`. Never blocks.
#[derive(Clone)]
pub(crate) struct ChangesBell {
    has_own: Arc<AtomicBool>,
    wake: Sender<()>,
}

impl ChangesBell {
    /// A bell, and the channel that it wakes.
    pub(crate) fn new() -> (Self, Receiver<()>) {
        // A pending reading includes every change made before it.
        let (wake, woken) = bounded(1);
        (Self { has_own: Arc::default(), wake }, woken)
    }

    /// Reports a change that another node has made.
    pub(crate) fn ring(&self) {
        let _ = self.wake.try_send(());
    }

    /// Reports a change of this node, which the other nodes have to learn of.
    fn ring_own(&self) {
        self.has_own.store(true, Ordering::SeqCst);
        self.ring();
    }
}

/// Parts that the thread works with.
pub(crate) struct ChangesParts {
    pub bell: ChangesBell,
    pub woken: Receiver<()>,
    /// Notifies the other nodes of changes. Blocks, with a deadline of its own.
    pub tell: Box<dyn Fn() + Send>,
}

/// Starts the thread. From now on several nodes change the accounts. Dropping the value ends the
/// thread after the current reading.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn start_changes(auth: &Arc<Auth>, parts: ChangesParts) -> io::Result<Stoppable> {
    let ChangesParts { bell, woken, tell } = parts;
    // Fails only for a second thread of one service.
    let _ = auth.followed.bell.set(bell.clone());
    let auth = Arc::clone(auth);
    Stoppable::spawn("changes", STOP_WAIT, move |stop| {
        loop {
            auth.read_and_log();
            select! {
                recv(stop.signal()) -> _ => return,
                recv(woken) -> _ => {
                    if bell.has_own.swap(false, Ordering::SeqCst) {
                        tell();
                    }
                }
                default(READ_INTERVAL) => {}
            }
        }
    })
}

impl Auth {
    /// Progress of reading the changes; `None` for a service that has the database to itself.
    pub(crate) fn changes(&self) -> Option<ChangesReading> {
        self.followed.bell.get()?;
        let age_ms = self.unread_ms();
        let is_outdated = age_ms > UNREAD_MS_MAX;
        Some(ChangesReading { applied: self.followed.read.lock().number, age_ms, is_outdated })
    }

    /// Whether other nodes change the same accounts.
    pub(crate) fn is_shared(&self) -> bool {
        self.followed.bell.get().is_some()
    }

    /// Whether this node does not know any more which tokens are revoked.
    pub(super) fn is_outdated(&self) -> bool {
        self.is_shared() && self.unread_ms() > UNREAD_MS_MAX
    }

    fn unread_ms(&self) -> u64 {
        let read_mono_ms = self.followed.read_mono_ms.load(Ordering::SeqCst);
        self.clock.monotonic_ms().saturating_sub(read_mono_ms)
    }

    /// Called after a change of this node is in the database.
    pub(super) fn changed(&self) {
        if let Some(bell) = self.followed.bell.get() {
            bell.ring_own();
        }
    }

    /// Applies the changes that operators' commands made, in a service that has the database to
    /// itself. Blocks; for a lane.
    pub(crate) fn take_up_changes(&self) {
        if self.is_shared() || self.tokens().is_none() {
            return;
        }
        let Ok(noticed) = self.read_changes() else { return };
        let applied = self.followed.read.lock().number;
        if applied == noticed {
            return;
        }
        if let Err(error) = self.store.notice_changes(applied) {
            tracing::warn!(%error, "cannot record that changes of accounts were applied");
        }
    }

    /// Finds out whether another server has taken the database's place and lacks what was read of
    /// it, which ends every login. A token that is issued after that is not ended by it. One that
    /// is issued where this cannot be read may be. Blocks or parks.
    pub(super) fn settle_incarnation(&self) {
        if self.is_shared()
            && let Err(error) = self.read_changes()
        {
            tracing::debug!(%error, "a token is issued without a reading of the changes");
        }
    }

    /// Applies all changes made so far, and returns the number of the last one recorded as applied.
    /// Blocks or parks.
    pub(super) fn read_changes(&self) -> Result<i64, StoreError> {
        let mut noticed = 0;
        for _ in 0..PAGES_MAX {
            let began_mono_ms = self.clock.monotonic_ms();
            let (known, after) = self.position();
            let page = self.store.changes_after(after.number)?;
            noticed = page.noticed;
            self.note_secret(page.secret_check.as_ref());
            if known.as_ref() != Some(&page.incarnation) {
                if self.load_all()? {
                    tracing::warn!(
                        "the database has a new identity, by another node or by an operator: \
                         every login ends"
                    );
                }
                break;
            }
            match page.continuity(after) {
                Continuity::Follows if self.apply(after, &page)? => {}
                Continuity::WentBack => {
                    self.went_back(&page, after)?;
                    self.load_all()?;
                    break;
                }
                // Some changes were deleted, or were made by a newer program.
                Continuity::Follows | Continuity::Missed => {
                    self.load_all()?;
                    break;
                }
            }
            if page.rows.len() < CHANGES_PAGE {
                self.followed.read_mono_ms.fetch_max(began_mono_ms, Ordering::SeqCst);
                break;
            }
        }
        Ok(noticed)
    }

    /// The incarnation that is known and the last change that was read of it. Taken together:
    /// another reader loads both anew, and the numbers of one incarnation say nothing of another.
    fn position(&self) -> (Option<String>, LastRead) {
        let read = self.followed.read.lock();
        (self.incarnation.lock().clone(), *read)
    }

    /// Applies a page, with the API keys of the accounts that have changed. False if it contains a
    /// change that this program does not know.
    fn apply(&self, after: LastRead, page: &Changes) -> Result<bool, StoreError> {
        let mut accounts: Vec<AccountId> = page.rows.iter().filter_map(changed_account).collect();
        accounts.sort_unstable();
        accounts.dedup();
        let mut keys = KeysRead::default();
        if !accounts.is_empty() {
            keys = self.store.keys_of(accounts.clone())?;
            let is_of_before = keys.number < page.last(after).number;
            if is_of_before || keys.incarnation != page.incarnation {
                let why = "the database answered from before a change that it had told";
                return Err(StoreError::Unavailable(why.to_owned()));
            }
        }
        let mut read = self.followed.read.lock();
        if *read != after {
            // Another reader was faster. The next page has the rest.
            return Ok(true);
        }
        if !page.rows.iter().all(|(_, change)| self.revoked.apply(change)) {
            return Ok(false);
        }
        self.api_keys.load(Some(&accounts), keys.number, &keys.keys);
        for (_, change) in &page.rows {
            if let Change::Erased { id } = change {
                self.api_keys.forget(*id);
            }
        }
        *read = page.last(after);
        Ok(true)
    }

    /// Gives a database that has gone back a new incarnation, unless another node was faster.
    fn went_back(&self, page: &Changes, read: LastRead) -> Result<(), StoreError> {
        let now = self.store.renew_incarnation(&page.incarnation, read)?;
        if now.incarnation == page.incarnation {
            // The server only lagged.
            return Ok(());
        }
        tracing::warn!(
            read = read.number,
            found = page.made,
            "the database went back in time: the last change of accounts that was read here is \
             not in it; acknowledged changes may be missing, and every login ends"
        );
        Ok(())
    }

    /// Compares the database with the mark of the last run, to detect that it was restored
    /// meanwhile.
    pub(super) fn expect_continuity_since_last_run(&self) -> Result<(), StoreError> {
        let kept = self.followed.kept.lock().clone();
        let Some(Mark { incarnation, number, mark }) = kept else { return Ok(()) };
        let page = self.store.changes_after(number)?;
        let read = LastRead { number, mark };
        if page.incarnation == incarnation && page.continuity(read) == Continuity::WentBack {
            self.went_back(&page, read)?;
        }
        Ok(())
    }

    /// Writes the last change read into the state directory, if it is new. Blocks.
    fn keep_mark(&self) {
        let (Some(incarnation), LastRead { number, mark }) = self.position() else { return };
        let found = Mark { incarnation, number, mark };
        let mut kept = self.followed.kept.lock();
        if kept.as_ref() == Some(&found) {
            return;
        }
        let bytes = sonic_rs::to_vec(&found).unwrap_or_default();
        match small_file::replace(&self.state_dir.join(MARK_FILE), &bytes) {
            Ok(()) => *kept = Some(found),
            Err(error) => tracing::debug!(%error, "the mark of the changes was not written"),
        }
    }

    /// Keeps the last change in the state directory before the service ends. Blocks.
    pub(crate) fn keep_last_change(&self) {
        if self.is_shared() && self.tokens().is_some() && self.read_changes().is_ok() {
            self.keep_mark();
        }
    }

    /// A pass of the thread. Does nothing until everything was loaded for the first time.
    fn read_and_log(&self) {
        if self.tokens().is_none() {
            return;
        }
        if self.claim_is_due.swap(false, Ordering::Relaxed) && self.claim_secret().is_err() {
            self.claim_is_due.store(true, Ordering::Relaxed);
        }
        let failed = self.read_changes();
        if failed.is_ok() {
            self.keep_mark();
        }
        let was_failing = self.followed.is_failing.swap(failed.is_err(), Ordering::SeqCst);
        match failed {
            Err(error) if !was_failing => tracing::warn!(
                %error,
                "cannot read changes of accounts; no token is accepted after 30 s of this"
            ),
            Ok(_) if was_failing => tracing::info!("changes of accounts can be read again"),
            _ => {}
        }
    }
}

// ---- Care
//
// Maintenance of authentication state: loads it from the store, watches the signing key's file,
// and drops revocations of expired tokens. Blocks, or parks on the edge.

/// Time between two removals of revocations of expired tokens.
const FORGET_INTERVAL_MS: u64 = 3_600_000;
/// Time between two readings of the networks that other nodes have written.
const NETWORKS_INTERVAL_MS: u64 = 60_000;
/// Overlap of such readings: other nodes' clocks differ, and their databases fail for a while.
const NETWORKS_REREAD_MS: i64 = 600_000;
/// Longest wait of the check for the networks that the edge has noted.
const NETWORKS_WRITE_MS: u64 = PAGE_DEADLINE_MS;

impl Auth {
    /// Checks that the file with the signing key is unchanged, and logs a change once. Blocks; for
    /// a lane.
    pub(crate) fn look_after_key(&self) {
        let found = self.key_file.lock().look();
        let before = std::mem::replace(&mut *self.key_state.lock(), found);
        match found {
            _ if found == before => {}
            KeyState::Missing | KeyState::Changed => tracing::error!(
                state = found.as_str(),
                "signing key file removed or changed: the next start or reload ends every login; \
                 put it back if that is not wanted"
            ),
            KeyState::Kept | KeyState::Given => tracing::info!("signing key is in place"),
        }
    }

    /// State of the signing key's file at the last check.
    pub(crate) fn key_state(&self) -> KeyState {
        *self.key_state.lock()
    }

    /// Drops changes that are no longer needed, and revocations of tokens that have certainly
    /// expired: by this machine's clock and by the time of the exchange's newest price
    /// (`exchange_ms`). This clock alone may be years ahead, and a token whose revocation was
    /// dropped too early would be valid again once the clock is right. So nothing is dropped before
    /// a price has told the time. Blocks; for a lane.
    pub(crate) fn forget_expired(&self, exchange_ms: Option<i64>) {
        let Some(exchange_ms) = exchange_ms else { return };
        if self.removals.admit(self.clock.monotonic_ms()).is_err() {
            return;
        }
        let before_ms = exchange_ms.min(self.clock.now_ms());
        match self.store.forget_revocations(before_ms) {
            Ok(tokens) => {
                self.revoked.forget(before_ms);
                tracing::debug!(tokens, "revocations of expired tokens dropped");
            }
            // The store has logged why, here and below.
            Err(StoreError::Unavailable(_)) => return,
            Err(error) => tracing::warn!(%error, "cannot drop revocations of expired tokens"),
        }
        let networks = self.store.forget_login_networks(before_ms.saturating_sub(FORGOTTEN_MS));
        let changes = self.store.forget_changes();
        for (what, dropped) in [
            ("networks that were last used long ago", networks),
            ("changes that every node has read", changes),
        ] {
            match dropped {
                Ok(()) | Err(StoreError::Unavailable(_)) => {}
                Err(error) => tracing::warn!(%error, "cannot drop {what}"),
            }
        }
    }

    /// Writes what users have ended while the store could not take it. Blocks; for a lane.
    pub(crate) fn write_endings(&self) {
        let written = self.endings.write(|ending| match ending {
            Ending::Token { id, expires_ms } => {
                self.store.revoke_token(&tokens::spelled(*id), *expires_ms)
            }
            Ending::Key { user, id } => {
                self.store.remove_key(*user, id)?;
                self.refresh_keys(*user)
            }
            Ending::Account { user, keys } => {
                let epoch = self.store.end_tokens(*user, *keys)?.ok_or(StoreError::NoSuchUser)?;
                self.revoked.settle(*user, epoch);
                if *keys { self.refresh_keys(*user) } else { Ok(()) }
            }
        });
        if written > 0 {
            tracing::info!(written, "tokens and API keys that were ended before are written now");
            self.changed();
        }
    }

    /// Writes when API keys were last used and the networks from which accounts were used, and
    /// loads those networks that other nodes have written. Blocks; for a lane.
    pub(crate) fn keep_networks(&self) {
        self.keep_key_uses();
        let waiting = self.known_networks.take_waiting();
        let mut is_due = self.is_shared()
            && self.clock.monotonic_ms() >= self.next_networks_mono_ms.load(Ordering::Relaxed);
        if !waiting.is_empty() {
            match self.store.keep_login_networks(waiting.clone(), NETWORKS_WRITE_MS) {
                // A network seen by token gets its account's e-mail when it is read back.
                Ok(()) => is_due = true,
                Err(error) => {
                    tracing::debug!(%error, "networks of accounts not written; they wait");
                    self.known_networks.give_back(waiting);
                }
            }
        }
        if is_due {
            self.load_networks(self.clock.now_ms().saturating_sub(NETWORKS_REREAD_MS));
        }
    }

    /// Stores when API keys were last used.
    fn keep_key_uses(&self) {
        let used = self.api_keys.take_used();
        let uses: Vec<KeyUse> = used.iter().filter_map(|key| api_keys::use_of(key)).collect();
        if uses.is_empty() {
            return;
        }
        if let Err(error) = self.store.note_key_uses(uses) {
            tracing::debug!(%error, "the last uses of API keys not written; they wait");
            self.api_keys.give_back(used);
        }
    }

    /// Reads an account's API keys after a change of this node.
    pub(super) fn refresh_keys(&self, user: AccountId) -> Result<(), StoreError> {
        let read = self.store.keys_of(vec![user])?;
        let incarnation = self.incarnation.lock();
        if incarnation.as_ref() == Some(&read.incarnation) {
            self.api_keys.load(Some(&[user]), read.number, &read.keys);
        }
        Ok(())
    }

    /// Loads the networks written since `since_ms`.
    fn load_networks(&self, since_ms: i64) {
        let next = self.clock.monotonic_ms() + NETWORKS_INTERVAL_MS;
        self.next_networks_mono_ms.store(next, Ordering::Relaxed);
        match self.store.login_networks(since_ms) {
            Ok(stored) => {
                for (email, network) in stored.iter().rev() {
                    self.known_networks.load(email, network);
                }
            }
            Err(error) => tracing::warn!(%error, "cannot read the networks of accounts"),
        }
    }

    /// Records in the database which secret this node signs with.
    ///
    /// # Errors
    /// The nodes of the database sign with another secret, which this one does not know.
    pub(super) fn claim_secret(&self) -> Result<(), StoreError> {
        let checks: Vec<String> = self.keys.lock().iter().map(keys::check_value).collect();
        let other = self.store.claim_secret(&checks[0], &checks[1..])?;
        other.map_or(Ok(()), |recorded| {
            self.note_other_secret(Some(recorded));
            Err(StoreError::Unavailable("JWT_SECRET is not that of the other nodes".to_owned()))
        })
    }

    /// Records which secret the nodes of the database sign with. Logs once if this node does not
    /// know it, since it then refuses their tokens.
    pub(super) fn note_secret(&self, recorded: Option<&String>) {
        let Some(recorded) = recorded else { return };
        let is_known = self.keys.lock().iter().any(|key| keys::check_value(key) == *recorded);
        self.note_other_secret((!is_known).then(|| recorded.clone()));
    }

    fn note_other_secret(&self, found: Option<String>) {
        let mut known = self.other_secret.lock();
        if *known == found {
            return;
        }
        if let Some(recorded) = &found {
            tracing::error!(
                fingerprint = keys::fingerprint(recorded),
                "other nodes of this database sign with another JWT_SECRET, so their tokens are \
                 refused here: add it to JWT_PREVIOUS_SECRETS, or give this node the same one"
            );
        }
        *known = found;
    }

    /// Loads accounts, epochs and revocations from the store for the first time. Later changes are
    /// followed.
    pub(super) fn load_state(&self) {
        match self.load_all() {
            Ok(_) => self.load_networks(self.clock.now_ms().saturating_sub(FORGOTTEN_MS)),
            // The store has logged why.
            Err(StoreError::Unavailable(_)) => {
                tracing::warn!("no token is accepted until the store can be used");
            }
            Err(error) => tracing::error!(
                %error,
                "cannot read accounts and revocations, so no token is accepted until then"
            ),
        }
    }

    /// Loads everything, whatever was read before. True if the database has another incarnation
    /// than before, which ends every login.
    pub(super) fn load_all(&self) -> Result<bool, StoreError> {
        let began_mono_ms = self.clock.monotonic_ms();
        let known = self.incarnation.lock().clone();
        if known.is_none() {
            self.claim_secret()?;
            self.expect_continuity_since_last_run()?;
        }
        let stored = self.store.auth_state()?;
        let is_new = known.as_ref() != Some(&stored.incarnation);
        {
            let mut read = self.followed.read.lock();
            if *self.incarnation.lock() != known {
                // Another pass has loaded a newer state.
                return Ok(false);
            }
            match is_new {
                true => self.revoked.replace(&stored),
                false => self.revoked.load(&stored),
            }
            if is_new {
                self.api_keys.clear();
            }
            self.api_keys.load(None, stored.read.number, &stored.keys);
            *read = stored.read;
            if is_new {
                *self.incarnation.lock() = Some(stored.incarnation);
                self.put_in_force(&self.keys.lock());
            }
        }
        self.followed.read_mono_ms.fetch_max(began_mono_ms, Ordering::SeqCst);
        let (users, changed, tokens) = self.revoked.sizes();
        tracing::info!(users, changed, tokens, "accounts and revocations loaded");
        Ok(is_new && known.is_some())
    }
}

fn changed_account((_, change): &(i64, Change)) -> Option<AccountId> {
    match change {
        Change::Account { id, .. } => Some(*id),
        _ => None,
    }
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
