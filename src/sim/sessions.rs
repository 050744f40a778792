//! Who is logged in at the simulated brokers: one-time login values, tokens and when they die.
//! Plain values behind the world's locks, bounded by [`LOGINS_MAX`].

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::base::{BoundedMap, clock};
use crate::sim::exchange::universe;
use crate::sim::simulator::SimSettings;

/// Login values and tokens kept per broker; the oldest goes first.
const LOGINS_MAX: usize = 4_096;
/// A request token "lives for a few minutes".
const REQUEST_TOKEN_LIFE: SignedDuration = SignedDuration::from_mins(5);

/// One login.
#[derive(Debug, Clone)]
pub(super) struct Login {
    pub(super) user_id: String,
    /// The app that the user logged in to; empty in a one-time value, of which no document says
    /// that it is bound to an app.
    pub(super) api_key: String,
    pub(super) at: Timestamp,
}

type Logins = BoundedMap<String, Login>;

fn no_logins() -> Logins {
    BoundedMap::new(LOGINS_MAX)
}

/// Puts `login` in, dropping the oldest if full.
fn keep(logins: &mut Logins, token: String, login: Login) {
    logins.insert(token, login, |login| Some(login.at));
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

/// Hexadecimal text that nobody guesses by accident, the same for the same seed and number.
fn opaque(seed: u64, what: &str, number: i64) -> String {
    let key = universe::key(seed, what);
    format!("{:016x}{:016x}", universe::draw(key, 2 * number), universe::draw(key, 2 * number + 1))
}

/// Broker A.
#[derive(Debug)]
pub(super) struct BrokerASessions {
    seed: u64,
    issued: i64,
    request_tokens: Logins,
    access_tokens: Logins,
}

impl BrokerASessions {
    pub(super) fn new(settings: &SimSettings, now: Timestamp) -> Self {
        let mut access_tokens = no_logins();
        if !settings.broker_a.access_token.is_empty() {
            let user_id = settings.broker_a.user_id.clone();
            let login = Login { user_id, api_key: settings.broker_a.api_key.clone(), at: now };
            keep(&mut access_tokens, settings.broker_a.access_token.clone(), login);
        }
        let seed = settings.seed;
        Self { seed, issued: 0, request_tokens: no_logins(), access_tokens }
    }

    /// What the login page would put into the redirect.
    pub(super) fn issue_request_token(&mut self, user_id: String, now: Timestamp) -> String {
        self.issued += 1;
        let token = opaque(self.seed, "request token", self.issued);
        let login = Login { user_id, api_key: String::new(), at: now };
        keep(&mut self.request_tokens, token.clone(), login);
        token
    }

    /// Uses up a request token for an app; `None` if it is unknown, used or too old.
    pub(super) fn redeem(
        &mut self,
        request_token: &str,
        api_key: String,
        now: Timestamp,
    ) -> Option<(String, Login)> {
        let login = self.request_tokens.remove(request_token)?;
        if now.duration_since(login.at) > REQUEST_TOKEN_LIFE {
            return None;
        }
        self.issued += 1;
        let token = opaque(self.seed, "access token", self.issued);
        let login = self.log_in(token.clone(), Login { api_key, at: now, ..login });
        Some((token, login))
    }

    /// Makes `token` the one valid token of the login's user and app. What the user has with other
    /// apps stays.
    pub(super) fn log_in(&mut self, token: String, login: Login) -> Login {
        self.access_tokens.retain(|_, other| {
            (&other.user_id, &other.api_key) != (&login.user_id, &login.api_key)
        });
        keep(&mut self.access_tokens, token, login.clone());
        login
    }

    /// Ends one token of an app; `false` if it was not valid.
    pub(super) fn log_out(&mut self, api_key: &str, token: &str) -> bool {
        let its_own = self.access_tokens.get(token).is_some_and(|login| login.api_key == api_key);
        its_own && self.access_tokens.remove(token).is_some()
    }

    /// Ends every token.
    pub(super) fn expire_all(&mut self) -> usize {
        self.access_tokens.drain().len()
    }

    /// Whose token of this app it is. It dies at the first 06:00 IST after the login.
    pub(super) fn user_of(&self, api_key: &str, token: &str, now: Timestamp) -> Option<&Login> {
        let login = self.access_tokens.get(token).filter(|login| login.api_key == api_key);
        login.filter(|login| now < next_ist_hour(login.at, 6))
    }
}

/// Broker B.
#[derive(Debug)]
pub(super) struct BrokerBSessions {
    seed: u64,
    issued: i64,
    /// Login values and whose they are; the vendor's client uses one again on the same day.
    api_sessions: Logins,
    session_tokens: Logins,
}

impl BrokerBSessions {
    pub(super) fn new(settings: &SimSettings) -> Self {
        let mut api_sessions = no_logins();
        if !settings.broker_b.api_session.is_empty() {
            let user_id = settings.broker_b.user_id.clone();
            let login = Login { user_id, api_key: String::new(), at: Timestamp::UNIX_EPOCH };
            keep(&mut api_sessions, settings.broker_b.api_session.clone(), login);
        }
        let seed = settings.seed;
        Self { seed, issued: 0, api_sessions, session_tokens: no_logins() }
    }

    /// What the login page would put into the redirect: eight digits.
    pub(super) fn issue_api_session(&mut self, user_id: String, now: Timestamp) -> String {
        self.issued += 1;
        let key = universe::key(self.seed, "api session");
        let session = (20_000_000 + universe::pick(key, self.issued, 79_999_999)).to_string();
        let login = Login { user_id, api_key: String::new(), at: now };
        keep(&mut self.api_sessions, session.clone(), login);
        session
    }

    /// Exchanges a login value for a session token of an app; `None` if it is unknown. Older
    /// sessions stay: no document says that a new one ends them.
    pub(super) fn redeem(
        &mut self,
        api_session: &str,
        api_key: String,
        now: Timestamp,
    ) -> Option<(String, Login)> {
        let user_id = self.api_sessions.get(api_session)?.user_id.clone();
        self.issued += 1;
        let session_key = opaque(self.seed, "session key", self.issued);
        let token = STANDARD.encode(format!("{user_id}:{}", &session_key[..8]));
        let login = Login { user_id, api_key, at: now };
        keep(&mut self.session_tokens, token.clone(), login.clone());
        Some((token, login))
    }

    /// Ends every session token and login value.
    pub(super) fn expire_all(&mut self) -> usize {
        drop(self.api_sessions.drain());
        self.session_tokens.drain().len()
    }

    /// Whose session of this app it is. It ends at midnight IST, which comes within
    /// 24 hours.
    pub(super) fn user_of(&self, api_key: &str, token: &str, now: Timestamp) -> Option<&Login> {
        let login = self.session_tokens.get(token).filter(|login| login.api_key == api_key);
        login.filter(|login| now < next_ist_hour(login.at, 0))
    }
}

// ---- Accounts
//
// Accounts whose rows a control route gives, in place of the seeded ones. Plain values; prices
// come from the simulated exchange.

/// Rows of one list; the real APIs are asked for no more.
const ROWS_MAX: usize = 10_000;
/// Accounts that have rows of their own.
const ACCOUNTS_MAX: usize = 1_000;

/// By user id.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    broker_a: HashMap<String, Vec<RowA>>,
    broker_b: HashMap<String, ListsB>,
}

/// A row of broker A's holdings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowA {
    /// `NSE:INFY`.
    pub(super) symbol: String,
    #[serde(default)]
    pub(super) quantity: i64,
    #[serde(default)]
    pub(super) undelivered: i64,
    #[serde(default)]
    pub(super) pledged: i64,
    #[serde(default)]
    pub(super) funded: i64,
    /// 0 where the broker does not know it.
    #[serde(default)]
    pub(super) average_paise: i64,
}

/// Broker B's two lists.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListsB {
    #[serde(default)]
    pub(super) demat: Vec<DematB>,
    #[serde(default)]
    pub(super) portfolio: Vec<PortfolioB>,
}

/// A row of the depository's list, as broker B spells it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DematB {
    pub(super) stock_code: String,
    pub(super) isin: String,
    pub(super) quantity: String,
}

/// A row of broker B's own list; the price is that of `symbol`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PortfolioB {
    pub(super) stock_code: String,
    pub(super) quantity: String,
    pub(super) average_price: String,
    pub(super) symbol: String,
}

/// An order for broker A's account.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OrderA {
    user_id: String,
    rows: Vec<RowA>,
}

/// An order for broker B's account.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OrderB {
    user_id: String,
    #[serde(default)]
    demat: Vec<DematB>,
    #[serde(default)]
    portfolio: Vec<PortfolioB>,
}

impl Accounts {
    pub(super) fn of_broker_a(&self, user_id: &str) -> Option<Vec<RowA>> {
        self.broker_a.get(user_id).cloned()
    }

    pub(super) fn of_broker_b(&self, user_id: &str) -> Option<ListsB> {
        self.broker_b.get(user_id).cloned()
    }

    /// Puts the rows in the place of what the account held; how many there are.
    ///
    /// # Errors
    /// What is wrong, for the person who sent it.
    pub(super) fn set_broker_a(&mut self, order: OrderA) -> Result<usize, String> {
        let rows = order.rows.len();
        set(&mut self.broker_a, order.user_id, order.rows, rows)
    }

    /// The same of broker B.
    ///
    /// # Errors
    /// The same.
    pub(super) fn set_broker_b(&mut self, order: OrderB) -> Result<usize, String> {
        let OrderB { user_id, demat, portfolio } = order;
        let rows = demat.len().max(portfolio.len());
        set(&mut self.broker_b, user_id, ListsB { demat, portfolio }, rows)
    }
}

fn set<T>(
    accounts: &mut HashMap<String, T>,
    user_id: String,
    lists: T,
    rows: usize,
) -> Result<usize, String> {
    if rows > ROWS_MAX || accounts.len() >= ACCOUNTS_MAX {
        return Err(format!("at most {ROWS_MAX} rows a list and {ACCOUNTS_MAX} accounts"));
    }
    accounts.insert(user_id, lists);
    Ok(rows)
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
