//! `GET /api/portfolio/pnl`.

use serde::Serialize;

use super::holdings::Totals;
use super::values::{Day, Money};
use crate::base::Broker;
use crate::portfolio::PointSource;

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Pnl {
    /// The `days` of the request.
    #[cfg_attr(test, schemars(extend("minimum" = 1, "maximum" = 365)))]
    pub days: u16,
    pub summary: Totals,
    /// One point for each date, oldest first.
    #[cfg_attr(test, schemars(extend("maxItems" = 365)))]
    pub trend: Vec<TrendPoint>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrendPoint {
    pub date: Day,
    pub total_invested: Money,
    pub total_current_value: Money,
    /// Unrealised profit of what is held on the date. What was gained on shares that are sold is
    /// not in it.
    pub total_pnl: Money,
    /// The part of `total_current_value` whose cost is not known. Null in points that an older
    /// version wrote, whose value leaves it out.
    pub value_without_cost: Option<Money>,
    /// `close` if every price is the date's closing price, as after the revaluation; else `sync`.
    pub source: PointSource,
    /// The brokers whose holdings are in it. Null in points that an older version wrote.
    #[cfg_attr(test, schemars(extend("maxItems" = 2)))]
    pub brokers: Option<Vec<Broker>>,
    /// How many holdings it is of. Null in points that an older version wrote.
    pub holdings: Option<u32>,
    /// Holdings without cost or price, which cost and profit leave out.
    pub left_out: u32,
    /// Holdings valued at a price that is older than the date's trading and than the last close
    /// before the date's end.
    pub carried: u32,
    /// The value may be wrong because of a split or the like: a price has leapt and the quantity
    /// has not followed. In points that an older version wrote also true where a broker called
    /// an average unreliable.
    pub suspect: bool,
    /// Holdings whose average the broker calls unreliable: their cost and profit may be wrong, and
    /// their value is not. Null in points that an older version wrote.
    pub discrepancies: Option<u32>,
}
