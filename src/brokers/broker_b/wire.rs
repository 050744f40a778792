//! Parses broker B's answers into typed rows or an error. Pure.
//!
//! The HTTP status is ignored if the body can be read, because the two disagree. "Nothing" has
//! several documented shapes; every other answer without rows is an error, never an empty
//! portfolio. An error's text decides its kind; case, spacing and punctuation vary.

use std::time::Duration;

use jiff::Timestamp;
use secrecy::SecretString;
use serde::Deserialize;

use crate::base::{broker_user, clock, json};
use crate::brokers::call::transport::Reply;
use crate::brokers::feed::Number;
use crate::brokers::{BrokerError, BrokerErrorKind as Kind, feed, portfolio};

/// The name in errors and logs.
pub(in crate::brokers) const NAME: &str = "broker B";

/// The tightest limit counts by the minute.
const RATE_LIMIT_WAIT_MIN: Duration = Duration::from_secs(60);

/// The reason why an answer has no rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub error: BrokerError,
    /// The broker sometimes gives this answer to good requests.
    pub intermittent: bool,
}

impl From<BrokerError> for Refusal {
    fn from(error: BrokerError) -> Self {
        Self {
            error,
            intermittent: false,
        }
    }
}

/// The value for `X-SessionToken`, undecoded (only sockets need the decoded one), and the broker's
/// id of its owner.
///
/// # Errors
/// As [`rows`], and [`Kind::Malformed`] without a session token.
pub(crate) fn session(
    reply: &Reply,
    now: Timestamp,
) -> Result<(SecretString, Option<String>), Refusal> {
    let missing = || malformed("session without its token");
    let success = success(reply, now)?.ok_or_else(missing)?;
    let members = json::members(success.as_bytes()).ok_or_else(missing)?;
    let text = |name| json::text(&members, name).filter(|text| !text.is_empty());
    let token = text("session_token").map(|token| SecretString::from(token.as_str()));
    let user = text("idirect_userid").and_then(|id| broker_user(&id));
    Ok((token.ok_or_else(missing)?, user))
}

/// The rows of a read. Every documented shape of "nothing" has none.
///
/// # Errors
/// The error in the answer, or [`Kind::Malformed`] when a row cannot be read.
pub(crate) fn rows<T: for<'a> Deserialize<'a>>(
    reply: &Reply,
    now: Timestamp,
) -> Result<Vec<T>, Refusal> {
    let Some(success) = success(reply, now)? else {
        return Ok(Vec::new());
    };
    Ok(portfolio::rows(NAME, success)?)
}

/// The content of `Success`; `None` if the answer reports nothing.
fn success(reply: &Reply, now: Timestamp) -> Result<Option<&str>, Refusal> {
    let Some(mut members) = json::members(&reply.body) else {
        return Err(not_an_envelope(reply).into());
    };
    let at = |wanted: &str| members.iter().position(|(name, _)| *name == wanted);
    let raw = |wanted: &str| at(wanted).map_or("null", |at| members[at].1.trim());
    let success = raw("Success");
    let error = raw("Error");
    let absent = matches!(success, "null" | "\"\"");
    let bare = absent || (success.starts_with('[') && success[1..].trim_start().starts_with(']'));
    if error != "null" {
        let text = json::unescaped(error).ok_or_else(|| malformed("an error without words"))?;
        let text = lowered(&text);
        if text.contains("no data found") && bare {
            return Ok(None);
        }
        if !text.is_empty() {
            return Err(reported(reply, &text, now));
        }
    }
    if absent {
        return Err(not_an_envelope(reply).into());
    }
    // The text reports success but the number does not. Then rows are accepted, but missing rows
    // are an error.
    let status = feed::read(raw("Status")).and_then(|status| status.0);
    let in_order =
        status.is_none_or(|status| status == 200.into()) && (200..300).contains(&reply.status);
    if bare && !in_order {
        return Err(not_an_envelope(reply).into());
    }
    let at = at("Success");
    Ok(at.map(|at| members.swap_remove(at).1))
}

/// Lower case, with each run of white space as one space.
fn lowered(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .to_lowercase()
}

/// The error for the text that the broker reports.
fn reported(reply: &Reply, text: &str, now: Timestamp) -> Refusal {
    let says = |part: &str| text.contains(part);
    let code = |why: &str| failed(Kind::CodeRefused, why);
    let error = if says("limit exceed") {
        let day = says("per day");
        let minute = portfolio::rate_limited(NAME, reply, RATE_LIMIT_WAIT_MIN).retry_after();
        let wait = if day {
            Some(clock::until_midnight(now))
        } else {
            minute
        };
        failed(Kind::KeySpent, "").after(wait.unwrap_or_default())
    } else if says("invalid user details") {
        let error = code("the user is unknown, or the session is over");
        return Refusal {
            error,
            intermittent: true,
        };
    } else if says("public key") {
        failed(Kind::KeyRefused, "the API key is unknown")
    } else if says("checksum") {
        failed(Kind::KeyRefused, "the signature is wrong: secret, or this machine's clock")
    } else if says("invalid session") || says("session expired") {
        code("wrong, used or too old")
    } else if says("resource not available") {
        code("the session made with it is over")
    } else if says("base-64") {
        code("the session made with it is not accepted")
    } else if says("ip address") || says("static ip") || says("whitelist") {
        failed(Kind::AddressRefused, "another address is registered for the app")
    } else if reply.status == 429 {
        portfolio::rate_limited(NAME, reply, RATE_LIMIT_WAIT_MIN)
    } else {
        let known = says("error while calling service") || says("historical data fail");
        let what = if known {
            "its back end failed"
        } else {
            "an unknown error"
        };
        failed(
            Kind::Failed {
                status: reply.status,
            },
            what,
        )
    };
    error.into()
}

fn not_an_envelope(reply: &Reply) -> BrokerError {
    portfolio::not_an_envelope(NAME, reply, RATE_LIMIT_WAIT_MIN)
}

pub(super) fn malformed(what: &str) -> BrokerError {
    failed(Kind::Malformed, what)
}

fn failed(kind: Kind, detail: impl Into<String>) -> BrokerError {
    BrokerError::new(NAME, kind, detail)
}

/// A row of `dematholdings`, the depository's view.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct DematRow {
    pub stock_code: String,
    #[serde(rename = "stock_ISIN")]
    pub isin: Option<String>,
    /// Total in demat. `demat_avail_quantity` is not the owned quantity.
    pub(super) quantity: Number,
}

/// A row of `portfolioholdings`, the broker's own books.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PortfolioRow {
    pub stock_code: String,
    pub exchange_code: Option<String>,
    pub(super) quantity: Number,
    #[serde(default)]
    pub(super) average_price: Number,
    #[serde(default)]
    pub(super) current_market_price: Number,
    #[serde(default)]
    pub(super) change_percentage: Number,
}

/// A row of `portfoliopositions`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PositionRow {
    pub stock_code: String,
    pub exchange_code: Option<String>,
    pub product_type: Option<String>,
    pub action: Option<String>,
    pub expiry_date: Option<String>,
    #[serde(default)]
    pub(super) strike_price: Number,
    pub right: Option<String>,
    pub(super) quantity: Number,
    #[serde(default)]
    pub(super) average_price: Number,
    #[serde(default)]
    pub(super) ltp: Number,
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
