//! Orders of a control route for the trading of one instrument: a price that holds from an instant
//! on, the open of a session, or a halt. Plain values.

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;
use serde::Deserialize;

use crate::base::clock;
use crate::sim::exchange::universe::paise;

/// Prices set for one share: a year of dates, twice a date.
const PRICES_MAX: usize = 500;
/// Dearest share, in paise.
const PRICE_PAISE_MAX: i64 = 100_000_000;

/// The orders for one instrument.
#[derive(Debug, Default, Clone)]
pub(crate) struct Trading {
    /// Oldest first.
    prices: Vec<Price>,
    halted_at: Option<Timestamp>,
}

/// A price in paise that holds from an instant on.
#[derive(Debug, Clone, Copy)]
struct Price {
    from: Timestamp,
    paise: i64,
    /// The previous close that the exchange states for that date.
    previous_close: Option<i64>,
    /// The open of that date, if the session's range begins with it.
    open: Option<i64>,
}

/// A session as ordered, in paise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderedRange {
    pub(crate) open: i64,
    pub(crate) low: i64,
    pub(crate) high: i64,
}

impl Trading {
    /// The instant whose trading is shown at `at`: that of the halt if it was earlier, else `at`.
    pub(crate) fn shown_at(&self, at: Timestamp) -> Timestamp {
        self.halted_at.map_or(at, |halted_at| at.min(halted_at))
    }

    /// The price set for `at`, in paise.
    pub(crate) fn price_at(&self, at: Timestamp) -> Option<i64> {
        let after = self.prices.partition_point(|price| price.from <= at);
        after.checked_sub(1).map(|index| self.prices[index].paise)
    }

    /// The previous close ordered for a date, in paise.
    pub(crate) fn previous_close(&self, date: Date) -> Option<i64> {
        let of_date = |price: &&Price| clock::zoned(price.from).date() == date;
        self.prices
            .iter()
            .filter(of_date)
            .find_map(|price| price.previous_close)
    }

    /// The range of the session up to `at`, if an open was ordered for its date.
    pub(crate) fn range(&self, at: Timestamp) -> Option<OrderedRange> {
        let date = clock::zoned(at).date();
        let made = |price: &&Price| price.from <= at && clock::zoned(price.from).date() == date;
        let mut since = self
            .prices
            .iter()
            .filter(made)
            .skip_while(|price| price.open.is_none());
        let first = since.next()?;
        let open = first.open?;
        let mut low = open.min(first.paise);
        let mut high = open.max(first.paise);
        for price in since {
            low = low.min(price.paise);
            high = high.max(price.paise);
        }
        Some(OrderedRange { open, low, high })
    }

    /// Carries out an order given at `now`.
    ///
    /// # Errors
    /// The mistake, in words for the person who sent the order.
    pub(crate) fn order(&mut self, order: &TradingOrder, now: Timestamp) -> Result<(), String> {
        if let Some(price) = order.price {
            let previous_close = order.previous_close.map(paise);
            let open = order.open.map(paise);
            let price = Price {
                from: now,
                paise: paise(price),
                previous_close,
                open,
            };
            let fits = |paise: i64| (1..=PRICE_PAISE_MAX).contains(&paise);
            let all_fit =
                fits(price.paise) && previous_close.is_none_or(fits) && open.is_none_or(fits);
            if !all_fit || self.prices.len() >= PRICES_MAX {
                return Err(format!(
                    "prices: 0.01 to {} rupees, at most {PRICES_MAX} of one instrument",
                    PRICE_PAISE_MAX / 100
                ));
            }
            self.prices.retain(|price| price.from < now);
            self.prices.push(price);
        }
        match order.halted {
            Some(true) => self.halted_at = Some(now),
            Some(false) => self.halted_at = None,
            None => {}
        }
        Ok(())
    }
}

/// A price or a halt, as the control route takes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TradingOrder {
    /// `NSE:INFY`.
    pub(crate) symbol: String,
    /// The price from now on, in place of the simulated ones.
    pub(super) price: Option<Decimal>,
    /// The date's previous close, as an exchange adjusts it for a split. Goes with `price`; if
    /// absent, it is the last close.
    pub(super) previous_close: Option<Decimal>,
    /// The open of the date, as of a share that is listed on it: the session's range then begins
    /// with it, and the limits follow it. Goes with `price`; if absent, the range is the simulated
    /// one, and the limits follow the previous close.
    pub(super) open: Option<Decimal>,
    /// Whether trading is halted. The last price then stays, with its time.
    pub(super) halted: Option<bool>,
}

#[cfg(test)]
#[path = "trading_tests.rs"]
mod tests;
