//! The index snapshot: what it is made of, and its JSON.
//!
//! Built by the index warmer of the prices that the first cache level shows, so that the snapshot
//! and quotes say the same of the same price. Must never mix up ages: whatever is of another time
//! or source than `market` says carries its own.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;

use super::indices::{Index, IndexList};
use super::phase::{MarketStatus, Phase};
use crate::base::{Quote, Source, Symbol, decimal, ist};

/// A price as it is shown now.
#[derive(Debug, Clone, PartialEq)]
pub struct Priced {
    pub quote: Quote,
    pub stale: bool,
}

/// What is shown of the indices and sectors now, by symbol.
pub type Prices = HashMap<Symbol, Priced>;

/// What a snapshot is built from.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotInputs<'a> {
    pub indices: &'a IndexList,
    pub prices: &'a Prices,
    pub status: &'a MarketStatus,
}

/// How old a price is, in the three ways in which it is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Age {
    /// The price's own time.
    pub as_of: Timestamp,
    /// How far its source runs behind by its nature.
    pub delay_s: Option<u32>,
    pub stale: bool,
    pub source: Source,
}

/// Price and change of an index.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    pub price: Decimal,
    /// Percent, unrounded; `None` (null in JSON) where the source gave no previous close.
    pub change_pct: Option<Decimal>,
    pub age: Age,
}

/// Change of a sector. Every sector of the list is there, in its order.
#[derive(Debug, Clone, PartialEq)]
pub struct SectorChange {
    pub name: String,
    pub symbol: Symbol,
    /// Percent, unrounded; `None` (null in JSON) without a price of the source that leads.
    pub change_pct: Option<Decimal>,
    /// Time of the price; `None` without one.
    pub as_of: Option<Timestamp>,
}

/// The `market` object.
#[derive(Debug, Clone, PartialEq)]
pub struct MarketView {
    pub is_open: bool,
    pub phase: Phase,
    pub next_transition_at: Option<Timestamp>,
    /// Of the primary index's price; stale where any of the three is.
    pub age: Age,
    /// Some value came from a simulator.
    pub simulated: bool,
}

/// The index snapshot of the API.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub index1: Level,
    pub bankindex: Level,
    pub index2: Level,
    pub signals: ShownSignals,
    pub sectors: Vec<SectorChange>,
    pub market: MarketView,
}

/// The signals that a snapshot shows; set by whoever publishes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownSignals {
    /// The JSON array, as their warmer wrote it.
    pub top: Arc<str>,
    /// The date of the list; `None` before there is one.
    pub as_of: Option<Date>,
}

impl ShownSignals {
    /// While none were published.
    pub fn none() -> Self {
        Self { top: Arc::from("[]"), as_of: None }
    }
}

impl Snapshot {
    /// The snapshot of these inputs; `None` without a price for each of the three indices.
    pub fn build(inputs: &SnapshotInputs<'_>) -> Option<Self> {
        let priced = |index: &Index| inputs.prices.get(&index.symbol);
        let [primary, bank, second] = inputs.indices.leads().map(priced);
        let leads = [primary?, bank?, second?];
        let [primary, ..] = leads;
        let mut simulated = leads.iter().any(|lead| lead.quote.simulated);
        let mut sectors = Vec::with_capacity(inputs.indices.sectors.len());
        for sector in &inputs.indices.sectors {
            // Another source's is of another time, and an old one beside fresh indices looks new.
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
                age: Age { stale, ..index1.age },
                simulated,
            },
            index1,
            bankindex,
            index2,
            signals: ShownSignals::none(),
            sectors,
        })
    }

    /// The body of `GET /api/index/snapshot`.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(512 + 96 * self.sectors.len() + self.signals.top.len());
        let levels =
            [("index1", &self.index1), ("bankindex", &self.bankindex), ("index2", &self.index2)];
        out.push(b'{');
        for (name, level) in levels {
            level.write_json(&mut out, name, &self.market.age);
        }
        put(&mut out, &["\"signals\":", &self.signals.top, ",\"signals_as_of\":"]);
        match self.signals.as_of {
            Some(date) => put(&mut out, &["\"", &date.to_string(), "\""]),
            None => put(&mut out, &["null"]),
        }
        put(&mut out, &[",\"sectors\":["]);
        for (position, sector) in self.sectors.iter().enumerate() {
            put(&mut out, &[if position == 0 { "" } else { "," }]);
            sector.write_json(&mut out, self.market.age.as_of);
        }
        put(&mut out, &["],\"market\":"]);
        self.market.write_json(&mut out);
        out.push(b'}');
        out
    }
}

impl Level {
    fn of(priced: &Priced) -> Self {
        let Priced { quote, stale } = priced;
        let Quote { as_of, delay_s, source, .. } = *quote;
        let age = Age { as_of, delay_s, stale: *stale, source };
        Self { price: quote.last_price, change_pct: quote.change_pct(), age }
    }

    /// Its members, each followed by a comma. What `market` says of it is not said again.
    fn write_json(&self, out: &mut Vec<u8>, name: &str, market: &Age) {
        put(out, &["\"", name, "_price\":"]);
        decimal::write_json(out, self.price);
        put(out, &[",\"", name, "_change\":"]);
        write_optional(out, self.change_pct);
        let Age { as_of, delay_s, stale, source } = self.age;
        if !is_same_second(as_of, market.as_of) {
            put(out, &[",\"", name, "_as_of\":\"", &ist::iso(as_of), "\""]);
        }
        if (delay_s, stale, source) != (market.delay_s, market.stale, market.source) {
            if let Some(delay_s) = delay_s {
                put(out, &[",\"", name, "_delay_s\":", itoa::Buffer::new().format(delay_s)]);
            }
            put(out, &[",\"", name, "_stale\":", boolean(stale)]);
            put(out, &[",\"", name, "_source\":\"", source.as_str(), "\""]);
        }
        out.push(b',');
    }
}

impl SectorChange {
    fn write_json(&self, out: &mut Vec<u8>, market_as_of: Timestamp) {
        put(out, &["{\"name\":"]);
        write_text(out, &self.name);
        put(out, &[",\"symbol\":"]);
        write_text(out, self.symbol.as_str());
        put(out, &[",\"change_pct\":"]);
        write_optional(out, self.change_pct);
        if let Some(as_of) = self.as_of.filter(|as_of| !is_same_second(*as_of, market_as_of)) {
            put(out, &[",\"as_of\":\"", &ist::iso(as_of), "\""]);
        }
        out.push(b'}');
    }
}

impl MarketView {
    fn write_json(&self, out: &mut Vec<u8>) {
        put(out, &["{\"is_open\":", boolean(self.is_open)]);
        put(out, &[",\"phase\":\"", self.phase.as_str(), "\",\"next_transition_at\":"]);
        match self.next_transition_at {
            Some(at) => write_text(out, &ist::iso(at)),
            None => put(out, &["null"]),
        }
        let Age { as_of, delay_s, stale, source } = self.age;
        put(out, &[",\"as_of_ist\":\"", &ist::iso(as_of), "\""]);
        if let Some(delay_s) = delay_s {
            put(out, &[",\"delay_s\":", itoa::Buffer::new().format(delay_s)]);
        }
        put(out, &[",\"stale\":", boolean(stale), ",\"source\":\"", source.as_str(), "\""]);
        put(out, &[if self.simulated { ",\"simulated\":true}" } else { "}" }]);
    }
}

/// Times are shown in whole seconds.
fn is_same_second(one: Timestamp, other: Timestamp) -> bool {
    one.as_second() == other.as_second()
}

fn boolean(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

fn put(out: &mut Vec<u8>, parts: &[&str]) {
    parts.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
}

fn write_optional(out: &mut Vec<u8>, value: Option<Decimal>) {
    match value {
        Some(value) => decimal::write_json(out, value),
        None => out.extend_from_slice(b"null"),
    }
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    let json = sonic_rs::to_string(text).expect("every string has a JSON form");
    out.extend_from_slice(json.as_bytes());
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
