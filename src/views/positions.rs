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
    /// Which of the broker's lists the position is from.
    pub r#type: PositionKind,
    /// Negative if sold short.
    pub quantity: Quantity,
    pub average_price: Option<Money>,
    pub last_price: Option<Money>,
    pub close_price: Option<Money>,
    pub pnl: Option<Money>,
    pub realised: Option<Money>,
    pub unrealised: Option<Money>,
    pub multiplier: Quantity,
    pub synced_at: Option<Instant>,
    /// No instrument list has the broker's code, which is shown as it is.
    pub unresolved: bool,
    #[serde(skip_serializing_if = "Simulated::is_absent")]
    pub simulated: Simulated,
}

/// Totals of each list, whatever `type` asks for; closed positions are included as `include_closed`
/// says. The same trades are in both lists, so the two must not be added.
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
    /// Sum over the positions whose profit is known; null if there are none.
    pub pnl: Option<Money>,
    /// Positions whose profit is not known.
    pub without_pnl: usize,
}
