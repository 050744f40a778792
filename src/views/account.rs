//! Replies of the account's routes.

use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoggedIn<'a> {
    /// A JWT: send it as `Authorization: Bearer`, or in the cookie `access_token_cookie`.
    pub access_token: &'a str,
    #[cfg_attr(test, schemars(extend("const" = "Bearer")))]
    pub token_type: &'static str,
    /// Seconds until the token expires: 7 days.
    #[cfg_attr(test, schemars(extend("const" = 604800)))]
    pub expires_in: i64,
    pub user: User<'a>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct User<'a> {
    #[cfg_attr(test, schemars(extend("minimum" = 1)))]
    pub id: i64,
    /// As stored: trimmed and in lower case.
    pub email: &'a str,
    pub name: Option<&'a str>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Message {
    pub message: &'static str,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountErased {
    pub message: &'static str,
    pub deleted: ErasedRows,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ErasedRows {
    pub holdings: u64,
    pub positions: u64,
    pub pnl_snapshots: u64,
    pub journal_entries: u64,
}
