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

mod session;
mod traits;

pub(crate) use session::FollowerParts;
pub use session::{Follower, ValkeyRelay};
pub use traits::{Aged, Listener, Malformed, Published, Relay, Told, Update};
#[cfg(test)]
pub(crate) use traits::{RelayError, decode, encode, encode_wanted};
