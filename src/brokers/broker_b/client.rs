//! Broker B's client: the session exchange and the signed reads of a portfolio, for users with
//! their own credentials and for the server's own app.
//!
//! Runs on the lane of user syncs and blocks up to the budget of one sync. It keeps nothing of a
//! user between two calls, and never logs what it was given.

use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::combine;
use super::session::{Signature, exchange_body};
use super::wire::{self, DematRow, NAME, PortfolioRow, PositionRow, Refusal};
use crate::base::{Clock, Synced};
use crate::brokers::app_keys::{AppKeySlot, AppKeys};
use crate::brokers::call::stats::ClassReading;
use crate::brokers::call::transport::{BadUrl, Redirects, Reply, Transport};
use crate::brokers::portfolio::CREDENTIAL_BYTES_MAX;
use crate::brokers::session::token::{SharedToken, TokenStatus};
use crate::brokers::settings::{BrokerBSettings, UpstreamSettings};
use crate::brokers::sync::guard::{SyncCounts, SyncGate, SyncGuard};
use crate::brokers::sync::key_limiter::Rates;
use crate::brokers::{BrokerError, BrokerErrorKind, Credentials, Readiness};
use crate::limits::shared::SharedCounts;

/// Per API key (`wire` documentation, 11).
const RATES: Rates = Rates { calls_max: 100, window_ms: 60_000, day_calls_max: 5_000 };

/// All syncs of this server together. No limit per address is documented; as much as three busy
/// apps, which is a sync a second.
const RATES_TOGETHER: Rates =
    Rates { calls_max: 300, window_ms: 60_000, day_calls_max: usize::MAX };

/// Session, two lists of holdings, positions. The retry and the wide range come on top.
const CALLS: usize = 4;

/// The vendor's own client sends one that looks like a browser's; whether it must is not known.
const USER_AGENT: &str = concat!("Mozilla/5.0 (compatible; bhav/", env!("CARGO_PKG_VERSION"), ")");

/// What a read without parameters sends.
const NOTHING: &str = "{}";
/// Shares, as opposed to derivatives.
const SHARES: &str = r#"{"exchange_code":"NSE"}"#;

/// The client, with the server's own session.
pub struct BrokerB {
    url: String,
    keys: AppKeySlot,
    clock: Clock,
    transport: Transport,
    gate: SyncGate,
    session: Arc<SharedToken>,
}

/// Who signs, and for which session.
struct Signer<'a> {
    api_key: &'a SecretString,
    api_secret: &'a SecretString,
    session: &'a SecretString,
}

impl BrokerB {
    /// # Errors
    /// [`BadUrl`].
    pub fn new(
        settings: &BrokerBSettings,
        upstream: &UpstreamSettings,
        clock: &Clock,
    ) -> Result<Self, BadUrl> {
        let url = BadUrl::checked("broker_b.url", &settings.url)?;
        Ok(Self {
            transport: Transport::new(upstream, &url, USER_AGENT, Redirects::Never),
            url,
            keys: AppKeySlot::new(settings.api_key.as_ref(), settings.api_secret.as_ref()),
            clock: clock.clone(),
            gate: SyncGate::new(
                NAME,
                "broker B portfolios",
                clock,
                upstream,
                RATES,
                RATES_TOGETHER,
            ),
            session: Arc::new(SharedToken::of_broker_b()),
        })
    }

    /// Puts another app's key and secret in the place of the present ones.
    pub fn set_keys(&self, keys: AppKeys) {
        self.keys.set(keys);
    }

    /// Counts a key's calls with those of the other nodes from now on.
    pub fn join(&self, counts: &Arc<dyn SharedCounts>) {
        self.gate.join("broker-b", counts);
    }

    /// What is known of the server's own session.
    pub fn status(&self) -> TokenStatus {
        self.session.status(self.clock.now())
    }

    /// The server's own session.
    pub fn session(&self) -> &Arc<SharedToken> {
        &self.session
    }

    /// Every class of calls, for metrics.
    pub fn readings(&self) -> Vec<ClassReading> {
        vec![self.gate.reading()]
    }

    /// Counts of all calls.
    pub fn sync_counts(&self) -> SyncCounts {
        self.gate.counts()
    }

    /// Exchanges a login's `api_session` for the server's own session of the day. A refused one
    /// leaves the session that is there alone.
    ///
    /// # Errors
    /// [`BrokerError`]; `NotReady(Off)` without key and secret in the settings.
    pub fn activate(&self, api_session: &str) -> Result<TokenStatus, BrokerError> {
        let keys = self.keys.load();
        let (Some(key), Some(_)) = (&keys.api_key, &keys.api_secret) else {
            return Err(BrokerError::not_ready(NAME, Readiness::Off));
        };
        if api_session.is_empty() || api_session.len() > CREDENTIAL_BYTES_MAX {
            return Err(BrokerError::new(NAME, BrokerErrorKind::CodeRefused, "wrong length"));
        }
        let ((session, _), _) = self.gate.own(key, 1, |guard| {
            Calls { broker: self, guard, connection: &self.transport.apart() }
                .exchange(key, api_session)
        })?;
        let now = self.clock.now();
        self.session.activate(session, key.clone(), now);
        tracing::info!("broker B session activated");
        Ok(self.session.status(now))
    }

    /// One user's holdings and positions, with that user's own credentials. Blocks for at most the
    /// settings' `sync_timeout_ms`.
    ///
    /// # Errors
    /// [`BrokerError`]; nothing of a sync that failed half-way is returned.
    pub fn sync(&self, credentials: &Credentials) -> Result<Synced, BrokerError> {
        credentials.check(NAME)?;
        self.gate.sync(credentials, CALLS, |guard| {
            Calls { broker: self, guard, connection: &self.transport.apart() }.fetch(credentials)
        })
    }

    /// From long before anybody's first trade until now. The broker's dates are wall-clock times of
    /// India that carry a `Z`.
    fn wide_range(&self) -> String {
        let today = crate::base::ist::zoned(self.clock.now()).date();
        format!(
            "{{\"exchange_code\":\"NSE\",\"from_date\":\"2000-01-01T06:00:00.000Z\",\
             \"to_date\":\"{today}T23:59:59.000Z\"}}"
        )
    }
}

/// The calls of one sync or activation, over connections of their own.
struct Calls<'a> {
    broker: &'a BrokerB,
    guard: &'a SyncGuard<'a>,
    connection: &'a Transport,
}

impl Calls<'_> {
    fn fetch(&self, credentials: &Credentials) -> Result<Synced, BrokerError> {
        let Credentials { api_key, api_secret, one_time_code, .. } = credentials;
        let exchanged = self.exchange(api_key, one_time_code.expose_secret())?;
        let ((session, broker_user), simulated) = exchanged;
        let signer = Signer { api_key, api_secret, session: &session };
        let demat: Vec<DematRow> = self.read(&signer, "dematholdings", NOTHING)?;
        let mut portfolio: Vec<PortfolioRow> = self.read(&signer, "portfolioholdings", SHARES)?;
        if portfolio.is_empty() && !demat.is_empty() {
            // Some accounts answer with a range of dates only.
            portfolio = self.read(&signer, "portfolioholdings", &self.broker.wide_range())?;
        }
        let holdings = combine::holdings(&demat, &portfolio, self.broker.clock.now_ms())?;
        let positions: Vec<PositionRow> = self.read(&signer, "portfoliopositions", NOTHING)?;
        let positions = combine::positions(&positions)?;
        Ok(Synced { holdings, positions, simulated, broker_user })
    }

    /// The session token with the broker's id of whose it is, and whether a simulator gave it.
    fn exchange(
        &self,
        api_key: &SecretString,
        api_session: &str,
    ) -> Result<((SecretString, Option<String>), bool), BrokerError> {
        let body = exchange_body(api_session, api_key);
        let url = format!("{}/customerdetails", self.broker.url);
        let ask = || -> Result<_, BrokerError> {
            self.guard.call(|limits| {
                let sent = self.connection.fetch_with_json(&url, &[], body.as_bytes(), limits);
                let mut reply = sent.map_err(|error| error.of_user(NAME))?;
                let session = wire::session(&reply, self.broker.clock.now());
                drop(Zeroizing::new(std::mem::take(&mut reply.body)));
                settled(session.map(|session| (session, reply.simulated)))
            })
        };
        once_more(ask)
    }

    /// The rows of one signed read.
    fn read<T: for<'a> Deserialize<'a>>(
        &self,
        signer: &Signer<'_>,
        call: &str,
        body: &str,
    ) -> Result<Vec<T>, BrokerError> {
        let url = format!("{}/{call}", self.broker.url);
        once_more(|| {
            self.guard.call(|limits| {
                // Anew for each attempt: a signature is good for a minute.
                let now = self.broker.clock.now();
                let signature = Signature::of(now, body, signer.api_secret);
                let headers = [
                    ("x-checksum", signature.checksum.as_str()),
                    ("x-timestamp", signature.timestamp.as_str()),
                    ("x-appkey", signer.api_key.expose_secret()),
                    ("x-sessiontoken", signer.session.expose_secret()),
                ];
                let sent = self.connection.fetch_with_json(&url, &headers, body.as_bytes(), limits);
                let reply: Reply = sent.map_err(|error| error.of_user(NAME))?;
                settled(wire::rows(&reply, self.broker.clock.now()))
            })
        })
    }
}

/// An answer that is final, or one worth a second try.
enum Settled<T> {
    Good(T),
    Again(BrokerError),
}

fn settled<T>(result: Result<T, Refusal>) -> Result<Settled<T>, BrokerError> {
    match result {
        Ok(good) => Ok(Settled::Good(good)),
        Err(Refusal { error, intermittent: true }) => Ok(Settled::Again(error)),
        Err(Refusal { error, .. }) => Err(error),
    }
}

/// Asks again once if the answer is of the kind that comes now and then to good requests.
fn once_more<T>(ask: impl Fn() -> Result<Settled<T>, BrokerError>) -> Result<T, BrokerError> {
    let first = ask()?;
    match first {
        Settled::Good(good) => Ok(good),
        Settled::Again(_) => match ask()? {
            Settled::Good(good) => Ok(good),
            Settled::Again(error) => Err(error),
        },
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
