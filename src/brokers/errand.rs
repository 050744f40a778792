//! One user's sync as its broker sees it: a few calls with one API key, within one budget of time.
//!
//! Apart from the quote gates, so that users and feed cannot stop each other. Runs on upstream
//! lanes; blocks only as long as the calls it lets through.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use secrecy::SecretString;

use super::SyncError;
use super::breaker::Breaker;
use super::counters::ClassReading;
use super::keyed::{Fingerprint, KEYS_MAX, KeyedLimiter, Rates};
use super::transport::{CallLimits, TransportError};
use crate::base::{Clock, stack};
use crate::config::UpstreamSettings;

/// All users' calls to one broker: circuit, limits per key, counters.
pub(super) struct Errands {
    clock: Clock,
    breaker: Breaker,
    keys: KeyedLimiter,
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
    /// Stopped before they went out: key's limit or open circuit.
    pub held_back: u64,
    /// API keys whose usage was forgotten for lack of room.
    pub keys_forgotten: u64,
}

/// One sync under way.
pub(super) struct Errand<'a> {
    errands: &'a Errands,
    key: Fingerprint,
    until_ms: u64,
    /// Calls that were taken from the key's limit and not made yet.
    reserved: Cell<usize>,
}

impl Errands {
    /// `name` is for the log.
    pub(super) fn new(
        name: &'static str,
        clock: &Clock,
        upstream: &UpstreamSettings,
        rates: Rates,
    ) -> Self {
        Self {
            clock: clock.clone(),
            breaker: Breaker::new(name, clock.clone(), upstream),
            keys: KeyedLimiter::new(clock.clone(), rates, KEYS_MAX),
            limits: CallLimits::usual(upstream),
            budget_ms: upstream.sync_timeout_ms,
            calls: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            held_back: AtomicU64::new(0),
        }
    }

    /// Starts an errand of `calls` calls: all of them are to be had from the key's limit, because a
    /// one-time code spent on a sync that then has to stop is lost.
    ///
    /// # Errors
    /// [`SyncError::RateLimited`], or [`SyncError::Unavailable`] while the circuit is open.
    pub(super) fn begin(
        &self,
        api_key: &SecretString,
        calls: usize,
    ) -> Result<Errand<'_>, SyncError> {
        if let Some(wait) = self.breaker.wait() {
            return Err(self.open(wait));
        }
        let errand = Errand {
            errands: self,
            key: self.keys.fingerprint(api_key),
            until_ms: self.clock.monotonic_ms().saturating_add(self.budget_ms),
            reserved: Cell::new(0),
        };
        errand.reserve(calls)?;
        Ok(errand)
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

    fn open(&self, wait: Duration) -> SyncError {
        self.held_back.fetch_add(1, Relaxed);
        SyncError::Unavailable {
            detail: "left alone after failures".into(),
            retry_after: Some(wait),
        }
    }
}

impl Errand<'_> {
    fn reserve(&self, calls: usize) -> Result<(), SyncError> {
        self.errands.keys.take(self.key, calls).map_err(|wait| {
            self.errands.held_back.fetch_add(1, Relaxed);
            SyncError::RateLimited(wait)
        })?;
        self.reserved.set(self.reserved.get() + calls);
        Ok(())
    }

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
        if self.reserved.get() == 0 {
            self.reserve(1)?;
        }
        let pass = errands.breaker.pass().map_err(|wait| errands.open(wait))?;
        self.reserved.set(self.reserved.get() - 1);
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
                errands.keys.block(self.key, *wait);
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
