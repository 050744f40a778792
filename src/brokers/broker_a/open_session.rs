//! The session that a user's sync opened at broker A, and its end.
//!
//! The session is of no use once the rows are read, and it would live until six the next morning.
//! It is ended on a lane of its own after the sync's answer is stored, so no sync waits for that or
//! fails because of it.

use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use crate::base::words;
use crate::brokers::broker_a::wire::API_VERSION;
use crate::brokers::call::transport::{CallLimits, Reply, Transport, TransportError, push_query};
use crate::brokers::portfolio;
use crate::brokers::session::token::authorization;
use crate::brokers::sync_limits::Caller;
use crate::ops::counter::Counts;

/// Longest call that ends a session; most take a tenth of it.
pub(super) const END_TIMEOUT_MS: u64 = 1_000;

words! {
    /// The end of a session that a sync opened, as metrics count it.
    pub(super) enum SessionEnd {
        /// The broker confirmed the end.
        Ended = "ended",
        /// The broker was asked and did not confirm it.
        Failed = "failed",
        /// The broker was not asked: no time, no room, a limit, a cooldown or the open circuit.
        Left = "left",
        /// The session is of the server's own app, and lives on.
        Kept = "kept",
    }
}

/// An access token with the connection that it was used on. Both end with this value; the session
/// at the broker lives on until [`Portfolios::end`](super::portfolio::Portfolios::end).
pub(super) struct Session {
    pub(super) connection: Transport,
    pub(super) caller: Caller,
    pub(super) api_key: SecretString,
    pub(super) access_token: SecretString,
    pub(super) ends: Arc<Counts<SessionEnd>>,
    /// Whether it has been counted.
    settled: bool,
}

impl Session {
    pub(super) fn new(
        connection: Transport,
        caller: Caller,
        api_key: SecretString,
        access_token: SecretString,
        ends: Arc<Counts<SessionEnd>>,
    ) -> Self {
        Self {
            connection,
            caller,
            api_key,
            access_token,
            ends,
            settled: false,
        }
    }

    /// Leaves the session as it is.
    pub(super) fn keep(mut self) {
        self.settled = true;
        self.ends.increment(SessionEnd::Kept);
    }

    /// The value of the `Authorization` header.
    pub(super) fn authorization(&self) -> Zeroizing<String> {
        authorization(&self.api_key, &self.access_token)
    }

    /// Asks the broker to end the session at `url`. Blocks for at most the call's time limit.
    pub(super) fn end(
        mut self,
        url: &str,
        limits: CallLimits,
        is_over: impl FnOnce(&Reply) -> bool,
    ) {
        self.settled = true;
        let key = self.api_key.expose_secret();
        let token = self.access_token.expose_secret();
        // Reserve all of it: a String that grows leaves copies behind.
        let bytes = url.len() + 32 + 3 * (key.len() + token.len());
        let mut target = Zeroizing::new(String::with_capacity(bytes));
        target.push_str(url);
        push_query(&mut target, "api_key", key);
        push_query(&mut target, "access_token", token);
        let authorization = self.authorization();
        let headers = [API_VERSION, ("authorization", authorization.as_str())];
        let said: Result<Reply, TransportError> = self.connection.delete(&target, &headers, limits);
        let ended = said.is_ok_and(|reply| is_over(&reply));
        self.ends.increment(if ended {
            SessionEnd::Ended
        } else {
            SessionEnd::Failed
        });
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.settled {
            self.ends.increment(SessionEnd::Left);
        }
    }
}

// ---- Session
//
// The exchange of the daily login's one-time code.

/// Longest request token that is passed on; real ones have 32 characters.
pub(super) const REQUEST_TOKEN_BYTES_MAX: usize = 256;

/// Exchanges a one-time code at the API at `url`. `app` is its key and secret. `read` reads the
/// reply, which is then wiped. Also returns whether a simulator replied.
pub(super) fn exchange<T>(
    connection: &Transport,
    url: &str,
    app: (&SecretString, &SecretString),
    request_token: &str,
    limits: CallLimits,
    read: impl FnOnce(&Reply) -> T,
) -> Result<(T, bool), TransportError> {
    let (api_key, api_secret) = app;
    let checksum = checksum(api_key, request_token, api_secret);
    let fields = [
        ("api_key", api_key.expose_secret()),
        ("request_token", request_token),
        ("checksum", checksum.as_str()),
    ];
    let url = format!("{url}/session/token");
    let mut reply = connection.post_form(&url, &[API_VERSION], &fields, limits)?;
    let session = read(&reply);
    drop(Zeroizing::new(std::mem::take(&mut reply.body)));
    Ok((session, reply.simulated))
}

/// Lower-case hexadecimal SHA-256 of `api_key ++ request_token ++ api_secret`, which proves the
/// secret without sending it.
fn checksum(
    api_key: &SecretString,
    request_token: &str,
    api_secret: &SecretString,
) -> Zeroizing<String> {
    let parts = [
        api_key.expose_secret(),
        request_token,
        api_secret.expose_secret(),
    ];
    portfolio::checksum("", &parts.map(str::as_bytes))
}

#[cfg(test)]
mod session_tests {
    use super::*;

    #[test]
    fn agrees_with_the_check_vector() {
        let sum = checksum(&"api_key".into(), "request_token", &"api_secret".into());
        assert_eq!(
            sum.as_str(),
            "ff6a6d3d60c9d974df906ba6f787ac38300cfa68b41801b486ea1007e52e8942"
        );
    }
}
