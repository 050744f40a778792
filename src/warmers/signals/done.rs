//! What a job of the signals' warmer has done.

use crate::base::Symbol;
use crate::store::{CandleHistory, StoreError};
use crate::warmers::signals::arrivals::Taken;
use crate::warmers::signals::publication::Shown;

pub(in crate::warmers) type Outcome = Result<Done, StoreError>;

pub(crate) enum Done {
    /// The histories, what is shown, and the symbols that users hold.
    Loaded(Vec<CandleHistory>, Shown, Vec<Symbol>),
    Taken(Taken),
    /// What is shown, and the symbols that users hold.
    Rebuilt(Shown, Vec<Symbol>),
    /// The symbols that users hold by now.
    Held(Vec<Symbol>),
}
