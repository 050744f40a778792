//! The market's calendar and phases, its instruments and indices, and the index snapshot.
//!
//! Pure: everything is computed from what callers bring. Nothing here does network I/O or reads a
//! clock.

pub mod calendar;
pub mod indices;
pub mod instruments;
pub mod snapshot;

pub use calendar::MarketCalendar;
pub(crate) use calendar::{DataError, LastClose, MarketStatus, Phase};
pub use indices::{Index, IndexList};
pub(crate) use instruments::InstrumentList;
pub use instruments::{Origin, Universe};
pub(crate) use snapshot::Age;
pub use snapshot::{Priced, Prices, Snapshot, SnapshotInputs};
