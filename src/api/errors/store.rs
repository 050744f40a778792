//! Errors of the store, of accounts, and of who is calling. Pure.

use crate::auth::{AccountError, CryptoError, Unidentified, Weakness};
use crate::http::Problem;
use crate::limits::throttle::Throttled;
use crate::store::StoreError;

/// After a full queue or a late answer the next moment may do.
const SOON_S: u64 = 1;
/// A disk is not mended in a second.
const STORE_RETRY_S: u64 = 5;

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let busy = "Too much is waiting to be stored.";
        let problem = match &error {
            StoreError::EmailTaken => {
                let problem =
                    Problem::new(400, "email_taken", "This e-mail is registered already.");
                return problem.field("email", "Registered already.");
            }
            // Registration tells it by a code of its own.
            StoreError::NotFirst => Problem::internal(),
            StoreError::NoSuchUser => return unidentified(Unidentified::Invalid),
            StoreError::TooMany { what, limit } => {
                let detail = format!("At most {limit} {what} are kept for a user.");
                return Problem::new(409, "limit_reached", detail);
            }
            StoreError::NotAsExpected => return Problem::precondition_failed(),
            // Only the leader's own writes are refused so, and no request makes one.
            StoreError::Deposed => Problem::internal(),
            StoreError::TurnLost => {
                let detail = "Another sync or deletion of yours came first, since this one took \
                              too long; nothing was stored.";
                Problem::unavailable("store_busy", detail, SOON_S)
            }
            // The sync itself says whose portfolio is whose.
            StoreError::OtherBrokerUser { .. } => Problem::internal(),
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
            // One code for all of the embedded lists; the words say which kind it is.
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
                let detail = "The operator has disabled this account.";
                Problem::new(403, "account_disabled", detail)
            }
            AccountError::Closed => {
                let detail = "This service takes no new accounts.";
                Problem::new(403, "registration_closed", detail)
            }
            AccountError::Throttled { retry_after_ms } => {
                let detail = "Too many attempts; wait before the next.";
                Problem::new(429, "too_many_attempts", detail)
                    .with("Retry-After", retry_after_ms.div_ceil(1_000).max(1).to_string())
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

/// The user has changed too much within a minute; nothing was written.
pub(in crate::api) fn too_many_writes(throttled: Throttled) -> Problem {
    let detail = "You have changed too much within a minute; nothing was written.";
    let wait_s = throttled.retry_after_ms.div_ceil(1_000).max(1);
    Problem::new(429, "too_many_writes", detail).with("Retry-After", wait_s.to_string())
}

fn store_unavailable() -> Problem {
    let detail = "The database cannot be used at the moment.";
    Problem::unavailable("store_unavailable", detail, STORE_RETRY_S)
}

/// RFC 6750 3: the error is named only where a token was sent.
pub(in crate::api) fn unidentified(why: Unidentified) -> Problem {
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
        Unidentified::Unready => {
            store_unavailable().because("what is revoked could not be read from the store")
        }
    }
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
