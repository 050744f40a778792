//! What reads the bytes of the public provider, in the reach of the targets of `fuzz/`, for which
//! alone this is built. Pure. Panics where what was read cannot be. Each broker's is in its folder.

use rust_decimal::Decimal;

use crate::brokers::call::transport::Reply;
use crate::brokers::public::wire::{Said, Spark, chart, spark};

/// The public provider's charts and batches.
pub fn public(body: &[u8]) {
    let reply = Reply::fuzzed(body);
    let rows = match spark(&reply) {
        Ok(Spark::Rows(rows)) => rows.into_values().collect(),
        _ => Vec::new(),
    };
    for said in rows.into_iter().chain(chart(&reply).ok().flatten()) {
        if let Said::Price(claim) = said {
            let prices = [
                Some(claim.last_price),
                claim.previous_close,
                claim.low,
                claim.high,
            ];
            assert!(
                prices
                    .into_iter()
                    .flatten()
                    .all(|price| price > Decimal::ZERO)
            );
        }
    }
}
