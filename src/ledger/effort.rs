//! How much work the corrections of one ledger may make. Demergers of one share into another and
//! back double its lots each time, and ratios without end make amounts of thousands of digits.

use foldhash::{HashMap, HashMapExt};

use crate::base::Isin;
use crate::ledger::amount::Amount;
use crate::ledger::corrections::Correction;
use crate::ledger::securities::Securities;

/// Corporate actions of one security, with those that gave it. Few shares have had ten.
pub(crate) const ACTIONS_OF_ONE_SECURITY_MAX: usize = 64;
/// Lots that corrections make, move or change in one replay: ten actions of 100,000 lots.
pub(crate) const LOT_CHANGES_MAX: u64 = 1_000_000;
/// A lot whose cost does not fit 128 bits takes at least so many times as long.
const LARGE_CHANGES: u64 = 32;
/// Lots that are looked at in the time of one change.
const LOOKS_OF_A_CHANGE: u64 = 64;
/// Costs up to this length are those of sales in parts between a few actions.
const WORDS_OF_SALES: u64 = 8;

/// Why a ledger is not computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TooComplex {
    ManyActions,
    ManyLots,
}

/// What the corrections of a replay have cost.
#[derive(Debug, Default)]
pub(crate) struct Effort {
    lot_changes: u64,
    looks: u64,
    has_many_actions: bool,
}

impl Effort {
    /// That of a replay of these corrections, before it begins.
    pub(crate) fn of(corrections: &[(String, Correction)], securities: &Securities) -> Self {
        let mut actions: HashMap<Isin, usize> = HashMap::new();
        for (_, correction) in corrections {
            let Correction::Action(action) = correction else {
                continue;
            };
            let from = securities.newest(action.isin);
            let to = action.change.new_isin().map(|isin| securities.newest(isin));
            for isin in [Some(from), to.filter(|to| *to != from)]
                .into_iter()
                .flatten()
            {
                *actions.entry(isin).or_default() += 1;
            }
        }
        let most = actions.into_values().max().unwrap_or_default();
        Self {
            lot_changes: 0,
            looks: 0,
            has_many_actions: most > ACTIONS_OF_ONE_SECURITY_MAX,
        }
    }

    /// Counts the change of a lot.
    pub(crate) fn change(&mut self, cost: &Amount) {
        self.lot_changes = self.lot_changes.saturating_add(1 + extra(cost));
    }

    /// Counts the part of a lot that a sale takes. Sales are limited by the rows of a ledger, so
    /// that only amounts of very many digits count.
    pub(crate) fn take(&mut self, cost: &Amount) {
        let words = cost.large_words() / WORDS_OF_SALES;
        self.lot_changes = self.lot_changes.saturating_add(words.saturating_mul(words));
    }

    /// Counts lots that were searched for those of a bonus.
    pub(crate) fn look(&mut self, lots: usize) {
        self.looks = self.looks.saturating_add(lots as u64);
    }

    /// Counts what was found beside a part of a sale.
    pub(crate) fn find(&mut self, count: usize) {
        self.lot_changes = self.lot_changes.saturating_add(count as u64);
    }

    /// Why the replay has to end.
    pub(crate) fn passed(&self) -> Option<TooComplex> {
        if self.has_many_actions {
            return Some(TooComplex::ManyActions);
        }
        let changes = self
            .lot_changes
            .saturating_add(self.looks / LOOKS_OF_A_CHANGE);
        (changes > LOT_CHANGES_MAX).then_some(TooComplex::ManyLots)
    }
}

/// What an amount that does not fit 128 bits takes more. Reducing a fraction takes time with the
/// square of its length.
fn extra(cost: &Amount) -> u64 {
    match cost.large_words() {
        0 => 0,
        words => LARGE_CHANGES.saturating_add(words.saturating_mul(words)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::lots::{Ledger, replay};
    use crate::ledger::testing::{corrections, date, trades_of};

    fn replayed(said: &[String]) -> Ledger {
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        let corrections = corrections(&said);
        let bought = ["a 2001-01-15 buy 1000000 X 100 INE000001011 #1"];
        replay(&trades_of(&bought, &corrections), &corrections, date("2026-11-28"))
    }

    fn action(kind: &str, day: usize, [from, to]: [usize; 2], rest: &str) -> String {
        let on = date("2001-02-01").saturating_add(jiff::Span::new().days(day as i64));
        format!(
            r#"{{"kind":"{kind}","isin":"INE{from:06}011","new_isin":"INE{to:06}011",
            "ex_date":"{on}"{rest}}}"#
        )
    }

    const EVEN: &str = r#","numerator":1,"denominator":1"#;

    #[test]
    fn demergers_back_and_forth_end_and_are_refused() {
        let rest = format!(r#"{EVEN},"cost_percent":33.33"#);
        let between = |at: usize| if at.is_multiple_of(2) { [1, 2] } else { [2, 1] };
        let said = |count: usize| -> Vec<String> {
            (0..count)
                .map(|at| action("demerger", at, between(at), &rest))
                .collect()
        };
        assert_eq!(replayed(&said(20)).too_complex, None);
        assert_eq!(replayed(&said(65)).too_complex, Some(TooComplex::ManyActions));
    }

    #[test]
    fn a_million_changes_of_lots_are_made_and_no_more() {
        let mut effort = Effort::default();
        let cost = Amount::from(rust_decimal::Decimal::ONE);
        (0..LOT_CHANGES_MAX).for_each(|_| effort.change(&cost));
        assert_eq!(effort.passed(), None);
        effort.change(&cost);
        assert_eq!(effort.passed(), Some(TooComplex::ManyLots));
    }

    /// Each of the sales asks whether any lot is of the bonus.
    #[test]
    fn a_day_of_sales_that_strip_a_bonus_is_bounded() {
        let bonus = r#"{"kind":"bonus","isin":"INE000001011","ex_date":"2024-02-01",
            "numerator":1,"denominator":1000}"#;
        let corrections = corrections(&[bonus]);
        let after = |sales: usize| {
            let buys = (0..8_000).map(|at| format!("a 2024-01-15 buy 10 X 100 INE000001011 #{at}"));
            let sell = |at: usize| format!("a 2024-03-15 sell 1 X 90 INE000001011 #s{at}");
            let rows: Vec<String> = buys.chain((0..sales).map(sell)).collect();
            let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
            replay(&trades_of(&rows, &corrections), &corrections, date("2026-11-28")).too_complex
        };
        assert_eq!(after(3_000), None);
        assert_eq!(after(10_000), Some(TooComplex::ManyLots));
    }

    #[test]
    fn a_long_chain_of_mergers_in_any_order_is_computed() {
        let mut said: Vec<String> = (0..2_000)
            .map(|at| action("merger", at, [at + 1, at + 2], EVEN))
            .collect();
        for _ in 0..2 {
            let ledger = replayed(&said);
            assert_eq!((ledger.too_complex, ledger.positions.len()), (None, 2_001));
            let held: Vec<usize> = ledger.positions.iter().map(|of| of.lots.len()).collect();
            assert_eq!((held[2_000], held.iter().sum::<usize>()), (1, 1));
            // The passes over them were as many as there are mergers.
            said.reverse();
        }
    }

    #[test]
    fn ratios_without_end_are_refused() {
        let said: Vec<String> = (0..2_000)
            .map(|at| {
                let rest = r#","numerator":999983,"denominator":999979,"cost_percent":0.000001"#;
                action("demerger", at, [at / 30 + 1, at / 30 + 2], rest)
            })
            .collect();
        assert_eq!(replayed(&said).too_complex, Some(TooComplex::ManyLots));
    }
}
