//! A quote for tests and benches, which change what they are about. `tests/` and `benches/` include
//! this file as theirs.

use jiff::Timestamp;

use super::{Quote, Source, Symbol};

/// Broker A's price of `as_of`, asked for at that moment, and nothing else.
pub(crate) fn quote(symbol: &str, last_price: &str, as_of: Timestamp) -> Quote {
    Quote {
        symbol: Symbol::parse(symbol).expect("a symbol"),
        last_price: last_price.parse().expect("a decimal"),
        previous_close: None,
        day: None,
        as_of,
        timed: true,
        asked: as_of,
        delay_s: None,
        source: Source::BrokerA,
        simulated: false,
    }
}
