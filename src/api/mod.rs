//! The routes of the service: finds a request's route, identifies its caller, answers from memory.
//!
//! [`ROUTES`] lists every route. Handlers run on the edge, receive [`State`] as an argument and
//! answer through [`Response`](crate::http::Response). A handler that refuses returns a
//! [`Problem`](crate::http::Problem), and the router sends and logs it in one place. Handlers never
//! block. Only those of routes marked [`Hop::OnMiss`] or [`Hop::Always`] may park.

mod account;
mod activation;
mod body;
mod broker_return;
pub(crate) mod broker_status;
mod call;
mod candles;
mod conditional;
mod cookie;
mod cors;
mod errors;
mod health;
mod journal;
mod openapi;
mod pages;
mod portfolio;
mod query;
mod quotes;
mod report;
mod router;
mod routes;
mod search;
mod session;
mod signals;
mod snapshot;
mod state;
mod stream;

pub use activation::{AdminSecrets, Administration};
pub use call::{Access, Call, Handler, Hop};
pub use candles::KeptCandles;
pub use cors::Cors;
pub use openapi::Document;
pub use portfolio::PortfolioState;
pub use router::Api;
pub use routes::{ROUTES, Route};
pub use state::State;
pub use stream::{Choices, EventStreams, SNAPSHOT_EVENT};
