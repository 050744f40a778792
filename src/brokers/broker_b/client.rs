//! Broker B's client: the session exchange and the signed reads of a portfolio, for users with
//! their own credentials and for the server's own app.
//!
//! Runs on the lane of user syncs and blocks up to the budget of one sync. It keeps no user's data
//! between two calls, and never logs credentials.

use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::base::limiter::SharedCounts;
use crate::base::{Clock, Synced, clock};
use crate::brokers::BrokerBSettings;
use crate::brokers::broker_b::combine;
use crate::brokers::broker_b::signed_reads::{Session, Signer, once_more, settled};
use crate::brokers::broker_b::wire;
use crate::brokers::broker_b::wire::{DematRow, NAME, PortfolioRow, PositionRow};
use crate::brokers::call::gate::ClassReading;
use crate::brokers::call::transport::{BadUrl, Redirects, Transport};
use crate::brokers::portfolio::CREDENTIAL_BYTES_MAX;
use crate::brokers::session::token::{SharedToken, TokenStatus};
use crate::brokers::settings::{AppKeys, UpstreamSettings};
use crate::brokers::sync::{SyncCounts, SyncGate, SyncGuard};
use crate::brokers::sync_limits::SyncRates;
use crate::brokers::{
    Attempt, BrokerError, BrokerErrorKind, Credentials, OpenSession, PortfolioClient, Readiness,
};

/// The documented limits of each API key (`wire` documentation, 11). No limit per address is
/// documented. All syncs together may make as many calls as three busy apps, which is a sync a
/// second.
const RATES: SyncRates = SyncRates {
    key_calls_max: 100,
    key_window_ms: 60_000,
    key_day_calls_max: 5_000,
    calls_max: 300,
    window_ms: 60_000,
};

/// Session, two lists of holdings, positions. A retry and the wide range are additional calls.
const CALLS: usize = 4;

/// Like a browser's, as the vendor's own client sends it. Whether the broker requires that is not
/// known.
const USER_AGENT: &str = concat!("Mozilla/5.0 (compatible; bhav/", env!("CARGO_PKG_VERSION"), ")");

/// The body of a read without parameters.
const NOTHING: &str = "{}";
/// Shares, as opposed to derivatives.
const SHARES: &str = r#"{"exchange_code":"NSE"}"#;

/// The client, with the server's own session.
pub struct BrokerB {
    url: String,
    keys: ArcSwap<AppKeys>,
    clock: Clock,
    transport: Transport,
    gate: Arc<SyncGate>,
    /// The server's own session.
    session: Arc<SharedToken>,
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
            keys: ArcSwap::from_pointee(AppKeys::of(&settings.api_key, &settings.api_secret)),
            clock: clock.clone(),
            gate: Arc::new(SyncGate::new(NAME, "broker B portfolios", clock, upstream, RATES)),
            session: Arc::new(SharedToken::untyped(expiry)),
        })
    }

    /// The dates from long before any first trade until today. The broker writes wall-clock times
    /// of India with a `Z`.
    fn wide_range(&self) -> String {
        let today = clock::zoned(self.clock.now()).date();
        format!(
            "{{\"exchange_code\":\"NSE\",\"from_date\":\"2000-01-01T06:00:00.000Z\",\
             \"to_date\":\"{today}T23:59:59.000Z\"}}"
        )
    }
}

impl PortfolioClient for BrokerB {
    fn sync(&self, credentials: &Credentials) -> Attempt {
        let connection = self.transport.apart();
        let mut opened = None;
        let checked = credentials.check(NAME);
        let result = checked.and_then(|()| {
            self.gate.sync(credentials, CALLS, |guard| {
                let calls = Calls {
                    broker: self,
                    guard,
                    connection: &connection,
                };
                let (synced, session) = calls.fetch(credentials)?;
                opened = Some((guard.caller(), session));
                Ok(synced)
            })
        });
        let session = opened.map(|(caller, session)| -> Box<dyn OpenSession> {
            Box::new(Session {
                gate: Arc::clone(&self.gate),
                caller,
                clock: self.clock.clone(),
                url: self.url.clone(),
                connection,
                api_key: credentials.api_key.clone(),
                api_secret: credentials.api_secret.clone(),
                session,
            })
        });
        Attempt { result, session }
    }

    fn activate(&self, api_session: &str) -> Result<TokenStatus, BrokerError> {
        let keys = self.keys.load_full();
        let (Some(key), Some(_)) = (&keys.api_key, &keys.api_secret) else {
            return Err(BrokerError::not_ready(NAME, Readiness::Off));
        };
        if api_session.is_empty() || api_session.len() > CREDENTIAL_BYTES_MAX {
            return Err(BrokerError::new(NAME, BrokerErrorKind::CodeRefused, "wrong length"));
        }
        let ((session, _), _) = self.gate.own(key, 1, |guard| {
            Calls {
                broker: self,
                guard,
                connection: &self.transport.apart(),
            }
            .exchange(key, api_session)
        })?;
        let now = self.clock.now();
        self.session.activate(session, key.clone(), now);
        tracing::info!("broker B session activated");
        Ok(self.session.status(now))
    }

    fn token(&self) -> &Arc<SharedToken> {
        &self.session
    }

    fn set_app(&self, keys: AppKeys) {
        self.keys.store(Arc::new(keys));
    }

    fn join(&self, counts: &Arc<dyn SharedCounts>) {
        self.gate.join("broker-b", counts);
    }

    fn readings(&self) -> Vec<ClassReading> {
        vec![self.gate.reading()]
    }

    fn sync_counts(&self) -> &SyncCounts {
        &self.gate.counts
    }
}

/// The calls of one sync or activation, on connections of their own.
struct Calls<'a> {
    broker: &'a BrokerB,
    guard: &'a SyncGuard<'a>,
    connection: &'a Transport,
}

impl Calls<'_> {
    /// The rows, and the session that they were read with.
    fn fetch(&self, credentials: &Credentials) -> Result<(Synced, SecretString), BrokerError> {
        let Credentials {
            api_key,
            api_secret,
            one_time_code,
            ..
        } = credentials;
        let exchanged = self.exchange(api_key, one_time_code.expose_secret())?;
        let ((session, broker_user), simulated) = exchanged;
        let signer = Signer {
            api_key,
            api_secret,
            session: &session,
        };
        let demat: Vec<DematRow> = self.read(&signer, "dematholdings", NOTHING)?;
        let mut portfolio: Vec<PortfolioRow> = self.read(&signer, "portfolioholdings", SHARES)?;
        if portfolio.is_empty() && !demat.is_empty() {
            // Some accounts return rows only for a range of dates.
            portfolio = self.read(&signer, "portfolioholdings", &self.broker.wide_range())?;
        }
        let holdings = combine::holdings(&demat, &portfolio, self.broker.clock.now_ms())?;
        let positions: Vec<PositionRow> = self.read(&signer, "portfoliopositions", NOTHING)?;
        let positions = combine::positions(&positions)?;
        Ok((
            Synced {
                holdings,
                // Its lists have no shares that were sold.
                sold_holdings: Vec::new(),
                positions,
                simulated,
                broker_user,
            },
            session,
        ))
    }

    /// The session token, the broker's id of its owner, and whether a simulator replied.
    fn exchange(
        &self,
        api_key: &SecretString,
        api_session: &str,
    ) -> Result<((SecretString, Option<String>), bool), BrokerError> {
        let body = exchange_body(api_session, api_key);
        let url = format!("{}/customerdetails", self.broker.url);
        once_more(|| {
            self.guard.call(|limits| {
                let sent = self.connection.fetch_with_json(&url, &[], &body, limits);
                let mut reply = sent.map_err(|error| error.of_user(NAME))?;
                let session = wire::session(&reply, self.broker.clock.now());
                drop(Zeroizing::new(std::mem::take(&mut reply.body)));
                settled(session.map(|session| (session, reply.simulated)))
            })
        })
    }

    /// The rows of one signed read.
    fn read<T: for<'a> Deserialize<'a>>(
        &self,
        signer: &Signer<'_>,
        call: &str,
        body: &str,
    ) -> Result<Vec<T>, BrokerError> {
        let url = format!("{}/{call}", self.broker.url);
        let clock = &self.broker.clock;
        once_more(|| {
            self.guard
                .call(|limits| signer.read(self.connection, clock, (&url, body), limits))
        })
    }
}

// ---- Expiry
//
// The end of the server's own session.

/// Sessions end after this long at the latest (`wire` documentation, 2.4).
const SESSION_LIFE: SignedDuration = SignedDuration::from_hours(24);

/// 24 hours after `login`, or midnight IST if that is sooner.
pub(crate) fn expiry(login: Timestamp) -> Timestamp {
    clock::next_midnight(login).min(login.saturating_add(SESSION_LIFE).unwrap_or(login))
}

// ---- Session
//
// The body of the session exchange. Pure.

/// An escaped character takes six bytes at most (`\u001f`).
const ESCAPED_BYTES_MAX: usize = 6;
/// `{"SessionToken":"","AppKey":""}`.
const FRAME_BYTES: usize = 32;

/// The body of the exchange, in memory that is wiped and never grew by copying. The key is not
/// percent-encoded; only the login page's URL needs that.
pub(super) fn exchange_body(api_session: &str, api_key: &SecretString) -> Zeroizing<Vec<u8>> {
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Exchange<'a> {
        session_token: &'a str,
        app_key: &'a str,
    }
    let app_key = api_key.expose_secret();
    let bytes = FRAME_BYTES + ESCAPED_BYTES_MAX * (api_session.len() + app_key.len());
    let mut body = Zeroizing::new(Vec::with_capacity(bytes));
    let exchange = Exchange {
        session_token: api_session,
        app_key,
    };
    // Writing to memory cannot fail.
    let _ = serde_json::to_writer(&mut *body, &exchange);
    body
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;

#[cfg(test)]
mod session_tests {
    use super::*;

    #[test]
    fn the_body_of_the_exchange_is_json_whatever_the_key_holds() {
        let body = exchange_body("12345678", &"a+=!#^~&@$()*é".into());
        let expected = r#"{"SessionToken":"12345678","AppKey":"a+=!#^~&@$()*é"}"#;
        assert_eq!(body.as_slice(), expected.as_bytes());
        let given = "\"\\\u{1f}\n".repeat(20);
        let body = exchange_body(&given, &given.as_str().into());
        let read: std::collections::HashMap<String, String> = sonic_rs::from_slice(&body).unwrap();
        assert_eq!(read["SessionToken"], given);
        assert_eq!(read["AppKey"], given);
        let bytes = FRAME_BYTES + ESCAPED_BYTES_MAX * 2 * given.len();
        assert!(body.capacity() <= bytes, "grown by copying: {}", body.capacity());
    }
}

#[cfg(test)]
mod expiry_tests {
    use super::*;

    #[test]
    fn a_session_ends_at_midnight_in_india() {
        let shared = SharedToken::untyped(expiry);
        let at = |text: &str| clock::instant(text.parse().unwrap());
        for (login, expected) in [
            ("2026-11-20T00:00:00", "2026-11-21T00:00:00"),
            ("2026-11-20T23:59:59", "2026-11-21T00:00:00"),
        ] {
            shared.set("t".into(), "key".into(), at(login));
            assert_eq!(shared.status(at(login)).expires_at, Some(at(expected)));
            assert!(!shared.status(at(expected)).valid);
        }
    }
}
