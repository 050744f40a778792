//! The integration tests, one binary so that it links once: the repository's own rules, the HTTP
//! layer as a stranger meets it, and the program as its users see it.

// `allow-unwrap-in-tests` does not reach the functions beside the tests.
#![allow(clippy::unwrap_used)]

mod candles;
mod commands;
mod documentation;
mod faults;
mod http;
mod layers;
mod mornings;
mod openapi;
mod packaging;
mod routes;
mod service;
mod settings;
mod signals;
mod source;
mod support;
mod sync;
mod tidy;
