//! Broker A's WebSocket: prices as they are made, beside the quote calls of the same source.
//!
//! One OS thread, `ticker`, owns the connection. It subscribes to what the scheduler wants, gathers
//! ticks for a moment, and pushes them as one batch; the scheduler judges that as it judges the
//! answer to a call. Nothing here decides whether a price is fresh.
//!
//! - `dial`: name, TCP and TLS, with a deadline for each.
//! - `link`: the WebSocket.
//! - `subscriptions`: what is subscribed, and what changes.
//! - `watch`: what silence and standing prices mean. Pure.
//! - `window`: from ticks to a batch.
//! - `session`: one connection from its opening to its end.
//! - `worker`: what the thread works with.
//! - `thread`: when to open one, and how long to wait after a failure.
//! - `reading`: what health and metrics show.

mod dial;
mod link;
mod reading;
mod session;
mod subscriptions;
mod thread;
mod watch;
mod window;
mod worker;

pub use dial::Endpoint;
pub use reading::{TICKER_STATES, TickerReading};
pub(in crate::brokers::broker_a) use subscriptions::KnownTokens;
pub use subscriptions::Wanted;
pub use thread::Ticker;
pub(in crate::brokers::broker_a) use worker::TickerParts;
pub use worker::TickerSettings;
