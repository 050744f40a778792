//! The guard around users' syncs with one broker: a few calls with one API key, within one budget
//! of time.
//!
//! Apart from the gates of quotes, so that users and the feed cannot stop each other. These hold a
//! sync back: the open circuit, a cooldown that the broker asked for, earlier syncs that it
//! refused, the key's own limit, and the share of what all syncs of this server may take together.
//! Whoever is refused is told the whole time for which that holds. Runs on upstream lanes; blocks
//! only as long as the calls it lets through.

use std::cell::Cell;
use std::hash::Hash;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};

use crate::base::limiter::Rate;
use crate::base::{BoundedMap, Clock, wipe};
use crate::brokers::call::gate::{Breaker, Pass};
use crate::brokers::call::stats::ClassReading;
use crate::brokers::call::transport::CallLimits;
use crate::brokers::portfolio::Credentials;
use crate::brokers::settings::UpstreamSettings;
use crate::brokers::sync::key_limiter::{Caller, Fingerprint, Rates, Shares, Taken};
use crate::brokers::{BrokerError, BrokerErrorKind, Readiness};
use crate::limits::throttle::SharedCounts;

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

// ---- Cooldown
//
// Cooldown after a broker's "too many requests": how long no sync calls it.
//
// The API key whose call was refused cools down for everybody who uses it, the user longer, twice
// as long after each refusal in a row. All syncs cool down for some seconds once several keys were
// refused within a minute whose owners had synced with them before: the broker then limits this
// server's address. Whoever never synced has no say in that, since keys can be spent on purpose.
//
// Asked on upstream lanes; the lock is held for a look-up and never over I/O.

/// Longest cooldown of a key for others than the user whose call was refused. A broker that asks
/// for more has more likely a spent key in mind.
pub(crate) const SHARED_MAX: Duration = Duration::from_secs(60);

/// Longest cooldown of all syncs. A broker that limits the address says so again at the next call.
const EVERYBODY_MAX: Duration = Duration::from_secs(5);

/// Longest cooldown of the user whose call was refused; it doubles with each refusal in a row.
const USER_MAX: Duration = Duration::from_secs(3_600);

/// A user without a refusal for this long after a cooldown starts from the first step again.
const FORGIVEN_MS: u64 = 3_600_000;

/// Keys of known owners that are refused within [`TOGETHER_MS`] of each other after which all syncs
/// cool down. One person may well have a second app. What three keys have in common is this server.
const KEYS_TOGETHER: usize = 3;
const TOGETHER_MS: u64 = 60_000;

/// Users and keys remembered, some 100 bytes each. Of more, the one whose cooldown ends first is
/// forgotten.
const REMEMBERED_MAX: usize = 4_096;

/// The cooldowns of one broker's syncs.
pub(crate) struct Cooldown {
    clock: Clock,
    state: Mutex<State>,
}

struct State {
    everybody_until_ms: u64,
    users: BoundedMap<i64, Refusals>,
    keys: BoundedMap<Fingerprint, Refusals>,
}

#[derive(Clone, Copy, Default)]
struct Refusals {
    until_ms: u64,
    /// How many in a row; of a user only.
    in_row: u32,
    /// When the last one of its owner was; of a key only, and not where the broker named the key's
    /// own limit.
    refused_ms: Option<u64>,
}

impl Cooldown {
    pub(crate) fn new(clock: Clock) -> Self {
        Self::remembering(clock, REMEMBERED_MAX)
    }

    fn remembering(clock: Clock, remembered_max: usize) -> Self {
        let (users, keys) = (BoundedMap::new(remembered_max), BoundedMap::new(remembered_max));
        Self { clock, state: Mutex::new(State { everybody_until_ms: 0, users, keys }) }
    }

    /// How long `user`, or the server itself, has to wait with `key`; `None` for not at all.
    pub(crate) fn wait(&self, user: Option<i64>, key: Fingerprint) -> Option<Duration> {
        let now_ms = self.clock.monotonic_ms();
        let state = self.state.lock();
        let own = user.and_then(|user| state.users.get(&user)).map_or(0, |own| own.until_ms);
        let of_key = state.keys.get(&key).map_or(0, |key| key.until_ms);
        let until_ms = state.everybody_until_ms.max(own).max(of_key);
        let wait_ms = until_ms.saturating_sub(now_ms);
        (wait_ms > 0).then(|| Duration::from_millis(wait_ms))
    }

    /// The broker refused a call of `user`, or of the server itself, with `key`, for too many
    /// requests, and wants no call for `length`. `is_owner` says whether that user has synced with
    /// the key before.
    pub(crate) fn refused(
        &self,
        user: Option<i64>,
        key: Fingerprint,
        length: Duration,
        is_owner: bool,
    ) {
        let now_ms = self.clock.monotonic_ms();
        let mut state = self.state.lock();
        let of_key = refusals(&mut state.keys, key);
        of_key.until_ms = of_key.until_ms.max(after(now_ms, length.min(SHARED_MAX)));
        if is_owner {
            of_key.refused_ms = Some(now_ms);
        }
        let lately = |refused_ms| now_ms.saturating_sub(refused_ms) < TOGETHER_MS;
        let refused = state.keys.values().filter(|key| key.refused_ms.is_some_and(lately)).count();
        if is_owner && refused >= KEYS_TOGETHER {
            if state.everybody_until_ms <= now_ms {
                tracing::warn!(
                    keys = refused,
                    "the broker refuses several API keys; no sync calls it for a while"
                );
            }
            let until_ms = after(now_ms, length.min(EVERYBODY_MAX));
            state.everybody_until_ms = state.everybody_until_ms.max(until_ms);
        }
        let Some(user) = user else { return };
        let own = refusals(&mut state.users, user);
        if now_ms.saturating_sub(own.until_ms) > FORGIVEN_MS {
            own.in_row = 0;
        }
        let longer = length.saturating_mul(1 << own.in_row.min(16)).min(USER_MAX);
        own.in_row = own.in_row.saturating_add(1);
        own.until_ms = own.until_ms.max(after(now_ms, longer));
    }

    /// The broker says that `key` itself has no calls left for `length`.
    pub(crate) fn spent(&self, key: Fingerprint, length: Duration) {
        let now_ms = self.clock.monotonic_ms();
        let mut state = self.state.lock();
        let of_key = refusals(&mut state.keys, key);
        of_key.until_ms = of_key.until_ms.max(after(now_ms, length.min(SHARED_MAX)));
    }

    /// The broker served `user` with `key`: the next refusal is the first again.
    pub(crate) fn served(&self, user: i64, key: Fingerprint) {
        let mut state = self.state.lock();
        state.users.remove(&user);
        state.keys.remove(&key);
    }
}

fn after(now_ms: u64, length: Duration) -> u64 {
    now_ms.saturating_add(length.as_millis() as u64)
}

/// The refusals of `whose`. Of too many, those whose cooldown ends first are forgotten.
fn refusals<K: Eq + Hash>(of: &mut BoundedMap<K, Refusals>, whose: K) -> &mut Refusals {
    of.or_insert_with(whose, |refusals| Some(refusals.until_ms), Refusals::default)
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;
    use crate::limits::throttle::SharedTally;
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

#[cfg(test)]
mod cooldown_tests {
    use super::*;
    use crate::base::ManualClock;
    use crate::brokers::sync::key_limiter::{CallBudgets, Rates};

    fn seconds(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    fn cooldown(remembered_max: usize) -> (ManualClock, Cooldown, impl Fn(u32) -> Fingerprint) {
        let clock = Clock::manual("2026-11-20T05:00:00Z".parse().unwrap());
        let rates = Rates { calls_max: 1, window_ms: 1, day_calls_max: 1 };
        let keys = CallBudgets::new(clock.clone(), rates, 1);
        let cooldown = Cooldown::remembering(clock.clone(), remembered_max);
        (clock, cooldown, move |number| keys.fingerprint(number))
    }

    #[test]
    fn a_key_rests_for_a_minute_at_most_and_its_user_longer_each_time() {
        let (clock, cooldown, key) = cooldown(REMEMBERED_MAX);
        cooldown.refused(Some(1), key(1), Duration::from_secs(600), true);
        assert_eq!(
            (cooldown.wait(Some(2), key(1)), cooldown.wait(None, key(1))),
            (seconds(60), seconds(60))
        );
        assert_eq!(cooldown.wait(Some(1), key(1)), seconds(600));
        assert_eq!(cooldown.wait(Some(1), key(2)), seconds(600), "with whatever key");
        assert_eq!((cooldown.wait(Some(2), key(2)), cooldown.wait(None, key(2))), (None, None));
        clock.advance_ms(600_000);
        assert_eq!((cooldown.wait(Some(1), key(1)), cooldown.wait(Some(2), key(1))), (None, None));
        for own_s in [60, 120, 240, 480] {
            assert_eq!(cooldown.wait(Some(3), key(3)), None);
            cooldown.refused(Some(3), key(3), Duration::from_secs(60), true);
            let waits = (cooldown.wait(Some(3), key(3)), cooldown.wait(Some(2), key(3)));
            assert_eq!(waits, (seconds(own_s), seconds(60)));
            clock.advance_ms(own_s as i64 * 1_000);
        }
        for _ in 0..40 {
            cooldown.refused(Some(3), key(3), Duration::from_secs(60), true);
        }
        assert_eq!(cooldown.wait(Some(3), key(3)), Some(USER_MAX));
        clock.advance_ms(2 * 3_600_000 + 1);
        cooldown.refused(Some(3), key(3), Duration::from_secs(60), true);
        assert_eq!(cooldown.wait(Some(3), key(3)), seconds(60), "forgiven");
    }

    #[test]
    fn a_success_makes_the_next_refusal_the_first_again() {
        let (clock, cooldown, key) = cooldown(REMEMBERED_MAX);
        for own_s in [1, 2, 4] {
            cooldown.refused(Some(1), key(1), Duration::from_secs(1), true);
            assert_eq!(cooldown.wait(Some(1), key(1)), seconds(own_s));
            clock.advance_ms(own_s as i64 * 1_000);
        }
        cooldown.served(1, key(1));
        cooldown.refused(Some(1), key(1), Duration::from_secs(1), true);
        assert_eq!(cooldown.wait(Some(1), key(1)), seconds(1));
    }

    #[test]
    fn everybody_rests_for_seconds_once_several_owners_were_refused_within_a_minute() {
        let (clock, cooldown, key) = cooldown(REMEMBERED_MAX);
        let (length, other) = (Duration::from_secs(30), key(99));
        for _ in 0..10 {
            cooldown.refused(Some(1), key(1), length, true);
            cooldown.refused(Some(1), key(2), length, true);
        }
        assert_eq!(cooldown.wait(Some(9), other), None, "two keys, however often");
        clock.advance_ms(TOGETHER_MS as i64);
        cooldown.refused(Some(3), key(3), length, true);
        cooldown.spent(key(4), length);
        assert_eq!(cooldown.wait(Some(9), key(4)), seconds(30));
        assert_eq!(
            cooldown.wait(Some(9), other),
            None,
            "the first two were long ago; one is spent"
        );
        cooldown.refused(Some(5), key(5), length, true);
        assert_eq!(cooldown.wait(Some(9), other), None);
        for number in 10..20 {
            cooldown.refused(Some(number.into()), key(number), length, false);
        }
        assert_eq!(cooldown.wait(Some(9), other), None, "strangers, however many");
        cooldown.refused(Some(6), key(6), Duration::from_secs(600), true);
        assert_eq!(
            (cooldown.wait(Some(9), other), cooldown.wait(None, other)),
            (Some(EVERYBODY_MAX), Some(EVERYBODY_MAX))
        );
        assert_eq!(cooldown.wait(Some(9), key(6)), seconds(60));
    }

    #[test]
    fn memory_is_bounded_and_the_longest_rests_stay() {
        let (_, cooldown, key) = cooldown(2);
        for number in 1..=3 {
            let length = Duration::from_secs(10 * u64::from(number));
            cooldown.refused(Some(number.into()), key(number), length, true);
        }
        let sizes = || {
            let state = cooldown.state.lock();
            (state.users.len(), state.keys.len())
        };
        assert_eq!(sizes(), (2, 2));
        assert_eq!((cooldown.wait(Some(1), key(9)), cooldown.wait(Some(9), key(1))), (None, None));
        assert_eq!(
            (cooldown.wait(Some(3), key(9)), cooldown.wait(Some(9), key(3))),
            (seconds(30), seconds(30))
        );
    }
}
