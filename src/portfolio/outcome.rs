//! The result of a sync as its user sees it: the changes, the codes that stayed unresolved, the
//! rows that look like a split, and our profit compared with the broker's own.
//!
//! Pure. Counts cover all rows; of each kind the first [`LISTED_MAX`] rows are named.

use rust_decimal::Decimal;

use super::corporate_actions::{Why, suspicions};
use super::valuation::valuation;
use crate::base::{Holding, Position, PositionKind, words};
use crate::portfolio::valuation::Overflow;

/// Rows named of each kind.
pub(crate) const LISTED_MAX: usize = 100;
/// Rounding of a broker's own figure, per row.
const ROUNDING: Decimal = Decimal::from_parts(1, 0, 0, false, 2);

/// The result of a sync.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncOutcome {
    /// Holdings that were written.
    pub holdings: usize,
    pub(crate) positions: PositionChanges,
    pub(crate) added: First<Holding>,
    pub(crate) removed: First<Holding>,
    /// Rows that stayed with other numbers, before and after.
    pub(crate) changed: First<(Holding, Holding)>,
    /// Codes of the broker that no list knows, each once.
    pub unresolved: First<String>,
    /// Rows that look like a split, a bonus or a merger.
    pub(crate) suspected: First<(Holding, Why)>,
    pub(crate) reconciliation: Reconciliation,
    /// The portfolio could not be valued: an amount in it is too large. The day's point says so.
    pub unvalued: Option<Overflow>,
}

/// The number of rows, and the first `LISTED_MAX` of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct First<T> {
    pub count: usize,
    pub rows: Vec<T>,
}

impl<T> Default for First<T> {
    fn default() -> Self {
        Self {
            count: 0,
            rows: Vec::new(),
        }
    }
}

impl<T> First<T> {
    fn of<S>(all: &[S], row: impl Fn(&S) -> T) -> Self {
        Self {
            count: all.len(),
            rows: all.iter().take(LISTED_MAX).map(row).collect(),
        }
    }
}

/// Open positions of each list, before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PositionChanges {
    pub day: [usize; 2],
    pub net: [usize; 2],
}

/// Our profit compared with the broker's, over the rows with a profit of the broker's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reconciliation {
    /// The broker names no profit, or a sum does not fit.
    #[default]
    NoBrokerFigure,
    Compared {
        broker: Decimal,
        ours: Decimal,
        /// `None` if the two are equal.
        reason: Option<Difference>,
    },
}

words! {
    /// Why the two profits differ.
    pub(crate) enum Difference {
        Rounding = "rounding",
        /// The broker leaves out shares bought yesterday.
        T1Quantity = "t1_quantity",
        Unexplained = "unexplained",
    }
}

impl SyncOutcome {
    /// The outcome of a sync with the changes `diff`, which replaced `positions_before` by
    /// `positions` and the broker's rows by `holdings`, marked and priced as stored.
    pub(super) fn new(
        diff: &Diff<'_>,
        holdings: &[Holding],
        positions_before: &[&Position],
        positions: &[Position],
    ) -> Self {
        let open = |kind| {
            let before = open_positions(positions_before.iter().copied(), kind);
            [before, open_positions(positions, kind)]
        };
        Self {
            holdings: holdings.len(),
            positions: PositionChanges {
                day: open(PositionKind::Day),
                net: open(PositionKind::Net),
            },
            added: First::of(&diff.added, |row| (*row).clone()),
            removed: First::of(&diff.removed, |row| (*row).clone()),
            changed: First::of(&diff.changed, |row| (row.before.clone(), row.after.clone())),
            unresolved: unresolved(holdings, positions),
            suspected: First::of(&suspicions(holdings), |(row, why)| ((*row).clone(), *why)),
            reconciliation: reconciled(holdings),
            unvalued: None,
        }
    }
}

fn open_positions<'a>(
    positions: impl IntoIterator<Item = &'a Position>,
    kind: PositionKind,
) -> usize {
    let open = |row: &&Position| row.kind == kind && !row.quantity.is_zero();
    positions.into_iter().filter(open).count()
}

fn unresolved(holdings: &[Holding], positions: &[Position]) -> First<String> {
    let holdings = holdings.iter().filter(|row| row.unresolved);
    let positions = positions.iter().filter(|row| row.unresolved);
    let mut codes: Vec<&str> = holdings
        .map(|row| row.tradingsymbol.as_str())
        .chain(positions.map(|row| row.tradingsymbol.as_str()))
        .collect();
    codes.sort_unstable();
    codes.dedup();
    First::of(&codes, |code| (*code).to_owned())
}

/// Compares the profits. A broker counts only settled shares; we also count those bought yesterday.
fn reconciled(holdings: &[Holding]) -> Reconciliation {
    let sums = sums(holdings);
    let Some(Sums {
        broker,
        ours,
        undelivered,
        rows,
    }) = sums.filter(|sums| sums.rows > 0)
    else {
        return Reconciliation::NoBrokerFigure;
    };
    let difference = ours.saturating_sub(broker);
    let tolerance = ROUNDING.saturating_mul(Decimal::from(rows));
    let small = |value: Decimal| value.abs() <= tolerance;
    let reason = match () {
        () if difference.is_zero() => None,
        () if small(difference) => Some(Difference::Rounding),
        () if small(difference.saturating_sub(undelivered)) => Some(Difference::T1Quantity),
        () => Some(Difference::Unexplained),
    };
    Reconciliation::Compared {
        broker,
        ours,
        reason,
    }
}

struct Sums {
    broker: Decimal,
    ours: Decimal,
    /// The part of our profit that T1 shares make.
    undelivered: Decimal,
    rows: u32,
}

fn sums(holdings: &[Holding]) -> Option<Sums> {
    let mut sums = Sums {
        broker: Decimal::ZERO,
        ours: Decimal::ZERO,
        undelivered: Decimal::ZERO,
        rows: 0,
    };
    for row in holdings {
        let (Some(theirs), Some(pnl)) = (row.broker_pnl, valuation(row).ok()?.pnl) else {
            continue;
        };
        let per_share = row.last_price?.checked_sub(row.average_price()?)?;
        sums.broker = sums.broker.checked_add(theirs)?;
        sums.ours = sums.ours.checked_add(pnl)?;
        let undelivered = row.t1_quantity.checked_mul(per_share)?;
        sums.undelivered = sums.undelivered.checked_add(undelivered)?;
        sums.rows += 1;
    }
    Some(sums)
}

// ---- Diff
//
// The changes of a sync among one broker's holdings. Pure.

/// A holding that is in both syncs with different numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change<'a> {
    pub before: &'a Holding,
    pub after: &'a Holding,
}

impl Change<'_> {
    /// Quantity owned before and now, if it differs.
    pub(crate) fn quantity(&self) -> Option<(Decimal, Decimal)> {
        let before = self.before.quantity();
        let after = self.after.quantity();
        (before != after).then_some((before, after))
    }

    /// Average cost before and now, if it differs.
    pub(crate) fn average_price(&self) -> Option<(Option<Decimal>, Option<Decimal>)> {
        let before = self.before.average_price();
        let after = self.after.average_price();
        (before != after).then_some((before, after))
    }
}

/// Holdings that were added, removed or changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Diff<'a> {
    pub added: Vec<&'a Holding>,
    pub removed: Vec<&'a Holding>,
    /// Holdings whose quantity or average cost differs. A different price alone is no change.
    pub changed: Vec<Change<'a>>,
}

/// Compares one broker's stored holdings with those of a new sync. `pairs` has for each row of
/// `after` the row that it continues.
pub(super) fn diff<'a>(
    before: &[&'a Holding],
    after: &'a [Holding],
    pairs: &[Option<usize>],
) -> Diff<'a> {
    let mut is_removed = vec![true; before.len()];
    let mut diff = Diff::default();
    for (row, pair) in after.iter().zip(pairs) {
        let Some(at) = *pair else {
            diff.added.push(row);
            continue;
        };
        is_removed[at] = false;
        let change = Change {
            before: before[at],
            after: row,
        };
        if change.quantity().is_some() || change.average_price().is_some() {
            diff.changed.push(change);
        }
    }
    let left = before
        .iter()
        .zip(is_removed)
        .filter(|(_, is_removed)| *is_removed);
    diff.removed = left.map(|(row, _)| *row).collect();
    diff
}

#[cfg(test)]
mod diff_tests {
    use super::*;
    use crate::portfolio::matching::paired;
    use crate::portfolio::testing::holding;

    fn compared<'a>(before: &[&'a Holding], after: &'a [Holding]) -> Diff<'a> {
        diff(before, after, &paired(before, after))
    }

    #[test]
    fn holdings_are_reported_as_added_removed_or_changed() {
        let stored = [
            holding("INFY", 10, 1_400),
            holding("TCS", 5, 3_000),
            holding("SBIN", 1, 800),
        ];
        let before: Vec<&Holding> = stored.iter().collect();
        let mut moved = holding("SBIN", 1, 800);
        moved.last_price = Some(Decimal::from(900));
        let after = [holding("INFY", 12, 1_390), moved, holding("WIPRO", 3, 500)];
        let diff = compared(&before, &after);
        assert_eq!(diff.added, [&after[2]]);
        assert_eq!(diff.removed, [&stored[1]]);
        assert_eq!(
            diff.changed,
            [Change {
                before: &stored[0],
                after: &after[0]
            }]
        );
        assert_eq!(diff.changed[0].quantity(), Some((Decimal::from(10), Decimal::from(12))));
    }

    #[test]
    fn a_share_with_a_new_ticker_is_matched_by_its_isin() {
        let stored = [holding("ZOMATO", 10, 100)];
        let mut renamed = holding("ETERNAL", 10, 100);
        renamed.isin = stored[0].isin.clone();
        let after = [renamed];
        assert_eq!(compared(&[&stored[0]], &after), Diff::default());
    }

    #[test]
    fn equal_rows_are_matched_one_to_one() {
        let stored = [holding("INFY", 10, 100), holding("INFY", 20, 100)];
        let before: Vec<&Holding> = stored.iter().collect();
        assert_eq!(compared(&before, &stored), Diff::default());
        let diff = compared(&before, &stored[..1]);
        assert_eq!(diff.removed, [&stored[1]]);
    }

    /// Rows of one share, as quantity and average, before and after; and what is reported: rows
    /// added, rows removed, and the quantities of those changed.
    type Told = (&'static [(i64, i64)], &'static [(i64, i64)], usize, usize, &'static [[i64; 2]]);

    #[test]
    fn rows_of_one_share_are_matched_by_their_numbers_in_any_order() {
        let cases: [Told; 12] = [
            (&[(10, 100), (40, 200)], &[(40, 200), (10, 100)], 0, 0, &[]),
            (&[(1, 9), (2, 9), (3, 9)], &[(3, 9), (1, 9), (2, 9)], 0, 0, &[]),
            (&[(5, 9), (5, 9), (5, 9)], &[(5, 9), (5, 9), (5, 9)], 0, 0, &[]),
            (&[(5, 7), (5, 8), (5, 9)], &[(5, 9), (5, 7), (5, 8)], 0, 0, &[]),
            // One of two changed, before and behind the other.
            (&[(10, 100), (40, 200)], &[(40, 200), (12, 110)], 0, 0, &[[10, 12]]),
            (&[(10, 100), (40, 200)], &[(45, 200), (10, 100)], 0, 0, &[[40, 45]]),
            // Both changed: by the average, which a sale keeps.
            (&[(10, 100), (40, 200)], &[(30, 200), (5, 100)], 0, 0, &[[40, 30], [10, 5]]),
            // By the quantity: two averages changed.
            (&[(10, 100), (40, 200)], &[(40, 210), (10, 105)], 0, 0, &[[40, 40], [10, 10]]),
            (&[(10, 100), (40, 200)], &[(40, 200)], 0, 1, &[]),
            (&[(40, 200)], &[(10, 100), (40, 200)], 1, 0, &[]),
            (&[(5, 9), (5, 9)], &[(5, 9), (6, 9)], 0, 0, &[[5, 6]]),
            (&[(1, 9), (2, 9), (3, 9)], &[(3, 9), (2, 9)], 0, 1, &[]),
        ];
        let rows = |of: &[(i64, i64)]| -> Vec<Holding> {
            of.iter()
                .map(|(quantity, average)| holding("TCS", *quantity, *average))
                .collect()
        };
        for (before, after, added, removed, changed) in cases {
            let stored = rows(before);
            let after = rows(after);
            let before: Vec<&Holding> = stored.iter().collect();
            let diff = compared(&before, &after);
            let told = (diff.added.len(), diff.removed.len());
            assert_eq!(told, (added, removed), "{before:?} {after:?}");
            let quantities =
                |change: &Change<'_>| [change.before, change.after].map(Holding::quantity);
            let found: Vec<[Decimal; 2]> = diff.changed.iter().map(quantities).collect();
            let changed: Vec<[Decimal; 2]> =
                changed.iter().map(|pair| pair.map(Decimal::from)).collect();
            assert_eq!(found, changed, "{before:?} {after:?}");
        }
    }

    #[test]
    fn a_new_ticker_on_both_exchanges_is_no_change_in_any_order() {
        let on = |exchange: &str, ticker: &str, quantity: i64| {
            let isin = Some("INE758T01015".to_owned());
            Holding {
                exchange: exchange.into(),
                isin,
                ..holding(ticker, quantity, 100)
            }
        };
        let stored = [on("NSE", "ZOMATO", 10), on("BSE", "ZOMATO", 40)];
        let after = [on("BSE", "ETERNAL", 40), on("NSE", "ETERNAL", 10)];
        assert_eq!(compared(&[&stored[0], &stored[1]], &after), Diff::default());
        // From one exchange to the other, which a broker does without a trade.
        let moved = [on("BSE", "ETERNAL", 10), on("NSE", "ETERNAL", 40)];
        let diff = compared(&[&stored[0], &stored[1]], &moved);
        assert_eq!((diff.added.len(), diff.removed.len(), diff.changed.len()), (0, 0, 2));
    }
}
