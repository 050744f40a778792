//! Who may act as the leader: leases at authorities that several nodes ask.
//!
//! - `authority`: what an authority is: a row of PostgreSQL, a key of Valkey.
//! - `state`: what this node makes of their answers. Pure.
//!
//! An authority gives its lease to one holder at a time and takes it back by its own clock. A node
//! counts a lease from *before* it sent the request and gives up a margin early, so it never acts
//! on a lease that another node could have by then.

mod authority;
mod state;

pub use authority::{Authority, AuthorityError, Grant, Holder, Look, Presence};
pub use state::{Answer, Ask, LeaseState, LeaseTimes, Request, Standing, Which};
