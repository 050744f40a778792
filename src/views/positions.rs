//! `GET /api/portfolio/positions`.

use serde::Serialize;

use super::holdings::SyncTimes;
use super::values::{Day, Instant, Money, Quantity, Simulated};
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
    /// The trading date of the sync, of which prices and profit are.
    pub date: Option<Day>,
    /// Whether `date` is over and a later trading date has begun. Then a position of the `day` list
    /// is none of today.
    pub earlier: bool,
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
    /// Positions of a trading date that is over, as `earlier` in their rows.
    pub earlier: usize,
    /// The trading date of `synced_at`: the oldest that is in the sum. Null before the first sync.
    pub date: Option<Day>,
    /// Time of the last sync of the broker that was synced longest ago, among those that have such
    /// a list; null before the first sync.
    pub synced_at: Option<Instant>,
    /// Each broker's. Null if it was never synced or has no such list: broker B has none of the
    /// day.
    pub synced: SyncTimes,
}
