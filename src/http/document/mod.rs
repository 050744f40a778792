//! Documents made ahead of time: serialised, compressed and tagged once, sent many times.
//!
//! They are made on OS threads and sent on the edge.

pub mod coding;
pub mod events;
pub mod frames;
pub mod negotiate;
pub mod owned_body;
pub mod prepared;
pub mod published;
pub mod variants;
