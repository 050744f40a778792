//! Compares the last tick of each symbol with polls. Finds disagreements, and symbols whose ticks
//! have stopped. Pure apart from the ticks that it remembers.

use jiff::Timestamp;
use rust_decimal::Decimal;

use crate::base::{BoundedMap, Quote, Symbol};

/// More symbols than one connection carries.
const SYMBOLS_MAX: usize = 4_096;

/// A symbol's ticks have stopped if there was none for this long while a poll returned a newer
/// price.
const STANDS_MS: u64 = 60_000;

/// Half a percent: a tick and a poll of the same second may differ by a trade, not by more.
const DIFFERENCE_MAX: Decimal = Decimal::from_parts(5, 0, 0, false, 3);

/// The last tick of each symbol.
pub(crate) struct TickLog {
    last: BoundedMap<Symbol, Last>,
    /// Times that a tick and a poll of the same second differed by more than half a percent.
    pub disagreements: u64,
}

struct Last {
    symbol: Symbol,
    price: Decimal,
    as_of: Timestamp,
    ticked_mono_ms: u64,
    /// A poll has returned a newer price since.
    is_behind: bool,
}

impl Last {
    fn of(quote: &Quote, ticked_mono_ms: u64) -> Self {
        let symbol = quote.symbol.clone();
        let price = quote.last_price;
        Self {
            symbol,
            price,
            as_of: quote.as_of,
            ticked_mono_ms,
            is_behind: false,
        }
    }

    fn disagrees_with(&self, quote: &Quote) -> bool {
        let same_second = self.as_of.as_second() == quote.as_of.as_second();
        let difference = (self.price - quote.last_price).abs();
        same_second && difference > quote.last_price * DIFFERENCE_MAX
    }
}

impl TickLog {
    pub(crate) fn new() -> Self {
        Self {
            last: BoundedMap::evicting_in_batches(SYMBOLS_MAX),
            disagreements: 0,
        }
    }

    pub(crate) fn pushed(&mut self, quotes: &[Quote], now_mono_ms: u64) {
        for quote in quotes {
            self.put(Last::of(quote, now_mono_ms));
        }
    }

    /// Compares a poll's quotes. For a symbol that has not ticked yet the time counts from now on.
    pub(crate) fn polled(&mut self, quotes: &[Quote], now_mono_ms: u64) {
        for quote in quotes {
            let Some(last) = self.last.value_mut(&quote.symbol) else {
                self.put(Last::of(quote, now_mono_ms));
                continue;
            };
            self.disagreements += u64::from(last.disagrees_with(quote));
            last.is_behind |= quote.as_of > last.as_of;
        }
    }

    fn put(&mut self, last: Last) {
        self.last
            .insert(last.symbol.clone(), last, |last| Some(last.ticked_mono_ms));
    }

    /// Symbols whose ticks have stopped.
    pub(crate) fn standing(&self, now_mono_ms: u64) -> Vec<Symbol> {
        let stands = |last: &&Last| {
            last.is_behind && now_mono_ms.saturating_sub(last.ticked_mono_ms) >= STANDS_MS
        };
        self.last
            .values()
            .filter(stands)
            .map(|last| last.symbol.clone())
            .collect()
    }

    /// Forgets all ticks, because they have stopped altogether.
    pub(crate) fn forget(&mut self) {
        self.last.retain(|_, _| false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing;

    fn quote(symbol: &str, price: &str, second: i64) -> Quote {
        testing::quote(symbol, price, Timestamp::from_second(1_795_155_307 + second).unwrap())
    }

    #[test]
    fn only_prices_of_the_same_second_that_differ_by_more_than_half_a_percent_disagree() {
        let mut log = TickLog::new();
        log.pushed(&[quote("NSE:INFY", "1000.00", 0)], 0);
        for (price, second, expected) in [
            ("1000.00", 0, 0),
            ("995.03", 0, 0),
            ("995.02", 0, 1),
            ("1005.02", 0, 1),
            ("1005.03", 0, 2),
            ("900.00", 1, 2),
            ("900.00", -1, 2),
            ("900.00", 0, 3),
        ] {
            log.polled(&[quote("NSE:INFY", price, second)], 0);
            assert_eq!(log.disagreements, expected, "{price} {second}");
        }
        log.polled(&[quote("NSE:TCS", "1.00", 0)], 0);
        assert_eq!(log.disagreements, 3, "never ticked");
    }

    #[test]
    fn a_symbol_stands_when_calls_bring_newer_prices_for_a_minute_without_a_tick() {
        let mut log = TickLog::new();
        log.pushed(
            &[
                quote("NSE:INFY", "1000.00", 0),
                quote("NSE:TCS", "3000.00", 0),
            ],
            1_000,
        );
        log.polled(
            &[
                quote("NSE:INFY", "1001.00", 30),
                quote("NSE:TCS", "3000.00", 0),
            ],
            30_000,
        );
        assert!(log.standing(60_999).is_empty());
        assert_eq!(log.standing(61_000), [Symbol::parse("NSE:INFY").unwrap()]);
        log.pushed(&[quote("NSE:INFY", "1002.00", 60)], 61_000);
        assert!(log.standing(200_000).is_empty(), "no call since");
        // Never ticked: the time counts from the first poll.
        log.polled(&[quote("NSE:SBIN", "800.00", 0)], 100_000);
        log.polled(&[quote("NSE:SBIN", "801.00", 10)], 110_000);
        assert!(log.standing(159_999).is_empty());
        assert_eq!(log.standing(160_000), [Symbol::parse("NSE:SBIN").unwrap()]);
        log.forget();
        assert!(log.standing(500_000).is_empty());
    }
}
