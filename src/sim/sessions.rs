//! Logins at the simulated brokers: one-time login values, and tokens with their expiry; and the
//! accounts whose rows a control route has set. Plain values behind the world's locks, bounded by
//! [`LOGINS_MAX`] and `ACCOUNTS_MAX`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};

use crate::base::{BoundedMap, clock};
use crate::sim::exchange::universe;

/// Login values and tokens kept per broker; the oldest is dropped first.
const LOGINS_MAX: usize = 4_096;
/// A request token "lives for a few minutes".
const REQUEST_TOKEN_LIFE: SignedDuration = SignedDuration::from_mins(5);

/// One login.
#[derive(Debug, Clone)]
pub(super) struct Login {
    pub(super) user_id: String,
    /// The app that the user logged in to. Empty in a one-time value: no document says that these
    /// are bound to an app.
    pub(super) api_key: String,
    pub(super) at: Timestamp,
}

/// The next instant strictly after `at` at which clocks in IST show `hour` o'clock.
fn next_ist_hour(at: Timestamp, hour: i8) -> Timestamp {
    let civil = clock::zoned(at).datetime();
    let today = clock::instant(civil.date().at(hour, 0, 0, 0));
    if today > at {
        return today;
    }
    let tomorrow = civil.date().tomorrow().unwrap_or(civil.date());
    clock::instant(tomorrow.at(hour, 0, 0, 0))
}

/// Hexadecimal text that is not guessed by accident. It depends on seed, `what` and number alone.
fn opaque(seed: u64, what: &str, number: i64) -> String {
    let key = universe::key(seed, what);
    format!(
        "{:016x}{:016x}",
        universe::draw(key, 2 * number),
        universe::draw(key, 2 * number + 1)
    )
}

/// The logins at one broker.
#[derive(Debug)]
pub(super) struct Logins {
    seed: u64,
    issued: i64,
    /// The hour in IST at which tokens end.
    end_hour: i8,
    /// The values that the login page puts into the redirect, each with its user.
    codes: BoundedMap<String, Login>,
    tokens: BoundedMap<String, Login>,
}

impl Logins {
    pub(super) fn new(seed: u64, end_hour: i8) -> Self {
        let [codes, tokens] = [(); 2].map(|()| BoundedMap::new(LOGINS_MAX));
        Self {
            seed,
            issued: 0,
            end_hour,
            codes,
            tokens,
        }
    }

    fn next_number(&mut self) -> i64 {
        self.issued += 1;
        self.issued
    }

    /// Accepts `code` for a user from now on. Of too many the oldest is dropped.
    pub(super) fn keep_code(&mut self, code: String, user_id: String, at: Timestamp) {
        let login = Login {
            user_id,
            api_key: String::new(),
            at,
        };
        self.codes.insert(code, login, |login| Some(login.at));
    }

    /// Issues broker A's one-time value.
    pub(super) fn issue_request_token(&mut self, user_id: String, now: Timestamp) -> String {
        let token = opaque(self.seed, "request token", self.next_number());
        self.keep_code(token.clone(), user_id, now);
        token
    }

    /// Issues broker B's value: eight digits.
    pub(super) fn issue_api_session(&mut self, user_id: String, now: Timestamp) -> String {
        let key = universe::key(self.seed, "api session");
        let session = 20_000_000 + universe::pick(key, self.next_number(), 79_999_999);
        self.keep_code(session.to_string(), user_id, now);
        session.to_string()
    }

    /// Uses up a request token of broker A for an app; `None` if it is unknown, used or too old.
    pub(super) fn redeem_request_token(
        &mut self,
        request_token: &str,
        api_key: String,
        now: Timestamp,
    ) -> Option<(String, Login)> {
        let login = self.codes.remove(request_token)?;
        if now.duration_since(login.at) > REQUEST_TOKEN_LIFE {
            return None;
        }
        let token = opaque(self.seed, "access token", self.next_number());
        let login = self.log_in(
            token.clone(),
            Login {
                api_key,
                at: now,
                ..login
            },
        );
        Some((token, login))
    }

    /// Exchanges a value of broker B for a session token of an app; `None` if it is unknown. It is
    /// not used up, since the vendor's client uses one again on the same day. Older sessions stay:
    /// no document says that a new one ends them.
    pub(super) fn redeem_api_session(
        &mut self,
        api_session: &str,
        api_key: String,
        now: Timestamp,
    ) -> Option<(String, Login)> {
        let user_id = self.codes.get(api_session)?.user_id.clone();
        let session_key = opaque(self.seed, "session key", self.next_number());
        let token = STANDARD.encode(format!("{user_id}:{}", &session_key[..8]));
        let login = Login {
            user_id,
            api_key,
            at: now,
        };
        self.keep_token(token.clone(), login.clone());
        Some((token, login))
    }

    /// Makes `token` the one valid token of the login's user and app. The user's tokens of other
    /// apps stay.
    pub(super) fn log_in(&mut self, token: String, login: Login) -> Login {
        self.tokens.retain(|_, other| {
            (&other.user_id, &other.api_key) != (&login.user_id, &login.api_key)
        });
        self.keep_token(token, login.clone());
        login
    }

    fn keep_token(&mut self, token: String, login: Login) {
        self.tokens.insert(token, login, |login| Some(login.at));
    }

    /// Ends one token of an app; `false` if it was not valid.
    pub(super) fn log_out(&mut self, api_key: &str, token: &str) -> bool {
        let its_own = self
            .tokens
            .get(token)
            .is_some_and(|login| login.api_key == api_key);
        its_own && self.tokens.remove(token).is_some()
    }

    /// Ends every token, and returns how many there were.
    pub(super) fn expire_tokens(&mut self) -> usize {
        self.tokens.drain().len()
    }

    /// Ends every value that was not exchanged yet.
    pub(super) fn expire_codes(&mut self) {
        drop(self.codes.drain());
    }

    /// The login to which this token of the app belongs. It expires when clocks in IST next show
    /// the broker's hour.
    pub(super) fn user_of(&self, api_key: &str, token: &str, now: Timestamp) -> Option<&Login> {
        let login = self
            .tokens
            .get(token)
            .filter(|login| login.api_key == api_key);
        login.filter(|login| now < next_ist_hour(login.at, self.end_hour))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_before_six_lives_until_six() {
        for (login, end) in [
            ("2026-11-20T05:50:00+05:30", "2026-11-20T06:00:00+05:30"),
            ("2026-11-20T06:00:00+05:30", "2026-11-21T06:00:00+05:30"),
            ("2026-11-20T23:59:59+05:30", "2026-11-21T06:00:00+05:30"),
        ] {
            let end: Timestamp = end.parse().unwrap();
            assert_eq!(next_ist_hour(login.parse().unwrap(), 6), end, "{login}");
        }
    }
}
