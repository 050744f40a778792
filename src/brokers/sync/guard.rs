//! The guard around users' syncs with one broker: a few calls with one API key, within one budget
//! of time.
//!
//! Apart from the gates of quotes, so that users and the feed cannot stop each other. These hold a
//! sync back: the open circuit, a cooldown that the broker asked for, earlier syncs that it
//! refused, the key's own limit, and the share of what all syncs of this server may take together.
//! Whoever is refused is told the whole time for which that holds. Runs on upstream lanes; blocks
//! only as long as the calls it lets through.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

use super::cooldown::Cooldown;
use super::key_limiter::Rates;
use super::shares::{Caller, Shares, Taken};
use crate::base::limiter::Rate;
use crate::base::{Clock, wipe};
use crate::brokers::call::breaker::{Breaker, Pass};
use crate::brokers::call::stats::ClassReading;
use crate::brokers::call::transport::CallLimits;
use crate::brokers::portfolio::Credentials;
use crate::brokers::settings::UpstreamSettings;
use crate::brokers::{BrokerError, BrokerErrorKind, Readiness};
use crate::limits::shared::SharedCounts;

/// All users' calls to one broker: circuit, limits, counters.
pub(crate) struct SyncGate {
    upstream: &'static str,
    clock: Clock,
    breaker: Breaker,
    cooldown: Cooldown,
    shares: Shares,
    /// One key's rate, and what counts its calls at all nodes.
    rates: Rates,
    all_nodes: OnceLock<(&'static str, Arc<dyn SharedCounts>)>,
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
    /// Of these, failed.
    pub failed: u64,
    /// Stopped before they went out: a limit, a cooldown, or the open circuit.
    pub held_back: u64,
    /// API keys whose usage was forgotten for lack of room.
    pub keys_forgotten: u64,
}

/// One sync under way.
pub(crate) struct SyncGuard<'a> {
    gate: &'a SyncGate,
    caller: Caller,
    until_ms: u64,
    /// Calls that were taken from the limits and not made yet.
    taken: Cell<Taken>,
}

impl SyncGate {
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
            cooldown: Cooldown::new(clock.clone()),
            shares: Shares::new(clock, rates, together),
            rates,
            all_nodes: OnceLock::new(),
            limits: CallLimits::usual(settings),
            budget_ms: settings.sync_timeout_ms,
            calls: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            held_back: AtomicU64::new(0),
        }
    }

    /// From now on a key's calls are also counted with those of the other nodes, as `kind`.
    pub(crate) fn join(&self, kind: &'static str, counts: &Arc<dyn SharedCounts>) {
        // A node joins the others once, at its start.
        let _ = self.all_nodes.set((kind, Arc::clone(counts)));
    }

    /// Counts calls with a key that this node's own limits let through. The bucket has half of what
    /// the broker allows in a window, and is full again after one, so no window has more.
    fn count_at_all_nodes(&self, api_key: &SecretString, calls: usize) -> Result<(), Duration> {
        let Some((kind, counts)) = self.all_nodes.get() else { return Ok(()) };
        let burst = (self.rates.calls_max as u64 / 2).max(1);
        let rate = Rate::new(self.rates.window_ms.div_ceil(burst), burst);
        let counted = counts.admit(kind, &[api_key.expose_secret().as_bytes()], rate, calls as u64);
        counted.map_err(|throttled| Duration::from_millis(throttled.retry_after_ms))
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
        let caller = self.caller(credentials);
        let result = self.run(caller, &credentials.api_key, calls, work);
        match &result {
            Ok(_) => {
                self.shares.synced(caller);
                self.cooldown.served(credentials.user, caller.key);
            }
            Err(error) if error.blames_request() => self.shares.refused(caller),
            Err(_) => {}
        }
        result.map_err(|error| self.told(error, caller, calls))
    }

    /// Makes calls of the server itself, which no number of syncs holds back.
    ///
    /// # Errors
    /// As for [`sync`](Self::sync).
    pub(crate) fn own<T>(
        &self,
        api_key: &SecretString,
        calls: usize,
        work: impl FnOnce(&SyncGuard<'_>) -> Result<T, BrokerError>,
    ) -> Result<T, BrokerError> {
        let caller = self.shares.caller(None, None, api_key);
        self.run(caller, api_key, calls, work).map_err(|error| self.told(error, caller, calls))
    }

    /// The caller of a sync with these credentials.
    pub(crate) fn caller(&self, credentials: &Credentials) -> Caller {
        let Credentials { user, client, api_key, .. } = credentials;
        self.shares.caller(Some(*user), *client, api_key)
    }

    /// Makes `work`'s calls for `caller` if nothing holds them back.
    ///
    /// # Errors
    /// As for [`sync`](Self::sync), but with the broker's own times.
    pub(crate) fn run<T>(
        &self,
        caller: Caller,
        api_key: &SecretString,
        calls: usize,
        work: impl FnOnce(&SyncGuard<'_>) -> Result<T, BrokerError>,
    ) -> Result<T, BrokerError> {
        if let Some(wait) = self.breaker.wait() {
            return Err(self.open(wait));
        }
        if let Some(wait) = self.wait(caller, calls) {
            return Err(self.held(wait));
        }
        let taken = self.shares.take(caller, calls).map_err(|wait| self.held(wait))?;
        if let Err(wait) = self.count_at_all_nodes(api_key, calls) {
            self.shares.give_back(taken);
            return Err(self.held(wait));
        }
        work(&SyncGuard {
            gate: self,
            caller,
            until_ms: self.clock.monotonic_ms().saturating_add(self.budget_ms),
            taken: Cell::new(taken),
        })
    }

    /// Takes one call for something beside a sync, if nothing holds it back.
    pub(crate) fn take_one(&self, caller: Caller) -> bool {
        let free =
            self.breaker.wait().is_none() && self.cooldown.wait(caller.user, caller.key).is_none();
        // Given to `caller` and not given back: it is made at once.
        free && self.shares.take(caller, 1).is_ok()
    }

    /// How long `caller` would be held back now: by a cooldown, or by a limit.
    fn wait(&self, caller: Caller, calls: usize) -> Option<Duration> {
        self.cooldown.wait(caller.user, caller.key).max(self.shares.wait(caller, calls))
    }

    /// `error` with the whole time to wait: a limit of ours may last longer than what the broker
    /// asked for.
    fn told(&self, error: BrokerError, caller: Caller, calls: usize) -> BrokerError {
        let open = self.breaker.wait();
        let held = self.wait(caller, calls).max(open);
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
    /// The caller that it makes calls for.
    pub(crate) fn caller(&self) -> Caller {
        self.caller
    }

    /// Makes one call, within what is left of the time.
    ///
    /// # Errors
    /// What `ask` gave, or what kept it from being asked.
    pub(crate) fn call<T>(
        &self,
        ask: impl FnOnce(CallLimits) -> Result<T, BrokerError>,
    ) -> Result<T, BrokerError> {
        let gate = self.gate;
        let left_ms = self.until_ms.saturating_sub(gate.clock.monotonic_ms());
        if left_ms == 0 {
            let limit = format!("{} ms, the time of a whole sync", gate.budget_ms);
            return Err(BrokerError::new(gate.upstream, BrokerErrorKind::TimedOut, limit));
        }
        // Another user's call may have been refused meanwhile.
        if let Some(wait) = gate.cooldown.wait(self.caller.user, self.caller.key) {
            return Err(gate.held(wait));
        }
        let pass = gate.breaker.pass().map_err(|wait| gate.open(wait))?;
        let mut taken = self.taken.get();
        if taken.left() == 0 {
            taken = gate.shares.take(self.caller, 1).map_err(|wait| gate.held(wait))?;
        }
        taken.use_one();
        self.taken.set(taken);
        gate.calls.fetch_add(1, Relaxed);
        let total_timeout_ms = gate.limits.total_timeout_ms.min(left_ms);
        let result = ask(CallLimits { total_timeout_ms, ..gate.limits });
        // Reading a session's answer leaves pieces of its token.
        wipe::scrub();
        match &result {
            Ok(_) => pass.success(),
            Err(error) => self.judge(error, pass),
        }
        if result.is_err() {
            gate.failed.fetch_add(1, Relaxed);
        }
        result
    }

    /// Learns from a failed call: whether the broker works, and whether somebody has to wait.
    fn judge(&self, error: &BrokerError, pass: Pass<'_>) {
        let Self { gate, caller, .. } = self;
        let wait = error.retry_after().unwrap_or_default();
        match error.kind {
            BrokerErrorKind::TimedOut
            | BrokerErrorKind::Unreachable
            | BrokerErrorKind::Failed { .. } => pass.failure(),
            // Neither proves anything: a strange key can have strange answers, and must not be able
            // to shut the broker for everybody.
            BrokerErrorKind::Malformed | BrokerErrorKind::Redirected => drop(pass),
            BrokerErrorKind::RateLimited => {
                let is_owner = gate.shares.is_owner(*caller);
                gate.cooldown.refused(caller.user, caller.key, wait, is_owner);
                pass.success();
            }
            BrokerErrorKind::KeySpent => {
                gate.cooldown.spent(caller.key, wait);
                gate.shares.block(*caller, wait);
                pass.success();
            }
            _ => pass.success(),
        }
    }
}

impl Drop for SyncGuard<'_> {
    fn drop(&mut self) {
        self.gate.shares.give_back(self.taken.get());
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;
    use crate::limits::shared::SharedTally;
    use crate::limits::throttle::Throttled;

    /// Refuses while it says so, and remembers what it was asked.
    #[derive(Default)]
    struct Counts {
        retry_after_ms: Mutex<Option<u64>>,
        asked: Mutex<Vec<(Vec<u8>, u64, u64)>>,
    }

    impl SharedCounts for Counts {
        fn admit(
            &self,
            _: &'static str,
            values: &[&[u8]],
            rate: Rate,
            cost: u64,
        ) -> Result<(), Throttled> {
            self.asked.lock().push((values.concat(), rate.interval_ms(), cost));
            self.retry_after_ms
                .lock()
                .map_or(Ok(()), |retry_after_ms| Err(Throttled { retry_after_ms }))
        }

        fn forgive(&self, _: &'static str, _: &[u8]) {}

        fn tally(&self) -> SharedTally {
            SharedTally::default()
        }
    }

    #[test]
    fn what_all_nodes_refuse_is_held_back_and_costs_this_node_nothing() {
        let clock = Clock::manual("2026-11-20T05:30:00Z".parse().unwrap());
        let rates = Rates { calls_max: 6, window_ms: 1_000, day_calls_max: usize::MAX };
        let settings = UpstreamSettings::default();
        let gate = SyncGate::new("test", "test syncs", &clock, &settings, rates, rates);
        let counts = Arc::new(Counts::default());
        let shared: Arc<dyn SharedCounts> = counts.clone();
        gate.join("test", &shared);
        let own = || gate.own(&"key".into(), 3, |_| Ok(()));
        *counts.retry_after_ms.lock() = Some(400);
        for _ in 0..10 {
            let error = own().unwrap_err();
            let wait = Duration::from_millis(400);
            assert_eq!(error.kind, BrokerErrorKind::NotReady(Readiness::Paced(wait)));
        }
        assert_eq!(gate.counts().held_back, 10);
        *counts.retry_after_ms.lock() = None;
        own().unwrap();
        // Half of what the broker allows, full again after its window.
        assert_eq!(*counts.asked.lock().last().unwrap(), (b"key".to_vec(), 334, 3));
    }
}
