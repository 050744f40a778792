//! The store in a PostgreSQL database, which several nodes may share.
//!
//! No state is kept in a session: no named statement, no `SET` that outlives a transaction, no
//! `LISTEN` and no session's lock. So any pooler may stand between, also in transaction mode.

mod condition;
#[cfg(test)]
mod conformance_tests;
mod connection;
mod copy;
#[cfg(test)]
mod copy_tests;
#[cfg(test)]
mod faults_tests;
mod lease;
mod migrations;
#[cfg(test)]
mod statements_tests;
mod store;
#[cfg(test)]
mod test_server;
mod transaction;
#[cfg(test)]
mod turns_tests;
mod tx;

pub(crate) use connection::{check, is_exposed};
pub(crate) use copy::copy;
pub(crate) use lease::PostgresLease;
pub(crate) use store::{Postgres, PostgresUsers};
