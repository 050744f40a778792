//! Broker A's client for one user's portfolio, with that user's own credentials.
//!
//! Runs on the lane of user syncs and blocks up to the budget of one sync. It has its own
//! limits and circuit, apart from the shared feed's, and each sync its own connection; it keeps
//! nothing of a user between two syncs, and never logs what it was given.

use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use super::open_session::{Attempt, END_TIMEOUT_MS, OpenSession, SessionCounters, SessionCounts};
use super::portfolio_wire as wire;
use super::session::checksum;
use super::wire::NAME;
use crate::base::{Clock, Synced, wipe};
use crate::brokers::call::stats::ClassReading;
use crate::brokers::call::transport::{CallLimits, Redirects, Reply, Transport};
use crate::brokers::settings::UpstreamSettings;
use crate::brokers::sync::guard::{SyncCounts, SyncGate, SyncGuard};
use crate::brokers::sync::key_limiter::Rates;
use crate::brokers::{BrokerError, Credentials};
use crate::limits::shared::SharedCounts;

/// Per API key, all its users together (`wire` documentation, 9). The day has no limit of its own.
const RATES: Rates = Rates { calls_max: 10, window_ms: 1_000, day_calls_max: usize::MAX };

/// All syncs of this server together. No limit per address is documented; in the long run as many
/// as two busy keys may make, and at once enough for sixty users at the opening bell.
const RATES_TOGETHER: Rates =
    Rates { calls_max: 200, window_ms: 10_000, day_calls_max: usize::MAX };

/// Session, holdings, positions.
const CALLS: usize = 3;

/// The `X-Kite-Version` that all calls carry.
const API_VERSION: (&str, &str) = ("x-kite-version", "3");

/// All users' syncs.
pub(super) struct Portfolios {
    url: String,
    clock: Clock,
    transport: Transport,
    limits: CallLimits,
    gate: SyncGate,
    session_counters: Arc<SessionCounters>,
}

impl Portfolios {
    /// A client for the API at `url`, which has been checked.
    pub(super) fn new(url: &str, upstream: &UpstreamSettings, clock: &Clock) -> Self {
        let user_agent = concat!("bhav/", env!("CARGO_PKG_VERSION"));
        Self {
            transport: Transport::new(upstream, url, user_agent, Redirects::Never),
            limits: CallLimits::usual(upstream),
            url: url.to_owned(),
            clock: clock.clone(),
            gate: SyncGate::new(
                NAME,
                "broker A portfolios",
                clock,
                upstream,
                RATES,
                RATES_TOGETHER,
            ),
            session_counters: Arc::default(),
        }
    }

    pub(super) fn reading(&self) -> ClassReading {
        self.gate.reading()
    }

    /// Counts a key's calls with those of the other nodes from now on.
    pub(super) fn join(&self, counts: &Arc<dyn SharedCounts>) {
        self.gate.join("broker-a", counts);
    }

    pub(super) fn counts(&self) -> SyncCounts {
        self.gate.counts()
    }

    pub(super) fn session_counts(&self) -> SessionCounts {
        self.session_counters.counts()
    }

    /// Exchanges the one-time code and reads holdings and positions with what came of it. Nothing
    /// of a sync that failed half-way is returned but the session, which is still open.
    pub(super) fn sync(&self, credentials: &Credentials) -> Attempt {
        let mut session = None;
        let sync = |guard: &SyncGuard<'_>| self.fetch(credentials, guard, &mut session);
        let checked = credentials.check(NAME);
        let result = checked.and_then(|()| self.gate.sync(credentials, CALLS, sync));
        Attempt { result, session }
    }

    /// Ends a session that a sync opened, if a call may be made just now. Nothing is learned from
    /// its failure, which says nothing of syncs.
    pub(super) fn end(&self, session: OpenSession) {
        let url = format!("{}/session/token", self.url);
        let total_timeout_ms = self.limits.total_timeout_ms.min(END_TIMEOUT_MS);
        let limits = CallLimits { total_timeout_ms, ..self.limits };
        if self.gate.take_one(session.caller) {
            session.end(&url, API_VERSION, limits, wire::is_success);
            // Sending it leaves pieces of the token.
            wipe::scrub();
        }
    }

    fn fetch(
        &self,
        credentials: &Credentials,
        guard: &SyncGuard<'_>,
        opened: &mut Option<OpenSession>,
    ) -> Result<Synced, BrokerError> {
        let connection = self.transport.apart();
        let (token, broker_user, simulated) =
            guard.call(|limits| self.session(&connection, credentials, limits))?;
        let (caller, key) = (guard.caller(), credentials.api_key.clone());
        let session =
            OpenSession::new(connection, caller, key, token, Arc::clone(&self.session_counters));
        let session = opened.insert(session);
        let authorization = session.authorization();
        let read = |path, limits| self.read(&session.connection, path, &authorization, limits);
        let mut synced = Synced { simulated, broker_user, ..Synced::default() };
        synced.holdings = guard.call(|limits| {
            let reply = read("/portfolio/holdings", limits)?;
            wire::holdings(&reply, self.clock.now_ms())
        })?;
        synced.positions = guard.call(|limits| {
            let reply = read("/portfolio/positions", limits)?;
            wire::positions(&reply)
        })?;
        Ok(synced)
    }

    /// The access token, the broker's id of whose it is, and whether a simulator gave it.
    fn session(
        &self,
        connection: &Transport,
        credentials: &Credentials,
        limits: CallLimits,
    ) -> Result<(SecretString, Option<String>, bool), BrokerError> {
        let key = &credentials.api_key;
        let request_token = credentials.one_time_code.expose_secret();
        let checksum = checksum(key, request_token, &credentials.api_secret);
        let fields = [
            ("api_key", key.expose_secret()),
            ("request_token", request_token),
            ("checksum", checksum.as_str()),
        ];
        let url = format!("{}/session/token", self.url);
        let sent = connection.post_form(&url, &[API_VERSION], &fields, limits);
        let mut reply = sent.map_err(|error| error.of_user(NAME))?;
        let session = wire::session(&reply);
        drop(Zeroizing::new(std::mem::take(&mut reply.body)));
        let (token, broker_user) = session?;
        Ok((token, broker_user, reply.simulated))
    }

    fn read(
        &self,
        connection: &Transport,
        path: &str,
        authorization: &Zeroizing<String>,
        limits: CallLimits,
    ) -> Result<Reply, BrokerError> {
        let headers = [API_VERSION, ("authorization", authorization.as_str())];
        let sent = connection.get(&format!("{}{path}", self.url), &headers, limits);
        sent.map_err(|error| error.of_user(NAME))
    }
}

#[cfg(test)]
#[path = "portfolio_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "portfolio_limits_tests.rs"]
mod limits_tests;
