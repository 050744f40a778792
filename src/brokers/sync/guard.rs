//! One user's sync as its broker sees it: a few calls with one API key, within one budget of time.
//!
//! Apart from the quote gates, so that users and feed cannot stop each other. What holds a sync
//! back: the circuit, a rest that the broker asked for, syncs that it refused, the key's limit, and
//! a share of what all syncs of this server may take together. Whoever is refused is told the whole
//! time for which that holds. Runs on upstream lanes; blocks only as long as the calls it lets
//! through.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use secrecy::SecretString;

use super::cooldown::Cooldown;
use super::key_limiter::Rates;
use super::shares::{Shares, Taken, Who};
use crate::base::{Clock, wipe};
use crate::brokers::call::breaker::{Breaker, Pass};
use crate::brokers::call::stats::ClassReading;
use crate::brokers::call::transport::CallLimits;
use crate::brokers::portfolio::Credentials;
use crate::brokers::settings::UpstreamSettings;
use crate::brokers::{BrokerError, BrokerErrorKind, Readiness};

/// All users' calls to one broker: circuit, limits, counters.
pub(crate) struct Errands {
    upstream: &'static str,
    clock: Clock,
    breaker: Breaker,
    rest: Cooldown,
    shares: Shares,
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
pub(crate) struct SyncGuard<'a> {
    errands: &'a Errands,
    who: Who,
    until_ms: u64,
    /// Calls that were taken from the limits and not made yet.
    taken: Cell<Taken>,
}

impl Errands {
    /// `upstream` and `name`, the circuit's, are for the log; `rates` are one key's, `together`
    /// those of all syncs.
    pub(crate) fn new(
        upstream: &'static str,
        name: &'static str,
        clock: &Clock,
        settings: &UpstreamSettings,
        rates: Rates,
        together: Rates,
    ) -> Self {
        Self {
            upstream,
            clock: clock.clone(),
            breaker: Breaker::new(name, clock.clone(), settings),
            rest: Cooldown::new(clock.clone()),
            shares: Shares::new(clock, rates, together),
            limits: CallLimits::usual(settings),
            budget_ms: settings.sync_timeout_ms,
            calls: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            held_back: AtomicU64::new(0),
        }
    }

    /// Makes one user's sync of `calls` calls or more: that many are to be had from the limits
    /// before it begins, because a one-time code spent on a sync that then has to stop is lost.
    ///
    /// # Errors
    /// What `work` gave, or [`BrokerErrorKind::NotReady`] for a limit, a cooldown or the open
    /// circuit. Each with the time for which the same would be held back now.
    pub(crate) fn sync<T>(
        &self,
        credentials: &Credentials,
        calls: usize,
        work: impl FnOnce(&SyncGuard<'_>) -> Result<T, BrokerError>,
    ) -> Result<T, BrokerError> {
        let who = self.who(credentials);
        let result = self.run(who, calls, work);
        match &result {
            Ok(_) => {
                self.shares.synced(who);
                self.rest.served(credentials.user, who.key);
            }
            Err(error) if error.blames_request() => self.shares.refused(who),
            Err(_) => {}
        }
        result.map_err(|error| self.told(error, who, calls))
    }

    /// An errand of the server itself, which no number of syncs holds back.
    ///
    /// # Errors
    /// As for [`sync`](Self::sync).
    pub(crate) fn own<T>(
        &self,
        api_key: &SecretString,
        calls: usize,
        work: impl FnOnce(&SyncGuard<'_>) -> Result<T, BrokerError>,
    ) -> Result<T, BrokerError> {
        let who = self.shares.who(None, None, api_key);
        self.run(who, calls, work).map_err(|error| self.told(error, who, calls))
    }

    /// Whose calls a sync with these credentials makes.
    pub(crate) fn who(&self, credentials: &Credentials) -> Who {
        let Credentials { user, client, api_key, .. } = credentials;
        self.shares.who(Some(*user), *client, api_key)
    }

    /// Makes `work`'s calls for `who` if nothing holds them back.
    ///
    /// # Errors
    /// As for [`sync`](Self::sync), but with the broker's own times.
    pub(crate) fn run<T>(
        &self,
        who: Who,
        calls: usize,
        work: impl FnOnce(&SyncGuard<'_>) -> Result<T, BrokerError>,
    ) -> Result<T, BrokerError> {
        if let Some(wait) = self.breaker.wait() {
            return Err(self.open(wait));
        }
        if let Some(wait) = self.wait(who, calls) {
            return Err(self.held(wait));
        }
        let taken = self.shares.take(who, calls).map_err(|wait| self.held(wait))?;
        work(&SyncGuard {
            errands: self,
            who,
            until_ms: self.clock.monotonic_ms().saturating_add(self.budget_ms),
            taken: Cell::new(taken),
        })
    }

    /// Takes one call for something beside a sync, if nothing holds it back.
    pub(crate) fn take_one(&self, who: Who) -> bool {
        let free = self.breaker.wait().is_none() && self.rest.wait(who.user, who.key).is_none();
        // Given to `who` and not given back: it is made at once.
        free && self.shares.take(who, 1).is_ok()
    }

    /// How long `who` would be held back now: by a rest, or by a limit.
    fn wait(&self, who: Who, calls: usize) -> Option<Duration> {
        self.rest.wait(who.user, who.key).max(self.shares.wait(who, calls))
    }

    /// A refusal with the time that holds: what the broker asked for is not all.
    fn told(&self, error: BrokerError, who: Who, calls: usize) -> BrokerError {
        let open = self.breaker.wait();
        let held = self.wait(who, calls).max(open);
        let own = error.retry_after();
        let wait = match error.kind {
            BrokerErrorKind::NotReady(Readiness::Paced(_))
            | BrokerErrorKind::RateLimited
            | BrokerErrorKind::KeySpent => held.or(own),
            BrokerErrorKind::NotReady(Readiness::Open(_))
            | BrokerErrorKind::Unreachable
            | BrokerErrorKind::Failed { .. } => own.max(held),
            _ => None,
        };
        match wait {
            Some(wait) => error.after(wait),
            None => error,
        }
    }

    pub(crate) fn counts(&self) -> SyncCounts {
        SyncCounts {
            calls: self.calls.load(Relaxed),
            failed: self.failed.load(Relaxed),
            held_back: self.held_back.load(Relaxed),
            keys_forgotten: self.shares.keys_forgotten(),
        }
    }

    pub(crate) fn reading(&self) -> ClassReading {
        let counts = self.counts();
        let ok = counts.calls.saturating_sub(counts.failed);
        ClassReading {
            class: "syncs",
            circuit: self.breaker.state(),
            held_back: counts.held_back,
            outcomes: vec![("ok", ok), ("failed", counts.failed)],
        }
    }

    fn held(&self, wait: Duration) -> BrokerError {
        self.held_back.fetch_add(1, Relaxed);
        BrokerError::not_ready(self.upstream, Readiness::Paced(wait))
    }

    fn open(&self, wait: Duration) -> BrokerError {
        self.held_back.fetch_add(1, Relaxed);
        BrokerError::not_ready(self.upstream, Readiness::Open(wait))
    }
}

impl SyncGuard<'_> {
    /// Whose calls it makes.
    pub(crate) fn who(&self) -> Who {
        self.who
    }

    /// Makes one call, within what is left of the time.
    ///
    /// # Errors
    /// What `ask` gave, or what kept it from being asked.
    pub(crate) fn call<T>(
        &self,
        ask: impl FnOnce(CallLimits) -> Result<T, BrokerError>,
    ) -> Result<T, BrokerError> {
        let errands = self.errands;
        let left_ms = self.until_ms.saturating_sub(errands.clock.monotonic_ms());
        if left_ms == 0 {
            let limit = format!("{} ms, the time of a whole sync", errands.budget_ms);
            return Err(BrokerError::new(errands.upstream, BrokerErrorKind::TimedOut, limit));
        }
        // Another user's call may have been refused meanwhile.
        if let Some(wait) = errands.rest.wait(self.who.user, self.who.key) {
            return Err(errands.held(wait));
        }
        let pass = errands.breaker.pass().map_err(|wait| errands.open(wait))?;
        let mut taken = self.taken.get();
        if taken.left() == 0 {
            taken = errands.shares.take(self.who, 1).map_err(|wait| errands.held(wait))?;
        }
        taken.use_one();
        self.taken.set(taken);
        errands.calls.fetch_add(1, Relaxed);
        let total_timeout_ms = errands.limits.total_timeout_ms.min(left_ms);
        let result = ask(CallLimits { total_timeout_ms, ..errands.limits });
        // Reading a session's answer leaves pieces of its token.
        wipe::scrub();
        match &result {
            Ok(_) => pass.success(),
            Err(error) => self.judge(error, pass),
        }
        if result.is_err() {
            errands.failed.fetch_add(1, Relaxed);
        }
        result
    }

    /// Learns from a failed call: whether the broker works, and whether somebody has to wait.
    fn judge(&self, error: &BrokerError, pass: Pass<'_>) {
        let Self { errands, who, .. } = self;
        let wait = error.retry_after().unwrap_or_default();
        match error.kind {
            BrokerErrorKind::TimedOut
            | BrokerErrorKind::Unreachable
            | BrokerErrorKind::Failed { .. } => pass.failure(),
            // Neither proves anything: a strange key can have strange answers, and must not be able
            // to shut the broker for everybody.
            BrokerErrorKind::Malformed | BrokerErrorKind::Redirected => drop(pass),
            BrokerErrorKind::RateLimited => {
                errands.rest.refused(who.user, who.key, wait);
                pass.success();
            }
            BrokerErrorKind::KeySpent => {
                errands.rest.spent(who.key, wait);
                errands.shares.block(*who, wait);
                pass.success();
            }
            _ => pass.success(),
        }
    }
}

impl Drop for SyncGuard<'_> {
    fn drop(&mut self) {
        self.errands.shares.give_back(self.taken.get());
    }
}
