//! Prices from the leader to all nodes, and wanted symbols from all to the leader.
//!
//! A message carries what one round of a feed brought. The server keeps the same, by symbol, so
//! that a node that missed messages reads everything once and follows on. Only the newest counts,
//! so nothing is queued and nothing is sent twice.
//!
//! - `traits`: what the warmers see of it: [`Relay`] to tell, [`Listener`] to be told.
//! - `update`: what is told.
//! - `wire`: the bytes of it. Pure, and hostile to bytes that it did not write.
//! - `sequence`: which message follows which. Pure.
//! - `board`: what each node wants. Pure.
//! - `teller`: sends, fenced by the epoch.
//! - `state`: reads what the server keeps.
//! - `follower`: the OS thread `relay`, which hears.
//! - `session`: one subscription from its opening to its end.
//! - `reading`: what health and metrics show.

mod board;
mod follower;
mod reading;
mod sequence;
mod session;
mod state;
mod teller;
mod traits;
mod update;
mod wire;

pub use board::{NODES_MAX, WANTED_TTL_MS};
pub use follower::{Follower, FollowerParts};
pub use reading::{RELAY_STATES, RelayReading};
pub use teller::ValkeyRelay;
pub use traits::{Listener, Published, Relay, RelayError, Told};
pub use update::{Aged, Update};
pub use wire::{Malformed, SYMBOLS_MAX, WANTED_MAX};
