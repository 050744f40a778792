//! The store in one SQLite file: one writer thread, several reader threads. Statements are in
//! `src/store/statements`.

pub(crate) mod care;
pub(crate) mod cleaning;
pub(crate) mod condition;
#[cfg(test)]
mod conformance_tests;
pub(crate) mod errors;
pub(crate) mod file;
pub(crate) mod identity;
pub(crate) mod inode;
pub(crate) mod lock_wait;
pub(crate) mod log;
pub mod maintenance;
pub(crate) mod progress;
pub(crate) mod readers;
pub(crate) mod store;
pub(crate) mod tx;
pub(crate) mod unfinished;
pub mod users;
pub(crate) mod writer;
