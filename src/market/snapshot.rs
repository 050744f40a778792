//! The index snapshot: what it is made of, its JSON, and the form in which it survives a restart.
//!
//! Built by the index warmer. Must never mix up ages: a value that lags behind the others is left
//! out or marks the whole as stale.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::indices::{INDICES_MAX, Index, IndexList};
use super::phase::{MarketStatus, Phase};
use crate::base::{Quote, Source, Symbol, decimal, ist};

/// How much earlier than the latest of the three indices a value may have been received. Broker A
/// answers for all at once and the public provider in one batch each 15 s, so more means that it no
/// longer comes.
pub const PEER_LAG_MS_MAX: i64 = 60_000;

/// Largest stored snapshot read back; one with 20 names is under 8 KiB.
pub const STORED_BYTES_MAX: usize = 64 * 1024;

/// Quotes of one feed, by symbol.
pub type QuoteMap = HashMap<Symbol, Quote>;

/// What a snapshot is built from.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotInputs<'a> {
    pub indices: &'a IndexList,
    /// Quotes by feed, the preferred feed first. The three indices come from the first feed that
    /// has all of them; only where none has, each comes from the first feed that has it.
    pub quotes: &'a [&'a QuoteMap],
    pub status: &'a MarketStatus,
    /// The feed has failed for longer than its refresh interval.
    pub stale: bool,
}

/// Price and change of an index.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    pub price: Decimal,
    /// Percent, unrounded; `None` (null in JSON) where the source gave no previous close.
    pub change_pct: Option<Decimal>,
}

/// Change of a sector. Every sector of the list is there, in its order.
#[derive(Debug, Clone, PartialEq)]
pub struct SectorChange {
    pub name: String,
    pub symbol: Symbol,
    /// Percent, unrounded; `None` (null in JSON) without a recent quote.
    pub change_pct: Option<Decimal>,
}

/// The `market` object.
#[derive(Debug, Clone, PartialEq)]
pub struct MarketView {
    pub is_open: bool,
    pub phase: Phase,
    pub next_transition_at: Option<Timestamp>,
    /// Time of the primary index's price.
    pub as_of: Timestamp,
    pub stale: bool,
    /// Who said the primary index's price.
    pub source: Source,
    /// Some value came from a simulator.
    pub simulated: bool,
}

/// The index snapshot of the API.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub index1: Level,
    pub bankindex: Level,
    pub index2: Level,
    /// The JSON array of the signals shown, as their warmer wrote it; set by whoever publishes. Not
    /// part of the stored form: the ledger has them.
    pub signals: Arc<str>,
    pub sectors: Vec<SectorChange>,
    pub market: MarketView,
}

impl Snapshot {
    /// The snapshot of these inputs; `None` without a quote for each of the three indices.
    pub fn build(inputs: &SnapshotInputs<'_>) -> Option<Self> {
        let leads = lead_quotes(inputs)?;
        let [primary, bank, second] = leads;
        let newest = leads.iter().map(|quote| quote.received).max()?;
        let lags = |quote: &Quote| {
            newest.as_millisecond() - quote.received.as_millisecond() > PEER_LAG_MS_MAX
        };
        let mut simulated = leads.iter().any(|quote| quote.simulated);
        let mut sectors = Vec::with_capacity(inputs.indices.sectors.len());
        for sector in &inputs.indices.sectors {
            let quote = sector_quote(inputs, sector, primary.source).filter(|quote| !lags(quote));
            simulated |= quote.is_some_and(|quote| quote.simulated);
            sectors.push(SectorChange {
                name: sector.name.clone(),
                symbol: sector.symbol.clone(),
                change_pct: quote.and_then(Quote::change_pct),
            });
        }
        Some(Self {
            index1: level(primary),
            bankindex: level(bank),
            index2: level(second),
            signals: no_signals(),
            sectors,
            market: MarketView {
                is_open: inputs.status.is_open,
                phase: inputs.status.phase,
                next_transition_at: inputs.status.next_transition_at,
                as_of: primary.as_of,
                stale: inputs.stale || leads.iter().any(|quote| lags(quote)),
                source: primary.source,
                simulated,
            },
        })
    }

    /// The same prices at another time: after a restart, when the phase changes, or when the feed
    /// fails.
    pub fn remark(&mut self, status: &MarketStatus, stale: bool) {
        self.market.is_open = status.is_open;
        self.market.phase = status.phase;
        self.market.next_transition_at = status.next_transition_at;
        self.market.stale = stale;
    }

    /// The body of `GET /api/index/snapshot`.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(512 + 96 * self.sectors.len());
        let levels =
            [("index1", &self.index1), ("bankindex", &self.bankindex), ("index2", &self.index2)];
        out.push(b'{');
        for (name, level) in levels {
            for part in ["\"", name, "_price\":"] {
                out.extend_from_slice(part.as_bytes());
            }
            decimal::write_json(&mut out, level.price);
            for part in [",\"", name, "_change\":"] {
                out.extend_from_slice(part.as_bytes());
            }
            write_optional(&mut out, level.change_pct);
            out.push(b',');
        }
        for part in ["\"signals\":", &*self.signals, ",\"sectors\":["] {
            out.extend_from_slice(part.as_bytes());
        }
        for (position, sector) in self.sectors.iter().enumerate() {
            out.extend_from_slice(if position == 0 { b"{\"name\":" } else { b",{\"name\":" });
            write_text(&mut out, &sector.name);
            out.extend_from_slice(b",\"symbol\":");
            write_text(&mut out, sector.symbol.as_str());
            out.extend_from_slice(b",\"change_pct\":");
            write_optional(&mut out, sector.change_pct);
            out.push(b'}');
        }
        out.extend_from_slice(b"],\"market\":");
        self.market.write_json(&mut out);
        out.push(b'}');
        out
    }

    /// The stored form.
    pub fn to_bytes(&self) -> Vec<u8> {
        sonic_rs::to_vec(&Stored::from(self)).expect("plain strings and numbers always have JSON")
    }

    /// Reads the stored form. The caller says what time it is with [`remark`](Self::remark); until
    /// then the snapshot is stale.
    ///
    /// # Errors
    /// [`StoredSnapshotError`] for anything that [`to_bytes`](Self::to_bytes) would not have
    /// written.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StoredSnapshotError> {
        if bytes.len() > STORED_BYTES_MAX {
            return Err(StoredSnapshotError::Implausible("size"));
        }
        let stored: Stored = sonic_rs::from_slice(bytes)
            .map_err(|error| StoredSnapshotError::Malformed(error.to_string()))?;
        stored.into_snapshot().map_err(StoredSnapshotError::Implausible)
    }
}

/// Why a stored snapshot was not used.
#[derive(Debug, thiserror::Error)]
pub enum StoredSnapshotError {
    #[error("the stored snapshot is malformed: {0}")]
    Malformed(String),
    #[error("the stored snapshot has an implausible {0}")]
    Implausible(&'static str),
}

fn lead_quotes<'a>(inputs: &SnapshotInputs<'a>) -> Option<[&'a Quote; 3]> {
    let [primary, bank, second] = inputs.indices.leads();
    let from_one = |quotes: &'a QuoteMap| {
        let quote = |index: &Index| quotes.get(&index.symbol);
        Some([quote(primary)?, quote(bank)?, quote(second)?])
    };
    let from_any = |index: &Index| inputs.quotes.iter().find_map(|map| map.get(&index.symbol));
    inputs
        .quotes
        .iter()
        .find_map(|map| from_one(map))
        .or_else(|| Some([from_any(primary)?, from_any(bank)?, from_any(second)?]))
}

/// The sector's quote from the source of the primary index, else from the first feed that has one.
fn sector_quote<'a>(
    inputs: &SnapshotInputs<'a>,
    sector: &Index,
    source: Source,
) -> Option<&'a Quote> {
    let quotes = || inputs.quotes.iter().filter_map(|map| map.get(&sector.symbol));
    quotes().find(|quote| quote.source == source).or_else(|| quotes().next())
}

fn level(quote: &Quote) -> Level {
    Level { price: quote.last_price, change_pct: quote.change_pct() }
}

impl MarketView {
    fn write_json(&self, out: &mut Vec<u8>) {
        let boolean = |value: bool| if value { "true" } else { "false" };
        let parts = ["{\"is_open\":", boolean(self.is_open), ",\"phase\":\"", self.phase.as_str()];
        for part in parts {
            out.extend_from_slice(part.as_bytes());
        }
        out.extend_from_slice(b"\",\"next_transition_at\":");
        match self.next_transition_at {
            Some(at) => write_text(out, &ist::iso(at)),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"as_of_ist\":");
        write_text(out, &ist::iso(self.as_of));
        let parts = [",\"stale\":", boolean(self.stale), ",\"source\":\"", self.source.as_str()];
        for part in parts {
            out.extend_from_slice(part.as_bytes());
        }
        out.extend_from_slice(if self.simulated { b"\",\"simulated\":true}" } else { b"\"}" });
    }
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

/// The array of signals while none were published.
pub fn no_signals() -> Arc<str> {
    Arc::from("[]")
}

/// Changes when the stored form does; another version is not read.
const STORED_VERSION: u32 = 1;

/// The stored form: decimals as strings, instants in milliseconds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    levels: [(Decimal, Option<Decimal>); 3],
    sectors: Vec<(String, String, Option<Decimal>)>,
    is_open: bool,
    phase: String,
    next_transition_at_ms: Option<i64>,
    as_of_ms: i64,
    source: String,
    simulated: bool,
}

impl From<&Snapshot> for Stored {
    fn from(snapshot: &Snapshot) -> Self {
        let levels = [&snapshot.index1, &snapshot.bankindex, &snapshot.index2];
        let market = &snapshot.market;
        Self {
            version: STORED_VERSION,
            levels: levels.map(|level| (level.price, level.change_pct)),
            sectors: snapshot
                .sectors
                .iter()
                .map(|sector| {
                    (sector.name.clone(), sector.symbol.as_str().to_owned(), sector.change_pct)
                })
                .collect(),
            is_open: market.is_open,
            phase: market.phase.as_str().to_owned(),
            next_transition_at_ms: market.next_transition_at.map(Timestamp::as_millisecond),
            as_of_ms: market.as_of.as_millisecond(),
            source: market.source.as_str().to_owned(),
            simulated: market.simulated,
        }
    }
}

impl Stored {
    fn into_snapshot(self) -> Result<Snapshot, &'static str> {
        if self.version != STORED_VERSION {
            return Err("version");
        }
        if self.sectors.len() > INDICES_MAX {
            return Err("number of sectors");
        }
        if self.levels.iter().any(|(price, _)| *price <= Decimal::ZERO) {
            return Err("price");
        }
        let instant = |ms| Timestamp::from_millisecond(ms).map_err(|_| "time");
        let [index1, bankindex, index2] =
            self.levels.map(|(price, change_pct)| Level { price, change_pct });
        let mut sectors = Vec::with_capacity(self.sectors.len());
        for (name, symbol, change_pct) in self.sectors {
            let symbol = Symbol::parse(&symbol).ok_or("symbol")?;
            sectors.push(SectorChange { name, symbol, change_pct });
        }
        let source = [Source::BrokerA, Source::Public]
            .into_iter()
            .find(|source| source.as_str() == self.source)
            .ok_or("source")?;
        Ok(Snapshot {
            index1,
            bankindex,
            index2,
            signals: no_signals(),
            sectors,
            market: MarketView {
                is_open: self.is_open,
                phase: Phase::from_word(&self.phase).ok_or("phase")?,
                next_transition_at: self.next_transition_at_ms.map(instant).transpose()?,
                as_of: instant(self.as_of_ms)?,
                stale: true,
                source,
                simulated: self.simulated,
            },
        })
    }
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
