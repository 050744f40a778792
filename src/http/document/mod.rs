//! Documents that are ready to be sent: serialised, compressed and tagged once. Pure.

pub mod coding;
pub mod negotiate;
pub mod owned;
pub mod prepared;
pub mod published;
pub mod variants;
