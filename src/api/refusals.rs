//! What failures of lower layers become for a client, in one place. Logs the cause once; the answer
//! has a stable code and no internals.

use crate::http::Problem;
use crate::store::StoreError;

/// When to try again after a store that was busy, slow or broken.
const BUSY_RETRY_S: u64 = 1;
const BROKEN_RETRY_S: u64 = 5;

/// A token that was good a moment ago: its user is gone.
pub fn token_invalid() -> Problem {
    let detail = "The access token is not valid, or not any more.";
    Problem::new(401, "token_invalid", detail)
        .with("WWW-Authenticate", "Bearer error=\"invalid_token\"")
}

/// What the store's failure becomes.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub fn of_store(error: StoreError) -> Problem {
    match &error {
        StoreError::EmailTaken => {
            Problem::new(400, "email_registered", "This e-mail address is registered already.")
        }
        StoreError::NoSuchUser => token_invalid(),
        StoreError::TooMany { what, limit } => {
            Problem::new(409, "too_many", format!("You may keep {limit} {what} at most."))
        }
        StoreError::Busy => {
            let detail = "Too many requests are waiting for the store.";
            Problem::unavailable("store_busy", detail, BUSY_RETRY_S)
        }
        StoreError::Late => {
            tracing::warn!(%error, "store");
            let detail = "The store did not answer in time. A change may have been made.";
            Problem::unavailable("store_late", detail, BUSY_RETRY_S)
        }
        StoreError::Unavailable(_) => {
            tracing::error!(%error, "store");
            let detail = "The store cannot be used at the moment.";
            Problem::unavailable("store_unavailable", detail, BROKEN_RETRY_S)
        }
        StoreError::Damaged(_) => {
            tracing::error!(%error, "store");
            Problem::new(500, "internal_error", "The request could not be answered.")
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
            (StoreError::EmailTaken, 400, "email_registered"),
            (StoreError::NoSuchUser, 401, "token_invalid"),
            (too_many, 409, "too_many"),
            (StoreError::Busy, 503, "store_busy"),
            (StoreError::Late, 503, "store_late"),
            (StoreError::Unavailable("disk /x is full".into()), 503, "store_unavailable"),
            (StoreError::Damaged("a date"), 500, "internal_error"),
        ] {
            let problem = of_store(error);
            assert_eq!((problem.status, problem.code), (status, code));
            let names: Vec<&str> = problem.headers.iter().map(|(name, _)| *name).collect();
            assert_eq!(names.contains(&"Retry-After"), status == 503, "{code}");
            assert_eq!(names.contains(&"WWW-Authenticate"), status == 401, "{code}");
            assert!(!problem.detail.contains("disk"), "{code}");
        }
    }
}
