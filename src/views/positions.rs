//! `GET /api/portfolio/positions`.

use serde::Serialize;

use super::values::{Instant, Money, Quantity, Simulated};
use crate::base::{Broker, PositionKind};

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Positions<'a> {
    pub positions: Vec<Position<'a>>,
    pub summary: PositionsSummary,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Position<'a> {
    pub broker: Broker,
    pub exchange: &'a str,
    pub tradingsymbol: &'a str,
    pub product: &'a str,
    /// Which of the broker's lists it is from.
    pub r#type: PositionKind,
    /// Negative: sold short.
    pub quantity: Quantity,
    pub average_price: Option<Money>,
    pub last_price: Option<Money>,
    pub close_price: Option<Money>,
    pub pnl: Option<Money>,
    pub realised: Option<Money>,
    pub unrealised: Option<Money>,
    pub multiplier: Quantity,
    pub synced_at: Option<Instant>,
    /// No list knows the broker's code, which is shown as it is.
    pub unresolved: bool,
    #[serde(skip_serializing_if = "Simulated::is_absent")]
    pub simulated: Simulated,
}

/// Of each list, whichever `type` asks for; closed positions as `include_closed` says. The same
/// trades stand in both lists: never add the two.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PositionsSummary {
    pub day: PositionTotals,
    pub net: PositionTotals,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PositionTotals {
    pub count: usize,
    /// Sum over the positions whose profit is known; null where that is none of them.
    pub pnl: Option<Money>,
    /// Positions whose profit is not known.
    pub without_pnl: usize,
}
