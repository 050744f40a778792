//! Broker B (Breeze): portfolios of users, the server's own session of the day, and the file that
//! explains its short codes. It is not used for quotes, because one symbol per call would use up
//! its limits.
//!
//! Runs on upstream lanes; every call blocks up to its deadline. It never logs a key, a secret or a
//! session.

mod client;
pub(crate) mod combine;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod master;
mod settings;
mod signed_reads;
mod trades_wire;
pub(crate) mod wire;

pub use client::BrokerB;
pub use settings::BrokerBSettings;
