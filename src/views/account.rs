//! Replies of the account's routes.

use crate::base::{ByBroker, Scope, Symbol};
use crate::views::values::{Instant, documents, read_documents};

documents! {
    pub(crate) struct LoggedIn<'a> {
        /// A JWT: send it as `Authorization: Bearer`, or in the cookie `access_token_cookie`.
        /// Absent if it was set as a cookie.
        pub access_token?: Option<&'a str>,
        pub token_type: &'static str,
        /// Seconds until the token expires: 7 days.
        pub expires_in: i64,
        pub user: User<'a>,
    }

    pub(crate) struct User<'a> {
        pub id: i64,
        /// As stored: trimmed and in lower case.
        pub email: &'a str,
        pub name: Option<&'a str>,
    }

    /// The account of a session. An API key does not show the address.
    pub(crate) struct SessionUser<'a> {
        pub id: i64,
        /// As stored: trimmed and in lower case. Absent where the request has an API key.
        pub email?: Option<&'a str>,
        pub name: Option<&'a str>,
    }

    /// The API key of the request.
    pub(crate) struct SessionKey<'a> {
        pub id: &'a str,
        pub name: &'a str,
        pub scopes: Vec<Scope>,
    }

    /// An API key without its secret.
    pub(crate) struct ApiKey<'a> {
        /// The part of the key that is no secret: `bhav_`, this, `_` and the secret make the key.
        pub id: &'a str,
        pub name: &'a str,
        pub scopes: Vec<Scope>,
        pub created_at: Instant,
        /// When it ends; null where it is good until it is revoked. An expired key is listed for 30
        /// days.
        pub expires_at: Option<Instant>,
        /// The minute of the last request; null before the first.
        pub last_used_at: Option<Instant>,
        /// The network that it came from: a /24 of IPv4, a /48 of IPv6; null where that is not
        /// known.
        pub last_used_from: Option<&'a str>,
    }

    /// A key that was just made.
    pub(crate) struct NewApiKey<'a> {
        /// Shown this once: it is not kept. Send it as `Authorization: Bearer`.
        pub key: &'a str,
        #[serde(flatten)]
        pub about: ApiKey<'a>,
    }

    pub(crate) struct ApiKeys<'a> {
        pub keys: Vec<ApiKey<'a>>,
    }

    /// The account's watch lists in their order.
    pub(crate) struct Watchlists<'a> {
        pub watchlists: &'a [Watchlist],
        /// Names this state of the lists. In quotes it is their `ETag`: send it as `If-Match` with
        /// the next change.
        pub revision: &'a str,
    }

    #[derive(Eq)]
    pub(crate) struct Watchlist {
        /// Stays when the list is renamed or moved, and is never given to another one.
        pub id: i64,
        pub name: String,
        pub symbols: Vec<Symbol>,
    }

    /// Who is logged in, and what a page has to know before it asks for anything else.
    pub(crate) struct SessionState<'a> {
        /// Null without a valid token or API key.
        pub user: Option<SessionUser<'a>>,
        /// Present where the request has an API key.
        pub key?: Option<SessionKey<'a>>,
        /// When the token expires; null without a valid one.
        pub expires_at: Option<Instant>,
        /// Present where the browser's cookies are refused and another login would not help: why,
        /// and what to do.
        pub refused?: Option<&'static str>,
        /// Whether `POST /api/auth/register` creates accounts.
        pub registration: &'static str,
        /// Version of the program.
        pub version: &'static str,
        /// Names the content of the dashboard's files, as in their paths; null if it is switched
        /// off.
        pub web: Option<&'a str>,
        /// Null in a public demo, which takes no broker's login.
        pub login_pages: Option<LoginPages<'a>>,
    }

    /// Addresses of the brokers' login pages. The API key, percent-encoded, belongs to their end.
    pub(crate) struct LoginPages<'a> {
        pub a: &'a str,
        pub b: &'a str,
    }

    pub(crate) struct Message {
        pub message: &'static str,
    }

    pub(crate) struct AccountErased {
        pub message: &'static str,
        pub deleted: ErasedRows,
    }

    #[derive(Copy, Default, Eq)]
    pub struct ErasedRows {
        pub holdings: u64,
        pub positions: u64,
        pub pnl_snapshots: u64,
        pub journal_entries: u64,
    }
}

impl<'a> LoginPages<'a> {
    pub(crate) fn of(pages: &'a ByBroker<String>) -> Self {
        let ByBroker([a, b]) = pages;
        Self { a, b }
    }
}

// ---- Broker status
//
// The state of the server's shared tokens.

documents! {
    /// State of the shared broker A token.
    pub(crate) struct BrokerAStatus {
        /// Whether a token was ever set.
        pub initialized: bool,
        /// Whether the token is valid by the broker's rule; false as soon as the broker refuses it.
        pub valid: bool,
        pub token_type: &'static str,
        /// Absent if none was ever set.
        pub set_at?: Option<Instant>,
        /// Absent if none was ever set.
        pub expires_at?: Option<Instant>,
    }
}

read_documents! {
    /// State of the shared broker B session.
    #[cfg_attr(test, schemars(rename = "BrokerBStatus"))]
    pub(crate) struct SessionStatus {
        /// Whether a token was ever set.
        pub initialized: bool,
        /// Whether the token is valid by the broker's rule; false as soon as the broker refuses it.
        pub valid: bool,
        /// Absent if none was ever set.
        pub set_at?: Option<Instant>,
        /// Absent if none was ever set.
        pub expires_at?: Option<Instant>,
    }
}
