//! What the market is doing and what it looks like.
//!
//! The calendar and its phases, the list of indices and sectors, the list of instruments, the
//! universe of signals, and the snapshot with its ready-made responses. Everything is computed from
//! what callers bring: nothing here does network I/O or reads a clock.

pub mod calendar;
mod calendar_file;
pub(crate) mod data_file;
pub mod indices;
pub mod instruments;
mod market_day;
pub mod phase;
pub mod snapshot;
pub mod universe;

pub use crate::http::document::published::{Made, PublishedJson};
pub use calendar::{DataError, MarketCalendar};
pub use indices::{Index, IndexList};
pub use instruments::{InstrumentList, InstrumentsError, Origin};
pub use market_day::LastClose;
pub use phase::{MarketStatus, Phase, SessionKind};
pub use snapshot::{Age, Priced, Prices, ShownSignals, Snapshot, SnapshotInputs};
pub use universe::Universe;
