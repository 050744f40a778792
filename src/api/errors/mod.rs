//! The one place where errors of lower layers become answers. Their cause goes along for the log.
//!
//! The broker's own words go into the log and are never shown, for brokers put anything into them.

mod store;

pub(super) use store::{
    BrokerRoute, activation_busy, broker_problem, broker_timed_out, broker_user_changed,
    export_in_progress, export_too_long, in_progress, portfolio_busy, sync_busy, too_many_attempts,
    too_many_writes, unidentified,
};
