//! The routes of the service: finds a request's route, identifies its caller, answers from memory.
//!
//! [`ROUTES`] lists every route. Handlers run on the edge, receive [`State`] as an argument and
//! answer through [`Response`](crate::http::Response). A handler that refuses returns a
//! [`Problem`](crate::http::Problem), and the router sends and logs it in one place. Handlers never
//! block. A handler's comment says why it parks.

mod account;
pub(crate) mod activation;
mod administration;
mod body;
mod broker_errors;
mod broker_return;
mod call;
mod candles;
mod choices;
mod conditional;
mod cors;
mod cursor;
mod description;
mod errors;
mod event_streams;
mod health;
mod journal;
mod journal_cursor;
mod journal_search;
mod kept_candles;
mod keys;
mod lane;
mod mcp;
mod movers;
mod pages;
mod portfolio;
mod portfolio_errors;
mod query;
mod quote_source;
mod quotes;
mod refusal_log;
mod replies;
mod router;
mod routes;
mod search;
mod session;
mod signals;
mod snapshot;
mod state;
mod stream;
mod symbols;
mod trades;
mod watchlists;

pub(crate) use crate::api::administration::{AdminSecrets, Administration};
pub(crate) use crate::api::description::description;
pub use call::{Access, Call, Keys, Route};
pub use choices::Choices;
pub(crate) use cors::CorsInForce;
pub(crate) use event_streams::{EventStreams, SNAPSHOT_EVENT};
pub(crate) use kept_candles::KeptCandles;
pub(crate) use portfolio::PortfolioState;
pub use router::Api;
pub use routes::ROUTES;
pub use state::{BrokerAccess, State};
pub(crate) use trades::TradesState;
