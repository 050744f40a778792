//! The integration tests, one binary so that it links once: the repository's own rules, the HTTP
//! layer as a stranger meets it, and the program as its users see it.

// `allow-unwrap-in-tests` does not reach the functions beside the tests.
#![allow(clippy::unwrap_used)]

mod accounts;
mod commands;
mod contract;
mod dashboard;
mod http;
mod incidents;
mod market;
#[cfg(feature = "engines")]
mod nodes;
mod operation;
mod portfolio;
mod repository;
mod signals;
mod storage;
mod streams;
mod support;
