//! The documented replies of broker A.

use super::{BrokerErrorKind, DocumentedReply as Reply};

const SESSION: &str = "POST /session/token";
const HOLDINGS: &str = "GET /portfolio/holdings";
const POSITIONS: &str = "GET /portfolio/positions";

const OUTAGE: &str = "<html><head><title>502 Bad Gateway</title></head><body></body></html>";

macro_rules! error {
    ($kind:literal, $message:literal) => {
        concat!(
            r#"{"status":"error","message":""#,
            $message,
            r#"","data":null,"error_type":""#,
            $kind,
            r#""}"#
        )
    };
}

use BrokerErrorKind::{
    AccountProblem, CodeRefused, Failed, KeyRefused, Malformed, NotPermitted, RateLimited,
    Redirected, SecondFactorProblem,
};

/// The list, by call.
#[rustfmt::skip]
pub(crate) const REPLIES: &[Reply] = &[
    Reply::json(SESSION, "request token wrong, used or too old", 403,
        error!("TokenException", "Token is invalid or has expired."), Some(CodeRefused)),
    Reply::json(SESSION, "API secret wrong", 403,
        error!("TokenException", "Invalid `checksum`."), Some(KeyRefused)),
    Reply::json(SESSION, "API key wrong", 403,
        error!("TokenException", "Invalid `api_key`."), Some(KeyRefused)),
    Reply::json(SESSION, "API key wrong", 400,
        error!("InputException", "Invalid `api_key`."), Some(KeyRefused)),
    Reply::json(SESSION, "request token missing or misshapen", 400,
        error!("InputException", "Missing or empty field `request_token`"), Some(CodeRefused)),
    Reply::json(SESSION, "account has a problem", 403,
        error!("UserException", "User account is not active."), Some(AccountProblem)),
    Reply::json(SESSION, "second factor has a problem", 403,
        error!("TwoFAException", "Two factor authentication is pending."),
        Some(SecondFactorProblem)),
    Reply::json(SESSION, "app not permitted", 403,
        error!("PermissionException", "The user is not enabled for the app."), Some(NotPermitted)),
    Reply::json(SESSION, "too many requests", 429,
        error!("NetworkException", "Too many requests"), Some(RateLimited)),
    Reply::page(SESSION, "redirect, which is not followed", 302, "", Redirected),
    Reply::json(SESSION, "success without an access token", 200,
        r#"{"status":"success","data":{"user_id":"XX0000","access_token":""}}"#, Some(Malformed)),
    Reply::json(HOLDINGS, "session ended in between", 403,
        error!("TokenException", "Incorrect `api_key` or `access_token`."), Some(CodeRefused)),
    Reply::json(HOLDINGS, "app lacks the permission", 403,
        error!("PermissionException", "Insufficient permission for that call."),
        Some(NotPermitted)),
    Reply::json(HOLDINGS, "app lacks the permission, other spelling", 403,
        error!("PermissionError", "Insufficient permission for that call."), Some(NotPermitted)),
    Reply::json(HOLDINGS, "account has a problem", 403,
        error!("UserException", "User account is not active."), Some(AccountProblem)),
    Reply::json(HOLDINGS, "second factor has a problem", 403,
        error!("TwoFAException", "Two factor authentication is pending."),
        Some(SecondFactorProblem)),
    Reply::json(HOLDINGS, "bad parameter, though there are none", 400,
        error!("InputException", "Invalid parameter."), Some(Malformed)),
    Reply::json(HOLDINGS, "error of orders (Python client's status)", 500,
        error!("OrderException", "Order request failed."), Some(Failed { status: 500 })),
    Reply::json(HOLDINGS, "error of orders (Go client's status)", 400,
        error!("OrderException", "Order request failed."), Some(Failed { status: 400 })),
    Reply::json(HOLDINGS, "error of margins", 400,
        error!("MarginException", "Insufficient funds."), Some(Failed { status: 400 })),
    Reply::json(HOLDINGS, "error of holdings in orders", 428,
        error!("HoldingException", "Insufficient holdings."), Some(Failed { status: 428 })),
    Reply::json(HOLDINGS, "broker's order system unreachable", 503,
        error!("NetworkException", "Gateway timed out."), Some(Failed { status: 503 })),
    Reply::json(HOLDINGS, "too many requests", 429,
        error!("NetworkException", "Too many requests"), Some(RateLimited)),
    Reply::json(HOLDINGS, "too many requests under another status", 503,
        error!("NetworkException", "Too many requests"), Some(RateLimited)),
    Reply::json(HOLDINGS, "bad answer of the back end (Python client's status)", 502,
        error!("DataException", "Unknown Content-Type received."), Some(Failed { status: 502 })),
    Reply::json(HOLDINGS, "bad answer of the back end (Go client's status)", 504,
        error!("DataException", "Error fetching data."), Some(Failed { status: 504 })),
    Reply::json(HOLDINGS, "unclassified error", 500,
        error!("GeneralException", "Something went wrong. Please try again."),
        Some(Failed { status: 500 })),
    Reply::json(HOLDINGS, "error inside a 200", 200,
        error!("GeneralException", "Something went wrong. Please try again."),
        Some(Failed { status: 200 })),
    Reply::json(HOLDINGS, "error type that nobody documents", 418,
        error!("TeapotException", "I am one."), Some(Failed { status: 418 })),
    Reply::json(HOLDINGS, "error without a type", 404,
        r#"{"status":"error","message":"Route not found"}"#, Some(Malformed)),
    Reply::json(HOLDINGS, "route gone", 410,
        error!("GeneralException", "Gone"), Some(Failed { status: 410 })),
    Reply::page(HOLDINGS, "page of the edge in front of the broker", 502, OUTAGE,
        Failed { status: 502 }),
    Reply::page(HOLDINGS, "page of the edge in front of the broker", 429, OUTAGE, RateLimited),
    Reply::page(HOLDINGS, "page of somebody with a 200", 200, OUTAGE, Malformed),
    Reply::page(HOLDINGS, "page of a firewall", 403, OUTAGE, Malformed),
    Reply::page(HOLDINGS, "redirect, which is not followed", 307, OUTAGE, Redirected),
    Reply::page(HOLDINGS, "empty body", 200, "", Malformed),
    Reply::page(HOLDINGS, "empty body of an outage", 503, "", Failed { status: 503 }),
    Reply::json(HOLDINGS, "success without data", 200, r#"{"status":"success"}"#, Some(Malformed)),
    Reply::json(HOLDINGS, "row without quantity", 200,
        r#"{"status":"success","data":[{"tradingsymbol":"INFY","exchange":"NSE"}]}"#,
        Some(Malformed)),
    Reply::json(HOLDINGS, "account with nothing", 200, r#"{"status":"success","data":[]}"#, None),
    Reply::json(HOLDINGS, "account with nothing, as null", 200,
        r#"{"status":"success","data":null}"#, None),
    Reply::json(POSITIONS, "session ended in between", 403,
        error!("TokenException", "Incorrect `api_key` or `access_token`."), Some(CodeRefused)),
    Reply::json(POSITIONS, "success without its lists", 200,
        r#"{"status":"success","data":[]}"#, Some(Malformed)),
    Reply::json(POSITIONS, "no trades", 200,
        r#"{"status":"success","data":{"net":[],"day":[]}}"#, None),
    Reply::json(POSITIONS, "no trades, as null", 200,
        r#"{"status":"success","data":{"net":null,"day":null}}"#, None),
    Reply::json(POSITIONS, "no data, as null", 200, r#"{"status":"success","data":null}"#, None),
];
