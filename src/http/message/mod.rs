//! Requests and responses after RFC 9110 and 9112: parsing, conditions, error documents. Pure.

pub(crate) mod authority;
pub mod chunked;
pub(crate) mod conditional;
pub mod date;
pub mod head;
pub(crate) mod local_client;
pub mod offline;
pub mod problem;
pub mod request;
pub mod response;
pub(crate) mod token;
