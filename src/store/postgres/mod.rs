//! The store in a PostgreSQL database, which several nodes may share.
//!
//! A session keeps no state: no named statement, no `SET` that outlives a transaction, no `LISTEN`
//! and no session lock. So any pooler may stand between, also in transaction mode.

mod condition;
#[cfg(test)]
pub(super) mod conformance_tests;
mod connection;
mod copy;
#[cfg(test)]
mod copy_tests;
#[cfg(test)]
mod faults_tests;
pub(super) mod lease;
mod migrations;
mod store;
mod target;
#[cfg(test)]
pub(super) mod test_server;
mod transactions;
#[cfg(test)]
mod turns_tests;
mod tx;
pub(super) mod url;

pub(crate) use copy::copy;
pub(crate) use lease::PostgresLease;
pub(crate) use store::Postgres;
pub(crate) use transactions::{Connections, Purpose};
