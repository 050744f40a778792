//! The public record: how the published signals did. Pure sums, in one order.
//!
//! What was found in simulated candles is counted apart and told only where nothing else was
//! published.

use jiff::civil::Date;

use super::backtest::Judged;
use super::performance::Performance;
use super::provisional_record::ProvisionalRecord;

/// What has become of a published signal.
#[derive(Debug, Clone, Copy)]
pub enum Standing {
    Judged(Judged),
    /// Its outcome is still to come.
    Due,
    /// None will come: the share has left the universe, its history has not the date any more, or
    /// it has hardly traded since. Should it come back, the signal is judged all the same.
    Never,
}

/// Counts of one kind of signals, real or simulated.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kind {
    pub(crate) published: u64,
    /// First date with a signal.
    pub(crate) since: Option<Date>,
    pub(crate) outcomes: Outcomes,
}

/// What became of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcomes {
    pub never: u64,
    pub done: Performance,
}

impl Outcomes {
    pub fn count(&mut self, standing: &Standing) {
        match standing {
            Standing::Judged(judged) => drop(self.done.count(judged)),
            Standing::Due => {}
            Standing::Never => self.never += 1,
        }
    }

    /// Those of so many that are still to be judged.
    pub fn due(&self, published: u64) -> u64 {
        published - self.done.all.signals - self.never
    }
}

/// Sums over the ledger, to be fed line by line.
#[derive(Debug, Clone, Default)]
pub struct Reliability {
    real: Kind,
    simulated: Kind,
    /// Dates that were published, oldest first.
    pub dates_published: Vec<Date>,
    /// Trading dates between them that were not.
    pub dates_missed: Vec<Date>,
    /// Of candles that were not finished.
    pub provisional: ProvisionalRecord,
}

impl Reliability {
    /// Counts a published signal, of the date of the one before or a later one.
    pub fn count(&mut self, on: Date, simulated: bool, standing: &Standing) {
        let kind = if simulated { &mut self.simulated } else { &mut self.real };
        kind.published += 1;
        kind.since = Some(kind.since.map_or(on, |since| since.min(on)));
        kind.outcomes.count(standing);
    }

    /// The kind that is told, and whether that is the simulated one.
    pub(crate) fn shown(&self) -> (bool, &Kind) {
        let simulated = self.real.published == 0 && self.simulated.published > 0;
        (simulated, if simulated { &self.simulated } else { &self.real })
    }
}
