//! The market's calendar and phases, its instruments and indices, and the index snapshot.
//!
//! Pure: everything is computed from what callers bring. Nothing here does network I/O or reads a
//! clock.

pub mod calendar;
mod calendar_file;
pub(crate) mod data_file;
pub mod indices;
pub mod instruments;
mod market_day;
pub mod phase;
pub mod search;
pub mod settings;
pub mod snapshot;
pub mod universe;

pub use calendar::{DataError, MarketCalendar};
pub use indices::{Index, IndexList};
pub use instruments::{InstrumentList, InstrumentsError, Origin};
pub use market_day::LastClose;
pub use phase::{MarketStatus, Phase, SessionKind};
pub use snapshot::{Age, Priced, Prices, Snapshot, SnapshotInputs};
pub use universe::Universe;
