//! One user's sync as its broker sees it: a few calls with one API key, within one budget of time.
//!
//! Apart from the quote gates, so that users and feed cannot stop each other. What holds a sync
//! back: the circuit, a rest that the broker asked for, the user's own refused syncs with this key,
//! the key's limit, and a limit of all syncs of this server together. Runs on upstream lanes;
//! blocks only as long as the calls it lets through.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use secrecy::SecretString;

use super::SyncError;
use super::breaker::Breaker;
use super::counters::ClassReading;
use super::keyed::{Fingerprint, KEYS_MAX, KeyedLimiter, Rates, Slots};
use super::portfolio::Credentials;
use super::rest::Rest;
use super::transport::{CallLimits, TransportError};
use crate::base::{Clock, stack};
use crate::config::UpstreamSettings;

/// Syncs of one user with one key that the broker may refuse within a minute: somebody who copies
/// a code wrongly tries again two or three times. With another user's key these few calls are all
/// that can be taken from its owner.
const REFUSALS: Rates = Rates { calls_max: 5, window_ms: 60_000, day_calls_max: usize::MAX };

/// Owner of the server's own calls; accounts count from 1.
const SERVER: i64 = 0;

/// All users' calls to one broker: circuit, limits, counters.
pub(super) struct Errands {
    clock: Clock,
    breaker: Breaker,
    rest: Rest,
    /// Each key's calls, whoever makes them.
    keys: KeyedLimiter,
    /// Refused syncs of each user with each key.
    refusals: KeyedLimiter,
    /// All syncs' calls, as the broker sees them come from one address.
    together: KeyedLimiter,
    together_as: Fingerprint,
    limits: CallLimits,
    budget_ms: u64,
    calls: AtomicU64,
    failed: AtomicU64,
    held_back: AtomicU64,
}

/// What became of users' calls to one broker, since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncCounts {
    /// Requests that went out.
    pub calls: u64,
    /// Of these, not answered as hoped.
    pub failed: u64,
    /// Stopped before they went out: a limit, a rest, or the open circuit.
    pub held_back: u64,
    /// API keys whose usage was forgotten for lack of room.
    pub keys_forgotten: u64,
}

/// One sync under way.
pub(super) struct Errand<'a> {
    errands: &'a Errands,
    /// `None` for the server itself.
    user: Option<i64>,
    key: Fingerprint,
    pair: Fingerprint,
    until_ms: u64,
    /// Calls that were taken from the limits and not made yet.
    reserved: Cell<Reserved>,
}

/// The same calls, of the key's limit and of the common one.
#[derive(Clone, Copy)]
struct Reserved {
    key: Slots,
    together: Option<Slots>,
}

impl Errands {
    /// `name` is for the log; `rates` are one key's, `together` those of all syncs.
    pub(super) fn new(
        name: &'static str,
        clock: &Clock,
        upstream: &UpstreamSettings,
        rates: Rates,
        together: Rates,
    ) -> Self {
        let together = KeyedLimiter::new(clock.clone(), together, 1);
        Self {
            clock: clock.clone(),
            breaker: Breaker::new(name, clock.clone(), upstream),
            rest: Rest::new(clock.clone()),
            keys: KeyedLimiter::new(clock.clone(), rates, KEYS_MAX),
            refusals: KeyedLimiter::new(clock.clone(), REFUSALS, KEYS_MAX),
            together_as: together.fingerprint(&SecretString::default()),
            together,
            limits: CallLimits::usual(upstream),
            budget_ms: upstream.sync_timeout_ms,
            calls: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            held_back: AtomicU64::new(0),
        }
    }

    /// Makes one user's sync of `calls` calls or more: that many are to be had from the limits
    /// before it begins, because a one-time code spent on a sync that then has to stop is lost.
    ///
    /// # Errors
    /// What `work` gave; [`SyncError::RateLimited`], or [`SyncError::Unavailable`] while the
    /// circuit is open.
    pub(super) fn sync<T>(
        &self,
        credentials: &Credentials,
        calls: usize,
        work: impl FnOnce(&Errand<'_>) -> Result<T, SyncError>,
    ) -> Result<T, SyncError> {
        let user = credentials.user;
        let errand = self.begin(&credentials.api_key, Some(user), calls)?;
        let refusal = self.refusals.take(errand.pair, user, 1).map_err(|wait| self.held(wait))?;
        let result = work(&errand);
        match &result {
            Ok(_) => self.keys.owned_by(errand.key, user),
            Err(SyncError::CodeRefused(_) | SyncError::KeyRefused(_)) => return result,
            Err(_) => {}
        }
        self.refusals.give_back(refusal);
        result
    }

    /// An errand of the server itself, which no number of syncs holds back.
    ///
    /// # Errors
    /// As for [`sync`](Self::sync).
    pub(super) fn own(
        &self,
        api_key: &SecretString,
        calls: usize,
    ) -> Result<Errand<'_>, SyncError> {
        self.begin(api_key, None, calls)
    }

    fn begin(
        &self,
        api_key: &SecretString,
        user: Option<i64>,
        calls: usize,
    ) -> Result<Errand<'_>, SyncError> {
        if let Some(wait) = self.breaker.wait() {
            return Err(self.open(wait));
        }
        let key = self.keys.fingerprint(api_key);
        let pair = self.refusals.pair(api_key, user.unwrap_or(SERVER));
        let rest = self.rest.wait(user).max(self.refusals.blocked(pair));
        if let Some(wait) = rest {
            return Err(self.held(wait));
        }
        Ok(Errand {
            errands: self,
            user,
            key,
            pair,
            until_ms: self.clock.monotonic_ms().saturating_add(self.budget_ms),
            reserved: Cell::new(self.reserve(key, user, calls)?),
        })
    }

    /// Takes `calls` calls from both limits or from none.
    fn reserve(
        &self,
        key: Fingerprint,
        user: Option<i64>,
        calls: usize,
    ) -> Result<Reserved, SyncError> {
        let number = user.unwrap_or(SERVER);
        let of_key = self.keys.take(key, number, calls).map_err(|wait| self.held(wait))?;
        let together = user.map(|user| self.together.take(self.together_as, user, calls));
        match together.transpose() {
            Ok(together) => Ok(Reserved { key: of_key, together }),
            Err(wait) => {
                self.keys.give_back(of_key);
                Err(self.held(wait))
            }
        }
    }

    pub(super) fn counts(&self) -> SyncCounts {
        SyncCounts {
            calls: self.calls.load(Relaxed),
            failed: self.failed.load(Relaxed),
            held_back: self.held_back.load(Relaxed),
            keys_forgotten: self.keys.forgotten(),
        }
    }

    pub(super) fn reading(&self) -> ClassReading {
        let counts = self.counts();
        let ok = counts.calls.saturating_sub(counts.failed);
        ClassReading {
            class: "syncs",
            circuit: self.breaker.state(),
            held_back: counts.held_back,
            outcomes: vec![("ok", ok), ("failed", counts.failed)],
        }
    }

    fn held(&self, wait: Duration) -> SyncError {
        self.held_back.fetch_add(1, Relaxed);
        SyncError::RateLimited(wait)
    }

    fn open(&self, wait: Duration) -> SyncError {
        self.held_back.fetch_add(1, Relaxed);
        SyncError::Unavailable {
            detail: "left alone after failures".into(),
            retry_after: Some(wait),
        }
    }
}

impl Errand<'_> {
    /// Makes one call, within what is left of the time.
    ///
    /// # Errors
    /// What `ask` gave, or what kept it from being asked.
    pub(super) fn call<T>(
        &self,
        ask: impl FnOnce(CallLimits) -> Result<T, SyncError>,
    ) -> Result<T, SyncError> {
        let errands = self.errands;
        let left_ms = self.until_ms.saturating_sub(errands.clock.monotonic_ms());
        if left_ms == 0 {
            return Err(SyncError::TimedOut);
        }
        // Another user's call may have been refused meanwhile.
        if let Some(wait) = errands.rest.wait(self.user) {
            return Err(errands.held(wait));
        }
        let pass = errands.breaker.pass().map_err(|wait| errands.open(wait))?;
        let mut reserved = self.reserved.get();
        if reserved.key.left() == 0 {
            reserved = errands.reserve(self.key, self.user, 1)?;
        }
        reserved.key.use_one();
        reserved.together.iter_mut().for_each(Slots::use_one);
        self.reserved.set(reserved);
        errands.calls.fetch_add(1, Relaxed);
        let total_timeout_ms = errands.limits.total_timeout_ms.min(left_ms);
        let result = ask(CallLimits { total_timeout_ms, ..errands.limits });
        // Reading a session's answer leaves pieces of its token.
        stack::scrub();
        match &result {
            Err(SyncError::TimedOut | SyncError::Unavailable { .. }) => pass.failure(),
            // Neither proves anything: a strange key can have strange answers, and must not be able
            // to shut the broker for everybody.
            Err(SyncError::Malformed(_)) => drop(pass),
            Err(SyncError::RateLimited(wait)) => {
                errands.rest.refused(self.user, *wait);
                pass.success();
            }
            Err(SyncError::KeySpent(wait)) => {
                errands.refusals.block(self.pair, *wait);
                pass.success();
            }
            Ok(_) | Err(_) => pass.success(),
        }
        if result.is_err() {
            errands.failed.fetch_add(1, Relaxed);
        }
        result
    }
}

impl Drop for Errand<'_> {
    fn drop(&mut self) {
        let Reserved { key, together } = self.reserved.get();
        self.errands.keys.give_back(key);
        together.into_iter().for_each(|slots| self.errands.together.give_back(slots));
    }
}

impl From<TransportError> for SyncError {
    fn from(error: TransportError) -> Self {
        match error {
            TransportError::TimedOut { .. } => Self::TimedOut,
            TransportError::Unreachable(_) | TransportError::Broken(_) => {
                Self::Unavailable { detail: error.to_string(), retry_after: None }
            }
            TransportError::TooLarge { .. } | TransportError::Redirected => {
                Self::Malformed(error.to_string())
            }
            // Only a key, or a token made with it, can hold one.
            TransportError::BadRequest(_) => {
                Self::KeyRefused("a character in it cannot be sent".into())
            }
        }
    }
}
