//! The public record: outcomes of the published signals. Pure sums, in a fixed order.
//!
//! Signals of simulated candles are counted separately. They are published only while there are no
//! others.

use jiff::civil::Date;

use crate::signals::backtest::Judged;
use crate::signals::performance::Performance;

/// Whether a published signal has an outcome.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Standing {
    Judged(Judged),
    /// The outcome is still to come.
    Due,
    /// No outcome is expected: the share has left the universe, its history no longer has the date,
    /// or it has hardly traded since. If the share comes back, the signal is judged all the same.
    Never,
}

/// Counts of real signals, or of simulated ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kind {
    pub(crate) published: u64,
    /// First date with a signal.
    pub(crate) since: Option<Date>,
    pub(crate) outcomes: Outcomes,
}

/// Outcomes of a group of signals.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcomes {
    pub never: u64,
    pub done: Performance,
}

impl Outcomes {
    pub(crate) fn count(&mut self, standing: &Standing) {
        match standing {
            Standing::Judged(judged) => drop(self.done.count(judged)),
            Standing::Due => {}
            Standing::Never => self.never += 1,
        }
    }

    /// Number of `published` signals still to be judged.
    pub(crate) fn due(&self, published: u64) -> u64 {
        published - self.done.all.signals - self.never
    }
}

/// Sums over the ledger, fed entry by entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sums {
    real: Kind,
    simulated: Kind,
}

impl Sums {
    /// Counts a published signal, of the same date as the one before or of a later one.
    pub(crate) fn count(&mut self, on: Date, simulated: bool, standing: &Standing) {
        let kind = if simulated {
            &mut self.simulated
        } else {
            &mut self.real
        };
        kind.published += 1;
        kind.since = Some(kind.since.map_or(on, |since| since.min(on)));
        kind.outcomes.count(standing);
    }

    /// The counts to publish, and whether they are of simulated signals.
    pub(crate) fn shown(&self) -> (bool, &Kind) {
        let simulated = self.real.published == 0 && self.simulated.published > 0;
        (
            simulated,
            if simulated {
                &self.simulated
            } else {
                &self.real
            },
        )
    }
}

/// The sums over the ledger, and its dates.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reliability {
    pub sums: Sums,
    /// Dates with a published list, oldest first.
    pub dates_published: Vec<Date>,
    /// Trading dates between them without a list.
    pub dates_missed: Vec<Date>,
}
