//! What every engine of the store has to do, as tests over its traits.
//!
//! An engine's own tests run them all with [`conformance!`](engine::conformance), and test by
//! themselves what is theirs alone: where the data lies, how commits are grouped, migrations, and
//! what goes wrong below.

pub(crate) mod accounts;
pub(crate) mod changes;
pub(crate) mod closes;
pub(crate) mod engine;
pub(crate) mod journal;
pub(crate) mod model;
pub(crate) mod portfolios;
pub(crate) mod provisional_signals;
pub(crate) mod samples;
pub(crate) mod signals;
pub(crate) mod users;
