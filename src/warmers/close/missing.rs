//! The symbols that still lack a closing price, and the order in which a feed is asked for them.
//! Pure.

use std::collections::{BTreeMap, HashSet};

use crate::base::{BySource, Source, Symbol};
use crate::warmers::close::jobs::Reach;

/// A symbol that a feed had no price for is asked for again after this: a listing may be late, a
/// share halted.
pub(crate) const ASK_AGAIN_MS: u64 = 10 * 60_000;

/// Bounded by the symbols that one day's run takes on.
#[derive(Debug, Default)]
pub(crate) struct Missing(BTreeMap<Symbol, Answered>);

/// Monotonic times of each feed's last answer without a closing price.
#[derive(Debug, Default)]
struct Answered {
    at_mono_ms: BySource<Option<u64>>,
    /// It had no closing price on the previous date either.
    silent: bool,
}

impl Answered {
    fn by_any(&self) -> bool {
        self.at_mono_ms.0.iter().any(Option::is_some)
    }
}

impl Missing {
    /// Adds symbols that were not asked for yet. The `silent` ones had no closing price on the
    /// previous date, or before on this one: suspended, delisted, or unknown to the feeds.
    pub(crate) fn add(
        &mut self,
        symbols: impl IntoIterator<Item = Symbol>,
        silent: &HashSet<Symbol>,
    ) {
        for symbol in symbols {
            let silent = silent.contains(&symbol);
            self.0.entry(symbol).or_insert(Answered {
                silent,
                ..Answered::default()
            });
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Number of symbols without a closing price on the previous date either.
    pub(crate) fn silent(&self) -> usize {
        self.0.values().filter(|answered| answered.silent).count()
    }

    /// Whether some feed has answered about each symbol. Missing prices are still asked for again,
    /// but nothing waits for them.
    pub(crate) fn all_answered(&self) -> bool {
        self.0.values().all(Answered::by_any)
    }

    /// Whether no symbol is worth waiting for: each was silent on the previous date, and a feed has
    /// answered that it still is.
    pub(crate) fn is_over(&self) -> bool {
        self.0
            .values()
            .all(|answered| answered.silent && answered.by_any())
    }

    /// Symbols whose closing price is not waited for: in the last walk no more, in those before for
    /// the silent ones.
    pub(crate) fn given_up(&self, reach: Reach) -> HashSet<Symbol> {
        let is_last = reach == Reach::Last;
        let given_up = self
            .0
            .iter()
            .filter(|(_, answered)| is_last || answered.silent);
        given_up.map(|(symbol, _)| symbol.clone()).collect()
    }

    /// Symbols without a closing price from any feed: a feed answered so today, or did on the
    /// previous date and has not answered since.
    pub(crate) fn fell_silent(&self) -> Vec<Symbol> {
        let fell = self
            .0
            .iter()
            .filter(|(_, answered)| answered.silent || answered.by_any());
        fell.map(|(symbol, _)| symbol.clone()).collect()
    }

    /// At most `max` symbols for a call to `source`. While broker A can be asked, the public
    /// provider gets only symbols that broker A had no price for.
    pub(crate) fn batch(
        &self,
        source: Source,
        broker_a_usable: bool,
        max: usize,
        now_mono_ms: u64,
    ) -> Vec<Symbol> {
        let asks = |answered: &Answered| {
            let at_mono_ms = &answered.at_mono_ms;
            let rested = at_mono_ms[source]
                .is_none_or(|answered| now_mono_ms.saturating_sub(answered) >= ASK_AGAIN_MS);
            let left = source == Source::BrokerA || !broker_a_usable;
            rested && (left || at_mono_ms[Source::BrokerA].is_some())
        };
        let due = self.0.iter().filter(|(_, answered)| asks(answered));
        due.take(max).map(|(symbol, _)| symbol.clone()).collect()
    }

    /// Notes that a feed has answered about `symbol`. A symbol with a price is removed by
    /// [`found`](Self::found).
    pub(crate) fn answered(&mut self, source: Source, symbol: &Symbol, now_mono_ms: u64) {
        if let Some(answered) = self.0.get_mut(symbol) {
            answered.at_mono_ms[source] = Some(now_mono_ms);
        }
    }

    /// Removes a symbol whose price was found. True if it was missing until now.
    pub(crate) fn found(&mut self, symbol: &Symbol) -> bool {
        self.0.remove(symbol).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(names: &[&str]) -> Vec<Symbol> {
        names
            .iter()
            .map(|name| Symbol::parse(name).unwrap())
            .collect()
    }

    #[test]
    fn broker_a_is_asked_first_and_nobody_twice_too_soon() {
        let all = symbols(&["NSE:A", "NSE:B", "NSE:C"]);
        let mut missing = Missing::default();
        missing.add(all.clone(), &HashSet::new());
        assert_eq!(missing.batch(Source::BrokerA, true, 2, 0), all[..2]);
        assert!(missing.batch(Source::Public, true, 2, 0).is_empty());
        assert_eq!(missing.batch(Source::Public, false, 2, 0), all[..2]);
        assert!(missing.found(&all[0]) && !missing.found(&all[0]));
        missing.answered(Source::BrokerA, &all[1], 5);
        assert_eq!(missing.batch(Source::BrokerA, true, 9, 5), all[2..]);
        assert_eq!(missing.batch(Source::Public, true, 9, 5), all[1..2]);
        missing.answered(Source::Public, &all[1], 6);
        assert!(
            missing
                .batch(Source::Public, true, 9, 5 + ASK_AGAIN_MS)
                .is_empty()
        );
        assert_eq!(missing.batch(Source::Public, true, 9, 6 + ASK_AGAIN_MS), all[1..2]);
        assert_eq!(missing.batch(Source::BrokerA, true, 9, 5 + ASK_AGAIN_MS), all[1..]);
        assert_eq!(missing.len(), 2);
    }

    #[test]
    fn what_was_silent_before_is_asked_for_and_not_waited_for() {
        let all = symbols(&["NSE:A", "NSE:B", "NSE:C"]);
        let mut missing = Missing::default();
        missing.add(all.clone(), &all[..1].iter().cloned().collect());
        assert_eq!((missing.len(), missing.silent()), (3, 1));
        assert_eq!(missing.given_up(Reach::Everybody), all[..1].iter().cloned().collect());
        assert_eq!(missing.given_up(Reach::Last), all.iter().cloned().collect());
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
