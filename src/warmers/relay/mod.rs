//! What the nodes tell each other: the leader its prices, the followers the symbols that they want.
//!
//! - `news`: what is told. Plain values, with durations in place of times, because each node has a
//!   monotonic clock of its own.
//! - `wire`: what carries it; `valkey` is one, and `codec` the bytes of what goes with prices.
//! - `tell`: the leader's side.
//! - `follow`: a follower's side.
//! - `wanted`: what the leader does about symbols that followers want.
//!
//! All of it is state of the scheduler's thread; the wire blocks and is used on the lane `relay`.

#[cfg(feature = "engines")]
mod codec;
pub(crate) mod follow;
pub(crate) mod news;
pub(crate) mod tell;
#[cfg(feature = "engines")]
mod valkey;
pub(crate) mod wanted;
pub(crate) mod wire;

pub use news::{Evening, News, Told};
#[cfg(feature = "engines")]
pub use valkey::{ValkeyWire, WireParts};
pub use wire::{NoWire, Wire, WireError, WireReading};
