//! `GET /api/portfolio/pnl`.

use serde::Serialize;

use super::holdings::Totals;
use super::values::{Day, Money};
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
    pub total_pnl: Money,
    /// The part of `total_current_value` whose cost is not known. Null in points that an older
    /// version wrote, whose value leaves it out.
    pub value_without_cost: Option<Money>,
    /// What wrote the point: a sync, or the revaluation at the close.
    pub source: PointSource,
    /// Holdings without cost or price, which cost and profit leave out.
    pub left_out: u32,
    /// Holdings valued at a price that is older than the date's trading and than the last close
    /// before the date's end.
    pub carried: u32,
    /// The value may be wrong because of a corporate action: a price has leapt and the quantity has
    /// not followed, or a broker calls an average unreliable.
    pub suspect: bool,
}
