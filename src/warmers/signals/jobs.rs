//! How jobs of the lane `signals` end.

use super::arrivals::Taken;
use super::look::{Prepared, Refused};
use super::publication::Shown;
use crate::store::{CandleHistory, StoreError};

/// How a job ended.
pub type Outcome = Result<Done, StoreError>;

/// How a job ended well.
pub enum Done {
    Loaded(Vec<CandleHistory>, Shown),
    Taken(Taken),
    Rebuilt(Shown),
    /// Running candles can be looked at.
    Prepared(Prepared),
    /// With what was found in them.
    Found(Shown),
    /// What was found could not be put on record, so it is not shown.
    Refused(Refused),
    /// Nothing provisional is shown any more.
    Withdrawn(Shown),
}
