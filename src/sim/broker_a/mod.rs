//! Broker A, simulated: its API (`api`), portfolio, quotes and ticker.

mod api;
mod history;
pub(crate) mod packets;
pub(crate) mod portfolio;
pub(super) mod quotes;
mod responses;
pub(crate) mod ticker;

pub(super) use api::{answer, checksum_of, fault};
