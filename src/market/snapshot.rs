//! The content of the index snapshot.
//!
//! Built by the index warmer from the quotes in L1 (the quote cache in memory), so that the
//! snapshot and the quote routes agree about every price. A value whose time or source differs from
//! the ones in `market` carries its own.

use std::collections::HashMap;

use jiff::Timestamp;
use rust_decimal::Decimal;

use crate::base::{Quote, Source, Symbol};
use crate::market::indices::{Index, IndexList};
use crate::market::phase::{MarketStatus, Phase};

/// A price as L1 shows it now.
#[derive(Debug, Clone, PartialEq)]
pub struct Priced {
    pub quote: Quote,
    pub stale: bool,
}

/// Prices of the indices and sectors as L1 shows them now, by symbol.
pub type Prices = HashMap<Symbol, Priced>;

/// The inputs of a snapshot.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotInputs<'a> {
    pub indices: &'a IndexList,
    pub prices: &'a Prices,
    pub status: &'a MarketStatus,
}

/// The age of a price: its time, its source's delay, and whether it is stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Age {
    /// The price's own time.
    pub as_of: Timestamp,
    /// Delay of the source behind the exchange, in seconds; `None` for a real-time source.
    pub delay_s: Option<u32>,
    pub stale: bool,
    pub source: Source,
}

/// Price and change of an index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    pub price: Decimal,
    /// Percent, unrounded. `None` (null in JSON) if the previous close of the price's session is
    /// not known.
    pub change_pct: Option<Decimal>,
    pub age: Age,
}

/// Change of a sector. The snapshot has every sector of the list, in the list's order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SectorChange {
    pub name: String,
    pub symbol: Symbol,
    /// Percent, unrounded. `None` (null in JSON) if there is no price from the source of the
    /// primary index.
    pub change_pct: Option<Decimal>,
    /// Time of the price; `None` without one.
    pub as_of: Option<Timestamp>,
}

/// The `market` object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MarketView {
    pub is_open: bool,
    pub phase: Phase,
    pub next_transition_at: Option<Timestamp>,
    /// Whether the calendar knows the date.
    pub calendar_known: bool,
    /// Age of the primary index's price. It is stale if the price of any of the three indices is.
    pub age: Age,
    /// Whether some value came from a simulator.
    pub simulated: bool,
}

/// The index snapshot of the API.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub(crate) index1: Level,
    pub(crate) bankindex: Level,
    pub(crate) index2: Level,
    pub(crate) sectors: Vec<SectorChange>,
    pub(crate) market: MarketView,
}

impl Snapshot {
    /// Builds the snapshot; `None` if one of the three lead indices has no price.
    pub fn build(inputs: &SnapshotInputs<'_>) -> Option<Self> {
        let priced = |index: &Index| inputs.prices.get(&index.symbol);
        let [primary, bank, second] = inputs.indices.leads().map(priced);
        let leads = [primary?, bank?, second?];
        let [primary, ..] = leads;
        let mut simulated = leads.iter().any(|lead| lead.quote.simulated);
        let mut sectors = Vec::with_capacity(inputs.indices.sectors.len());
        for sector in &inputs.indices.sectors {
            // A price from another source is of another time, and an old price among fresh indices
            // would look new. So neither is shown.
            let shown = priced(sector).filter(|priced| {
                priced.quote.source == primary.quote.source && (!priced.stale || primary.stale)
            });
            simulated |= shown.is_some_and(|priced| priced.quote.simulated);
            sectors.push(SectorChange {
                name: sector.name.clone(),
                symbol: sector.symbol.clone(),
                change_pct: shown.and_then(|priced| priced.quote.change_pct()),
                as_of: shown.map(|priced| priced.quote.as_of),
            });
        }
        let [index1, bankindex, index2] = leads.map(Level::of);
        let stale = leads.iter().any(|lead| lead.stale);
        Some(Self {
            market: MarketView {
                is_open: inputs.status.is_open,
                phase: inputs.status.phase,
                next_transition_at: inputs.status.next_transition_at,
                calendar_known: inputs.status.calendar_known,
                age: Age {
                    stale,
                    ..index1.age
                },
                simulated,
            },
            index1,
            bankindex,
            index2,
            sectors,
        })
    }
}

impl Level {
    fn of(priced: &Priced) -> Self {
        let Priced { quote, stale } = priced;
        let Quote {
            as_of,
            delay_s,
            source,
            ..
        } = *quote;
        let age = Age {
            as_of,
            delay_s,
            stale: *stale,
            source,
        };
        Self {
            price: quote.last_price,
            change_pct: quote.change_pct(),
            age,
        }
    }
}
