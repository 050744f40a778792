//! Parts shared by both brokers' portfolio clients: a user's credentials, the list of documented
//! replies, and the common shapes of replies.
//!
//! One call owns the credentials. They are wiped when it ends, and no client has a field for them.

use std::fmt::Write;
use std::net::IpAddr;
use std::time::Duration;

use jiff::civil::Date;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::base::candle::price_e4;
use crate::base::{Candle, json, wipe};
use crate::brokers::call::pace::RETRY_AFTER_MAX;
use crate::brokers::call::transport::Reply;
use crate::brokers::error::{BrokerError, BrokerErrorKind};

/// A user's input for one sync. Its `Debug` shows no secret, it is wiped on drop and cannot be
/// serialised.
#[derive(Debug)]
pub struct Credentials {
    /// Id of the account, so that limits count its calls and refusals separately.
    pub user: i64,
    /// The client's address, if it is known; counted for the same reason.
    pub client: Option<IpAddr>,
    pub api_key: SecretString,
    pub api_secret: SecretString,
    /// Broker A's `request_token`, broker B's `api_session`.
    pub one_time_code: SecretString,
}

/// Longest key, secret or one-time code that is passed on; real ones have some tens of characters.
pub(crate) const CREDENTIAL_BYTES_MAX: usize = 512;

impl Credentials {
    /// # Errors
    /// A credential is empty or too long.
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

// ---- Replies
//
// Common shapes of the brokers' answers to a user's sync. Pure.

/// Most rows of one list. No account has a thousand.
pub(super) const ROWS_MAX: usize = 5_000;

/// The rows of a list; `null` is a list without any.
///
/// # Errors
/// [`BrokerErrorKind::Malformed`] if a row cannot be read or there are too many.
pub(super) fn rows<'a, T: Deserialize<'a>>(
    upstream: &'static str,
    raw: &'a str,
) -> Result<Vec<T>, BrokerError> {
    let malformed = |what: String| BrokerError::new(upstream, BrokerErrorKind::Malformed, what);
    let rows: Option<Vec<T>> =
        json::parse(raw.as_bytes()).ok_or_else(|| malformed("a row that cannot be read".into()))?;
    let rows = rows.unwrap_or_default();
    if rows.len() > ROWS_MAX {
        return Err(malformed(format!("more than {ROWS_MAX} rows")));
    }
    Ok(rows)
}

/// The error of an answer without a readable envelope, such as a page of a proxy in front of the
/// broker. `wait_min` is for [`rate_limited`].
pub(super) fn not_an_envelope(
    upstream: &'static str,
    reply: &Reply,
    wait_min: Duration,
) -> BrokerError {
    match reply.status {
        429 => rate_limited(upstream, reply, wait_min),
        status @ 500.. => {
            let kind = BrokerErrorKind::Failed { status };
            let error = BrokerError::new(upstream, kind, "no envelope");
            reply
                .retry_after
                .into_iter()
                .fold(error, BrokerError::after)
        }
        status => {
            let what = format!("no envelope, HTTP {status}");
            BrokerError::new(upstream, BrokerErrorKind::Malformed, what)
        }
    }
}

/// The broker wants fewer calls. The wait is its `Retry-After`, at least `wait_min`.
pub(super) fn rate_limited(
    upstream: &'static str,
    reply: &Reply,
    wait_min: Duration,
) -> BrokerError {
    let wait = reply
        .retry_after
        .unwrap_or_default()
        .clamp(wait_min, RETRY_AFTER_MAX);
    BrokerError::new(upstream, BrokerErrorKind::RateLimited, "").after(wait)
}

// ---- History
//
// Answers of the sources of daily candles, and the days that may be requested. Pure.

/// Most days, first and last included, that one call may span: broker A refuses more, and the
/// public provider has the same limit so that either can replace the other.
pub(crate) const SPAN_DAYS_MAX: i32 = 2_000;

/// Daily candles of one instrument as its source sent them: in its order, and unchecked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DailyCandles {
    pub candles: Vec<Candle>,
    /// Days of candles that could not be read although their date could: text instead of a number,
    /// a short row, a null.
    pub unreadable: Vec<Date>,
    /// The answer carried the simulator's mark.
    pub simulated: bool,
}

impl DailyCandles {
    /// First and last date with a candle. Dates between them may be missing.
    pub fn covers(&self) -> Option<(Date, Date)> {
        let dates = || self.candles.iter().map(|candle| candle.date);
        dates().min().zip(dates().max())
    }
}

/// The first and last day of a call, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Days {
    pub(super) from: Date,
    pub(super) to: Date,
}

impl Days {
    /// # Errors
    /// [`BrokerErrorKind::Refused`] if they are in the wrong order or too many for one call.
    pub(super) fn checked(
        upstream: &'static str,
        from: Date,
        to: Date,
    ) -> Result<Self, BrokerError> {
        let days = (to - from).get_days();
        if (0..SPAN_DAYS_MAX).contains(&days) {
            return Ok(Self { from, to });
        }
        let detail = format!("candles of {days} days at once, from {from} to {to}");
        Err(BrokerError::new(upstream, BrokerErrorKind::Refused, detail))
    }

    pub(super) fn contains(&self, date: Date) -> bool {
        (self.from..=self.to).contains(&date)
    }
}

/// A candle from the wire's digits of open, high, low, close and volume; `None` if one is not a
/// number or does not fit. `round` is applied to the prices and must keep their order.
pub(super) fn candle(
    date: Date,
    values: [&str; 5],
    round: fn(Decimal) -> Decimal,
) -> Option<Candle> {
    let price = |text: &str| price_e4(round(json::parse_decimal(text)?));
    let [open, high, low, close, volume] = values;
    Some(Candle {
        date,
        open_e4: price(open)?,
        high_e4: price(high)?,
        low_e4: price(low)?,
        close_e4: price(close)?,
        volume: json::parse_decimal(volume)?.to_i64()?,
    })
}

// ---- Signing
//
// The checksums that prove a secret without sending it. Pure; runs on upstream lanes.
//
// No hashed secret may stay in memory: the hasher is used in place and wiped when dropped (sha2's
// `zeroize`), and [`wipe::scrub`] overwrites the stack that its rounds used.

/// Lower-case hexadecimal characters of a SHA-256.
const HEX_CHARS: usize = 64;

/// `prefix`, then the lower-case hexadecimal SHA-256 of the concatenated `parts`.
pub(super) fn checksum(prefix: &str, parts: &[&[u8]]) -> Zeroizing<String> {
    let sum = hashed(prefix, parts);
    wipe::scrub();
    sum
}

/// Never inlined, so that [`wipe::scrub`]'s frame covers its frame.
#[inline(never)]
fn hashed(prefix: &str, parts: &[&[u8]]) -> Zeroizing<String> {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    let mut sum = sha2::digest::Output::<Sha256>::default();
    // Finalized by reference, because a moved hasher leaves a copy of its last block.
    Digest::finalize_into_reset(&mut hasher, &mut sum);
    let mut text = Zeroizing::new(String::with_capacity(prefix.len() + HEX_CHARS));
    text.push_str(prefix);
    for byte in sum {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod history_tests {
    use super::*;

    #[test]
    fn one_call_has_its_span() {
        let to = jiff::civil::date(2026, 11, 20);
        let back = |days: i32| to.checked_sub(jiff::Span::new().days(days)).unwrap();
        for (from, good) in [
            (to, true),
            (back(SPAN_DAYS_MAX - 1), true),
            (back(SPAN_DAYS_MAX), false),
            (to.tomorrow().unwrap(), false),
        ] {
            assert_eq!(Days::checked("test", from, to).is_ok(), good, "{from}");
        }
    }

    #[test]
    fn a_candle_of_digits() {
        let date = jiff::civil::date(2026, 11, 20);
        let of = |values, round: fn(Decimal) -> Decimal| candle(date, values, round);
        let exact = of(["1705", "1.7053e3", "801.78125", "802", "2499"], |price| price).unwrap();
        assert_eq!(
            (exact.open_e4, exact.high_e4, exact.low_e4),
            (17_050_000, 17_053_000, 8_017_813)
        );
        let noisy = ["2436.199951171875", "2436.2000001", "1", "1", "12.0"];
        let rounded = of(noisy, json::rounded).unwrap();
        assert_eq!(
            (rounded.open_e4, rounded.high_e4, rounded.volume),
            (24_362_000, 24_362_000, 12)
        );
        for bad in ["null", "NaN", "\"1\"", "", "1e99", "Infinity"] {
            assert_eq!(of(["1", "1", bad, "1", "1"], |price| price), None, "{bad}");
            assert_eq!(of(["1", "1", "1", "1", bad], |price| price), None, "{bad}");
        }
    }
}

#[cfg(test)]
mod signing_tests {
    use super::*;

    #[test]
    fn agrees_with_the_check_vectors_of_both_brokers() {
        assert_eq!(
            checksum("", &[b"api_key", b"request_token", b"api_secret"]).as_str(),
            "ff6a6d3d60c9d974df906ba6f787ac38300cfa68b41801b486ea1007e52e8942"
        );
        let signed = checksum("token ", &[b"2026-10-01T10:23:56.000Z", b"{}", b"EXAMPLE_SECRET"]);
        assert_eq!(
            signed.as_str(),
            "token c6cd10b3ed73c49fb1ee40dc3137cc1026a2876526001a1617b4335152a937ae"
        );
        assert_eq!(signed.capacity(), 70, "never grown by copying");
    }
}
