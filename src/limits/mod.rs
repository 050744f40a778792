//! Rate limits of attempts: by account, by client network and by user.
//!
//! Checked on the edge, before any work is done for the request. Where nodes share a server,
//! attempts that a node admits are counted by all of them together, on a lane.

pub(crate) mod throttle;
