//! What reads the bytes of broker A, in the reach of the targets of `fuzz/`, for which alone this
//! is built. Pure. Each function panics where what was read cannot be.

use crate::base::Exchange;
use crate::brokers::broker_a::{instruments, portfolio, wire};
use crate::brokers::call::transport::Reply;

const LIST_BYTES_MAX: u64 = 1024 * 1024;

/// Broker A's quotes, logins, holdings and positions.
pub fn replies(body: &[u8]) {
    let reply = Reply::fuzzed(body);
    if let Ok(rows) = wire::quotes(&reply) {
        assert!(rows.is_empty() || rows.values().any(Option::is_some));
    }
    drop(wire::login(&reply));
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
