//! The documented replies of broker B.

use super::{BrokerErrorKind, DocumentedReply as Reply};

const SESSION: &str = "GET customerdetails";
const DEMAT: &str = "GET dematholdings";
const PORTFOLIO: &str = "GET portfolioholdings";
const POSITIONS: &str = "GET portfoliopositions";

const OUTAGE: &str = "<html><body><h1>503 Service Unavailable</h1></body></html>";

macro_rules! error {
    ($status:literal, $text:literal) => {
        concat!(r#"{"Success":null,"Status":"#, $status, r#","Error":""#, $text, r#""}"#)
    };
}

use BrokerErrorKind::{
    AddressRefused, CodeRefused, Failed, KeyRefused, KeySpent, Malformed, RateLimited, Redirected,
};

/// The list, by call.
#[rustfmt::skip]
pub(crate) const REPLIES: &[Reply] = &[
    Reply::json(SESSION, "api_session wrong, used or too old", 200,
        error!("500", "Invalid session."), Some(CodeRefused)),
    Reply::json(SESSION, "API key wrong", 200,
        error!("500", "Public Key does not exist."), Some(KeyRefused)),
    Reply::json(SESSION, "API key wrong, spelled another way", 500,
        error!("500", "PUBLIC  KEY  does not exist"), Some(KeyRefused)),
    Reply::json(SESSION, "user unknown (after one retry)", 200,
        error!("500", "Invalid User Details"), Some(CodeRefused)),
    Reply::json(SESSION, "success without a session token", 200,
        r#"{"Success":{"idirect_userid":"XY604721"},"Status":200,"Error":null}"#, Some(Malformed)),
    Reply::json(SESSION, "nothing, where there has to be something", 200,
        error!("200", "No Data Found"), Some(Malformed)),
    Reply::page(SESSION, "wrong method, says the server", 405, OUTAGE, Malformed),
    Reply::page(SESSION, "redirect, which is not followed", 302, "", Redirected),
    Reply::json(DEMAT, "API secret wrong, or a clock", 401,
        r#"{"Status":5,"Error":"Authentication Fail :: Invalid Checksum."}"#, Some(KeyRefused)),
    Reply::json(DEMAT, "API secret wrong, or a clock, with HTTP 200", 200,
        r#"{"Status":5,"Error":"authentication fail::invalid checksum"}"#, Some(KeyRefused)),
    Reply::json(DEMAT, "session ended", 200,
        error!("500", "Resource not available."), Some(CodeRefused)),
    Reply::json(DEMAT, "session ended, spelled another way", 500,
        error!("500", "RESOURCE NOT  AVAILABLE"), Some(CodeRefused)),
    Reply::json(DEMAT, "session token in its decoded form", 401,
        r#"{"Status":5,"Error":"Invalid length for a Base-64 char array or string."}"#,
        Some(CodeRefused)),
    Reply::json(DEMAT, "user unknown (after one retry)", 500,
        error!("500", "Invalid User Details"), Some(CodeRefused)),
    Reply::json(DEMAT, "minute's limit", 401,
        r#"{"Status":5,"Error":"Limit exceed: API call per minute:Try after some time"}"#,
        Some(KeySpent)),
    Reply::json(DEMAT, "minute's limit", 429,
        r#"{"Status":5,"Error":"Limit exceed: API call per minute:Try after some time"}"#,
        Some(KeySpent)),
    Reply::json(DEMAT, "minute's limit", 503,
        r#"{"Success":null,"Status":5,"Error":"LIMIT EXCEED : api call per minute"}"#,
        Some(KeySpent)),
    Reply::json(DEMAT, "day's limit", 401,
        r#"{"Status":5,"Error":"Limit exceed: API call per day: Try tomorrow"}"#,
        Some(KeySpent)),
    Reply::json(DEMAT, "call from an address that is not registered", 403,
        error!("5", "Request IP Address does not match the registered one"),
        Some(AddressRefused)),
    Reply::json(DEMAT, "back end failed", 200,
        error!("500", "Error while calling service, Please contact admin (42)"),
        Some(Failed { status: 200 })),
    Reply::json(DEMAT, "candles' back end failed", 200,
        error!("500", "Historical Data Fail"), Some(Failed { status: 200 })),
    Reply::json(DEMAT, "text that nobody documents", 200,
        error!("500", "The moon is in the wrong house"), Some(Failed { status: 200 })),
    Reply::page(DEMAT, "page of an outage", 503, OUTAGE, Failed { status: 503 }),
    Reply::page(DEMAT, "page of maintenance with a 200", 200, OUTAGE, Malformed),
    Reply::page(DEMAT, "page of too many requests", 429, OUTAGE, RateLimited),
    Reply::page(DEMAT, "page of a firewall", 403, OUTAGE, Malformed),
    Reply::page(DEMAT, "redirect, which is not followed", 307, OUTAGE, Redirected),
    Reply::page(DEMAT, "empty body", 200, "", Malformed),
    Reply::json(DEMAT, "no rows and no word of why", 200,
        r#"{"Success":null,"Status":200,"Error":null}"#, Some(Malformed)),
    Reply::json(DEMAT, "no rows, but a status of failure", 200,
        r#"{"Success":[],"Status":500,"Error":null}"#, Some(Malformed)),
    Reply::json(DEMAT, "row without quantity", 200,
        r#"{"Success":[{"stock_code":"UNITEC","stock_ISIN":"INE694A01020"}],"Status":200}"#,
        Some(Malformed)),
    Reply::json(DEMAT, "account with nothing", 200,
        r#"{"Success":[],"Status":200,"Error":null}"#, None),
    Reply::json(DEMAT, "account with nothing, in words", 200,
        error!("200", "No Data Found"), None),
    Reply::json(DEMAT, "account with nothing, with a status of failure", 500,
        error!("500", "no data  found."), None),
    Reply::json(PORTFOLIO, "account with nothing, as empty text", 200,
        r#"{"Success":"","Status":404,"Error":"No Data Found"}"#, None),
    Reply::json(PORTFOLIO, "account with nothing, without the member", 200,
        r#"{"Status":200,"Error":"NO DATA FOUND"}"#, None),
    Reply::json(PORTFOLIO, "day's limit", 429,
        r#"{"Status":5,"Error":"Limit exceed: API call per day: Try tomorrow"}"#,
        Some(KeySpent)),
    Reply::json(POSITIONS, "no trades", 200, r#"{"Success":[],"Status":200,"Error":null}"#, None),
    Reply::json(POSITIONS, "no trades, in words", 200,
        r#"{"Success":"","Status":200,"Error":"No Data Found"}"#, None),
    Reply::json(POSITIONS, "session ended", 200,
        error!("500", "Resource not available."), Some(CodeRefused)),
];
