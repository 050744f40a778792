//! The routes of the service: finds a request's route, identifies its caller, answers from memory.
//!
//! [`ROUTES`] lists every route. Handlers run on the edge, receive [`State`] as an argument and
//! answer through [`Response`](crate::http::Response). A handler that refuses returns a
//! [`Problem`](crate::http::Problem), and the router sends and logs it in one place. Handlers never
//! block. A handler's comment says why it parks.

mod account;
pub(crate) mod activation;
mod body;
mod candles;
mod errors;
mod journal;
mod keys;
mod mcp;
mod pages;
mod portfolio;
mod quotes;
mod router;
mod routes;
mod signals;
mod state;
mod stream;
mod watchlists;

pub(crate) use activation::{AdminSecrets, Administration};
pub(crate) use candles::KeptCandles;
pub(crate) use mcp::Tools;
pub(crate) use portfolio::PortfolioState;
pub use router::Api;
pub(crate) use router::CorsInForce;
pub(crate) use routes::description;
pub use routes::{ROUTES, Route};
pub use state::{Access, Call, Keys, State};
pub use stream::Choices;
pub(crate) use stream::{EventStreams, SNAPSHOT_EVENT};
