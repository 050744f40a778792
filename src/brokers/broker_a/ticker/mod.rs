//! Broker A's WebSocket: prices as they change, in addition to the quote calls of the same source.
//!
//! One OS thread, `ticker`, owns the connection. It subscribes to the symbols that the scheduler
//! wants, gathers ticks for a quarter of a second, and pushes them as one batch. The scheduler
//! checks a batch like the answer to a call. Nothing here decides whether a price is fresh.
//!
//! - `thread`: when to open a connection, and how long to wait after a failure.
//! - `subscriptions`: the subscribed instruments, and the changes towards the wanted ones.
//! - `dial`: name, TCP and TLS, with a deadline for each.
//! - `session`: one connection from its opening to its end.
//! - `link`: its WebSocket; `ticks`: the packets; `window`: ticks to a batch; `watch`: silence and
//!   stalled prices.
//! - `worker`: the thread's state, its inputs, and what it shares.
//! - `reading`: state and counters for health and metrics.

mod dial;
mod link;
mod reading;
mod session;
mod subscriptions;
mod thread;
mod ticks;
mod watch;
mod window;
mod worker;

pub(crate) use dial::Endpoint;
pub(crate) use reading::TickerReading;
pub use subscriptions::Wanted;
pub(crate) use thread::Ticker;
pub(crate) use worker::TickerSettings;

pub(in crate::brokers::broker_a) use subscriptions::KnownTokens;
pub(in crate::brokers::broker_a) use worker::TickerParts;
