//! What a control route does to the trading of one share: a price that stands from an instant on,
//! a halt. Plain values.

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;
use serde::Deserialize;

use super::noise::paise;
use crate::base::ist;

/// Prices set for one share: a year of dates, twice a date.
const PRICES_MAX: usize = 500;
/// Dearest share, in paise.
const PRICE_PAISE_MAX: i64 = 100_000_000;

/// What was ordered for one share.
#[derive(Debug, Default, Clone)]
pub(crate) struct Trading {
    /// Oldest first.
    prices: Vec<Price>,
    halted_at: Option<Timestamp>,
}

/// A price in paise that stands from an instant on.
#[derive(Debug, Clone, Copy)]
struct Price {
    from: Timestamp,
    paise: i64,
    /// What the exchange states as that date's previous close.
    previous_close: Option<i64>,
}

impl Trading {
    /// The instant whose trading is shown at `at`: none that comes after a halt.
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
        let of_date = |price: &&Price| ist::zoned(price.from).date() == date;
        self.prices.iter().filter(of_date).find_map(|price| price.previous_close)
    }

    /// Carries out an order given at `now`.
    ///
    /// # Errors
    /// What is wrong, for the person who sent it.
    pub(crate) fn order(&mut self, order: &TradingOrder, now: Timestamp) -> Result<(), String> {
        if let Some(price) = order.price {
            let previous_close = order.previous_close.map(paise);
            let price = Price { from: now, paise: paise(price), previous_close };
            let fits = |paise: i64| (1..=PRICE_PAISE_MAX).contains(&paise);
            let all_fit = fits(price.paise) && price.previous_close.is_none_or(fits);
            if !all_fit || self.prices.len() >= PRICES_MAX {
                return Err(format!(
                    "prices: 0.01 to {} rupees, at most {PRICES_MAX} of one share",
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
    /// From now on, in place of the simulated ones.
    price: Option<Decimal>,
    /// With a price: the date's previous close, as an exchange adjusts it for a split. Else it is
    /// what the share closed at.
    previous_close: Option<Decimal>,
    /// Whether trading stands still: the last price stays, with its time.
    halted: Option<bool>,
}

#[cfg(test)]
#[path = "trading_tests.rs"]
mod tests;
