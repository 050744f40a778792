//! The store in one SQLite file: one writer thread, several reader threads.

pub(crate) mod condition;
#[cfg(test)]
pub(super) mod conformance_tests;
pub(crate) mod file;
pub(crate) mod identity;
pub(crate) mod log;
pub mod maintenance;
pub(crate) mod readers;
pub(crate) mod store;
pub(crate) mod writer;
