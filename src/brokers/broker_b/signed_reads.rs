//! Reads of an account at broker B, each of which is signed: those of a sync, and those of the
//! trades that are asked for after it with the same session.
//!
//! The broker has no call that ends a session: it is forgotten here, and ends there by midnight.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::base::{Clock, clock};
use crate::brokers::broker_b::trades_wire;
use crate::brokers::broker_b::wire;
use crate::brokers::broker_b::wire::{NAME, Refusal};
use crate::brokers::call::transport::{CallLimits, Reply, Transport};
use crate::brokers::sync::SyncGate;
use crate::brokers::sync_limits::Caller;
use crate::brokers::trades::{Quarter, ReadTrades, quarters};
use crate::brokers::{BrokerError, OpenSession, SyncedTrades, portfolio};

/// Key, secret and session that sign a read.
pub(super) struct Signer<'a> {
    pub(super) api_key: &'a SecretString,
    pub(super) api_secret: &'a SecretString,
    pub(super) session: &'a SecretString,
}

impl Signer<'_> {
    /// The rows of one signed read. Each attempt is signed again, because a signature is valid for
    /// a minute. An error within deserves a second try.
    pub(super) fn read<T: for<'a> Deserialize<'a>>(
        &self,
        connection: &Transport,
        clock: &Clock,
        (url, body): (&str, &str),
        limits: CallLimits,
    ) -> Result<Result<Vec<T>, BrokerError>, BrokerError> {
        let signature = Signature::of(clock.now(), body, self.api_secret);
        let headers = [
            ("x-checksum", signature.checksum.as_str()),
            ("x-timestamp", signature.timestamp.as_str()),
            ("x-appkey", self.api_key.expose_secret()),
            ("x-sessiontoken", self.session.expose_secret()),
        ];
        let sent = connection.fetch_with_json(url, &headers, body.as_bytes(), limits);
        let reply: Reply = sent.map_err(|error| error.of_user(NAME))?;
        settled(wire::rows(&reply, clock.now()))
    }
}

/// Separates errors that deserve a second try, which are within, from final ones.
pub(super) fn settled<T>(
    result: Result<T, Refusal>,
) -> Result<Result<T, BrokerError>, BrokerError> {
    match result {
        Err(Refusal {
            error,
            intermittent: false,
        }) => Err(error),
        other => Ok(other.map_err(|refusal| refusal.error)),
    }
}

/// Asks again once after an error that the broker sometimes gives to good requests.
pub(super) fn once_more<T>(
    ask: impl Fn() -> Result<Result<T, BrokerError>, BrokerError>,
) -> Result<T, BrokerError> {
    ask()?.or_else(|_| ask()?)
}

/// A session with what signs its reads.
pub(super) struct Session {
    pub(super) gate: Arc<SyncGate>,
    pub(super) caller: Caller,
    pub(super) clock: Clock,
    pub(super) url: String,
    pub(super) connection: Transport,
    pub(super) api_key: SecretString,
    pub(super) api_secret: SecretString,
    pub(super) session: SecretString,
}

impl OpenSession for Session {
    fn trades(&self, known_quarters: &BTreeSet<Date>) -> SyncedTrades {
        let until_ms = self.gate.until_ms();
        let today = clock::zoned(self.clock.now()).date();
        let mut trades = SyncedTrades::default();
        for quarter in quarters(today, known_quarters) {
            match self.quarter(quarter, until_ms) {
                Ok(read) => trades.add(read),
                Err(error) => {
                    trades.error = Some(error);
                    break;
                }
            }
            if quarter.last < today {
                trades.quarters.insert(quarter.first);
            }
        }
        trades
    }

    fn end(self: Box<Self>) {}

    fn keep(self: Box<Self>) {}
}

impl Session {
    fn quarter(&self, quarter: Quarter, until_ms: u64) -> Result<ReadTrades, BrokerError> {
        let Self {
            api_key,
            api_secret,
            session,
            ..
        } = self;
        let signer = Signer {
            api_key,
            api_secret,
            session,
        };
        let body = trades_wire::body(quarter);
        let url = format!("{}/trades", self.url);
        let rows = once_more(|| {
            self.gate
                .beside((self.caller, api_key), until_ms, |limits| {
                    signer.read(&self.connection, &self.clock, (&url, &body), limits)
                })
        })?;
        trades_wire::trades(rows)
    }
}

/// The two headers that change with every attempt.
pub(super) struct Signature {
    pub(super) timestamp: String,
    /// `token `, then the hexadecimal SHA-256 of timestamp, body and secret.
    pub(super) checksum: Zeroizing<String>,
}

impl Signature {
    /// Signs exactly the bytes that will be sent, as of `now`.
    pub(super) fn of(now: Timestamp, body: &str, api_secret: &SecretString) -> Self {
        let timestamp = timestamp(now);
        let secret = api_secret.expose_secret();
        let parts = [timestamp.as_bytes(), body.as_bytes(), secret.as_bytes()];
        let checksum = portfolio::checksum("token ", &parts);
        Self {
            timestamp,
            checksum,
        }
    }
}

/// True UTC in whole seconds; the milliseconds are always written `.000`.
fn timestamp(now: Timestamp) -> String {
    now.to_zoned(TimeZone::UTC)
        .strftime("%Y-%m-%dT%H:%M:%S.000Z")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_the_check_vector_with_the_milliseconds_cut_off() {
        let now = "2026-10-01T10:23:56.987Z".parse().unwrap();
        let signature = Signature::of(now, "{}", &"EXAMPLE_SECRET".into());
        assert_eq!(signature.timestamp, "2026-10-01T10:23:56.000Z");
        assert_eq!(
            signature.checksum.as_str(),
            "token c6cd10b3ed73c49fb1ee40dc3137cc1026a2876526001a1617b4335152a937ae"
        );
    }
}
