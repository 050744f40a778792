//! The market's calendar and phases, its instruments and indices, and the index snapshot.
//!
//! Pure: everything is computed from the callers' input. Nothing here does network I/O or reads a
//! clock.

pub(crate) mod calendar;
pub(crate) mod indices;
pub mod instruments;

pub use calendar::MarketCalendar;
pub(crate) use calendar::{DataError, LastClose, MarketStatus, Phase};
pub(crate) use indices::Age;
pub use indices::{Index, IndexList, Priced, Prices, Snapshot, SnapshotInputs};
pub(crate) use instruments::InstrumentList;
pub use instruments::{Origin, Sectors, Universe};
