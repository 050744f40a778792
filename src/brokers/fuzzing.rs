//! What reads the bytes of upstreams, in the reach of the targets of `fuzz/`, for which alone this
//! is built. Pure. Each function panics where what was read cannot be.

use jiff::Timestamp;
use rust_decimal::Decimal;

use crate::base::Exchange;
use crate::brokers::broker_a::{instruments, portfolio, wire as wire_a};
use crate::brokers::broker_b::wire::{DematRow, PortfolioRow, PositionRow};
use crate::brokers::broker_b::{master, wire as wire_b};
use crate::brokers::call::transport::Reply;
use crate::brokers::public::wire::{Said, Spark, chart, spark};

const LIST_BYTES_MAX: u64 = 1024 * 1024;

fn reply(body: &[u8]) -> Reply {
    let content_type = Some("application/json".to_owned());
    Reply {
        status: 200,
        retry_after: None,
        content_type,
        simulated: false,
        body: body.to_vec(),
    }
}

/// Broker A's quotes, logins, holdings and positions.
pub fn broker_a(body: &[u8]) {
    let reply = reply(body);
    if let Ok(rows) = wire_a::quotes(&reply) {
        assert!(rows.is_empty() || rows.values().any(Option::is_some));
    }
    drop(wire_a::login(&reply));
    drop(portfolio::session(&reply));
    let rows = portfolio::holdings(&reply, 0).unwrap_or_default();
    for holding in rows.held {
        assert!(!holding.tradingsymbol.is_empty());
    }
    for sold in rows.sold {
        assert!(!sold.tradingsymbol.is_empty() && !sold.used_quantity.is_zero());
    }
    for position in portfolio::positions(&reply).unwrap_or_default() {
        assert!(!position.tradingsymbol.is_empty());
    }
}

/// Broker B's sessions, holdings and positions, and its security master.
pub fn broker_b(body: &[u8]) {
    let reply = reply(body);
    drop(wire_b::session(&reply, Timestamp::UNIX_EPOCH));
    drop(wire_b::rows::<DematRow>(&reply, Timestamp::UNIX_EPOCH));
    drop(wire_b::rows::<PortfolioRow>(&reply, Timestamp::UNIX_EPOCH));
    drop(wire_b::rows::<PositionRow>(&reply, Timestamp::UNIX_EPOCH));
    if let Ok(master) = master::parse(body) {
        assert!(master.rows.iter().all(|row| !row.short_code.is_empty()));
    }
}

/// The public provider's charts and batches.
pub fn public(body: &[u8]) {
    let reply = reply(body);
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

/// Broker A's daily lists of shares and of derivatives.
pub fn instruments(body: &[u8]) {
    if let Ok(list) = instruments::parse(body, Exchange::Nse, LIST_BYTES_MAX) {
        assert!(
            list.listed
                .iter()
                .all(|row| row.symbol.as_str().starts_with("NSE:"))
        );
    }
    if let Ok(list) = instruments::parse_derivatives(body, LIST_BYTES_MAX) {
        assert!(list.skipped <= list.rows);
    }
}
