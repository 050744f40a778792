//! What a job of the signals' warmer has done.

use crate::base::Symbol;
use crate::store::{CandleHistory, StoreError};
use crate::warmers::signals::arrivals::Taken;
use crate::warmers::signals::look::Prepared;
use crate::warmers::signals::publication::Shown;

pub(in crate::warmers) type Outcome = Result<Done, StoreError>;

pub(crate) enum Done {
    /// The histories, what is shown, and the symbols that users hold.
    Loaded(Vec<CandleHistory>, Shown, Vec<Symbol>),
    Taken(Taken),
    /// What is shown, and the symbols that users hold.
    Rebuilt(Shown, Vec<Symbol>),
    /// Running candles can be searched.
    Prepared(Prepared),
    /// Running candles were searched, and their signals published.
    Found(Shown),
    /// The found signals could not be recorded in the store, so they are not published.
    Refused(Shown, StoreError),
    /// Nothing provisional is shown any more.
    Withdrawn(Shown),
}
