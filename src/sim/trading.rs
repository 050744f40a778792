//! What a control route does to the trading of one share: a price that stands from an instant on,
//! a halt. Plain values.

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::Deserialize;

use super::noise::paise;

/// Prices set for one share: a year of dates, twice a date.
const PRICES_MAX: usize = 500;
/// Dearest share, in paise.
const PRICE_PAISE_MAX: i64 = 100_000_000;

/// What was ordered for one share.
#[derive(Debug, Default, Clone)]
pub(super) struct Trading {
    /// From when on which price in paise stands, oldest first.
    prices: Vec<(Timestamp, i64)>,
    halted_at: Option<Timestamp>,
}

impl Trading {
    /// The instant whose trading is shown at `at`: none that comes after a halt.
    pub(super) fn shown_at(&self, at: Timestamp) -> Timestamp {
        self.halted_at.map_or(at, |halted_at| at.min(halted_at))
    }

    /// The price set for `at`, in paise.
    pub(super) fn price_at(&self, at: Timestamp) -> Option<i64> {
        let after = self.prices.partition_point(|(from, _)| *from <= at);
        after.checked_sub(1).map(|index| self.prices[index].1)
    }

    /// Carries out an order given at `now`.
    ///
    /// # Errors
    /// What is wrong, for the person who sent it.
    pub(super) fn order(&mut self, order: &TradingOrder, now: Timestamp) -> Result<(), String> {
        if let Some(price) = order.price {
            let price = paise(price);
            if !(1..=PRICE_PAISE_MAX).contains(&price) || self.prices.len() >= PRICES_MAX {
                return Err(format!(
                    "price: 0.01 to {} rupees, at most {PRICES_MAX} of one share",
                    PRICE_PAISE_MAX / 100
                ));
            }
            self.prices.retain(|(from, _)| *from < now);
            self.prices.push((now, price));
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
pub(super) struct TradingOrder {
    /// `NSE:INFY`.
    pub(super) symbol: String,
    /// From now on, in place of the simulated ones.
    price: Option<Decimal>,
    /// Whether trading stands still: the last price stays, with its time.
    halted: Option<bool>,
}
