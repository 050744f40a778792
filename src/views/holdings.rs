//! `GET /api/portfolio/holdings`, and the totals that other documents have too.

use serde::Serialize;

use super::values::{Day, Delay, Instant, Money, Percent, Quantity, Simulated};
use crate::base::{Broker, Source};

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Holdings<'a> {
    pub holdings: Vec<Holding<'a>>,
    pub summary: HoldingsSummary<'a>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Holding<'a> {
    pub broker: Broker,
    pub exchange: &'a str,
    pub tradingsymbol: &'a str,
    pub isin: Option<&'a str>,
    /// What is owned: settled and T1.
    pub quantity: Quantity,
    /// Bought and not delivered yet; part of `quantity`.
    pub t1_quantity: Quantity,
    /// Never added to `quantity`.
    pub pledged_quantity: Quantity,
    /// Funded by the broker; never added to `quantity`.
    pub mtf_quantity: Quantity,
    pub disputed_quantity: Quantity,
    /// `invested` of one share. Null where the broker does not know the cost of every owned share;
    /// then so are `invested`, `pnl` and `pnl_pct`.
    pub average_price: Option<Money>,
    /// Only where the broker knows the cost of some of the owned shares and not of the others, as
    /// after a transfer or a bonus: how many, and what these cost. An average over shares of
    /// unknown cost would be a guess, so there is none.
    pub known_cost: Option<KnownCost>,
    pub last_price: Option<Money>,
    /// Close of the trading date before the one that `last_price` is of.
    pub close_price: Option<Money>,
    /// Cost of the owned shares, exact before it is rounded here.
    pub invested: Option<Money>,
    /// Owned shares at `last_price`.
    pub current_value: Option<Money>,
    pub pnl: Option<Money>,
    pub pnl_pct: Option<Percent>,
    /// The broker's own figure.
    pub broker_pnl: Option<Money>,
    /// The price's own time: of the sync while the market trades, of the last close else. Null
    /// without a price.
    pub as_of: Option<Instant>,
    pub synced_at: Option<Instant>,
    /// Only with `live=true`, where a fresher price took the broker's place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Only beside `source`, where that source runs behind the exchange by its nature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<Delay>,
    /// Only beside `source`: as in quotes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<bool>,
    /// No list knows the broker's code, which is shown as it is.
    pub unresolved: bool,
    /// The broker itself marks its figure as doubtful.
    pub discrepancy: bool,
    /// Looks like a split, a bonus or a merger, or like a price that has leapt for one while the
    /// quantity has not followed.
    pub corporate_action: bool,
    #[serde(skip_serializing_if = "Simulated::is_absent")]
    pub simulated: Simulated,
}

/// Shares whose cost is known, and what they cost.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KnownCost {
    pub quantity: Quantity,
    pub cost: Money,
}

/// Totals of what is listed.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HoldingsSummary<'a> {
    #[serde(flatten)]
    pub totals: Totals,
    /// The same shares of both brokers as one, by ISIN.
    pub merged: Vec<MergedHolding<'a>>,
}

/// Totals of both brokers.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Totals {
    /// Cost of the holdings whose cost and price are known.
    pub total_invested: Money,
    /// Value of every holding that has a price, whatever is known of its cost: the sum of the rows.
    pub total_current_value: Money,
    /// Profit of the same holdings as `total_invested`: `total_current_value` less
    /// `value_without_cost` less `total_invested`.
    pub total_pnl: Money,
    /// `total_pnl` in percent of `total_invested`; null where that is nothing.
    pub total_pnl_pct: Option<Percent>,
    /// What the holdings gained on the date `day`: those whose price is of that date, against its
    /// previous close. Null where there are none.
    pub day_pnl: Option<Money>,
    /// The latest trading date that has begun; null where the calendar does not know it.
    pub day: Option<Day>,
    /// Holdings whose cost is not known, which `total_invested`, `total_pnl` and `total_pnl_pct`
    /// leave out.
    pub without_cost: u32,
    /// Holdings without a price, which all totals leave out.
    pub without_price: u32,
    /// Holdings that `day_pnl` leaves out: their price is of an earlier date, or its previous close
    /// is not known.
    pub without_close: u32,
    /// What the holdings without a cost are worth; part of `total_current_value`.
    pub value_without_cost: Money,
    /// Holdings of which every share is pledged: nothing is owned outright, so their value here is
    /// 0.
    pub pledged_only: u32,
    /// Holdings of which every share is funded by the broker: their value here is 0.
    pub mtf_only: u32,
    /// Of the broker that was synced longest ago, among those shown; null before the first sync.
    pub synced_at: Option<Instant>,
    pub synced: SyncTimes,
    /// Time of the oldest price in the totals; null without any.
    pub priced_from: Option<Instant>,
    /// Time of the newest price in the totals; null without any.
    pub priced_to: Option<Instant>,
}

/// When each broker was synced last, shown or not; null where never.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SyncTimes {
    pub a: Option<Instant>,
    pub b: Option<Instant>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MergedHolding<'a> {
    pub isin: &'a str,
    pub tradingsymbol: &'a str,
    pub quantity: Quantity,
    pub average_price: Option<Money>,
    /// Null where the cost of a part is not known; then so are average and profit.
    pub invested: Option<Money>,
    /// Null where a part has no price.
    pub current_value: Option<Money>,
    pub pnl: Option<Money>,
    pub pnl_pct: Option<Percent>,
    #[cfg_attr(test, schemars(extend("minItems" = 1)))]
    pub parts: Vec<MergedPart<'a>>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MergedPart<'a> {
    pub broker: Broker,
    pub exchange: &'a str,
    pub tradingsymbol: &'a str,
    pub quantity: Quantity,
    pub current_value: Option<Money>,
}
