//! The trades that a sync brings: what it asks for beside holdings and positions, and what comes of
//! that. Its calls count against a user's limits, and their failing never fails the sync.

use std::collections::BTreeSet;

use jiff::ToSpan;
use jiff::civil::{Date, date};
use rust_decimal::Decimal;

use crate::base::Exchange;
use crate::brokers::BrokerError;
use crate::ledger::row::{Row, Segment};

/// Quarters of a sync, which are its calls at broker B.
const QUARTERS_MAX: usize = 8;
/// Nothing older is asked for: broker B began that year.
const EARLIEST: Date = date(2000, 1, 1);

/// Trades that a sync asked for.
#[derive(Debug, Default)]
pub struct SyncedTrades {
    /// As the broker writes them. `line` is the place in the call's answer.
    pub(crate) rows: Vec<Row>,
    /// Trades of markets that the ledger does not keep, such as commodities.
    pub(crate) left_out: usize,
    /// First days of the past quarters that were read to their end: they change no more.
    pub(crate) quarters: BTreeSet<Date>,
    /// What stopped the calls. What came before it stands.
    pub(crate) error: Option<BrokerError>,
}

impl SyncedTrades {
    /// How many trades came.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// First days of the past quarters that were read to their end.
    pub fn quarters(&self) -> &BTreeSet<Date> {
        &self.quarters
    }

    /// What stopped the calls.
    pub fn error(&self) -> Option<&BrokerError> {
        self.error.as_ref()
    }

    pub(super) fn add(&mut self, read: ReadTrades) {
        self.rows.extend(read.rows);
        self.left_out += read.left_out;
    }
}

/// The trades of one call's answer.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ReadTrades {
    pub rows: Vec<Row>,
    pub left_out: usize,
}

/// Three months, the last of which may not be over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quarter {
    pub first: Date,
    pub last: Date,
}

/// The quarters that a sync of `today` asks for, the newest first: the present one, and those past
/// ones that are not `known`.
pub(super) fn quarters(today: Date, known: &BTreeSet<Date>) -> Vec<Quarter> {
    let month = (today.month() - 1) / 3 * 3 + 1;
    let mut first = date(today.year(), month, 1);
    let mut last = today;
    let mut wanted = Vec::new();
    while wanted.len() < QUARTERS_MAX && first >= EARLIEST {
        if first.month() == month && first.year() == today.year() || !known.contains(&first) {
            wanted.push(Quarter { first, last });
        }
        last = first.yesterday().unwrap_or(first);
        first = first.saturating_sub(3.months());
    }
    wanted
}

/// The exchange and segment of a broker's word; `None` for markets that the ledger does not keep.
pub(super) fn market(exchange: &str) -> Option<(Exchange, Segment)> {
    match exchange {
        "NSE" => Some((Exchange::Nse, Segment::Equity)),
        "BSE" => Some((Exchange::Bse, Segment::Equity)),
        "NFO" => Some((Exchange::Nse, Segment::Derivatives)),
        "BFO" => Some((Exchange::Bse, Segment::Derivatives)),
        "CDS" => Some((Exchange::Nse, Segment::Currency)),
        "BCD" => Some((Exchange::Bse, Segment::Currency)),
        _ => None,
    }
}

/// A quantity or price as the ledger takes them.
pub(super) fn counts(number: Decimal) -> bool {
    let most = Decimal::from(1_000_000_000_000_i64);
    number > Decimal::ZERO && number <= most && number.normalize().scale() <= 9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn firsts(today: Date, known: &[Date]) -> Vec<String> {
        let known = known.iter().copied().collect();
        quarters(today, &known)
            .iter()
            .map(|quarter| quarter.first.to_string())
            .collect()
    }

    #[test]
    fn quarters_are_asked_for_from_the_newest_and_past_ones_once() {
        let today = date(2026, 8, 20);
        let all = quarters(today, &BTreeSet::new());
        assert_eq!(
            all[0],
            Quarter {
                first: date(2026, 7, 1),
                last: today
            }
        );
        assert_eq!(
            all[1],
            Quarter {
                first: date(2026, 4, 1),
                last: date(2026, 6, 30)
            }
        );
        assert_eq!((all.len(), all[7].first), (8, date(2024, 10, 1)));
        let known: Vec<Date> = all.iter().map(|quarter| quarter.first).collect();
        // The present quarter is asked for again, though it was read.
        let next = firsts(today, &known);
        assert_eq!((next[0].as_str(), next[1].as_str()), ("2026-07-01", "2024-07-01"));
        assert_eq!(next.len(), 8);
        let gap = [date(2026, 4, 1), date(2025, 10, 1)];
        assert_eq!(firsts(today, &gap)[..3], ["2026-07-01", "2026-01-01", "2025-07-01"]);
        assert_eq!(firsts(date(2000, 5, 1), &[]), ["2000-04-01", "2000-01-01"]);
        for quarter in all {
            assert!((quarter.last - quarter.first).get_days() <= 92);
        }
    }
}
