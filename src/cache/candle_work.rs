//! What the scheduler is doing about candles: which of them are still to come, how many there are,
//! and why none can be had. The scheduler replaces it, any thread reads it. Without locks.

use std::collections::HashMap;

use crate::base::Symbol;
use crate::views::signals::Progress;
use crate::views::states::DataState;

/// The candles of the due date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CandleWork {
    /// Of the signals that are made of them, until the first list is published.
    pub state: DataState,
    /// How many shares have the candles; `None` before the store was read, and on a node that
    /// fetches none.
    pub progress: Option<Progress>,
    /// Why none can be fetched now; `None` while they can.
    pub detail: Option<String>,
    /// Symbols whose candles are to be stored and of which none are; with each, whether every
    /// source was asked in vain, so that it waits for a later time.
    pub missing: HashMap<Symbol, bool>,
}

impl Default for CandleWork {
    /// Before the store was read.
    fn default() -> Self {
        let state = DataState::Loading;
        Self {
            state,
            progress: None,
            detail: None,
            missing: HashMap::new(),
        }
    }
}

impl CandleWork {
    /// The state of the candles of a symbol of which none are stored.
    pub(crate) fn state_of(&self, symbol: &Symbol) -> DataState {
        match (self.missing.get(symbol), &self.detail) {
            (None, _) => DataState::None,
            _ if self.state == DataState::None => DataState::None,
            (Some(_), Some(_)) => DataState::Unreachable,
            (Some(true), None) => DataState::None,
            (Some(false), None) => DataState::Loading,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_to_be_stored_is_awaited_and_a_reason_stands_for_all() {
        let [coming, in_vain, other] =
            ["NSE:INFY", "NSE:TCS", "BSE:SENSEX"].map(|name| Symbol::parse(name).unwrap());
        let missing = HashMap::from([(coming.clone(), false), (in_vain.clone(), true)]);
        let states = |work: &CandleWork| [&coming, &in_vain, &other].map(|of| work.state_of(of));
        let mut work = CandleWork {
            missing,
            ..CandleWork::default()
        };
        let none = DataState::None;
        assert_eq!(states(&work), [DataState::Loading, none, none]);
        work.detail = Some("why".to_owned());
        assert_eq!(states(&work), [DataState::Unreachable, DataState::Unreachable, none]);
        work.state = none;
        assert_eq!(states(&work), [none; 3]);
    }
}
