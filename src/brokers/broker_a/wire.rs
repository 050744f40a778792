//! Parses broker A's answers: bytes to typed values. Pure.
//!
//! Numbers keep their digits from wire to `Decimal`; times without a zone are IST. `error_type`
//! decides the kind of an error, then the HTTP status, as in the vendor's own clients.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::civil::DateTime;
use secrecy::SecretString;
use serde::Deserialize;
use sonic_rs::{LazyValue, RawNumber};
use zeroize::Zeroizing;

use crate::base::{clock, json};
use crate::brokers::call::transport::Reply;
use crate::brokers::quote_checks::Claim;
use crate::brokers::{BrokerError, BrokerErrorKind as Kind};

/// The name in errors and logs.
pub(in crate::brokers) const NAME: &str = "broker A";

/// Low byte of an instrument token that marks an index.
const INDEX_SEGMENT: u64 = 9;

/// Characters of an upstream's message that go into the log.
const MESSAGE_CHARS_MAX: usize = 120;

/// The `X-Kite-Version` that all calls carry.
pub(super) const API_VERSION: (&str, &str) = ("x-kite-version", "3");

/// The members of every answer. Texts are decoded into memory that is wiped, because some repeat
/// the request.
pub(super) struct Envelope<'a> {
    /// `success` or `error`; empty if it is absent.
    status: Zeroizing<String>,
    error_type: Option<Zeroizing<String>>,
    pub(super) message: Zeroizing<String>,
    data: Option<&'a str>,
}

impl<'a> Envelope<'a> {
    /// `None` if `body` is not a JSON object.
    pub(super) fn of(body: &'a [u8]) -> Option<Self> {
        let members = json::members(body)?;
        Some(Self {
            status: json::text(&members, "status").unwrap_or_default(),
            error_type: json::text(&members, "error_type"),
            message: json::text(&members, "message").unwrap_or_default(),
            data: members
                .iter()
                .find(|(name, _)| *name == "data")
                .map(|(_, raw)| *raw),
        })
    }

    pub(super) fn is_error(&self) -> bool {
        self.status.as_str() == "error" || self.error_type.is_some()
    }

    /// The JSON text of `data`, if the reply with this HTTP status is a success.
    pub(super) fn success(&self, http_status: u16) -> Option<&'a str> {
        let is_success = self.status.as_str() == "success" && (200..300).contains(&http_status);
        self.data.filter(|_| is_success)
    }

    pub(super) fn error_type(&self) -> &str {
        self.error_type.as_ref().map_or("", |name| name.as_str())
    }
}

/// The JSON text of `data`.
///
/// # Errors
/// The error in the answer or, without an envelope, the one of its HTTP status.
pub(crate) fn data(reply: &Reply) -> Result<&str, BrokerError> {
    let envelope = Envelope::of(&reply.body).ok_or_else(|| not_an_envelope(reply))?;
    if envelope.is_error() {
        return Err(reported(reply, &envelope));
    }
    let data = envelope
        .success(reply.status)
        .filter(|data| *data != "null");
    data.ok_or_else(|| not_an_envelope(reply))
}

fn reported(reply: &Reply, envelope: &Envelope<'_>) -> BrokerError {
    let status = reply.status;
    let error_type = envelope.error_type();
    let message: String = envelope.message.chars().take(MESSAGE_CHARS_MAX).collect();
    let (kind, detail) = match error_type {
        "TokenException" => (Kind::TokenDead, String::new()),
        "PermissionException" | "PermissionError" => {
            (Kind::NotPermitted, "the plan has no market data".to_owned())
        }
        _ if status == 429 => return rate_limited(reply),
        // The type alone does not show a rate limit behind another status.
        "NetworkException" if message.to_ascii_lowercase().contains("too many requests") => {
            return rate_limited(reply);
        }
        "UserException" => (Kind::AccountProblem, String::new()),
        "TwoFAException" => (Kind::SecondFactorProblem, String::new()),
        "InputException" | "OrderException" | "MarginException" | "HoldingException" => {
            (Kind::Refused, format!("{error_type}: {message}"))
        }
        "" if (400..500).contains(&status) => (Kind::Refused, format!(": {message}")),
        // Network, Data and General. Unknown types count as General.
        _ => (Kind::Failed { status }, format!("{error_type}: {message}")),
    };
    failed(kind, detail)
}

/// An answer without a readable envelope, such as an outage page of the edge in front of the
/// broker.
pub(super) fn not_an_envelope(reply: &Reply) -> BrokerError {
    let content_type = reply.content_type.as_deref().unwrap_or("no content type");
    let detail = format!("{} bytes of {content_type}", reply.body.len());
    match reply.status {
        429 => rate_limited(reply),
        status if status >= 400 => failed(Kind::Failed { status }, detail),
        _ => malformed(detail),
    }
}

pub(super) fn failed(kind: Kind, detail: impl Into<String>) -> BrokerError {
    BrokerError::new(NAME, kind, detail)
}

pub(super) fn malformed(detail: impl Into<String>) -> BrokerError {
    failed(Kind::Malformed, detail)
}

fn rate_limited(reply: &Reply) -> BrokerError {
    let wait = reply.retry_after.unwrap_or_default();
    failed(Kind::RateLimited, "").after(wait)
}

/// One instrument of `/quote` or `/quote/ohlc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuoteRow {
    pub instrument_token: u64,
    /// Its previous close is `ohlc.close`: the previous session's, in every quote call and at any
    /// hour. `ohlc.low` and `ohlc.high` are zeros before the first trade of the session.
    /// `/quote/ohlc` has no exchange time.
    pub claim: Claim,
}

impl QuoteRow {
    /// Whether the token belongs to an index.
    pub(crate) fn is_index(&self) -> bool {
        self.instrument_token & 0xff == INDEX_SEGMENT
    }
}

#[derive(Deserialize)]
struct WireQuote<'a> {
    instrument_token: u64,
    last_price: RawNumber,
    timestamp: Option<String>,
    #[serde(borrow)]
    ohlc: Option<WireOhlc<'a>>,
    #[serde(borrow)]
    lower_circuit_limit: Option<LazyValue<'a>>,
    #[serde(borrow)]
    upper_circuit_limit: Option<LazyValue<'a>>,
}

/// An open, a low or a high that is no number spoils neither the price nor the close.
#[derive(Deserialize)]
struct WireOhlc<'a> {
    close: Option<RawNumber>,
    #[serde(borrow)]
    open: Option<LazyValue<'a>>,
    #[serde(borrow)]
    low: Option<LazyValue<'a>>,
    #[serde(borrow)]
    high: Option<LazyValue<'a>>,
}

/// The rows of a quote answer by requested symbol; a row that cannot be read is `None`, a row that
/// is null is left out like an unknown symbol.
///
/// # Errors
/// As [`data`], and [`Kind::Malformed`] when `data` is not a map, or not one of its rows can
/// be read.
pub(crate) fn quotes(reply: &Reply) -> Result<HashMap<String, Option<QuoteRow>>, BrokerError> {
    let data = data(reply)?;
    let rows: HashMap<String, LazyValue<'_>> =
        sonic_rs::from_str(data).map_err(|_| malformed("quote data is not a map"))?;
    let rows: HashMap<String, Option<QuoteRow>> = rows
        .into_iter()
        .filter(|(_, row)| row.as_raw_str() != "null")
        .map(|(symbol, row)| (symbol, quote(row.as_raw_str())))
        .collect();
    if !rows.is_empty() && rows.values().all(Option::is_none) {
        return Err(malformed("no row of the quotes can be read"));
    }
    Ok(rows)
}

fn quote(text: &str) -> Option<QuoteRow> {
    let wire: WireQuote<'_> = sonic_rs::from_str(text).ok()?;
    let ohlc = wire.ohlc.as_ref();
    let number = |value: &LazyValue<'_>| json::parse_decimal(value.as_raw_str());
    let claim = Claim {
        last_price: json::parse_decimal(wire.last_price.as_str())?,
        previous_close: ohlc
            .and_then(|ohlc| ohlc.close.as_ref())
            .and_then(|close| json::parse_decimal(close.as_str())),
        open: ohlc.and_then(|ohlc| ohlc.open.as_ref()).and_then(number),
        low: ohlc.and_then(|ohlc| ohlc.low.as_ref()).and_then(number),
        high: ohlc.and_then(|ohlc| ohlc.high.as_ref()).and_then(number),
        limits: wire
            .lower_circuit_limit
            .as_ref()
            .and_then(number)
            .zip(wire.upper_circuit_limit.as_ref().and_then(number)),
        as_of: wire.timestamp.as_deref().and_then(naive_ist),
    };
    Some(QuoteRow {
        instrument_token: wire.instrument_token,
        claim,
    })
}

/// A fresh login.
#[derive(Debug)]
pub(crate) struct Login {
    pub access_token: SecretString,
    /// The broker's time of the login, if it sends one.
    pub login_at: Option<Timestamp>,
}

/// The answer of the token exchange.
///
/// # Errors
/// As [`data`], and [`Kind::Malformed`] without an access token.
pub(crate) fn login(reply: &Reply) -> Result<Login, BrokerError> {
    let members = json::members(data(reply)?.as_bytes()).unwrap_or_default();
    let login_time = json::text(&members, "login_time");
    match json::text(&members, "access_token").filter(|token| !token.is_empty()) {
        Some(token) => Ok(Login {
            access_token: SecretString::from(token.as_str()),
            login_at: login_time.as_deref().and_then(|time| naive_ist(time)),
        }),
        None => Err(malformed("session without an access token")),
    }
}

/// Parses `2021-06-08 15:45:56` as IST.
fn naive_ist(text: &str) -> Option<Timestamp> {
    DateTime::strptime("%Y-%m-%d %H:%M:%S", text)
        .ok()
        .map(clock::instant)
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
