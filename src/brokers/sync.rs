//! Users' syncs with one broker: decides which of their calls may go out, within a time budget.
//!
//! Separate from the gates of quotes, so that users and the feed cannot stop each other. A sync is
//! held back by the open circuit, by a cooldown that the broker asked for, by earlier refused
//! syncs, by the API key's own limit, by the limit of all syncs together, and by its user's and its
//! network's share of that. The error has the whole time to wait. Runs on upstream lanes; blocks
//! only for the duration of the calls that it lets through.

use std::cell::Cell;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

use crate::base::limiter::{Rate, SharedCounts};
use crate::base::{Clock, wipe};
use crate::brokers::call::breaker::{Breaker, Pass};
use crate::brokers::call::gate::ClassReading;
use crate::brokers::call::transport::CallLimits;
use crate::brokers::error::Health;
use crate::brokers::portfolio::Credentials;
use crate::brokers::settings::UpstreamSettings;
use crate::brokers::sync_limits::{COOLDOWN_MAX, Caller, SyncLimits, SyncRates, Taken};
use crate::brokers::{BrokerError, BrokerErrorKind, Readiness};
use crate::ops::counter::Counter;

/// All users' calls to one broker: circuit, limits, counters.
pub(crate) struct SyncGate {
    upstream: &'static str,
    clock: Clock,
    breaker: Breaker,
    rates: SyncRates,
    limits: SyncLimits,
    /// Counters of a key's calls at all nodes.
    all_nodes: OnceLock<(&'static str, Arc<dyn SharedCounts>)>,
    call_limits: CallLimits,
    budget_ms: u64,
    pub(crate) counts: SyncCounts,
}

/// Counts of users' calls to one broker, since the start of the process.
#[derive(Debug, Default)]
pub struct SyncCounts {
    /// Requests that were made.
    pub calls: Counter,
    /// Requests among these that failed.
    pub failed: Counter,
    /// Requests that a limit, a cooldown or the open circuit stopped.
    pub held_back: Counter,
}

/// One sync under way.
pub(crate) struct SyncGuard<'a> {
    gate: &'a SyncGate,
    caller: Caller,
    until_ms: u64,
    /// Calls taken from the limits but not made yet.
    taken: Cell<Taken>,
}

impl SyncGate {
    /// `upstream`, and the circuit's `name`, are for the log.
    pub(crate) fn new(
        upstream: &'static str,
        name: &'static str,
        clock: &Clock,
        settings: &UpstreamSettings,
        rates: SyncRates,
    ) -> Self {
        Self {
            upstream,
            clock: clock.clone(),
            breaker: Breaker::new(name, clock.clone(), settings),
            rates,
            limits: SyncLimits::new(clock, rates),
            all_nodes: OnceLock::new(),
            call_limits: CallLimits::usual(settings),
            budget_ms: settings.sync_timeout_ms,
            counts: SyncCounts::default(),
        }
    }

    /// From now on a key's calls count together with those of the other nodes, as `kind`.
    pub(crate) fn join(&self, kind: &'static str, counts: &Arc<dyn SharedCounts>) {
        // A node joins the others once, at its start.
        let _ = self.all_nodes.set((kind, Arc::clone(counts)));
    }

    /// Counts calls that this node's own limits let through in the key's bucket of all nodes. The
    /// bucket holds half of the broker's limit and refills within one window, so no window exceeds
    /// the limit.
    fn count_at_all_nodes(&self, api_key: &SecretString, calls: usize) -> Result<(), Duration> {
        let Some((kind, counts)) = self.all_nodes.get() else {
            return Ok(());
        };
        let burst = (self.rates.key_calls_max as u64 / 2).max(1);
        let rate = Rate::new(self.rates.key_window_ms.div_ceil(burst), burst);
        let counted = counts.admit(kind, &[api_key.expose_secret().as_bytes()], rate, calls as u64);
        counted.map_err(|throttled| Duration::from_millis(throttled.retry_after_ms))
    }

    /// Makes one user's sync of at least `calls` calls. So many are taken from the limits before it
    /// begins, because a sync that stops half-way has used up its one-time code.
    ///
    /// # Errors
    /// The error of `work`, or [`BrokerErrorKind::NotReady`] for a limit, a cooldown or the open
    /// circuit. Each has the time for which the same sync would be held back now.
    pub(crate) fn sync<T>(
        &self,
        credentials: &Credentials,
        calls: usize,
        work: impl FnOnce(&SyncGuard<'_>) -> Result<T, BrokerError>,
    ) -> Result<T, BrokerError> {
        let caller = self.caller(credentials);
        let result = self.run(caller, &credentials.api_key, calls, work);
        if result
            .as_ref()
            .is_err_and(|error| error.kind.judged().blames_request)
        {
            self.limits.refused(caller);
        }
        result.map_err(|error| self.with_wait(error, caller, calls))
    }

    /// Makes calls of the server itself. Syncs never hold them back.
    ///
    /// # Errors
    /// As for [`sync`](Self::sync).
    pub(crate) fn own<T>(
        &self,
        api_key: &SecretString,
        calls: usize,
        work: impl FnOnce(&SyncGuard<'_>) -> Result<T, BrokerError>,
    ) -> Result<T, BrokerError> {
        let caller = self.limits.caller(None, None, api_key);
        self.run(caller, api_key, calls, work)
            .map_err(|error| self.with_wait(error, caller, calls))
    }

    /// The caller of a sync with these credentials.
    pub(crate) fn caller(&self, credentials: &Credentials) -> Caller {
        let Credentials {
            user,
            client,
            api_key,
            ..
        } = credentials;
        self.limits.caller(Some(*user), *client, api_key)
    }

    /// Makes `work`'s calls for `caller` if nothing holds them back.
    ///
    /// # Errors
    /// As for [`sync`](Self::sync), but with the broker's own wait.
    pub(crate) fn run<T>(
        &self,
        caller: Caller,
        api_key: &SecretString,
        calls: usize,
        work: impl FnOnce(&SyncGuard<'_>) -> Result<T, BrokerError>,
    ) -> Result<T, BrokerError> {
        if let Some(wait) = self.breaker.wait() {
            return Err(self.hold(Readiness::Open(wait)));
        }
        if let Some(wait) = self.limits.wait(caller, calls) {
            return Err(self.hold(Readiness::Paced(wait)));
        }
        let taken = self
            .limits
            .take(caller, calls)
            .map_err(|wait| self.hold(Readiness::Paced(wait)))?;
        if let Err(wait) = self.count_at_all_nodes(api_key, calls) {
            self.limits.give_back(caller, taken);
            return Err(self.hold(Readiness::Paced(wait)));
        }
        work(&SyncGuard {
            gate: self,
            caller,
            until_ms: self.clock.monotonic_ms().saturating_add(self.budget_ms),
            taken: Cell::new(taken),
        })
    }

    /// Takes one call that is not part of a sync, if nothing holds it back.
    pub(crate) fn take_one(&self, caller: Caller) -> bool {
        // The call is not given back, because it is made at once.
        self.breaker.wait().is_none() && self.limits.take(caller, 1).is_ok()
    }

    /// The instant until which calls that begin now may go on.
    pub(crate) fn until_ms(&self) -> u64 {
        self.clock.monotonic_ms().saturating_add(self.budget_ms)
    }

    /// Makes one call that belongs to no sync, within half of the limits of its caller, so that it
    /// never holds a sync back. Its failure does not count against the circuit, because syncs do
    /// not depend on it; a wait that the broker asks for holds.
    ///
    /// # Errors
    /// The error of `ask`, or the reason why it was not called.
    pub(crate) fn beside<T>(
        &self,
        (caller, api_key): (Caller, &SecretString),
        until_ms: u64,
        ask: impl FnOnce(CallLimits) -> Result<T, BrokerError>,
    ) -> Result<T, BrokerError> {
        let left_ms = until_ms.saturating_sub(self.clock.monotonic_ms());
        if left_ms == 0 {
            let limit = format!("{} ms, the time of a whole sync", self.budget_ms);
            return Err(BrokerError::new(self.upstream, BrokerErrorKind::TimedOut, limit));
        }
        if let Some(wait) = self.limits.cooldown(caller) {
            return Err(self.hold(Readiness::Paced(wait)));
        }
        if let Some(wait) = self.breaker.wait() {
            return Err(self.hold(Readiness::Open(wait)));
        }
        if let Some(wait) = self.limits.wait(caller, self.rates.key_calls_max / 2) {
            return Err(self.hold(Readiness::Paced(wait)));
        }
        let taken = self
            .limits
            .take(caller, 1)
            .map_err(|wait| self.hold(Readiness::Paced(wait)))?;
        if let Err(wait) = self.count_at_all_nodes(api_key, 1) {
            self.limits.give_back(caller, taken);
            return Err(self.hold(Readiness::Paced(wait)));
        }
        self.counts.calls.increment();
        let total_timeout_ms = self.call_limits.total_timeout_ms.min(left_ms);
        let result = ask(CallLimits {
            total_timeout_ms,
            ..self.call_limits
        });
        // Signing and sending leave pieces of the session on the stack.
        wipe::scrub();
        if let Err(error) = &result {
            self.counts.failed.increment();
            self.keep_wait(error, caller);
        }
        result
    }

    /// Holds the caller back for as long as the broker asks.
    fn keep_wait(&self, error: &BrokerError, caller: Caller) {
        let wait = error.retry_after().unwrap_or_default();
        match error.kind {
            BrokerErrorKind::RateLimited => self.limits.hold(caller, wait.min(COOLDOWN_MAX)),
            BrokerErrorKind::KeySpent => self.limits.hold(caller, wait),
            _ => {}
        }
    }

    /// `error` with the whole time to wait, because a limit of ours may last longer than the
    /// broker's wait.
    fn with_wait(&self, error: BrokerError, caller: Caller, calls: usize) -> BrokerError {
        let open = self.breaker.wait();
        let held = self.limits.wait(caller, calls).max(open);
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

    pub(crate) fn reading(&self) -> ClassReading {
        let SyncCounts {
            calls,
            failed,
            held_back,
        } = &self.counts;
        let failed = failed.value();
        ClassReading {
            class: "syncs",
            circuit: self.breaker.state(),
            held_back: held_back.value(),
            outcomes: vec![
                ("ok", calls.value().saturating_sub(failed)),
                ("failed", failed),
            ],
        }
    }

    /// Counts a call that was not made, and returns its error.
    fn hold(&self, readiness: Readiness) -> BrokerError {
        self.counts.held_back.increment();
        BrokerError::not_ready(self.upstream, readiness)
    }
}

impl SyncGuard<'_> {
    /// The caller of the sync.
    pub(crate) fn caller(&self) -> Caller {
        self.caller
    }

    /// Makes one call within the remaining time.
    ///
    /// # Errors
    /// The error of `ask`, or the reason why it was not called.
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
        // A call of another sync with the same key may have been refused meanwhile.
        if let Some(wait) = gate.limits.cooldown(self.caller) {
            return Err(gate.hold(Readiness::Paced(wait)));
        }
        let pass = gate
            .breaker
            .pass()
            .map_err(|wait| gate.hold(Readiness::Open(wait)))?;
        let mut taken = self.taken.get();
        if taken.calls == 0 {
            taken = gate
                .limits
                .take(self.caller, 1)
                .map_err(|wait| gate.hold(Readiness::Paced(wait)))?;
        }
        taken.calls -= 1;
        self.taken.set(taken);
        gate.counts.calls.increment();
        let total_timeout_ms = gate.call_limits.total_timeout_ms.min(left_ms);
        let result = ask(CallLimits {
            total_timeout_ms,
            ..gate.call_limits
        });
        // Reading a session's answer leaves pieces of its token on the stack.
        wipe::scrub();
        match &result {
            Ok(_) => pass.success(),
            Err(error) => self.judge(error, pass),
        }
        if result.is_err() {
            gate.counts.failed.increment();
        }
        result
    }

    /// Updates circuit and limits after a failed call.
    fn judge(&self, error: &BrokerError, pass: Pass<'_>) {
        let Self { gate, caller, .. } = self;
        gate.keep_wait(error, *caller);
        match error.kind.judged().health {
            Health::Fails => pass.failure(),
            Health::Strange => drop(pass),
            Health::Works | Health::Throttles => pass.success(),
        }
    }
}

impl Drop for SyncGuard<'_> {
    fn drop(&mut self) {
        self.gate.limits.give_back(self.caller, self.taken.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ManualClock;
    use crate::base::limiter::{SharedTally, TooEarly};
    use crate::brokers::sync_limits::{KEY, PARTS_MAX};
    use parking_lot::Mutex;
    use std::net::IpAddr;

    /// Refuses while the test says so, and records its arguments.
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
        ) -> Result<(), TooEarly> {
            self.asked
                .lock()
                .push((values.concat(), rate.interval_ms(), cost));
            self.retry_after_ms
                .lock()
                .map_or(Ok(()), |retry_after_ms| Err(TooEarly { retry_after_ms }))
        }

        fn forgive(&self, _: &'static str, _: &[u8]) {}

        fn tally(&self) -> SharedTally {
            SharedTally::default()
        }
    }

    #[test]
    fn what_all_nodes_refuse_is_held_back_and_costs_this_node_nothing() {
        let clock = Clock::manual("2026-11-20T05:30:00Z".parse().unwrap());
        let rates = SyncRates {
            key_calls_max: 6,
            ..RATES
        };
        let settings = UpstreamSettings::default();
        let gate = SyncGate::new("test", "test syncs", &clock, &settings, rates);
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
        assert_eq!(gate.counts.held_back.value(), 10);
        *counts.retry_after_ms.lock() = None;
        own().unwrap();
        // Half of the broker's limit, full again after its window.
        assert_eq!(*counts.asked.lock().last().unwrap(), (b"key".to_vec(), 334, 3));
    }

    const RATES: SyncRates = SyncRates {
        key_calls_max: 10,
        key_window_ms: 1_000,
        key_day_calls_max: 25,
        calls_max: 60,
        window_ms: 60_000,
    };

    fn with_days(key_day_calls_max: usize) -> (ManualClock, SyncLimits) {
        // 23:59:00 IST.
        let clock = Clock::manual("2026-11-20T18:29:00Z".parse().unwrap());
        let limits = SyncLimits::new(
            &clock,
            SyncRates {
                key_day_calls_max,
                ..RATES
            },
        );
        (clock, limits)
    }

    fn without_days() -> (ManualClock, SyncLimits) {
        with_days(usize::MAX)
    }

    fn by(limits: &SyncLimits, user: i64, client: u8, key: i64) -> Caller {
        let client = IpAddr::from([192, 0, 2, client]);
        limits.caller(Some(user), Some(client), &format!("key {key}").into())
    }

    fn own(limits: &SyncLimits, key: i64) -> Caller {
        limits.caller(None, None, &format!("key {key}").into())
    }

    fn wait(limits: &SyncLimits, caller: Caller, calls: usize) -> Option<Duration> {
        let wait = limits.take(caller, calls).err();
        assert!(wait <= limits.wait(caller, calls), "what is told is no less");
        wait
    }

    fn ms(ms: u64) -> Option<Duration> {
        Some(Duration::from_millis(ms))
    }

    fn seconds(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    #[test]
    fn no_window_sees_more_than_the_limit_and_each_key_has_its_own() {
        let (clock, limits) = with_days(25);
        let one = own(&limits, 1);
        let two = own(&limits, 2);
        assert_eq!(wait(&limits, one, 4), None);
        clock.advance_ms(400);
        assert_eq!(wait(&limits, one, 4), None);
        assert_eq!(wait(&limits, one, 3), ms(600));
        assert_eq!(wait(&limits, one, 2), None);
        assert_eq!(wait(&limits, one, 5), ms(1_000));
        assert_eq!(wait(&limits, two, 10), None);
        clock.advance_ms(600);
        assert_eq!(wait(&limits, one, 4), None);
        assert!(wait(&limits, one, 1).is_some());
    }

    #[test]
    fn a_day_ends_at_midnight_in_india() {
        let (clock, limits) = with_days(25);
        let key = own(&limits, 1);
        for _ in 0..5 {
            assert_eq!(wait(&limits, key, 5), None);
            clock.advance_ms(1_000);
        }
        assert_eq!(wait(&limits, key, 1), seconds(55));
        clock.advance_ms(55_000);
        assert_eq!(wait(&limits, key, 1), None);
    }

    #[test]
    fn calls_that_were_not_made_are_given_back_in_their_place() {
        let (clock, limits) = with_days(25);
        let key = by(&limits, 1, 1, 1);
        let early = limits.take(key, 5).unwrap();
        clock.advance_ms(500);
        limits.take(key, 5).unwrap();
        limits.give_back(key, Taken { calls: 4, ..early });
        clock.advance_ms(500);
        assert_eq!(wait(&limits, key, 6), ms(500));
        assert_eq!(wait(&limits, key, 5), None);
        clock.advance_ms(1_000);
        assert_eq!(wait(&limits, by(&limits, 1, 1, 2), 9), None, "11 of the user's 30 are used");
        assert_eq!(wait(&limits, by(&limits, 1, 1, 3), 10), None);
        assert!(wait(&limits, by(&limits, 1, 1, 4), 1).is_some());
    }

    #[test]
    fn one_user_and_one_network_have_half_each() {
        let (_, limits) = without_days();
        let syncs = |user: fn(i64) -> i64, client: fn(i64) -> u8| {
            let can = |n: &i64| wait(&limits, by(&limits, user(*n), client(*n), *n), 4).is_none();
            (10..100).filter(can).count()
        };
        assert_eq!(syncs(|_| 1, |n| n as u8), 7, "30 of 60, from wherever and with whatever key");
        assert_eq!(syncs(|n| n, |_| 200), 7, "30 of 60, whatever users");
        assert_eq!(syncs(|n| n, |n| n as u8), 1, "what is left");
    }

    #[test]
    fn one_strangers_guesses_leave_the_owner_of_a_key_its_calls() {
        let (clock, limits) = with_days(25);
        let owner = by(&limits, 1, 1, 1);
        let stranger = by(&limits, 2, 2, 1);
        for _ in 0..10 {
            assert_eq!(limits.wait(stranger, 4), None);
            let taken = limits.take(stranger, 4).unwrap();
            limits.give_back(stranger, Taken { calls: 3, ..taken });
            limits.refused(stranger);
            clock.advance_ms(200);
        }
        assert_eq!(limits.wait(stranger, 4), seconds(58));
        assert_eq!(wait(&limits, owner, 4), None);
    }

    #[test]
    fn refusals_weigh_on_user_and_network() {
        let (clock, limits) = without_days();
        let caller = |user, client, key| by(&limits, user, client, key);
        for key in 1..11 {
            assert_eq!(limits.wait(caller(1, 1, key), 4), None);
            limits.refused(caller(1, 1, key));
        }
        let minute = seconds(60);
        assert_eq!(limits.wait(caller(1, 2, 99), 4), minute, "whatever key, from elsewhere too");
        assert_eq!(limits.wait(caller(2, 1, 1), 4), None, "another user");
        for user in 2..12 {
            limits.refused(caller(user, 1, user));
        }
        assert_eq!(limits.wait(caller(99, 1, 99), 4), minute, "one network, whatever user");
        assert_eq!(limits.wait(caller(99, 2, 99), 4), None);
        clock.advance_ms(60_000);
        assert_eq!(limits.wait(caller(1, 1, 1), 4), None);
        // None of it holds back the server itself or counts against it.
        assert_eq!(
            (wait(&limits, own(&limits, 1), 10), limits.wait(own(&limits, 1), 1)),
            (None, seconds(1))
        );
    }

    #[test]
    fn a_key_is_held_back_to_the_end_for_all_its_users_and_no_other_key() {
        let (clock, limits) = without_days();
        let held = |user, key| limits.cooldown(by(&limits, user, 1, key));
        limits.hold(by(&limits, 1, 1, 1), Duration::from_secs(3_000));
        limits.hold(by(&limits, 2, 1, 1), Duration::from_secs(1));
        assert_eq!((held(1, 1), held(2, 1)), (seconds(3_000), seconds(3_000)));
        assert_eq!(limits.cooldown(own(&limits, 1)), seconds(3_000));
        assert_eq!((held(1, 2), limits.cooldown(own(&limits, 2))), (None, None));
        clock.advance_ms(3_000_000);
        assert_eq!(held(1, 1), None);
    }

    #[test]
    fn any_number_of_refused_keys_stops_no_other() {
        let (_, limits) = without_days();
        for number in 1..20 {
            limits.hold(by(&limits, number, number as u8, number), Duration::from_secs(30));
        }
        assert_eq!(limits.wait(by(&limits, 99, 99, 99), 4), None);
    }

    #[test]
    fn invented_keys_push_out_no_cooldown() {
        let (clock, limits) = without_days();
        let rests = by(&limits, 2, 2, 2);
        limits.hold(rests, Duration::from_secs(3_600));
        for number in 0..PARTS_MAX as i64 {
            clock.advance_ms(1);
            let caller = by(&limits, 1_000 + number, 9, 1_000 + number);
            limits.refused(caller);
        }
        assert!(limits.state.lock().parts.len() <= PARTS_MAX);
        assert!(limits.state.lock().parts.evicted() > 0);
        assert!(limits.cooldown(rests).is_some());
    }

    #[test]
    fn fingerprints_differ_between_processes_keys_and_parts() {
        let ((_, first), (_, second)) = (without_days(), without_days());
        let [one, same, other] = [1, 1, 2].map(|key| own(&first, key).parts[KEY]);
        assert!(one == same && one != other && one != own(&second, 1).parts[KEY]);
    }
}
