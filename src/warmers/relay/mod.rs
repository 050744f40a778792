//! What the nodes tell each other: the leader its prices, the followers the symbols that they want.
//!
//! - `news`: what is sent, and the trait of the wire that carries it. Plain values, with durations
//!   in place of times, because each node has a monotonic clock of its own.
//! - `valkey`: the wire over a Valkey server, and the bytes of what is sent beside prices.
//! - `tell`: the leader's side.
//! - `follow`: a follower's side, and the leader's with symbols that followers want.
//!
//! All of it is state of the scheduler's thread; the wire blocks and is used on the lane `relay`.

pub(crate) mod follow;
pub(crate) mod news;
pub(crate) mod tell;
#[cfg(feature = "engines")]
mod valkey;

pub use news::Told;
pub(crate) use news::{Evening, News, NoWire, Wire, WireReading};
#[cfg(feature = "engines")]
pub(crate) use valkey::{ValkeyWire, WireParts};
