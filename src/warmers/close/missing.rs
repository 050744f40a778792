//! The symbols that still lack a closing price, and which of them to ask a feed for next. Pure.

use std::collections::{BTreeMap, HashSet};

use crate::base::{Source, Symbol};

/// What a feed could not say is asked for again after this: a listing may be late, a share halted.
pub const ASK_AGAIN_MS: u64 = 10 * 60_000;

/// Bounded by the symbols that one day's run takes on.
#[derive(Debug, Default)]
pub struct Missing(BTreeMap<Symbol, Answered>);

/// Monotonic times of each feed's last answer without a closing price.
#[derive(Debug, Default)]
struct Answered {
    broker_a: Option<u64>,
    public: Option<u64>,
    /// It had none on the date before either.
    silent: bool,
}

impl Answered {
    fn by_any(&self) -> bool {
        self.broker_a.is_some() || self.public.is_some()
    }
}

impl Missing {
    /// None of them has been asked for. `silent` are those that had no closing price on the date
    /// before: suspended, delisted, or unknown to the feeds.
    pub fn of(symbols: Vec<Symbol>, silent: &HashSet<Symbol>) -> Self {
        let answered = |symbol: Symbol| {
            let silent = silent.contains(&symbol);
            (symbol, Answered { silent, ..Answered::default() })
        };
        Self(symbols.into_iter().map(answered).collect())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// How many had no closing price on the date before either.
    pub fn silent(&self) -> usize {
        self.0.values().filter(|answered| answered.silent).count()
    }

    /// Whether a feed has answered about each of them: what is missing now is asked for again, but
    /// nothing waits for it.
    pub fn all_answered(&self) -> bool {
        self.0.values().all(Answered::by_any)
    }

    /// Whether nothing is worth waiting for: each of them was silent on the date before, and a feed
    /// has answered that it still is.
    pub fn is_over(&self) -> bool {
        self.0.values().all(|answered| answered.silent && answered.by_any())
    }

    /// Those that may still come.
    pub fn awaited(&self) -> HashSet<Symbol> {
        let awaited = self.0.iter().filter(|(_, answered)| !answered.silent);
        awaited.map(|(symbol, _)| symbol.clone()).collect()
    }

    /// Those that nobody has a closing price of: a feed says so, or said so the date before and was
    /// not heard since.
    pub fn fell_silent(&self) -> Vec<Symbol> {
        let fell = self.0.iter().filter(|(_, answered)| answered.silent || answered.by_any());
        fell.map(|(symbol, _)| symbol.clone()).collect()
    }

    /// At most `max` symbols for a call to `source`. While broker A can be asked, the public
    /// provider gets only what broker A could not say.
    pub fn batch(
        &self,
        source: Source,
        broker_a_usable: bool,
        max: usize,
        now_mono_ms: u64,
    ) -> Vec<Symbol> {
        let rested = |at: Option<u64>| {
            at.is_none_or(|answered| now_mono_ms.saturating_sub(answered) >= ASK_AGAIN_MS)
        };
        let asks = |answered: &Answered| match source {
            Source::BrokerA => rested(answered.broker_a),
            Source::Public => {
                rested(answered.public) && (!broker_a_usable || answered.broker_a.is_some())
            }
        };
        let due = self.0.iter().filter(|(_, answered)| asks(answered));
        due.take(max).map(|(symbol, _)| symbol.clone()).collect()
    }

    /// Takes note that a feed has answered about `symbol`; a price found is taken out with
    /// [`found`](Self::found).
    pub fn answered(&mut self, source: Source, symbol: &Symbol, now_mono_ms: u64) {
        if let Some(answered) = self.0.get_mut(symbol) {
            match source {
                Source::BrokerA => answered.broker_a = Some(now_mono_ms),
                Source::Public => answered.public = Some(now_mono_ms),
            }
        }
    }

    /// True where it was missing until now.
    pub fn found(&mut self, symbol: &Symbol) -> bool {
        self.0.remove(symbol).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(names: &[&str]) -> Vec<Symbol> {
        names.iter().map(|name| Symbol::parse(name).unwrap()).collect()
    }

    #[test]
    fn broker_a_is_asked_first_and_nobody_twice_too_soon() {
        let all = symbols(&["NSE:A", "NSE:B", "NSE:C"]);
        let mut missing = Missing::of(all.clone(), &HashSet::new());
        assert_eq!(missing.batch(Source::BrokerA, true, 2, 0), all[..2]);
        assert!(missing.batch(Source::Public, true, 2, 0).is_empty());
        assert_eq!(missing.batch(Source::Public, false, 2, 0), all[..2]);
        assert!(missing.found(&all[0]) && !missing.found(&all[0]));
        missing.answered(Source::BrokerA, &all[1], 5);
        assert_eq!(missing.batch(Source::BrokerA, true, 9, 5), all[2..]);
        assert_eq!(missing.batch(Source::Public, true, 9, 5), all[1..2]);
        missing.answered(Source::Public, &all[1], 6);
        assert!(missing.batch(Source::Public, true, 9, 5 + ASK_AGAIN_MS).is_empty());
        assert_eq!(missing.batch(Source::Public, true, 9, 6 + ASK_AGAIN_MS), all[1..2]);
        assert_eq!(missing.batch(Source::BrokerA, true, 9, 5 + ASK_AGAIN_MS), all[1..]);
        assert_eq!(missing.len(), 2);
    }

    #[test]
    fn what_was_silent_before_is_asked_for_and_not_waited_for() {
        let all = symbols(&["NSE:A", "NSE:B", "NSE:C"]);
        let mut missing = Missing::of(all.clone(), &all[..1].iter().cloned().collect());
        assert_eq!((missing.len(), missing.silent()), (3, 1));
        assert_eq!(missing.awaited(), all[1..].iter().cloned().collect());
        assert_eq!(missing.fell_silent(), all[..1], "the others may never have been asked for");
        assert!(!missing.all_answered() && !missing.is_over());
        assert!(missing.found(&all[1]));
        missing.answered(Source::Public, &all[0], 5);
        assert!(!missing.all_answered());
        missing.answered(Source::BrokerA, &all[2], 5);
        assert!(missing.all_answered() && !missing.is_over());
        assert_eq!(missing.fell_silent(), [all[0].clone(), all[2].clone()]);
        assert!(missing.found(&all[2]) && missing.is_over());
        assert!(Missing::default().is_over() && Missing::default().all_answered());
    }
}
