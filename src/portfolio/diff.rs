//! What a sync changed among one broker's holdings. Pure.

use rust_decimal::Decimal;

use crate::base::Holding;

/// A holding that is in both syncs with different numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Change<'a> {
    pub before: &'a Holding,
    pub after: &'a Holding,
}

impl Change<'_> {
    /// Quantity owned before and now, if it differs.
    pub fn quantity(&self) -> Option<(Decimal, Decimal)> {
        let (before, after) = (self.before.quantity(), self.after.quantity());
        (before != after).then_some((before, after))
    }

    /// Average cost before and now, if it differs.
    pub fn average_price(&self) -> Option<(Option<Decimal>, Option<Decimal>)> {
        let (before, after) = (self.before.average_price(), self.after.average_price());
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
        let change = Change { before: before[at], after: row };
        if change.quantity().is_some() || change.average_price().is_some() {
            diff.changed.push(change);
        }
    }
    let left = before.iter().zip(is_removed).filter(|(_, is_removed)| *is_removed);
    diff.removed = left.map(|(row, _)| *row).collect();
    diff
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::portfolio::matching::paired;
    use crate::portfolio::testing::holding;

    fn compared<'a>(before: &[&'a Holding], after: &'a [Holding]) -> Diff<'a> {
        diff(before, after, &paired(before, after))
    }

    #[test]
    fn holdings_are_reported_as_added_removed_or_changed() {
        let stored =
            [holding("INFY", 10, 1_400), holding("TCS", 5, 3_000), holding("SBIN", 1, 800)];
        let before: Vec<&Holding> = stored.iter().collect();
        let mut moved = holding("SBIN", 1, 800);
        moved.last_price = Some(Decimal::from(900));
        let after = [holding("INFY", 12, 1_390), moved, holding("WIPRO", 3, 500)];
        let diff = compared(&before, &after);
        assert_eq!(diff.added, [&after[2]]);
        assert_eq!(diff.removed, [&stored[1]]);
        assert_eq!(diff.changed, [Change { before: &stored[0], after: &after[0] }]);
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
}
