//! The store in one SQLite file: one writer thread, several reader threads. Statements are in
//! `sql`.

pub(crate) mod accounts;
pub(crate) mod care;
pub(crate) mod cleaning;
pub(crate) mod closing_prices;
pub(crate) mod columns;
pub(crate) mod condition;
#[cfg(test)]
mod conformance_tests;
pub(crate) mod eod;
pub(crate) mod erasure;
pub(crate) mod errors;
pub(crate) mod file;
pub(crate) mod identity;
pub(crate) mod inode;
pub(crate) mod journal;
pub(crate) mod ledger_columns;
pub(crate) mod lock_wait;
pub(crate) mod log;
pub mod maintenance;
pub(crate) mod portfolios;
pub(crate) mod progress;
pub(crate) mod provisional_signals;
pub(crate) mod readers;
pub(crate) mod signals;
pub(crate) mod store;
pub(crate) mod unfinished;
pub mod users;
pub(crate) mod writer;
