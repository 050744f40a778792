//! What both brokers' portfolio clients share: a user's credentials, and the list of documented
//! replies.
//!
//! Credentials are owned by one call, wiped when it ends and never kept: no field of a client has
//! room for them.

use std::net::IpAddr;

use secrecy::{ExposeSecret, SecretString};

use super::error::{BrokerError, BrokerErrorKind};

/// What a user sends for one sync. Shows nothing when printed, is wiped when dropped, and cannot be
/// serialised.
#[derive(Debug)]
pub struct Credentials {
    /// The number of the account that syncs: what it causes is not charged to others.
    pub user: i64,
    /// Where the request comes from, as far as that is known; counted for the same reason.
    pub client: Option<IpAddr>,
    pub api_key: SecretString,
    pub api_secret: SecretString,
    /// Broker A's `request_token`, broker B's `api_session`.
    pub one_time_code: SecretString,
}

/// Longest key, secret or one-time code that is passed on; real ones have some tens of characters.
pub const CREDENTIAL_BYTES_MAX: usize = 512;

impl Credentials {
    /// # Errors
    /// One of them is empty or longer than any broker makes them.
    pub(super) fn check(&self, upstream: &'static str) -> Result<(), BrokerError> {
        let fits = |value: &SecretString| {
            (1..=CREDENTIAL_BYTES_MAX).contains(&value.expose_secret().len())
        };
        if !fits(&self.api_key) || !fits(&self.api_secret) {
            return Err(BrokerError::new(upstream, BrokerErrorKind::KeyRefused, "wrong length"));
        }
        if !fits(&self.one_time_code) {
            return Err(BrokerError::new(upstream, BrokerErrorKind::CodeRefused, "wrong length"));
        }
        Ok(())
    }
}

/// Something a broker may answer, and what we make of it: the rows of the table "broker replies,
/// our answers".
#[derive(Clone, Copy, Debug)]
pub struct DocumentedReply {
    /// The broker's call, as in `POST /session/token`.
    pub call: &'static str,
    /// What it means, for a person.
    pub meaning: &'static str,
    pub http_status: u16,
    pub content_type: &'static str,
    pub body: &'static str,
    /// `None` is success with zero rows.
    pub answer: Option<BrokerErrorKind>,
}

const JSON: &str = "application/json";
const HTML: &str = "text/html";

impl DocumentedReply {
    /// A document; `answer` is `None` for what is a success.
    pub(super) const fn json(
        call: &'static str,
        meaning: &'static str,
        http_status: u16,
        body: &'static str,
        answer: Option<BrokerErrorKind>,
    ) -> Self {
        Self { call, meaning, http_status, content_type: JSON, body, answer }
    }

    /// A page for people, or nothing at all, where a document should be.
    pub(super) const fn page(
        call: &'static str,
        meaning: &'static str,
        http_status: u16,
        body: &'static str,
        answer: BrokerErrorKind,
    ) -> Self {
        Self { call, meaning, http_status, content_type: HTML, body, answer: Some(answer) }
    }
}
