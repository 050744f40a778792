//! How signals of unfinished candles did: what became of them at the official close, and five
//! sessions later. Pure sums, never mixed with those of complete signals.

use jiff::civil::Date;

use super::track_record::{Outcomes, Standing};

/// What the finished candle said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The date's complete list is still to come.
    Pending,
    Confirmed,
    Vanished,
    /// It never came: candles could not be had until the next date was due.
    Unlisted,
}

/// Counts of one kind of them, real or simulated.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kind {
    pub(crate) published: u64,
    pub(crate) confirmed: u64,
    pub(crate) vanished: u64,
    pub(crate) unlisted: u64,
    /// First date with one.
    pub(crate) since: Option<Date>,
    pub(crate) outcomes: Outcomes,
}

/// Sums over their ledger, to be fed line by line.
#[derive(Debug, Clone, Default)]
pub struct ProvisionalRecord {
    real: Kind,
    simulated: Kind,
}

impl ProvisionalRecord {
    /// Counts one that was shown.
    pub fn count(&mut self, on: Date, simulated: bool, fate: Fate, standing: &Standing) {
        let kind = if simulated { &mut self.simulated } else { &mut self.real };
        kind.published += 1;
        kind.since = Some(kind.since.map_or(on, |since| since.min(on)));
        match fate {
            Fate::Pending => {}
            Fate::Confirmed => kind.confirmed += 1,
            Fate::Vanished => kind.vanished += 1,
            Fate::Unlisted => kind.unlisted += 1,
        }
        kind.outcomes.count(standing);
    }

    /// The kind that is told, and whether that is the simulated one; `None` where none was ever
    /// shown. Simulated ones only where there are no others.
    pub(crate) fn shown(&self) -> Option<(bool, &Kind)> {
        let simulated = self.real.published == 0;
        let kind = if simulated { &self.simulated } else { &self.real };
        (kind.published > 0).then_some((simulated, kind))
    }
}
