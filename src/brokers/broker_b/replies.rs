//! Every documented reply of broker B to a sync, and what we make of it. Constant data; the tests
//! of the answers' reader go through it, and the table in the documentation is made of it.

use crate::brokers::{DocumentedReply, SyncErrorKind};

const SESSION: &str = "GET customerdetails";
const DEMAT: &str = "GET dematholdings";
const PORTFOLIO: &str = "GET portfolioholdings";
const POSITIONS: &str = "GET portfoliopositions";
const JSON: &str = "application/json";
const HTML: &str = "text/html";

const OUTAGE: &str = "<html><body><h1>503 Service Unavailable</h1></body></html>";

macro_rules! error {
    ($status:literal, $text:literal) => {
        concat!(r#"{"Success":null,"Status":"#, $status, r#","Error":""#, $text, r#""}"#)
    };
}

const fn reply(
    call: &'static str,
    meaning: &'static str,
    http_status: u16,
    body: &'static str,
    answer: Option<SyncErrorKind>,
) -> DocumentedReply {
    DocumentedReply { call, meaning, http_status, content_type: JSON, body, answer }
}

const fn page(
    call: &'static str,
    meaning: &'static str,
    http_status: u16,
    body: &'static str,
    answer: SyncErrorKind,
) -> DocumentedReply {
    DocumentedReply { call, meaning, http_status, content_type: HTML, body, answer: Some(answer) }
}

use SyncErrorKind::{AddressRefused, CodeRefused, KeyRefused, Malformed, RateLimited, Unavailable};

/// The list, by call.
#[rustfmt::skip]
pub const REPLIES: &[DocumentedReply] = &[
    reply(SESSION, "api_session wrong, used or too old", 200,
        error!("500", "Invalid session."), Some(CodeRefused)),
    reply(SESSION, "API key wrong", 200,
        error!("500", "Public Key does not exist."), Some(KeyRefused)),
    reply(SESSION, "API key wrong, spelled another way", 500,
        error!("500", "PUBLIC  KEY  does not exist"), Some(KeyRefused)),
    reply(SESSION, "user unknown (after one retry)", 200,
        error!("500", "Invalid User Details"), Some(CodeRefused)),
    reply(SESSION, "success without a session token", 200,
        r#"{"Success":{"idirect_userid":"XY604721"},"Status":200,"Error":null}"#, Some(Malformed)),
    reply(SESSION, "nothing, where there has to be something", 200,
        error!("200", "No Data Found"), Some(Malformed)),
    page(SESSION, "wrong method, says the server", 405, OUTAGE, Malformed),
    reply(DEMAT, "API secret wrong, or a clock", 401,
        r#"{"Status":5,"Error":"Authentication Fail :: Invalid Checksum."}"#, Some(KeyRefused)),
    reply(DEMAT, "API secret wrong, or a clock, with HTTP 200", 200,
        r#"{"Status":5,"Error":"authentication fail::invalid checksum"}"#, Some(KeyRefused)),
    reply(DEMAT, "session ended", 200,
        error!("500", "Resource not available."), Some(CodeRefused)),
    reply(DEMAT, "session ended, spelled another way", 500,
        error!("500", "RESOURCE NOT  AVAILABLE"), Some(CodeRefused)),
    reply(DEMAT, "session token in its decoded form", 401,
        r#"{"Status":5,"Error":"Invalid length for a Base-64 char array or string."}"#,
        Some(CodeRefused)),
    reply(DEMAT, "user unknown (after one retry)", 500,
        error!("500", "Invalid User Details"), Some(CodeRefused)),
    reply(DEMAT, "minute's limit", 401,
        r#"{"Status":5,"Error":"Limit exceed: API call per minute:Try after some time"}"#,
        Some(RateLimited)),
    reply(DEMAT, "minute's limit", 429,
        r#"{"Status":5,"Error":"Limit exceed: API call per minute:Try after some time"}"#,
        Some(RateLimited)),
    reply(DEMAT, "minute's limit", 503,
        r#"{"Success":null,"Status":5,"Error":"LIMIT EXCEED : api call per minute"}"#,
        Some(RateLimited)),
    reply(DEMAT, "day's limit", 401,
        r#"{"Status":5,"Error":"Limit exceed: API call per day: Try tomorrow"}"#,
        Some(RateLimited)),
    reply(DEMAT, "call from an address that is not registered", 403,
        error!("5", "Request IP Address does not match the registered one"),
        Some(AddressRefused)),
    reply(DEMAT, "back end failed", 200,
        error!("500", "Error while calling service, Please contact admin (42)"),
        Some(Unavailable)),
    reply(DEMAT, "candles' back end failed", 200,
        error!("500", "Historical Data Fail"), Some(Unavailable)),
    reply(DEMAT, "text that nobody documents", 200,
        error!("500", "The moon is in the wrong house"), Some(Unavailable)),
    page(DEMAT, "page of an outage", 503, OUTAGE, Unavailable),
    page(DEMAT, "page of maintenance with a 200", 200, OUTAGE, Malformed),
    page(DEMAT, "page of too many requests", 429, OUTAGE, RateLimited),
    page(DEMAT, "page of a firewall", 403, OUTAGE, Malformed),
    page(DEMAT, "empty body", 200, "", Malformed),
    reply(DEMAT, "no rows and no word of why", 200,
        r#"{"Success":null,"Status":200,"Error":null}"#, Some(Malformed)),
    reply(DEMAT, "no rows, but a status of failure", 200,
        r#"{"Success":[],"Status":500,"Error":null}"#, Some(Malformed)),
    reply(DEMAT, "row without quantity", 200,
        r#"{"Success":[{"stock_code":"UNITEC","stock_ISIN":"INE694A01020"}],"Status":200}"#,
        Some(Malformed)),
    reply(DEMAT, "account with nothing", 200,
        r#"{"Success":[],"Status":200,"Error":null}"#, None),
    reply(DEMAT, "account with nothing, in words", 200,
        error!("200", "No Data Found"), None),
    reply(DEMAT, "account with nothing, with a status of failure", 500,
        error!("500", "no data  found."), None),
    reply(PORTFOLIO, "account with nothing, as empty text", 200,
        r#"{"Success":"","Status":404,"Error":"No Data Found"}"#, None),
    reply(PORTFOLIO, "account with nothing, without the member", 200,
        r#"{"Status":200,"Error":"NO DATA FOUND"}"#, None),
    reply(PORTFOLIO, "day's limit", 429,
        r#"{"Status":5,"Error":"Limit exceed: API call per day: Try tomorrow"}"#,
        Some(RateLimited)),
    reply(POSITIONS, "no trades", 200, r#"{"Success":[],"Status":200,"Error":null}"#, None),
    reply(POSITIONS, "no trades, in words", 200,
        r#"{"Success":"","Status":200,"Error":"No Data Found"}"#, None),
    reply(POSITIONS, "session ended", 200,
        error!("500", "Resource not available."), Some(CodeRefused)),
];
