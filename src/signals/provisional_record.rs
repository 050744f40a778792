//! The record of provisional signals: whether the finished candle confirmed them, and their
//! outcomes five sessions later. Pure sums, never mixed with those of complete signals.

use jiff::civil::Date;

use super::track_record::{Outcomes, Standing};

/// Whether the finished candle has the pattern too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The date's complete list is still to come.
    Pending,
    Confirmed,
    Vanished,
    /// The date's list was never published, because candles were missing until the next date was
    /// due.
    Unlisted,
}

/// Counts of real signals, or of simulated ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kind {
    pub(crate) published: u64,
    pub(crate) confirmed: u64,
    pub(crate) vanished: u64,
    pub(crate) unlisted: u64,
    /// First date with such a signal.
    pub(crate) since: Option<Date>,
    pub(crate) outcomes: Outcomes,
}

/// Sums over the ledger of provisional signals, fed entry by entry.
#[derive(Debug, Clone, Default)]
pub struct ProvisionalRecord {
    real: Kind,
    simulated: Kind,
}

impl ProvisionalRecord {
    /// Counts one signal that was shown.
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

    /// The counts to publish, and whether they are of simulated signals; `None` if no signal was
    /// ever shown. Simulated ones are published only while there are no real ones.
    pub(crate) fn shown(&self) -> Option<(bool, &Kind)> {
        let simulated = self.real.published == 0;
        let kind = if simulated { &self.simulated } else { &self.real };
        (kind.published > 0).then_some((simulated, kind))
    }
}
