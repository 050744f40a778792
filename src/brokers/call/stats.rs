//! What became of an upstream's calls, as plain numbers for health and metrics.
//!
//! Written by lane threads, read by anyone; relaxed atomics, never blocks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::base::words;
use crate::brokers::feed::Batch;
use crate::brokers::{BrokerError, BrokerErrorKind as Kind};

/// Counters of one endpoint class.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    calls: AtomicU64,
    ok: AtomicU64,
    held_back: AtomicU64,
    unreachable: AtomicU64,
    timed_out: AtomicU64,
    rate_limited: AtomicU64,
    token_dead: AtomicU64,
    no_permission: AtomicU64,
    refused: AtomicU64,
    upstream: AtomicU64,
    malformed: AtomicU64,
    quotes: AtomicU64,
    unknown: AtomicU64,
    implausible: AtomicU64,
}

/// A reading of [`Counters`], since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallCounts {
    /// Requests that went out.
    pub calls: u64,
    /// Of these, answered as they should be.
    pub ok: u64,
    /// Requests that pace, penalty, circuit or token kept from going out.
    pub held_back: u64,
    pub unreachable: u64,
    pub timed_out: u64,
    pub rate_limited: u64,
    pub token_dead: u64,
    pub no_permission: u64,
    pub refused: u64,
    /// 5xx answers and errors of the upstream's own back end.
    pub upstream: u64,
    pub malformed: u64,
    /// Plausible quotes received.
    pub quotes: u64,
    /// Symbols the upstream did not know.
    pub unknown: u64,
    /// Prices that were not believed.
    pub implausible: u64,
}

words! {
    /// What a circuit breaker does with calls.
    pub(crate) enum CircuitState {
        Closed = "closed",
        Open = "open",
        /// One call is let out as a probe.
        HalfOpen = "half_open",
    }
}

/// One class of calls to an upstream, as metrics show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClassReading {
    /// `quotes`, `candles`, `syncs`, `other`.
    pub class: &'static str,
    pub circuit: CircuitState,
    /// Requests that pace, penalty, circuit, token or key's limit kept from going out.
    pub held_back: u64,
    /// Requests that went out, by what came of them.
    pub outcomes: Vec<(&'static str, u64)>,
}

impl ClassReading {
    pub(crate) fn of_calls(
        class: &'static str,
        circuit: CircuitState,
        counts: &CallCounts,
    ) -> Self {
        let outcomes = vec![
            ("ok", counts.ok),
            ("unreachable", counts.unreachable),
            ("timed_out", counts.timed_out),
            ("rate_limited", counts.rate_limited),
            ("token_dead", counts.token_dead),
            ("no_permission", counts.no_permission),
            ("refused", counts.refused),
            ("upstream_error", counts.upstream),
            ("malformed", counts.malformed),
        ];
        Self { class, circuit, held_back: counts.held_back, outcomes }
    }
}

impl Counters {
    /// Counts a request that was not let out.
    pub(crate) fn held_back(&self) {
        self.held_back.fetch_add(1, Relaxed);
    }

    /// Counts one request that went out, by its result.
    pub(crate) fn called<T>(&self, result: &Result<T, BrokerError>) {
        self.calls.fetch_add(1, Relaxed);
        let counter = match result.as_ref().map_err(|error| error.kind) {
            Ok(_) => &self.ok,
            Err(Kind::NotReady(_)) => &self.held_back,
            Err(Kind::Unreachable) => &self.unreachable,
            Err(Kind::TimedOut) => &self.timed_out,
            Err(Kind::RateLimited | Kind::KeySpent) => &self.rate_limited,
            Err(Kind::TokenDead) => &self.token_dead,
            Err(Kind::NotPermitted) => &self.no_permission,
            Err(
                Kind::Refused
                | Kind::CodeRefused
                | Kind::KeyRefused
                | Kind::AddressRefused
                | Kind::AccountProblem
                | Kind::SecondFactorProblem,
            ) => &self.refused,
            Err(Kind::Failed { .. }) => &self.upstream,
            Err(Kind::Malformed | Kind::Redirected) => &self.malformed,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Counts what a batch brought.
    pub(crate) fn brought(&self, batch: &Batch) {
        self.quotes.fetch_add(batch.quotes.len() as u64, Relaxed);
        self.unknown.fetch_add(batch.unknown.len() as u64, Relaxed);
        self.implausible.fetch_add(batch.implausible.len() as u64, Relaxed);
    }

    /// The numbers now.
    pub(crate) fn read(&self) -> CallCounts {
        CallCounts {
            calls: self.calls.load(Relaxed),
            ok: self.ok.load(Relaxed),
            held_back: self.held_back.load(Relaxed),
            unreachable: self.unreachable.load(Relaxed),
            timed_out: self.timed_out.load(Relaxed),
            rate_limited: self.rate_limited.load(Relaxed),
            token_dead: self.token_dead.load(Relaxed),
            no_permission: self.no_permission.load(Relaxed),
            refused: self.refused.load(Relaxed),
            upstream: self.upstream.load(Relaxed),
            malformed: self.malformed.load(Relaxed),
            quotes: self.quotes.load(Relaxed),
            unknown: self.unknown.load(Relaxed),
            implausible: self.implausible.load(Relaxed),
        }
    }
}
