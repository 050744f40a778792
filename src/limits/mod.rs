//! Rate limits of attempts: by account, by client network and by user.
//!
//! Checked on the edge, before any work is done for the request.

pub mod throttle;
