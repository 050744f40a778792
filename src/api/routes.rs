//! The table of routes, with the callers that may use each.
//!
//! Constant data. Tests compare the documents, OPTIONS and the OpenAPI description with it.

use crate::api::state::Access::{Admin, Public, User};
use crate::api::state::{Access, Handler};
use crate::api::{
    account, activation, candles, journal, openapi, portfolio, quotes, signals, state, stream,
};
use crate::http::Method;
use crate::http::Method::{Delete, Get, Post, Put};

/// One route.
pub struct Route {
    pub method: Method,
    /// `{id}` as a whole segment stands for a positive number.
    pub path: &'static str,
    pub access: Access,
    pub run: Handler,
    /// Its purpose, in one line.
    pub doc: &'static str,
}

const fn route(
    (method, path): (Method, &'static str),
    access: Access,
    run: Handler,
    doc: &'static str,
) -> Route {
    Route { method, path, access, run, doc }
}

/// Every route, the most used first, because they are searched in this order. A GET route also
/// answers HEAD.
#[rustfmt::skip]
pub const ROUTES: &[Route] = &[
    route((Get, "/api/index/snapshot"), Public, quotes::read_snapshot,
        "Indices, sectors, signals and the market's phase"),
    route((Get, "/api/index/stream"), Public, stream::read,
        "The snapshot as server-sent events, again after each change"),
    route((Get, "/api/portfolio/live-prices"), Public, quotes::read,
        "Quotes of up to 50 symbols"),
    route((Post, "/api/portfolio/sync"), User, portfolio::broker_a,
        "Replaces the stored holdings and positions of broker A"),
    route((Post, "/api/portfolio/brokerb-sync"), User, portfolio::broker_b,
        "Replaces the stored holdings and positions of broker B"),
    route((Get, "/api/portfolio/holdings"), User, portfolio::holdings,
        "Holdings of the last sync with their values"),
    route((Get, "/api/portfolio/positions"), User, portfolio::positions,
        "Positions of the last sync"),
    route((Get, "/api/portfolio/pnl"), User, portfolio::pnl,
        "Profit and loss, with its trend of up to a year"),
    route((Delete, "/api/portfolio/data"), User, portfolio::delete,
        "Deletes holdings, positions and trend; the journal stays"),
    route((Get, "/api/portfolio/export"), User, portfolio::export,
        "Everything stored for the user, as one document"),
    route((Get, "/api/signals"), Public, signals::list,
        "Signals of the last published date, all or filtered"),
    route((Get, "/api/signals/record"), Public, signals::record,
        "Outcomes of all published signals"),
    route((Get, "/api/market/candles"), Public, candles::read,
        "The newest daily candles of a symbol"),
    route((Get, "/api/market/search"), Public, quotes::read_search,
        "Instruments by ticker, name or ISIN"),
    route((Get, "/api/health"), Public, state::read,
        "State of feeds, caches and warmers"),
    route((Get, "/api/openapi.json"), Public, openapi::read,
        "This description of the API"),
    route((Get, "/brokera/status"), Public, activation::broker_a_status,
        "State of the server's shared broker A token"),
    route((Get, "/brokerb/status"), Public, activation::broker_b_status,
        "State of the server's shared broker B session"),
    route((Post, "/brokera/activate"), Admin, activation::broker_a,
        "Exchanges a login's request_token for the shared broker A token"),
    route((Post, "/brokerb/activate"), Admin, activation::broker_b,
        "Exchanges a login's api_session for the shared broker B session"),
    route((Get, "/api/journal"), User, journal::list,
        "A page of the journal, newest entries first"),
    route((Post, "/api/journal"), User, journal::add,
        "Adds an entry to the journal"),
    route((Get, "/api/journal/search"), User, journal::search,
        "Entries that fit filters, and what their closed pairs came to"),
    route((Get, "/api/journal/{id}"), User, journal::show,
        "One entry of the journal"),
    route((Put, "/api/journal/{id}"), User, journal::replace,
        "Replaces an entry of the journal"),
    route((Delete, "/api/journal/{id}"), User, journal::delete,
        "Deletes an entry of the journal"),
    route((Post, "/api/auth/register"), Public, account::register,
        "Creates an account and logs it in"),
    route((Post, "/api/auth/login"), Public, account::login,
        "Gives an access token for an e-mail and password"),
    route((Get, "/api/auth/session"), Public, account::read,
        "Who is logged in, and until when"),
    route((Post, "/api/auth/logout"), User, account::logout,
        "Revokes the access token of the request"),
    route((Post, "/api/auth/password"), User, account::password,
        "Changes the password and revokes every older token"),
    route((Delete, "/api/auth/account"), User, account::erase,
        "Erases the account and everything stored for it"),
];
