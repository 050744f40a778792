//! How often a caller may ask: attempts by account, by address and by user.
//!
//! Runs on the edge, before any work is done for the request.

pub mod throttle;
