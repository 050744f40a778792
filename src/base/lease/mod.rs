//! Who may act as the leader: leases at authorities that several nodes ask.
//!
//! `state` has the trait of an authority (a row of PostgreSQL, a key of Valkey) and the state
//! machine that decides by their answers. It is pure.
//!
//! An authority gives its lease to one holder at a time and takes it back by its own clock. A node
//! counts a lease from *before* it sent the request and gives up a margin early, so it never acts
//! on a lease that another node could have by then.

mod state;

pub use state::{Answer, Authority, AuthorityError, Grant, Holder, Look, Presence, Request};
pub(crate) use state::{Ask, LeaseState, LeaseTimes, Standing, Which};
