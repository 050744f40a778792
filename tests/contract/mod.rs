//! The routes, the document and the answers, compared with each other.

mod described;
mod examples;
pub mod openapi;
mod preconditions;
mod recorded;
mod replies;
mod routes;
mod samples;
mod surface;
