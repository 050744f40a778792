//! Logins at the simulated brokers: one-time login values, and tokens with their expiry. Plain
//! values behind the world's locks, bounded by [`LOGINS_MAX`].

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::base::{BoundedMap, clock};
use crate::sim::exchange::universe;
use crate::sim::server::message::{Answer, Content, pairs};
use crate::sim::simulator::SimSettings;
use crate::sim::world::Call;

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

/// Hexadecimal text that is not guessed by accident. It depends on seed, `what` and number alone.
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

    /// Issues the one-time value that the login page puts into the redirect.
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

    /// Makes `token` the one valid token of the login's user and app. The user's tokens of other
    /// apps stay.
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

    /// The login to which this token of the app belongs. It expires at the first 06:00 IST after
    /// the login.
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
    /// Login values, each with its user. They are not used up, since the vendor's client uses one
    /// again on the same day.
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

    /// Issues the one-time value that the login page puts into the redirect: eight digits.
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

    /// The login to which this session token of the app belongs. It expires at the next midnight
    /// IST.
    pub(super) fn user_of(&self, api_key: &str, token: &str, now: Timestamp) -> Option<&Login> {
        let login = self.session_tokens.get(token).filter(|login| login.api_key == api_key);
        login.filter(|login| now < next_ist_hour(login.at, 0))
    }
}

// ---- Accounts
//
// Accounts with rows set by a control route, in place of the seeded ones. Plain values; prices come
// from the simulated exchange.

/// Rows of one list; the real APIs are asked for no more.
const ROWS_MAX: usize = 10_000;
/// Accounts that have rows of their own.
const ACCOUNTS_MAX: usize = 1_000;

/// The rows of accounts, by user id.
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

/// A row of the depository's list, in broker B's spelling.
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

    /// Replaces the rows of an account. Returns how many it has now.
    ///
    /// # Errors
    /// The mistake, in words for the person who sent the order.
    pub(super) fn set_broker_a(&mut self, order: OrderA) -> Result<usize, String> {
        let rows = order.rows.len();
        set(&mut self.broker_a, order.user_id, order.rows, rows)
    }

    /// Same as [`set_broker_a`](Self::set_broker_a), for broker B.
    ///
    /// # Errors
    /// The mistake, in words for the person who sent the order.
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

// ---- Login page
//
// The brokers' login pages, for a person's browser: they say that they are simulated, ask for a
// user id, and send the browser back to the service with a one-time code as each broker does.
// Broker A redirects with the code in the query; broker B has the browser post a form. Connection
// threads run this.
//
// A real app has its return address registered. Here the page shows the address, so that a person
// whose browser reaches the service under another name can change it.

pub(crate) const ROUTE_A: &str = "broker_a.login";
pub(crate) const ROUTE_B: &str = "broker_b.login";

const PAGE: &str = include_str!("login_page.html");
/// Longest user id or return address that is accepted.
const FIELD_BYTES_MAX: usize = 512;

/// The differences between the two brokers' pages.
struct Broker<'a> {
    name: &'static str,
    return_path: &'static str,
    api_key: &'a str,
    secret: &'a str,
    user_id: &'a str,
}

/// `GET` shows the page, `POST` of its form logs in.
pub(crate) fn answer(call: &Call<'_>, route: &str) -> Answer {
    let (app_a, app_b) = (&call.world.settings.broker_a, &call.world.settings.broker_b);
    let broker = match route {
        ROUTE_A => Broker {
            name: "broker A",
            return_path: "/return/a",
            api_key: &app_a.api_key,
            secret: &app_a.api_secret,
            user_id: &app_a.user_id,
        },
        _ => Broker {
            name: "broker B",
            return_path: "/return/b",
            api_key: &app_b.api_key,
            secret: &app_b.secret_key,
            user_id: &app_b.user_id,
        },
    };
    let knows = |key: &String| if route == ROUTE_A { app_a.knows(key) } else { app_b.knows(key) };
    let api_key = value(call, "api_key").filter(knows);
    let Some(api_key) = api_key else { return unknown_app(&broker) };
    match call.request.method.as_str() {
        "GET" => {
            let root = call.world.returns_to.lock().clone();
            shown(200, &broker, &form(&broker, &api_key, &format!("{root}{}", broker.return_path)))
        }
        "POST" => log_in(call, route, &broker).unwrap_or_else(|why| refused(&broker, why)),
        _ => Answer::text(405, "text/plain; charset=utf-8", "GET or POST"),
    }
}

/// A value of the query or of the form. The content type of the form is not checked.
fn value(call: &Call<'_>, name: &str) -> Option<String> {
    let body = std::str::from_utf8(&call.request.body).map(pairs).unwrap_or_default();
    let all = call.request.query_pairs().into_iter().chain(body);
    all.into_iter().find(|(given, _)| given == name).map(|(_, value)| value)
}

fn log_in(call: &Call<'_>, route: &str, broker: &Broker<'_>) -> Result<Answer, &'static str> {
    let field = |name| {
        let given = value(call, name).filter(|text| (1..=FIELD_BYTES_MAX).contains(&text.len()));
        // The value becomes part of a header, so it must not contain a line end.
        given.filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()))
    };
    let user_id = field("user_id").ok_or("The user id has 1 to 512 letters and no spaces.")?;
    let back = field("redirect_url")
        .filter(|url| url.starts_with("http://") || url.starts_with("https://"))
        .ok_or("The redirect URL is an address that begins with http:// or https://.")?;
    if route == ROUTE_A {
        let token = call.world.broker_a.lock().issue_request_token(user_id, call.now);
        let mark = if back.contains('?') { '&' } else { '?' };
        let query = format!("action=login&type=login&status=success&request_token={token}");
        let content = Content::Moved(format!("{back}{mark}{query}"));
        return Ok(Answer { status: 302, content, rejected: false });
    }
    let session = call.world.broker_b.lock().issue_api_session(user_id, call.now);
    let content = format!(
        "<form method=\"post\" action=\"{}\">\
         <input type=\"hidden\" name=\"API_Session\" value=\"{session}\">\
         <p>You are logged in.</p><button>Back to the app</button></form>\
         <script>document.forms[0].submit()</script>",
        escaped(&back)
    );
    Ok(shown(200, broker, &content))
}

fn form(broker: &Broker<'_>, api_key: &str, back: &str) -> String {
    let (api_key, user, back) = (escaped(api_key), escaped(broker.user_id), escaped(back));
    format!(
        "<form method=\"post\">\
         <p>App: <code>{api_key}</code></p>\
         <label for=\"user\">User id</label>\
         <input id=\"user\" name=\"user_id\" value=\"{user}\" autocomplete=\"off\" required>\
         <small>Another id has another portfolio.</small>\
         <label for=\"back\">Redirect URL</label>\
         <input id=\"back\" name=\"redirect_url\" value=\"{back}\" type=\"url\" required>\
         <small>At the broker it is registered with the app and cannot be chosen here.</small>\
         <button>Log in</button></form>"
    )
}

fn unknown_app(broker: &Broker<'_>) -> Answer {
    let content = format!(
        "<p><b>No app has this API key.</b> The simulator’s app has the key \
         <code>{}-1</code> and the secret <code>{}</code>. Go back and type this key.</p>",
        escaped(broker.api_key),
        escaped(broker.secret)
    );
    shown(400, broker, &content)
}

fn refused(broker: &Broker<'_>, why: &str) -> Answer {
    shown(400, broker, &format!("<p><b>{why}</b> Go back and change it.</p>"))
}

fn shown(status: u16, broker: &Broker<'_>, content: &str) -> Answer {
    let page = PAGE.replace("{broker}", broker.name).replace("{content}", content);
    Answer::text(status, "text/html; charset=utf-8", &page)
}

/// Escapes the text of an element or of a quoted attribute.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
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

#[cfg(test)]
mod login_page_tests {
    use crate::sim::testing::{Got, get, send, sim};
    use crate::sim::{Sim, SimSettings};

    const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
    const A: &str = "/a/connect/login?v=3&api_key=simkeya-1";
    const B: &str = "/b/apiuser/login?api_key=sim%2Bkey%3Db%261";

    fn log_in(sim: &Sim, page: &str, user: &str, back: &str) -> Got {
        let body = format!("user_id={user}&redirect_url={back}");
        send(sim.addr(), "POST", page, FORM, &body).unwrap()
    }

    /// Exchanges a request token, with the checksum that the broker documents.
    fn exchange(sim: &Sim, token: &str) -> Got {
        use sha2::{Digest, Sha256};
        let digest = Sha256::digest(format!("simkeya-1{token}simsecreta"));
        let sum: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let body = format!("api_key=simkeya-1&request_token={token}&checksum={sum}");
        let headers = format!("{FORM}X-Kite-Version: 3\r\n");
        send(sim.addr(), "POST", "/a/session/token", &headers, &body).unwrap()
    }

    #[test]
    fn the_pages_say_that_they_are_simulated_and_where_they_lead() {
        let (sim, _) = sim();
        sim.return_logins_to("http://localhost:9");
        for (page, back) in [(A, "http://localhost:9/return/a"), (B, "http://localhost:9/return/b")]
        {
            let got = get(&sim, page, "");
            assert_eq!(got.status, 200);
            assert_eq!(got.header("Content-Type"), Some("text/html; charset=utf-8"));
            assert!(
                got.text().contains("Simulated") && got.text().contains(back),
                "{}",
                got.text()
            );
        }
        assert!(get(&sim, B, "").text().contains("<code>sim+key=b&amp;1</code>"));
        assert_eq!(SimSettings::default().returns_to, "http://127.0.0.1:8080");
    }

    #[test]
    fn broker_a_redirects_with_a_code_that_works_once() {
        let (sim, _) = sim();
        let got = log_in(&sim, A, "SA0007", "http%3A%2F%2Flocalhost%3A9%2Freturn%2Fa");
        assert_eq!(got.status, 302);
        let location = got.header("Location").unwrap();
        let (back, query) = location.split_once('?').unwrap();
        assert_eq!(back, "http://localhost:9/return/a");
        let token = query.strip_prefix("action=login&type=login&status=success&request_token=");
        let token = token.unwrap();
        let session = exchange(&sim, token);
        assert!(session.text().contains("SA0007"), "{}", session.text());
        assert_eq!(exchange(&sim, token).status, 403);
        let more = log_in(&sim, A, "SA0007", "http%3A%2F%2Fx%2F%3Fy%3D1");
        assert!(more.header("Location").unwrap().starts_with("http://x/?y=1&action=login"));
    }

    #[test]
    fn broker_b_has_the_browser_post_the_code() {
        let (sim, _) = sim();
        let got = log_in(&sim, B, "SB000007", "http%3A%2F%2Flocalhost%3A9%2Freturn%2Fb");
        let text = got.text();
        assert!(text.contains("method=\"post\" action=\"http://localhost:9/return/b\""), "{text}");
        let (_, rest) = text.split_once("name=\"API_Session\" value=\"").unwrap();
        let session = rest.split('"').next().unwrap();
        let body = format!("{{\"SessionToken\":\"{session}\",\"AppKey\":\"sim+key=b&1\"}}");
        let json = "Content-Type: application/json\r\n";
        let details = send(sim.addr(), "GET", "/b/customerdetails", json, &body).unwrap();
        assert!(details.text().contains("SB000007"), "{}", details.text());
    }

    #[test]
    fn an_unknown_app_and_what_would_break_a_header_are_refused() {
        let (sim, _) = sim();
        for page in ["/a/connect/login?v=3&api_key=mine", "/a/connect/login", "/b/apiuser/login"] {
            let got = get(&sim, page, "");
            assert_eq!(got.status, 400);
            assert!(got.text().contains("No app has this API key"));
        }
        for (user, back) in [
            ("SA0001", "javascript%3Aalert(1)"),
            ("SA0001", "http%3A%2F%2Fx%0D%0ASet-Cookie%3Ay"),
            ("SA%200001", "http%3A%2F%2Fx"),
            ("", "http%3A%2F%2Fx"),
            (&"S".repeat(513), "http%3A%2F%2Fx"),
        ] {
            let got = log_in(&sim, A, user, back);
            assert_eq!((got.status, got.header("Location")), (400, None), "{user} {back}");
        }
        let quoted = log_in(&sim, B, "SB1", "http%3A%2F%2Fx%22%3E%3Cscript%3E");
        assert!(quoted.text().contains("action=\"http://x&quot;&gt;&lt;script&gt;\""));
    }
}
