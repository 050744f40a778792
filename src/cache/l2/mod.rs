//! L2, the second cache level: quotes and instrument lists that survive a restart.
//!
//! The embedded file implements the trait, and so does a server that several nodes share.

pub mod codec;
pub(crate) mod second_level;
pub(crate) mod sqlite;

pub(crate) use second_level::{Absent, check_sizes};
pub use second_level::{DISTRUSTED, Kind, L2Error, L2Stats, RECORD_BYTES_MAX, Record, SecondLevel};
