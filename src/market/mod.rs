//! The market's calendar and phases, its instruments and indices, and the index snapshot.
//!
//! Pure: everything is computed from the callers' input. Nothing here does network I/O or reads a
//! clock.

pub(crate) mod calendar;
pub(crate) mod calendar_entries;
mod calendar_file;
mod calendar_horizon;
pub(crate) mod data_file;
pub(crate) mod derivatives;
mod fair_values;
pub(crate) mod indices;
pub mod instruments;
pub(crate) mod list_belief;
pub(crate) mod list_limits;
mod market_day;
mod phase;
pub mod search;
pub mod sectors;
pub(crate) mod snapshot;
pub(crate) mod universe;
mod universe_entry;

pub use crate::market::universe::Universe;
pub use calendar::MarketCalendar;
pub(crate) use data_file::DataError;
pub(crate) use derivatives::{Derivatives, Underlyings};
pub use fair_values::FairValues;
pub use indices::{Index, IndexList, MarketSettings};
pub(crate) use instruments::InstrumentList;
pub use instruments::Origin;
pub(crate) use market_day::{LastClose, Seen};
pub(crate) use phase::{MarketStatus, Phase, Trading};
pub use sectors::Sectors;
pub(crate) use snapshot::Age;
pub use snapshot::{Priced, Prices, Snapshot, SnapshotInputs};
