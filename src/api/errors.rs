//! Turns the errors of lower layers into answers, with their cause for the log. Pure.
//!
//! The broker's own text goes into the log and is never shown, because it may contain anything.

use std::time::Duration;

use crate::api::broker_errors::whole_seconds;
use crate::auth::{AccountError, CryptoError, KeyRefusal, NoKey, Unidentified, Weakness};
use crate::base::limiter::TooEarly;
use crate::http::{EntityTag, Named, Problem, Request};
use crate::store::StoreError;

/// `Retry-After` of a full queue or a late answer.
const SOON_S: u64 = 1;
/// `Retry-After` of a database that cannot be used.
const STORE_RETRY_S: u64 = 5;

/// A public demo refuses what would change anything. `allow` are the methods that remain.
pub(super) fn read_only(allow: String) -> Problem {
    let detail = "This is a public demo: its accounts are read only, and it keeps nothing of its \
                  visitors.";
    Problem::new(405, "method_not_allowed", detail).with("Allow", allow)
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let busy = "Too much is waiting to be stored.";
        let problem = match &error {
            StoreError::EmailTaken => {
                let problem =
                    Problem::new(400, "email_taken", "This e-mail is registered already.");
                return problem.field("email", "Registered already.");
            }
            // Registration reports it with a code of its own.
            StoreError::NotFirst => Problem::internal(),
            StoreError::NoSuchUser => return unidentified(Unidentified::Invalid),
            StoreError::TooMany { what, limit } => {
                let detail = format!("At most {limit} {what} are kept for a user.");
                return Problem::new(409, "limit_reached", detail);
            }
            StoreError::NotAsExpected => return Problem::precondition_failed(),
            // Only writes of the leader get this error, and no request makes one.
            StoreError::Deposed => Problem::internal(),
            StoreError::TurnLost => {
                let detail = "Another sync or deletion of yours came first, since this one took \
                              too long; nothing was stored.";
                Problem::unavailable("store_busy", detail, SOON_S)
            }
            // The sync handler answers this case itself.
            StoreError::OtherBrokerUser { .. } | StoreError::NoHoldings { .. } => {
                Problem::internal()
            }
            StoreError::Busy => Problem::unavailable("store_busy", busy, SOON_S),
            StoreError::Late => {
                let detail = "The database did not answer in time; it may still do what was asked.";
                Problem::unavailable("store_late", detail, SOON_S)
            }
            StoreError::Unavailable(_) => store_unavailable(),
            StoreError::NewerRow { what, .. } => {
                let detail = format!(
                    "Your {what} were stored by a newer version of this service; this one leaves \
                     them as they are."
                );
                Problem::new(500, "internal_error", detail)
            }
            StoreError::Damaged(_) => Problem::internal(),
        };
        problem.because(error)
    }
}

impl From<AccountError> for Problem {
    fn from(error: AccountError) -> Self {
        match error {
            // One code for all embedded lists; the detail has the kind.
            AccountError::WeakPassword(weakness) => {
                let detail = format!("This password is {}; choose another.", weakness.as_str());
                match weakness {
                    Weakness::Repeated => Problem::new(400, "password_repetitive", detail),
                    _ => Problem::new(400, "password_too_common", detail),
                }
            }
            AccountError::WrongPassword => {
                let detail = "E-mail and password do not match.";
                let problem = Problem::new(401, "invalid_credentials", detail);
                problem.with("WWW-Authenticate", "Bearer")
            }
            AccountError::Disabled => {
                Problem::new(403, "account_disabled", "The operator has disabled this account.")
            }
            AccountError::Closed => {
                Problem::new(403, "registration_closed", "This service takes no new accounts.")
            }
            AccountError::Throttled(early)
            | AccountError::Crypto(CryptoError::Throttled(early)) => {
                too_early("too_many_attempts", "Too many attempts; wait before the next.", early)
            }
            AccountError::Crypto(CryptoError::Failed(cause)) => Problem::internal().because(cause),
            AccountError::Crypto(error) => {
                let detail = "Too many are logging in at this moment.";
                Problem::unavailable("login_busy", detail, SOON_S).because(error)
            }
            AccountError::Store(error) => error.into(),
            AccountError::Unsigned(error) => Problem::internal().because(error),
        }
    }
}

/// What proxies append to a strong tag when they compress: Apache, Caddy and Jetty.
const TAG_SUFFIXES: [&[u8]; 8] = [
    b"-gzip",
    b";gzip",
    b"--gzip",
    b"-br",
    b";br",
    b"-zstd",
    b"-deflate",
    b"-df",
];

/// A precondition that fails for as long as a proxy changes the tags of answers: reading again
/// brings the same tag. `None` where the tags are as this service sends them.
pub(super) fn altered_tag(request: &Request<'_>) -> Option<Problem> {
    let Some(Named::Tags(tags)) = request.preconditions().named_if_match() else {
        return None;
    };
    let inner = |tag: &EntityTag<'_>| tag.opaque[1..tag.opaque.len() - 1].to_vec();
    let is_coded = |tag: &EntityTag<'_>| {
        TAG_SUFFIXES
            .iter()
            .any(|suffix| inner(tag).ends_with(suffix))
    };
    let how = match tags.iter().find(|tag| tag.weak || is_coded(tag))? {
        tag if tag.weak => "weak (W/\"...\"), which never matches",
        _ => "not one of this service's own, but has a coding at its end",
    };
    let detail = format!(
        "The tag in If-Match is {how}: a proxy that compresses made it so, and reading again \
         brings the same. Nothing was done. Send the revision that stands in what you read: in \
         quotes as If-Match, or in the body of a PUT as revision."
    );
    Some(Problem::new(412, "precondition_failed", detail))
}

/// The page of a request is not known to be of this site. Names what the browser and what the proxy
/// said, since a `Host` that a proxy changed looks the same as an attack.
pub(super) fn cross_site(request: &Request<'_>, what: &str) -> Problem {
    let shown = |value: &[u8]| match value.split_at_checked(SHOWN_BYTES_MAX) {
        Some((start, _)) => format!("{}...", String::from_utf8_lossy(start)),
        None => String::from_utf8_lossy(value).into_owned(),
    };
    let why = match request.origin() {
        None => "It has no Origin. A program sends the token as Authorization: Bearer.".to_owned(),
        Some(b"" | b"null") => {
            "Its Origin names no site, as that of a file or of a page in a sandbox.".to_owned()
        }
        Some(origin) => format!(
            "It comes from a page of {}, and its Host is {}. If both are this site, the proxy in \
             front changes Host: it must pass Host on as the browser sent it, with the port \
             (nginx: proxy_set_header Host $http_host). A page of another site must be named in \
             BHAV_ALLOWED_ORIGINS.",
            shown(origin),
            request.header("host").map_or("missing".into(), shown)
        ),
    };
    let detail = format!("{what} must come from a page of this site. {why}");
    Problem::new(403, "cross_site_request", detail)
}

/// Bytes of a request's header that an answer shows. Names of hosts are shorter.
const SHOWN_BYTES_MAX: usize = 100;

/// The user has changed too much within a minute; nothing was written.
pub(super) fn too_many_writes(throttled: TooEarly) -> Problem {
    let detail = "You have changed too much within a minute; nothing was written.";
    too_early("too_many_writes", detail, throttled)
}

/// A limit was reached; `Retry-After` has the whole seconds until another attempt is admitted.
pub(super) fn too_early(code: &'static str, detail: &'static str, throttled: TooEarly) -> Problem {
    let wait = Duration::from_millis(throttled.retry_after_ms);
    Problem::new(429, code, detail).with("Retry-After", whole_seconds(wait).to_string())
}

fn store_unavailable() -> Problem {
    let detail = "The database cannot be used at the moment.";
    Problem::unavailable("store_unavailable", detail, STORE_RETRY_S)
}

/// RFC 6750 3: the error is named only where a token was sent.
pub(super) fn unidentified(why: Unidentified) -> Problem {
    match why {
        Unidentified::Missing => {
            let problem = Problem::new(401, "token_missing", "This needs an access token.");
            problem.with("WWW-Authenticate", "Bearer")
        }
        Unidentified::Invalid => {
            let detail = "The access token is not valid, or not any more.";
            let problem = Problem::new(401, "token_invalid", detail);
            problem.with("WWW-Authenticate", "Bearer error=\"invalid_token\"")
        }
        Unidentified::Ambiguous | Unidentified::Crowded => {
            let detail = cookies_refused(why).unwrap_or_default();
            let problem = Problem::new(401, "token_invalid", detail);
            problem.with("WWW-Authenticate", "Bearer error=\"invalid_token\"")
        }
        Unidentified::Unready => {
            store_unavailable().because("what is revoked could not be read from the store")
        }
    }
}

/// Why none of the browser's cookies counts, where logging in again would not help.
pub(super) fn cookies_refused(why: Unidentified) -> Option<&'static str> {
    match why {
        Unidentified::Ambiguous => Some(
            "The browser sent several cookies access_token_cookie, which are logins of different \
             accounts. Delete the cookies of this host name and of the domains above it, then log \
             in again.",
        ),
        Unidentified::Crowded => Some(
            "The browser sent more cookies access_token_cookie than are checked, and none of the \
             first is a login. Delete the cookies of this host name and of the domains above it, \
             then log in again.",
        ),
        _ => None,
    }
}

/// The request's API key is not valid, or there is none where one must be.
pub(super) fn no_key(why: NoKey) -> Problem {
    match why {
        NoKey::Refused(why) => key_refused(why),
        NoKey::TooEarly(throttled) => {
            let detail = "This API key has made too many requests; wait before the next.";
            too_early("too_many_requests", detail, throttled)
        }
        NoKey::SeveralLines => {
            let detail = "Send one Authorization header.";
            Problem::new(400, "malformed_request", detail)
        }
        NoKey::Unready => unidentified(Unidentified::Unready),
    }
}

/// A route that takes an API key and nothing else.
pub(super) fn key_missing() -> Problem {
    let detail = "This takes an API key, as Authorization: Bearer; a login is not accepted here.";
    Problem::new(401, "key_missing", detail).with("WWW-Authenticate", "Bearer")
}

/// A request with an API key that is refused. RFC 6750 3.1 names the errors.
pub(super) fn key_refused(why: KeyRefusal) -> Problem {
    let (status, code, detail) = match why {
        KeyRefusal::Invalid => (401, "key_invalid", "The API key is not valid, or not any more."),
        KeyRefusal::Expired => (401, "key_expired", "The API key has expired."),
        KeyRefusal::Scope => {
            (403, "scope_missing", "The API key does not have the scope for this.")
        }
        KeyRefusal::Login => {
            (403, "login_required", "This takes a login; no API key is accepted here.")
        }
        KeyRefusal::Query => (
            400,
            "key_in_query",
            "An API key belongs into the header Authorization and never into an address, which \
             many programs write down. Revoke this one.",
        ),
        KeyRefusal::Rate => return no_key(NoKey::TooEarly(TooEarly { retry_after_ms: 0 })),
    };
    let problem = Problem::new(status, code, detail);
    match status {
        401 => problem.with("WWW-Authenticate", "Bearer error=\"invalid_token\""),
        _ => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_its_answer_and_shows_no_cause() {
        let too_many = StoreError::TooMany {
            what: "journal entries",
            limit: 3,
        };
        for (error, status, code) in [
            (StoreError::EmailTaken, 400, "email_taken"),
            (StoreError::NoSuchUser, 401, "token_invalid"),
            (too_many, 409, "limit_reached"),
            (StoreError::NotAsExpected, 412, "precondition_failed"),
            (StoreError::Deposed, 500, "internal_error"),
            (StoreError::TurnLost, 503, "store_busy"),
            (StoreError::Busy, 503, "store_busy"),
            (StoreError::Late, 503, "store_late"),
            (StoreError::Unavailable("disk /x is full".into()), 503, "store_unavailable"),
            (StoreError::Damaged("a date"), 500, "internal_error"),
            (
                StoreError::NewerRow {
                    what: "watch lists",
                    found: 2,
                    known: 1,
                },
                500,
                "internal_error",
            ),
        ] {
            let problem = Problem::from(error);
            assert_eq!((problem.status, problem.code), (status, code));
            let names: Vec<&str> = problem.headers.iter().map(|(name, _)| *name).collect();
            assert_eq!(names.contains(&"Retry-After"), status == 503, "{code}");
            assert_eq!(names.contains(&"WWW-Authenticate"), status == 401, "{code}");
            assert!(!problem.detail.contains("disk"), "{code}");
        }
    }
}
