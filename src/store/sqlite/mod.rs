//! The store in one SQLite file: one writer thread, several reader threads. Statements are in
//! `src/store/statements`.

pub(crate) mod condition;
#[cfg(test)]
mod conformance_tests;
pub(crate) mod file;
pub(crate) mod log;
pub mod maintenance;
pub(crate) mod store;
pub(crate) mod writer;
