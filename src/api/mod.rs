//! The routes of the service: finds a request's route, identifies its caller, answers from memory.
//!
//! [`ROUTES`] lists every route. Handlers run on the edge, receive [`State`] as an argument and
//! answer through [`Response`](crate::http::Response). A handler that refuses returns a
//! [`Problem`](crate::http::Problem), and the router sends and logs it in one place. Handlers never
//! block. A handler's comment says why it parks.

mod account;
pub(crate) mod activation;
mod body;
mod broker_errors;
mod broker_return;
mod candles;
mod choices;
mod cors;
mod errors;
mod journal;
mod journal_search;
mod kept_candles;
mod keys;
mod mcp;
mod pages;
mod portfolio;
mod portfolio_errors;
mod query;
mod quotes;
mod router;
mod routes;
mod signals;
mod state;
mod stream;
mod watchlists;

pub(crate) use activation::{AdminSecrets, Administration};
pub use choices::Choices;
pub(crate) use cors::CorsInForce;
pub(crate) use kept_candles::KeptCandles;
pub(crate) use mcp::Tools;
pub(crate) use portfolio::PortfolioState;
pub use router::Api;
pub(crate) use routes::description;
pub use routes::{ROUTES, Route};
pub use state::{Access, Call, Keys, State};
pub(crate) use stream::{EventStreams, SNAPSHOT_EVENT};
