//! Replies of the account's routes.

use serde::{Deserialize, Serialize};

use crate::views::values::{Instant, documents};

documents! {
    pub(crate) struct LoggedIn<'a> {
        /// A JWT: send it as `Authorization: Bearer`, or in the cookie `access_token_cookie`.
        /// Absent if it was set as a cookie.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub access_token: Option<&'a str>,
        #[cfg_attr(test, schemars(extend("const" = "Bearer")))]
        pub token_type: &'static str,
        /// Seconds until the token expires: 7 days.
        #[cfg_attr(test, schemars(extend("const" = 604800)))]
        pub expires_in: i64,
        pub user: User<'a>,
    }

    pub(crate) struct User<'a> {
        #[cfg_attr(test, schemars(extend("minimum" = 1)))]
        pub id: i64,
        /// As stored: trimmed and in lower case.
        pub email: &'a str,
        pub name: Option<&'a str>,
    }

    /// Who is logged in, and what a page has to know before it asks for anything else.
    pub(crate) struct SessionState<'a> {
        /// Null without a valid token.
        pub user: Option<User<'a>>,
        /// When the token expires; null without a valid one.
        pub expires_at: Option<Instant>,
        /// Whether `POST /api/auth/register` creates accounts.
        #[cfg_attr(test, schemars(extend("enum" = ["open", "closed"])))]
        pub registration: &'static str,
        /// Version of the program.
        pub version: &'static str,
        /// Names the content of the dashboard's files, as in their paths; null if it is switched
        /// off.
        pub web: Option<&'a str>,
        pub login_pages: LoginPages<'a>,
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

    pub(crate) struct ErasedRows {
        pub holdings: u64,
        pub positions: u64,
        pub pnl_snapshots: u64,
        pub journal_entries: u64,
    }
}

// ---- Broker status
//
// The state of the server's shared tokens.

/// State of the shared broker A token.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct BrokerAStatus {
    /// Whether a token was ever set.
    pub initialized: bool,
    /// Whether the token is valid by the broker's rule; false as soon as the broker refuses it.
    pub valid: bool,
    pub token_type: &'static str,
    /// Absent if none was ever set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_at: Option<Instant>,
    /// Absent if none was ever set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Instant>,
}

/// State of the shared broker B session.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct BrokerBStatus {
    /// Whether a token was ever set.
    pub initialized: bool,
    /// Whether the token is valid by the broker's rule; false as soon as the broker refuses it.
    pub valid: bool,
    /// Absent if none was ever set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_at: Option<Instant>,
    /// Absent if none was ever set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Instant>,
}
