//! Requests and responses after RFC 9110 and 9112: parsing, conditions, error documents. Pure.

pub mod authority;
pub mod chunked;
pub mod codings;
pub mod conditional;
pub mod date;
pub mod head;
pub(crate) mod head_fault;
pub mod problem;
pub mod request;
pub mod response;
pub mod upload;
