//! The market's calendar and phases, its instruments and indices, and the index snapshot.
//!
//! Pure: everything is computed from what callers bring. Nothing here does network I/O or reads a
//! clock.

pub mod calendar;
pub mod indices;
pub mod instruments;
pub mod snapshot;

pub use calendar::{DataError, LastClose, MarketCalendar, MarketStatus, Phase, SessionKind};
pub use indices::{Index, IndexList};
pub use instruments::{InstrumentList, InstrumentsError, Origin, Universe};
pub use snapshot::{Age, Priced, Prices, Snapshot, SnapshotInputs};
