//! Requests and responses after RFC 9110 and 9112: parsing, conditions, error documents. Pure.

pub mod chunked;
pub mod head;
pub mod request;
pub mod response;
