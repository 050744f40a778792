//! The whole surface: every route with who may use it, whether it may park, and what it is.
//!
//! Constant data. The README, the tests and OPTIONS are held against it.

use super::call::Access;
use super::call::Access::{Admin, Public, User};
use super::call::Handler;
use super::call::Hop::{self, Always, Never, OnMiss};
use super::{
    account, activation, broker_status, health, journal, openapi, portfolio, quotes, signals,
    snapshot,
};
use crate::http::Method::{self, Delete, Get, Post, Put};

/// One entry of the surface.
pub struct Route {
    pub method: Method,
    /// `{id}` as a whole segment stands for a positive number.
    pub path: &'static str,
    pub access: Access,
    pub hop: Hop,
    pub run: Handler,
    /// One line for a person.
    pub doc: &'static str,
}

const fn route(
    (method, path): (Method, &'static str),
    access: Access,
    hop: Hop,
    run: Handler,
    doc: &'static str,
) -> Route {
    Route { method, path, access, hop, run, doc }
}

/// Every route; the hottest first, since they are looked for in this order. A GET route answers
/// HEAD too.
#[rustfmt::skip]
pub const ROUTES: &[Route] = &[
    route((Get, "/api/index/snapshot"), Public, Never, snapshot::read,
        "Indices, sectors, signals and the market's phase"),
    route((Get, "/api/portfolio/live-prices"), Public, OnMiss, quotes::read,
        "Quotes of up to 50 symbols"),
    route((Post, "/api/portfolio/sync"), User, Always, portfolio::broker_a,
        "Replaces what is stored of broker A with what it says now"),
    route((Post, "/api/portfolio/brokerb-sync"), User, Always, portfolio::broker_b,
        "Replaces what is stored of broker B with what it says now"),
    route((Get, "/api/portfolio/holdings"), User, OnMiss, portfolio::holdings,
        "Holdings of the last sync, valued"),
    route((Get, "/api/portfolio/positions"), User, OnMiss, portfolio::positions,
        "Positions of the last sync"),
    route((Get, "/api/portfolio/pnl"), User, OnMiss, portfolio::pnl,
        "Profit and loss, and its trend of up to a year"),
    route((Delete, "/api/portfolio/data"), User, Always, portfolio::delete,
        "Deletes what was synced; the journal stays"),
    route((Get, "/api/portfolio/export"), User, Always, portfolio::export,
        "Everything stored of the user, as one document"),
    route((Get, "/api/signals"), Public, Never, signals::list,
        "All signals of the last published date, or those that filters keep"),
    route((Get, "/api/signals/record"), Public, Never, signals::record,
        "How published signals did"),
    route((Get, "/api/health"), Public, Never, health::read,
        "State of feeds, caches and warmers"),
    route((Get, "/api/openapi.json"), Public, Never, openapi::read,
        "This description of the API"),
    route((Get, "/brokera/status"), Public, Never, broker_status::broker_a_status,
        "State of the server's shared broker A token"),
    route((Get, "/brokerb/status"), Public, Never, broker_status::broker_b_status,
        "State of the server's shared broker B session"),
    route((Post, "/brokera/activate"), Admin, Always, activation::broker_a,
        "Exchange a login's request_token for the shared broker A token"),
    route((Post, "/brokerb/activate"), Admin, Always, activation::broker_b,
        "Exchange a login's api_session for the shared broker B session"),
    route((Get, "/api/journal"), User, Always, journal::list,
        "The journal, newest first, by pages"),
    route((Post, "/api/journal"), User, Always, journal::add,
        "Write an entry into the journal"),
    route((Get, "/api/journal/{id}"), User, Always, journal::show,
        "One entry of the journal"),
    route((Put, "/api/journal/{id}"), User, Always, journal::replace,
        "Replace an entry of the journal"),
    route((Delete, "/api/journal/{id}"), User, Always, journal::delete,
        "Delete an entry of the journal"),
    route((Post, "/api/auth/register"), Public, Always, account::register,
        "A new account, logged in"),
    route((Post, "/api/auth/login"), Public, Always, account::login,
        "An access token for e-mail and password"),
    route((Post, "/api/auth/logout"), User, Always, account::logout,
        "Revokes the presented token"),
    route((Post, "/api/auth/password"), User, Always, account::password,
        "Changes the password and revokes every older token"),
    route((Delete, "/api/auth/account"), User, Always, account::erase,
        "Erases the account and everything stored for it"),
];
