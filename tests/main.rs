//! The integration tests, one binary so that it links once: the repository's own rules, the HTTP
//! layer from a stranger's view, and the program from its users' view.

// `allow-unwrap-in-tests` does not cover functions outside of tests.
#![allow(clippy::unwrap_used)]

mod accounts;
mod commands;
mod contract;
mod dashboard;
mod days;
mod http;
mod incidents;
mod ledger;
mod market;
mod mcp;
#[cfg(feature = "engines")]
mod nodes;
mod operation;
mod portfolio;
mod repository;
mod signals;
mod storage;
mod streams;
mod support;
