//! Prices from the leader to all nodes, and wanted symbols from all to the leader.
//!
//! A message carries what one round of a feed brought. The server keeps the same, by symbol, so
//! that a node that missed messages reads everything once and follows on. Only the newest counts,
//! so nothing is queued and nothing is sent twice.
//!
//! - `traits`: what the warmers see of the relay: [`Relay`] to send, [`Listener`] to receive; an
//!   [`Update`] and its bytes. Decoding expects bytes that this code did not write.
//! - `session`: sending, fenced by the epoch; the OS thread `relay`, which subscribes and receives;
//!   which message follows which; what each node wants; what health and metrics show.
//! - `news`: what is sent, and the trait of the way that carries it.
//! - `valkey`: that way over a server, and the bytes of what is sent beside prices.

mod news;
#[cfg(feature = "engines")]
mod session;
#[cfg(feature = "engines")]
pub(crate) mod traits;
#[cfg(feature = "engines")]
mod valkey;

pub(crate) use news::QUOTES_MAX;
pub use news::Wire;
pub(crate) use news::{
    Evening, News, NoWire, RunningSignals, Told, WANTED_MAX, WireError, WireReading, wanted,
};
#[cfg(feature = "engines")]
pub(crate) use session::FollowerParts;
#[cfg(feature = "engines")]
pub use session::{Follower, ValkeyRelay};
#[cfg(feature = "engines")]
pub use traits::{Aged, Listener, Malformed, Published, Relay, Update};
#[cfg(feature = "engines")]
#[cfg(test)]
pub(crate) use traits::{RelayError, decode, encode, encode_wanted};
#[cfg(feature = "engines")]
pub(crate) use valkey::{Inbox, ValkeyWire, WireParts};
