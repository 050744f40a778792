//! The closing price of an instrument on one date.

use rust_decimal::Decimal;

use crate::base::base_ratio::BaseRatio;

/// The official closing price of one instrument on one trading date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosingPrice {
    pub price: Decimal,
    /// Closing price of the trading date before; `None` if the feed sent none.
    pub previous_close: Option<Decimal>,
    /// Time of the price, Unix milliseconds: the close, or the last trade before the close.
    pub as_of_ms: i64,
    /// Whether it is certainly the exchange's official close, and not perhaps the last trade before
    /// it.
    pub official: bool,
    /// If the exchange adjusted the date's base price: that price as a part of the close before.
    pub base_ratio: Option<BaseRatio>,
}
