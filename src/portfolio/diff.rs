//! What a sync changed among one broker's holdings. Pure.

use rust_decimal::Decimal;

use crate::base::Holding;

/// A row that stayed, with other numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Change<'a> {
    pub before: &'a Holding,
    pub after: &'a Holding,
}

impl Change<'_> {
    /// Owned before and now, where that differs.
    pub fn quantity(&self) -> Option<(Decimal, Decimal)> {
        let (before, after) = (self.before.quantity(), self.after.quantity());
        (before != after).then_some((before, after))
    }

    /// Average cost before and now, where that differs.
    pub fn average_price(&self) -> Option<(Option<Decimal>, Option<Decimal>)> {
        let (before, after) = (self.before.average_price(), self.after.average_price());
        (before != after).then_some((before, after))
    }
}

/// What came, went and changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Diff<'a> {
    pub added: Vec<&'a Holding>,
    pub removed: Vec<&'a Holding>,
    /// Quantity or average cost differ; a moved price is not a change.
    pub changed: Vec<Change<'a>>,
}

/// Compares one broker's rows `before` a sync with those `after` it. `pairs` has for each row of
/// `after` the row that it continues.
pub(super) fn diff<'a>(
    before: &[&'a Holding],
    after: &'a [Holding],
    pairs: &[Option<usize>],
) -> Diff<'a> {
    let mut gone = vec![true; before.len()];
    let mut diff = Diff::default();
    for (row, pair) in after.iter().zip(pairs) {
        let Some(at) = *pair else {
            diff.added.push(row);
            continue;
        };
        gone[at] = false;
        let change = Change { before: before[at], after: row };
        if change.quantity().is_some() || change.average_price().is_some() {
            diff.changed.push(change);
        }
    }
    let left = before.iter().zip(gone).filter(|(_, gone)| *gone);
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
    fn rows_are_added_removed_and_changed() {
        let stood = [holding("INFY", 10, 1_400), holding("TCS", 5, 3_000), holding("SBIN", 1, 800)];
        let before: Vec<&Holding> = stood.iter().collect();
        let mut moved = holding("SBIN", 1, 800);
        moved.last_price = Some(Decimal::from(900));
        let after = [holding("INFY", 12, 1_390), moved, holding("WIPRO", 3, 500)];
        let diff = compared(&before, &after);
        assert_eq!(diff.added, [&after[2]]);
        assert_eq!(diff.removed, [&stood[1]]);
        assert_eq!(diff.changed, [Change { before: &stood[0], after: &after[0] }]);
        assert_eq!(diff.changed[0].quantity(), Some((Decimal::from(10), Decimal::from(12))));
    }

    #[test]
    fn a_renamed_share_is_the_same_by_its_isin() {
        let stood = [holding("ZOMATO", 10, 100)];
        let mut renamed = holding("ETERNAL", 10, 100);
        renamed.isin = stood[0].isin.clone();
        let after = [renamed];
        assert_eq!(compared(&[&stood[0]], &after), Diff::default());
    }

    #[test]
    fn twin_rows_are_matched_one_to_one() {
        let stood = [holding("INFY", 10, 100), holding("INFY", 20, 100)];
        let before: Vec<&Holding> = stood.iter().collect();
        assert_eq!(compared(&before, &stood), Diff::default());
        let diff = compared(&before, &stood[..1]);
        assert_eq!(diff.removed, [&stood[1]]);
    }
}
