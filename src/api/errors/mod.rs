//! The one place where errors of lower layers become answers. Their cause goes along for the log.
//!
//! The broker's own words go into the log and are never shown, for brokers put anything into them.

mod activation;
mod portfolio;
mod store;

pub(super) use activation::{
    activation_busy, activation_timed_out, broker_not_configured, of_activation, of_feed,
};
pub(super) use portfolio::{
    Unmade, export_in_progress, in_progress, of_sync, portfolio_busy, sync_busy, timed_out,
    too_many_attempts,
};
pub(super) use store::{too_many_writes, unidentified};
