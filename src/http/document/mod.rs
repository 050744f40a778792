//! Documents that are ready to send: serialised, compressed and tagged once, sent many times.
//!
//! Made on OS threads, sent on the edge.

pub mod coding;
pub mod negotiate;
pub mod owned;
pub mod prepared;
pub mod published;
pub mod variants;
