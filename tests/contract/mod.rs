//! What the routes, the document and the answers promise, held against each other.

mod described;
mod examples;
pub mod openapi;
mod preconditions;
mod recorded;
mod replies;
mod routes;
mod samples;
mod surface;
