//! Broker A's answers: bytes to typed values. Pure.
//!
//! Numbers keep their digits from wire to `Decimal`; times without a zone are IST. Errors are decided by
//! `error_type` first and by the HTTP status second, as the vendor's own clients do.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::civil::DateTime;
use rust_decimal::Decimal;
use secrecy::SecretString;
use serde::Deserialize;
use sonic_rs::{LazyValue, RawNumber};

use super::NAME;
use crate::base::{decimal, ist};
use crate::brokers::transport::Reply;
use crate::brokers::{FeedError, json};

/// Low byte of an instrument token that marks an index.
const INDEX_SEGMENT: u64 = 9;

/// Characters of an upstream's message that go into the log.
const MESSAGE_CHARS_MAX: usize = 120;

#[derive(Deserialize)]
struct Envelope<'a> {
    status: Option<String>,
    #[serde(borrow)]
    data: Option<LazyValue<'a>>,
    message: Option<String>,
    error_type: Option<String>,
}

/// The JSON text of `data`.
///
/// # Errors
/// What the answer says or, when it is not an envelope, what its HTTP status says.
pub fn data(reply: &Reply) -> Result<LazyValue<'_>, FeedError> {
    let Some(envelope) = json::parse::<Envelope<'_>>(&reply.body) else {
        return Err(not_an_envelope(reply));
    };
    if envelope.status.as_deref() == Some("error") || envelope.error_type.is_some() {
        return Err(reported(reply, &envelope));
    }
    match envelope.data {
        Some(data) if (200..300).contains(&reply.status) => Ok(data),
        _ => Err(not_an_envelope(reply)),
    }
}

fn reported(reply: &Reply, envelope: &Envelope<'_>) -> FeedError {
    let source_name = NAME;
    let status = reply.status;
    let kind = envelope.error_type.as_deref().unwrap_or_default();
    let message: String =
        envelope.message.as_deref().unwrap_or_default().chars().take(MESSAGE_CHARS_MAX).collect();
    let detail = format!("{kind}: {message}");
    match kind {
        "TokenException" => FeedError::TokenDead { source_name },
        "PermissionException" | "PermissionError" => FeedError::NoPermission { source_name },
        _ if status == 429 => rate_limited(reply),
        // The one case the type cannot tell: a rate limit inside another status.
        "NetworkException" if message.to_ascii_lowercase().contains("too many requests") => {
            rate_limited(reply)
        }
        "UserException" | "TwoFAException" | "InputException" | "OrderException"
        | "MarginException" | "HoldingException" => FeedError::Refused { source_name, detail },
        "" if (400..500).contains(&status) => FeedError::Refused { source_name, detail },
        // Network, Data and General, and types we do not know, which count as General.
        _ => FeedError::Upstream { source_name, status, detail },
    }
}

/// An answer without a readable envelope, such as an outage page of the edge in front of the broker.
pub(super) fn not_an_envelope(reply: &Reply) -> FeedError {
    let source_name = NAME;
    let kind = reply.content_type.as_deref().unwrap_or("no content type");
    let detail = format!("{} bytes of {kind}", reply.body.len());
    match reply.status {
        429 => rate_limited(reply),
        status if status >= 400 => FeedError::Upstream { source_name, status, detail },
        _ => FeedError::Malformed { source_name, detail },
    }
}

fn rate_limited(reply: &Reply) -> FeedError {
    FeedError::RateLimited { source_name: NAME, retry_after: reply.retry_after.unwrap_or_default() }
}

/// One instrument of `/quote` or `/quote/ohlc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuoteRow {
    pub instrument_token: u64,
    pub last_price: Decimal,
    /// `ohlc.close`: the previous session's close, in all quote calls and at every hour.
    pub previous_close: Option<Decimal>,
    /// Exchange time; `/quote/ohlc` has none.
    pub timestamp: Option<Timestamp>,
}

impl QuoteRow {
    /// Whether the token says that this is an index.
    pub fn is_index(&self) -> bool {
        self.instrument_token & 0xff == INDEX_SEGMENT
    }
}

#[derive(Deserialize)]
struct WireQuote {
    instrument_token: u64,
    last_price: RawNumber,
    timestamp: Option<String>,
    ohlc: Option<WireOhlc>,
}

#[derive(Deserialize)]
struct WireOhlc {
    close: Option<RawNumber>,
}

/// The rows of a quote answer by requested symbol; a row that cannot be read is `None`, a row that is
/// null is left out like an unknown symbol.
///
/// # Errors
/// As [`data`], and [`FeedError::Malformed`] when `data` is not a map.
pub fn quotes(reply: &Reply) -> Result<HashMap<String, Option<QuoteRow>>, FeedError> {
    let data = data(reply)?;
    let rows: HashMap<String, LazyValue<'_>> =
        sonic_rs::from_str(data.as_raw_str()).map_err(|_| FeedError::Malformed {
            source_name: NAME,
            detail: "quote data is not a map".into(),
        })?;
    Ok(rows
        .into_iter()
        .filter(|(_, row)| row.as_raw_str() != "null")
        .map(|(symbol, row)| (symbol, quote(row.as_raw_str())))
        .collect())
}

fn quote(text: &str) -> Option<QuoteRow> {
    let wire: WireQuote = sonic_rs::from_str(text).ok()?;
    Some(QuoteRow {
        instrument_token: wire.instrument_token,
        last_price: decimal::parse(wire.last_price.as_str())?,
        previous_close: wire
            .ohlc
            .and_then(|ohlc| ohlc.close)
            .and_then(|close| decimal::parse(close.as_str())),
        timestamp: wire.timestamp.as_deref().and_then(naive_ist),
    })
}

/// A fresh login.
#[derive(Debug)]
pub struct Login {
    pub access_token: SecretString,
    /// When the broker says it happened; `None` if it does not say.
    pub login_at: Option<Timestamp>,
}

#[derive(Deserialize)]
struct WireLogin {
    access_token: String,
    login_time: Option<String>,
}

/// The answer of the token exchange.
///
/// # Errors
/// As [`data`], and [`FeedError::Malformed`] without an access token.
pub fn login(reply: &Reply) -> Result<Login, FeedError> {
    let data = data(reply)?;
    let wire: Option<WireLogin> = sonic_rs::from_str(data.as_raw_str()).ok();
    match wire {
        Some(wire) if !wire.access_token.is_empty() => Ok(Login {
            access_token: wire.access_token.into(),
            login_at: wire.login_time.as_deref().and_then(naive_ist),
        }),
        _ => Err(FeedError::Malformed {
            source_name: NAME,
            detail: "session without an access token".into(),
        }),
    }
}

/// `2021-06-08 15:45:56`, meant as IST.
fn naive_ist(text: &str) -> Option<Timestamp> {
    DateTime::strptime("%Y-%m-%d %H:%M:%S", text).ok().map(ist::instant)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn reply(status: u16, body: &[u8]) -> Reply {
        Reply {
            status,
            retry_after: None,
            content_type: Some("application/json".into()),
            simulated: false,
            body: body.to_vec(),
        }
    }

    macro_rules! sample {
        ($name:literal) => {
            include_bytes!(concat!("../../../tests/fixtures/broker_a/", $name))
        };
    }

    fn only(body: &[u8]) -> QuoteRow {
        let mut rows = quotes(&reply(200, body)).unwrap();
        assert_eq!(rows.len(), 1);
        rows.remove("NSE:INFY").unwrap().unwrap()
    }

    #[test]
    fn reads_the_official_quote() {
        let row = only(sample!("quote.json"));
        assert_eq!(row.instrument_token, 408_065);
        assert_eq!(row.last_price.to_string(), "1412.95");
        assert_eq!(row.previous_close.unwrap().to_string(), "1389.65");
        assert_eq!(ist::iso(row.timestamp.unwrap()), "2021-06-08T15:45:56+05:30");
        assert!(!row.is_index());
    }

    #[test]
    fn reads_the_official_ohlc_and_ltp() {
        let row = only(sample!("ohlc.json"));
        assert_eq!(row.last_price.to_string(), "1075");
        assert_eq!(row.previous_close.unwrap().to_string(), "1075.8");
        assert_eq!(row.timestamp, None);
        let row = only(sample!("ltp.json"));
        assert_eq!((row.last_price.to_string().as_str(), row.previous_close), ("1074.35", None));
    }

    #[test]
    fn reads_the_official_session() {
        use secrecy::ExposeSecret;
        let login = login(&reply(200, sample!("generate_session.json"))).unwrap();
        assert_eq!(login.access_token.expose_secret(), "XXXXXX");
        assert_eq!(ist::iso(login.login_at.unwrap()), "2021-01-01T16:15:14+05:30");
    }

    #[test]
    fn digits_survive_and_an_index_needs_no_depth() {
        let body = br#"{"status":"success","data":{"NSE:NIFTY 50":{"instrument_token":256265,
            "last_price":24999.100000000002,"ohlc":{"close":2.5e4}}}}"#;
        let rows = quotes(&reply(200, body)).unwrap();
        let row = rows["NSE:NIFTY 50"].as_ref().unwrap();
        assert_eq!(row.last_price.to_string(), "24999.100000000002");
        assert_eq!(row.previous_close.unwrap(), Decimal::from(25_000));
        assert!(row.is_index());
    }

    #[test]
    fn a_bad_row_spoils_only_itself() {
        let body = br#"{"status":"success","data":{
            "NSE:A":{"instrument_token":1,"last_price":"abc"},
            "NSE:B":{"instrument_token":1},
            "NSE:C":[1],
            "NSE:D":null,
            "NSE:E":{"instrument_token":1,"last_price":5,"timestamp":"soon","ohlc":null},
            "NSE:F":{"instrument_token":1,"last_price":null}}}"#;
        let rows = quotes(&reply(200, body)).unwrap();
        assert!(["NSE:A", "NSE:B", "NSE:C", "NSE:F"].iter().all(|key| rows[*key].is_none()));
        assert!(!rows.contains_key("NSE:D"));
        let row = rows["NSE:E"].as_ref().unwrap();
        assert_eq!((row.timestamp, row.previous_close), (None, None));
    }

    fn kind(error: &FeedError) -> &'static str {
        match error {
            FeedError::TokenDead { .. } => "dead",
            FeedError::NoPermission { .. } => "permission",
            FeedError::RateLimited { .. } => "limited",
            FeedError::Refused { .. } => "refused",
            FeedError::Upstream { .. } => "upstream",
            FeedError::Malformed { .. } => "malformed",
            _ => "other",
        }
    }

    #[test]
    fn every_documented_error() {
        for (status, error_type, expected) in [
            (403, "TokenException", "dead"),
            (200, "TokenException", "dead"),
            (429, "TokenException", "dead"),
            (403, "PermissionException", "permission"),
            (403, "PermissionError", "permission"),
            (403, "UserException", "refused"),
            (403, "TwoFAException", "refused"),
            (400, "InputException", "refused"),
            (500, "OrderException", "refused"),
            (400, "MarginException", "refused"),
            (400, "HoldingException", "refused"),
            (503, "NetworkException", "upstream"),
            (429, "NetworkException", "limited"),
            (429, "GeneralException", "limited"),
            (502, "DataException", "upstream"),
            (504, "DataException", "upstream"),
            (500, "GeneralException", "upstream"),
            (200, "GeneralException", "upstream"),
            (403, "BrandNewException", "upstream"),
        ] {
            let body = format!(
                r#"{{"status":"error","message":"m","data":null,"error_type":"{error_type}"}}"#
            );
            let error = quotes(&reply(status, body.as_bytes())).unwrap_err();
            assert_eq!(kind(&error), expected, "{status} {error_type}");
        }
    }

    #[test]
    fn errors_by_body_and_status() {
        let limited = r#"{"status":"error","message":"Too many requests",
            "error_type":"NetworkException"}"#;
        for (status, body, expected) in [
            (200, limited, "limited"),
            (200, r#"{"error_type":"InputException"}"#, "refused"),
            (400, r#"{"status":"error","message":"x"}"#, "refused"),
            (429, r#"{"status":"error","message":"x"}"#, "limited"),
            (500, r#"{"status":"error","message":"x"}"#, "upstream"),
            (500, r#"{"status":"success","data":{}}"#, "upstream"),
            (200, r#"{"status":"success"}"#, "malformed"),
            (200, r#"{"status":"success","data":null}"#, "malformed"),
            (200, r#"{"status":"success","data":[]}"#, "malformed"),
            (200, r#"{"status":7,"data":{}}"#, "malformed"),
            (200, r#"{"status":"success","data":{}} x"#, "malformed"),
            (200, "<html>maintenance</html>", "malformed"),
            (200, "", "malformed"),
            (502, "<html>Bad Gateway</html>", "upstream"),
            (503, "", "upstream"),
            (403, "<html>blocked</html>", "upstream"),
            (429, "slow down", "limited"),
            (302, "", "malformed"),
        ] {
            let error = quotes(&reply(status, body.as_bytes())).unwrap_err();
            assert_eq!(kind(&error), expected, "{status} {body}");
        }
    }

    #[test]
    fn nothing_known_is_an_empty_map() {
        let body = br#"{"status":"success","data":{}}"#;
        assert!(quotes(&reply(200, body)).unwrap().is_empty());
    }

    #[test]
    fn deep_nesting_is_refused_without_a_crash() {
        let body = [br#"{"status":"success","data":"#.to_vec(), vec![b'['; 1_000_000]].concat();
        quotes(&reply(200, &body)).unwrap_err();
        let row = [br#"{"data":{"NSE:A":"#.to_vec(), vec![b'{'; 1_000_000]].concat();
        quotes(&reply(200, &row)).unwrap_err();
    }

    #[test]
    fn a_message_in_an_error_is_cut() {
        let body = format!(r#"{{"status":"error","message":"{}"}}"#, "é".repeat(10_000));
        let text = quotes(&reply(400, body.as_bytes())).unwrap_err().to_string();
        assert!(text.chars().count() < 300, "{text}");
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(status in 100_u16..999, body: Vec<u8>) {
            let reply = reply(status, &body);
            let _ = (quotes(&reply), login(&reply));
        }

        /// Damage to a good answer: cut, and one byte replaced.
        #[test]
        fn damaged_answers_never_panic(cut in 0_usize..1_300, at in 0_usize..1_300, byte: u8) {
            let mut body = sample!("quote.json").to_vec();
            let last = body.len() - 1;
            body[at.min(last)] = byte;
            let _ = quotes(&reply(200, &body));
            body.truncate(cut);
            let _ = quotes(&reply(200, &body));
        }

        #[test]
        fn arbitrary_numbers_never_panic(number in r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,12})?") {
            let body = format!(
                r#"{{"data":{{"NSE:A":{{"instrument_token":1,"last_price":{number}}}}}}}"#
            );
            let _ = quotes(&reply(200, body.as_bytes()));
        }
    }
}
