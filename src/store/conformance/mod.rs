//! Tests over the store's traits that every engine has to pass.
//!
//! Each file makes a test of each of its functions on each engine. An engine's own tests add what
//! only that engine has: where the data lies, how commits are grouped, migrations, and faults below
//! it.

pub(crate) mod accounts;
pub(crate) mod api_keys;
pub(crate) mod changes;
pub(crate) mod closes;
pub(crate) mod engine;
pub(crate) mod journal;
pub(crate) mod ledger;
pub(crate) mod model;
pub(crate) mod portfolios;
pub(crate) mod samples;
pub(crate) mod signals;
pub(crate) mod users;
pub(crate) mod watchlists;
