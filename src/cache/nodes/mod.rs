//! What the nodes of one installation tell each other over the server that they share.
//!
//! - [`claim`]: the leader's claim, beside the row in the database.
//! - [`relay`]: prices from the leader to all, symbols that are wanted from all to the leader.
//! - [`limits`]: rate limits that hold over all nodes together.
//! - [`tokens`]: the brokers' tokens of the day, sealed.
//!
//! A part of `cache` and no room beside it: modules of one layer do not know each other, and this
//! shares the connections, the keys' namespace and the stored form of quotes with the second level.
//! Nothing here decides: what leads, what is fresh and what is called is decided by the warmers.

pub mod claim;
pub mod limits;
pub mod relay;
pub mod tokens;
