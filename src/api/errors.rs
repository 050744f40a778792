//! Turns the errors of lower layers into answers, with their cause for the log. Pure.
//!
//! The broker's own text goes into the log and is never shown, because it may contain anything.

use std::time::Duration;

use crate::api::portfolio::export;
use crate::auth::{AccountError, CryptoError, KeyRefusal, NoKey, Unidentified, Weakness};
use crate::base::Broker;
use crate::base::limiter::TooEarly;
use crate::brokers::{BrokerError, BrokerErrorKind as Kind, Readiness};
use crate::http::{EntityTag, Named, Problem, Request};
use crate::portfolio::Overflow;
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
const TAG_SUFFIXES: [&[u8]; 8] =
    [b"-gzip", b";gzip", b"--gzip", b"-br", b";br", b"-zstd", b"-deflate", b"-df"];

/// A precondition that fails for as long as a proxy changes the tags of answers: reading again
/// brings the same tag. `None` where the tags are as this service sends them.
pub(super) fn altered_tag(request: &Request<'_>) -> Option<Problem> {
    let Some(Named::Tags(tags)) = request.preconditions().named_if_match() else { return None };
    let inner = |tag: &EntityTag<'_>| tag.opaque[1..tag.opaque.len() - 1].to_vec();
    let is_coded =
        |tag: &EntityTag<'_>| TAG_SUFFIXES.iter().any(|suffix| inner(tag).ends_with(suffix));
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

// ---- Portfolio
//
// Answers if a portfolio's response could not be computed, or if the user has to wait before a call
// to the broker.

/// `Retry-After` of a full queue, or of another request of the same user.
const BUSY_RETRY_S: u64 = 5;
/// `Retry-After` of a full lane whose jobs are short.
const LANE_RETRY_S: u64 = 1;

impl From<Overflow> for Problem {
    fn from(error: Overflow) -> Self {
        Self::internal().because(error)
    }
}

impl From<export::Crowded> for Problem {
    fn from(export::Crowded: export::Crowded) -> Self {
        let detail = "Too many long exports are under way.";
        Self::unavailable("export_busy", detail, BUSY_RETRY_S)
    }
}

/// The user has tried to sync too often; no broker was called.
pub(super) fn too_many_attempts(throttled: TooEarly) -> Problem {
    let detail = "You have tried to sync too often; the code was not used.";
    too_early("too_many_attempts", detail, throttled)
}

/// The lane of the broker is full.
pub(super) fn sync_busy() -> Problem {
    let detail = "Too many syncs are under way; nothing was changed.";
    Problem::unavailable("sync_busy", detail, BUSY_RETRY_S)
}

/// The lane of the broker is full, for an activation.
pub(super) fn activation_busy() -> Problem {
    let detail = "Too many calls to the broker are under way.";
    Problem::unavailable("upstream_busy", detail, LANE_RETRY_S)
}

/// The user's own sync or deletion is under way.
pub(super) fn in_progress() -> Problem {
    let detail = "Another sync or deletion of yours is under way; the code was not used.";
    Problem::new(409, "sync_in_progress", detail).with("Retry-After", BUSY_RETRY_S.to_string())
}

/// The code belongs to another person at the broker than the stored portfolio. The code is used up,
/// because only the broker knows its owner.
pub(super) fn broker_user_changed(broker: Broker, kept: &str, sent: &str) -> Problem {
    let detail = format!(
        "The code is of the user {} at {}, and the portfolio stored here of the user {}; nothing \
         was changed. The code is used. To put the other portfolio in its place, log in at the \
         broker again and send replace_broker_user with the new code.",
        masked(sent),
        broker.name(),
        masked(kept)
    );
    Problem::new(409, "broker_user_changed", detail)
}

/// A broker answered with no holdings, where some are stored.
pub(super) fn no_holdings_sent(broker: Broker, holdings: usize) -> Problem {
    let detail = format!(
        "{} names no holdings, and {holdings} of it are stored here; nothing was changed. Brokers \
         send an empty list at times when they mean an error. The code is used. If there is \
         nothing left, log in at the broker again and send replace_with_none with the new code.",
        broker.name(),
    );
    Problem::new(409, "no_holdings_sent", detail)
}

/// First and last letter: enough for a user who knows both ids, useless to others.
fn masked(id: &str) -> String {
    let mut letters = id.chars();
    match (letters.next(), letters.next_back(), letters.count()) {
        (Some(first), Some(last), 1..) => format!("{first}***{last}"),
        _ => "***".into(),
    }
}

/// The user's last export is not finished.
pub(super) fn export_in_progress() -> Problem {
    let detail = "Another export of yours is under way, or not read to its end yet.";
    Problem::new(409, "export_in_progress", detail).with("Retry-After", BUSY_RETRY_S.to_string())
}

/// A journal that was written before its text was bounded is too long.
pub(super) fn export_too_long() -> Problem {
    let detail = "The journal is too long for one document; read it by pages from /api/journal.";
    Problem::new(409, "export_too_long", detail)
}

/// The lane that makes answers is full or slow.
pub(super) fn portfolio_busy() -> Problem {
    let detail = "Too many portfolios are being read.";
    Problem::unavailable("portfolio_busy", detail, LANE_RETRY_S)
}

// ---- Broker
//
// The answers to a client for a broker's error: one table for syncs and activations.
//
// The same error is answered differently in these places:
//
// - A key that is refused, lacks a permission or is called from an unregistered address: 401, 403
// and 502 for a sync, 409 for an activation. A user sends the key and can send another. The
// server's own key is a setting, which no request can change.
// - A broker that is unavailable and names no time: a sync has `Retry-After: 30`, an activation
// has none. Programs repeat syncs. An activation is made by a person, who reads the log.
// - The text. A user may sync with both brokers and wants to know the state of the data. The
// administrator has just called one broker and wants to know the state of the code.

/// `Retry-After` for a user if the broker names no time.
const BROKER_RETRY: Duration = Duration::from_secs(30);

/// The route that answers with the broker's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BrokerRoute {
    /// A user syncs a portfolio with an API key, a secret and a one-time code of their own.
    Sync,
    /// The administrator activates the server's own session with a one-time code. Key and secret
    /// are settings.
    Activation,
}

/// The answer to a failed sync or activation, with the error for the log.
pub(super) fn broker_problem(error: BrokerError, broker: Broker, route: BrokerRoute) -> Problem {
    let (status, code, detail) = row(error.kind, route);
    let wait = match (error.retry_after(), code, route) {
        (wait, "broker_rate_limited" | "calls_held_back", _) => Some(wait.unwrap_or_default()),
        (None, "broker_unavailable", BrokerRoute::Sync) => Some(BROKER_RETRY),
        (wait, "broker_unavailable", _) => wait,
        _ => None,
    };
    let wait_s = wait.map(whole_seconds);
    let detail = detail.replace("{broker}", broker.name());
    let detail = detail.replace("{s}", &wait_s.unwrap_or_default().to_string());
    let mut problem = Problem::new(status, code, detail);
    if status == 401 {
        problem = problem.with("WWW-Authenticate", "Bearer");
    }
    if let Some(wait_s) = wait_s {
        problem = problem.with("Retry-After", wait_s.to_string());
    }
    problem.because(error)
}

/// The call waited too long for a thread, so the broker was not called.
pub(super) fn broker_timed_out(broker: Broker, route: BrokerRoute) -> Problem {
    let detail = "the time that it may wait for a thread";
    broker_problem(BrokerError::new(broker.name(), Kind::TimedOut, detail), broker, route)
}

/// The table: status, code and text. `{broker}` stands for the broker's name, `{s}` for the seconds
/// to wait.
fn row(kind: Kind, route: BrokerRoute) -> (u16, &'static str, &'static str) {
    let words = |sync, activation| match route {
        BrokerRoute::Sync => sync,
        BrokerRoute::Activation => activation,
    };
    match kind {
        Kind::KeyRefused | Kind::NotPermitted | Kind::AddressRefused
            if route == BrokerRoute::Activation =>
        {
            (409, "broker_key_refused", SERVER_KEY_REFUSED)
        }
        Kind::NotReady(Readiness::Off) if route == BrokerRoute::Activation => {
            (409, "broker_not_configured", NOT_CONFIGURED)
        }
        Kind::CodeRefused | Kind::TokenDead => (
            401,
            "broker_session_invalid",
            words(
                "{broker} does not accept the one-time code: it is wrong, used or expired.",
                "The broker does not accept the code: wrong, used or expired.",
            ),
        ),
        Kind::KeyRefused => {
            (401, "broker_credentials_invalid", "{broker} does not accept the API key or secret.")
        }
        Kind::NotPermitted => (
            403,
            "broker_not_permitted",
            "{broker} does not permit this API key to read the portfolio.",
        ),
        Kind::AddressRefused => (502, "broker_address_refused", ADDRESS_REFUSED),
        Kind::AccountProblem => (403, "broker_account_problem", ACCOUNT_PROBLEM),
        Kind::SecondFactorProblem => (403, "broker_two_factor_problem", SECOND_FACTOR_PROBLEM),
        Kind::NotReady(Readiness::Paced(_)) => {
            (429, "calls_held_back", words(CALLS_HELD_BACK, RATE_LIMITED))
        }
        Kind::RateLimited | Kind::KeySpent => (
            429,
            "broker_rate_limited",
            words("{broker} wants fewer calls; nothing was changed.", RATE_LIMITED),
        ),
        Kind::TimedOut => (
            504,
            "broker_timeout",
            words(
                "{broker} did not answer in time; nothing was changed.",
                "The broker did not answer in time.",
            ),
        ),
        // The broker refused the request itself. That is our fault, and the client cannot change
        // it.
        Kind::Malformed | Kind::Refused => (
            502,
            "broker_answer_invalid",
            words(
                "{broker} gave an answer that makes no sense; nothing was changed.",
                "The broker's answer is not understood.",
            ),
        ),
        Kind::Redirected => (502, "broker_redirected", REDIRECTED),
        Kind::Unreachable | Kind::Failed { .. } | Kind::NotReady(_) => (
            502,
            "broker_unavailable",
            words(
                "{broker} cannot be reached or has a fault; nothing was changed.",
                "The broker cannot be reached.",
            ),
        ),
    }
}

const CALLS_HELD_BACK: &str = "For now this service holds back further calls to {broker} of this \
                               user, network or API key. {broker} was not asked, and nothing was \
                               changed. Try again in {s} s.";

const SERVER_KEY_REFUSED: &str = "The broker does not accept the server's API key, or not from \
                                  here; the log has the reason.";
const NOT_CONFIGURED: &str = "The server's settings have no API key and secret for this broker.";
const ADDRESS_REFUSED: &str = "{broker} takes calls of this API key from registered network \
                               addresses only, and this server's is not one of them.";
const ACCOUNT_PROBLEM: &str = "{broker} says that the account has a problem there. Its owner has \
                               to settle that with the broker; nothing was changed.";
const SECOND_FACTOR_PROBLEM: &str = "{broker} says that the account's two-factor login has a \
                                     problem there. Its owner has to settle that with the broker; \
                                     nothing was changed.";
const RATE_LIMITED: &str = "The broker takes only so many calls, and this service keeps to that: \
                            the code was not judged. Try again in {s} s.";
const REDIRECTED: &str = "{broker} answered with a redirect, which is not followed: it has none of \
                          its own. Nothing was changed.";

/// The value of `Retry-After`: rounded up, and never 0.
pub(super) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_its_answer_and_shows_no_cause() {
        let too_many = StoreError::TooMany { what: "journal entries", limit: 3 };
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

#[cfg(test)]
mod portfolio_tests {
    use super::*;

    #[test]
    fn an_id_is_told_by_its_first_and_last_letter_alone() {
        for (id, expected) in [("ZX0042", "Z***2"), ("ABC", "A***C"), ("AB", "***"), ("", "***")] {
            assert_eq!(masked(id), expected, "{id}");
        }
    }
}

#[cfg(test)]
mod broker_tests {
    use super::*;

    const SAID: &str = "SECRET-WORDS";
    const WAIT: Duration = Duration::from_millis(61_500);

    fn header<'a>(problem: &'a Problem, name: &str) -> Option<&'a str> {
        let found = problem.headers.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value.as_ref())
    }

    /// Status and code.
    type Told = (u16, &'static str);

    /// Every kind, with the answers to a user and to the administrator.
    const TABLE: &[(Kind, Told, Told)] = &[
        (Kind::CodeRefused, (401, "broker_session_invalid"), (401, "broker_session_invalid")),
        (Kind::TokenDead, (401, "broker_session_invalid"), (401, "broker_session_invalid")),
        (Kind::KeyRefused, (401, "broker_credentials_invalid"), (409, "broker_key_refused")),
        (Kind::NotPermitted, (403, "broker_not_permitted"), (409, "broker_key_refused")),
        (Kind::AddressRefused, (502, "broker_address_refused"), (409, "broker_key_refused")),
        (Kind::AccountProblem, (403, "broker_account_problem"), (403, "broker_account_problem")),
        (
            Kind::SecondFactorProblem,
            (403, "broker_two_factor_problem"),
            (403, "broker_two_factor_problem"),
        ),
        (Kind::RateLimited, (429, "broker_rate_limited"), (429, "broker_rate_limited")),
        (Kind::KeySpent, (429, "broker_rate_limited"), (429, "broker_rate_limited")),
        (
            Kind::NotReady(Readiness::Paced(WAIT)),
            (429, "calls_held_back"),
            (429, "calls_held_back"),
        ),
        (Kind::TimedOut, (504, "broker_timeout"), (504, "broker_timeout")),
        (Kind::Malformed, (502, "broker_answer_invalid"), (502, "broker_answer_invalid")),
        (Kind::Refused, (502, "broker_answer_invalid"), (502, "broker_answer_invalid")),
        (Kind::Redirected, (502, "broker_redirected"), (502, "broker_redirected")),
        (Kind::Unreachable, (502, "broker_unavailable"), (502, "broker_unavailable")),
        (Kind::Failed { status: 503 }, (502, "broker_unavailable"), (502, "broker_unavailable")),
        (
            Kind::NotReady(Readiness::Open(WAIT)),
            (502, "broker_unavailable"),
            (502, "broker_unavailable"),
        ),
        (
            Kind::NotReady(Readiness::Off),
            (502, "broker_unavailable"),
            (409, "broker_not_configured"),
        ),
    ];

    #[test]
    fn each_kind_has_its_answer_and_hides_the_brokers_words() {
        for (kind, user, administrator) in TABLE {
            for broker in Broker::ALL {
                for (route, expected) in
                    [(BrokerRoute::Sync, user), (BrokerRoute::Activation, administrator)]
                {
                    let error = BrokerError::new("a broker", *kind, SAID);
                    let problem = broker_problem(error, broker, route);
                    let about = format!("{kind:?} {route:?}: {}", problem.detail);
                    assert_eq!((problem.status, problem.code), *expected, "{about}");
                    assert!(!problem.detail.contains("SECRET"), "{about}");
                    assert!(!problem.detail.contains(['{', '}']), "{about}");
                    let named = problem.detail.contains(broker.name());
                    assert!(named || route == BrokerRoute::Activation, "{about}");
                    let bearer = header(&problem, "WWW-Authenticate");
                    assert_eq!(bearer.is_some(), problem.status == 401, "{about}");
                }
            }
        }
    }

    #[test]
    fn a_wait_is_told_in_whole_seconds_to_whoever_has_to_wait() {
        let told = |error, route| {
            let problem = broker_problem(error, Broker::A, route);
            header(&problem, "Retry-After").map(str::to_owned)
        };
        let failed = |wait: Option<Duration>| {
            let error = BrokerError::new("a broker", Kind::Failed { status: 503 }, "");
            wait.into_iter().fold(error, BrokerError::after)
        };
        for route in [BrokerRoute::Sync, BrokerRoute::Activation] {
            assert_eq!(told(failed(Some(WAIT)), route).as_deref(), Some("62"));
            for kind in [Kind::RateLimited, Kind::KeySpent] {
                let error = BrokerError::new("a broker", kind, "").after(WAIT);
                assert_eq!(told(error, route).as_deref(), Some("62"), "{kind:?}");
            }
            for readiness in [Readiness::Paced(WAIT), Readiness::Open(WAIT)] {
                let error = BrokerError::not_ready("a broker", readiness);
                assert_eq!(told(error, route).as_deref(), Some("62"), "{readiness:?}");
            }
            let malformed = BrokerError::new("a broker", Kind::Malformed, "").after(WAIT);
            assert_eq!(told(malformed, route), None);
        }
        assert_eq!(told(failed(None), BrokerRoute::Sync).as_deref(), Some("30"));
        assert_eq!(told(failed(None), BrokerRoute::Activation), None);
    }

    #[test]
    fn an_administrator_who_has_to_wait_is_told_whose_pace_it_is() {
        let error = BrokerError::not_ready("a broker", Readiness::Paced(WAIT));
        let problem = broker_problem(error, Broker::A, BrokerRoute::Activation);
        assert!(problem.detail.contains("this service keeps to that"), "{}", problem.detail);
        assert!(problem.detail.ends_with("Try again in 62 s."), "{}", problem.detail);
    }

    #[test]
    fn a_user_whom_this_service_holds_back_is_not_told_that_the_broker_does() {
        for (error, code, said) in [
            (
                BrokerError::not_ready("a broker", Readiness::Paced(WAIT)),
                "calls_held_back",
                "was not asked, and nothing was changed. Try again in 62 s.",
            ),
            (
                BrokerError::new("a broker", Kind::RateLimited, "").after(WAIT),
                "broker_rate_limited",
                "wants fewer calls",
            ),
        ] {
            let problem = broker_problem(error, Broker::A, BrokerRoute::Sync);
            assert_eq!((problem.status, problem.code), (429, code));
            assert!(problem.detail.contains(said), "{}", problem.detail);
        }
    }
}
