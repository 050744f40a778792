//! What reads the bytes of broker B, in the reach of the targets of `fuzz/`, for which alone this
//! is built. Pure. Each function panics where what was read cannot be.

use jiff::Timestamp;

use crate::brokers::broker_b::master;
use crate::brokers::broker_b::wire::{self, DematRow, PortfolioRow, PositionRow};
use crate::brokers::call::transport::Reply;

/// Broker B's sessions, holdings and positions, and its security master.
pub fn replies(body: &[u8]) {
    let reply = Reply::fuzzed(body);
    drop(wire::session(&reply, Timestamp::UNIX_EPOCH));
    drop(wire::rows::<DematRow>(&reply, Timestamp::UNIX_EPOCH));
    drop(wire::rows::<PortfolioRow>(&reply, Timestamp::UNIX_EPOCH));
    drop(wire::rows::<PositionRow>(&reply, Timestamp::UNIX_EPOCH));
    if let Ok(master) = master::parse(body) {
        assert!(master.rows.iter().all(|row| !row.short_code.is_empty()));
    }
}
