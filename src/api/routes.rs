//! The table of routes, with the callers that may use each, and the OpenAPI description of them.
//!
//! Constant data. Tests compare the documents and OPTIONS with the table, and generate the
//! description, `openapi.json`, from it and from the views (`openapi_tests.rs`).

use crate::api::call::Access::{Admin, Key, Public, User};
use crate::api::call::Keys::{Any, Never, With};
use crate::api::call::{Access, Handler, Keys, Route};
use crate::api::{
    account, activation, candles, description, health, journal, journal_search, keys, mcp, movers,
    portfolio, quotes, search, session, signals, snapshot, stream, trades, watchlists,
};
use crate::base::Broker::{A, B};
use crate::base::Scope::{
    JournalRead, JournalWrite, MarketRead, PortfolioRead, SignalsRead, TradesRead, TradesWrite,
};
use crate::http::Method;
use crate::http::Method::{Delete, Get, Post, Put};
use crate::http::settings::HttpSettings;

/// A row with the limits of bodies that most have. One that takes others is written
/// `Route { body, ..route(…) }`.
const fn route(
    (method, path): (Method, &'static str),
    access: Access,
    keys: Keys,
    run: Handler,
    doc: &'static str,
) -> Route {
    let body = HttpSettings::body_limits;
    Route {
        method,
        path,
        access,
        keys,
        body,
        run,
        upload: None,
        doc,
    }
}

/// Every route, the most used first, because they are searched in this order. A GET route also
/// answers HEAD.
#[rustfmt::skip]
pub const ROUTES: &[Route] = &[
    route((Get, "/api/index/snapshot"), Public, With(MarketRead), snapshot::read,
        "Indices, sectors, signals and the market's phase"),
    route((Get, "/api/index/stream"), Public, With(MarketRead), stream::read,
        "The snapshot as server-sent events, again after each change"),
    route((Get, "/api/portfolio/live-prices"), Public, With(MarketRead), quotes::read,
        "Quotes of up to 50 symbols"),
    route((Post, "/api/portfolio/sync"), User, Never, |s, c, r| portfolio::sync(A, s, c, r),
        "Replaces the stored holdings and positions of broker A"),
    route((Post, "/api/portfolio/brokerb-sync"), User, Never, |s, c, r| portfolio::sync(B, s, c, r),
        "Replaces the stored holdings and positions of broker B"),
    route((Get, "/api/portfolio/holdings"), User, With(PortfolioRead), portfolio::holdings,
        "Holdings of the last sync with their values"),
    route((Get, "/api/portfolio/positions"), User, With(PortfolioRead), portfolio::positions,
        "Positions of the last sync"),
    route((Get, "/api/portfolio/pnl"), User, With(PortfolioRead), portfolio::pnl,
        "Profit and loss, with its trend of up to a year"),
    route((Delete, "/api/portfolio/data"), User, Never, portfolio::delete,
        "Deletes holdings, positions and trend; the journal stays"),
    route((Get, "/api/portfolio/export"), User, Never, portfolio::export,
        "Everything stored for the user, as one document"),
    route((Get, "/api/signals"), Public, With(SignalsRead), signals::list,
        "Signals of the last published date, all or filtered"),
    route((Get, "/api/signals/record"), Public, With(SignalsRead), signals::record,
        "Outcomes of all published signals"),
    route((Get, "/api/market/candles"), Public, With(MarketRead), candles::read,
        "The newest daily candles of a symbol"),
    route((Get, "/api/market/movers"), Public, With(MarketRead), movers::read,
        "How many shares rise and fall, and which most"),
    route((Get, "/api/market/search"), Public, With(MarketRead), search::read,
        "Instruments by ticker, name or ISIN"),
    route((Post, "/mcp"), Key, Any, mcp::answer,
        "What an assistant may read, by the Model Context Protocol"),
    route((Get, "/api/health"), Public, Any, health::read,
        "State of feeds, caches and warmers"),
    route((Get, "/api/openapi.json"), Public, Any, description::read,
        "This description of the API"),
    route((Get, "/brokera/status"), Public, Any, |s, c, r| activation::status(A, s, c, r),
        "State of the server's shared broker A token"),
    route((Get, "/brokerb/status"), Public, Any, |s, c, r| activation::status(B, s, c, r),
        "State of the server's shared broker B session"),
    route((Post, "/brokera/activate"), Admin, Never, |s, c, r| activation::activate(A, s, c, r),
        "Exchanges a login's request_token for the shared broker A token"),
    route((Post, "/brokerb/activate"), Admin, Never, |s, c, r| activation::activate(B, s, c, r),
        "Exchanges a login's api_session for the shared broker B session"),
    route((Get, "/api/journal"), User, With(JournalRead), journal::list,
        "A page of the journal, newest entries first"),
    route((Post, "/api/journal"), User, With(JournalWrite), journal::add,
        "Adds an entry to the journal"),
    route((Get, "/api/journal/search"), User, With(JournalRead), journal_search::search,
        "Entries that fit filters, and what their closed pairs came to"),
    route((Get, "/api/journal/{id}"), User, With(JournalRead), journal::show,
        "One entry of the journal"),
    route((Put, "/api/journal/{id}"), User, With(JournalWrite), journal::replace,
        "Replaces an entry of the journal"),
    route((Delete, "/api/journal/{id}"), User, With(JournalWrite), journal::delete,
        "Deletes an entry of the journal"),
    route((Get, "/api/trades"), User, With(TradesRead), trades::list,
        "The trades that fit, newest first"),
    route((Delete, "/api/trades"), User, Never, trades::delete_all,
        "Deletes all trades, imports, corrections and choices"),
    route((Get, "/api/trades.csv"), User, With(TradesRead), trades::csv,
        "The trades that fit, as CSV"),
    Route {
        body: HttpSettings::upload_limits,
        upload: Some(trades::IMPORT),
        ..route((Post, "/api/trades/imports"), User, With(TradesWrite), trades::import_nothing,
            "Reads a broker's file, and shows what it would add")
    },
    route((Get, "/api/trades/imports"), User, With(TradesRead), trades::imports,
        "The imports, the newest first"),
    route((Post, "/api/trades/imports/{id}/confirm"), User, With(TradesWrite), trades::confirm,
        "Makes an import count"),
    route((Get, "/api/trades/lots"), User, With(TradesRead), trades::lots,
        "Open lots at the end of a day"),
    route((Delete, "/api/trades/imports/{id}"), User, With(TradesWrite), trades::undo,
        "Drops a preview, or undoes an import"),
    route((Get, "/api/trades/accounts"), User, With(TradesRead), trades::accounts,
        "Demat accounts, and whose each is"),
    route((Get, "/api/trades/gains"), User, With(TradesRead), trades::gains,
        "A financial year's gains of one person"),
    route((Get, "/api/trades/gains.csv"), User, With(TradesRead), trades::gains_csv,
        "The parts of those gains, as CSV"),
    route((Get, "/api/trades/returns"), User, With(TradesRead), trades::returns,
        "What a person's shares returned a year"),
    route((Get, "/api/trades/agreement"), User, With(TradesRead), trades::agreement,
        "The broker's own report against the ledger"),
    route((Get, "/api/trades/tax/{id}/112a.csv"), User, With(TradesRead), trades::worksheet,
        "Schedule 112A of a financial year as a worksheet"),
    route((Get, "/api/trades/reconciliation"), User, With(TradesRead), trades::reconciliation,
        "The ledger against what the brokers hold"),
    route((Put, "/api/trades/accounts/{id}"), User, With(TradesWrite), trades::set_person,
        "Says whose a demat account is"),
    route((Get, "/api/trades/corrections"), User, With(TradesRead), trades::corrections,
        "What was said of the ledger that no trade says"),
    route((Put, "/api/trades/corrections/{id}"), User, With(TradesWrite), trades::put_correction,
        "Adds or replaces a correction"),
    route((Delete, "/api/trades/corrections/{id}"), User, With(TradesWrite),
        trades::delete_correction,
        "Deletes a correction"),
    route((Put, "/api/trades/conflicts/{id}"), User, With(TradesWrite), trades::choose,
        "Keeps one of two rows that differ"),
    route((Get, "/api/watchlists"), User, With(PortfolioRead), watchlists::read,
        "The account's watch lists"),
    route((Put, "/api/watchlists"), User, Never, watchlists::replace,
        "Replaces all watch lists of the account"),
    route((Post, "/api/auth/register"), Public, Never, account::register,
        "Creates an account and logs it in"),
    route((Post, "/api/auth/login"), Public, Never, account::login,
        "Gives an access token for an e-mail and password"),
    route((Get, "/api/auth/session"), Public, Any, session::read,
        "Who is logged in, and until when"),
    route((Post, "/api/auth/logout"), User, Never, account::logout,
        "Revokes the access token of the request"),
    route((Post, "/api/auth/password"), User, Never, account::password,
        "Changes the password and revokes every older token"),
    route((Get, "/api/keys"), User, Never, keys::list,
        "The account's API keys"),
    route((Post, "/api/keys"), User, Never, keys::make,
        "Makes an API key and shows it once"),
    route((Delete, "/api/keys/{id}"), User, Never, keys::revoke,
        "Revokes an API key"),
    route((Delete, "/api/auth/account"), User, Never, account::erase,
        "Erases the account and everything stored for it"),
];

#[cfg(test)]
#[path = "openapi_tests.rs"]
mod openapi_tests;
