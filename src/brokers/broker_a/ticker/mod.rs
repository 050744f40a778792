//! Broker A's WebSocket: prices as they are made, beside the quote calls of the same source.
//!
//! One OS thread, `ticker`, owns the connection. It subscribes to what the scheduler wants, gathers
//! ticks for a moment, and pushes them as one batch; the scheduler judges that as it judges the
//! answer to a call. Nothing here decides whether a price is fresh.
//!
//! - `thread`: when to open a connection, how long to wait after a failure, and what is subscribed.
//! - `dial`: name, TCP and TLS, with a deadline for each.
//! - `session`: one connection from its opening to its end: the WebSocket, its packets, and the
//!   window in which ticks become a batch.
//! - `reading`: what health and metrics show, and what silence and standing prices mean.

mod dial;
mod reading;
mod session;
mod thread;

pub(crate) use dial::{Endpoint, TickerSettings};
pub(crate) use reading::TickerReading;
pub(crate) use thread::Ticker;
pub use thread::Wanted;

pub(in crate::brokers::broker_a) use dial::TickerParts;
pub(in crate::brokers::broker_a) use thread::KnownTokens;
