//! An exchange's base price as a part of the close before it, and how long a quantity is
//! waited for.

use rust_decimal::Decimal;

/// A base price as a part of the close before it: three quarters after a bonus of one for three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseRatio(pub Decimal);

impl BaseRatio {
    /// The quantity after the action as a multiple of the one before it, if it follows the price.
    pub(crate) fn quantity_ratio(self) -> Option<Decimal> {
        Decimal::ONE.checked_div(self.0)
    }

    /// For how many days the quantity is waited for. A base price of a dividend, a rights issue or
    /// a demerger is followed by no quantity.
    pub(crate) fn awaited_days(self) -> i32 {
        let usual = self.quantity_ratio().is_some_and(|size| {
            let inverse = Decimal::ONE.checked_div(size).unwrap_or_default();
            is_usual_ratio(size.max(inverse))
        });
        if usual { SHARES_DAYS } else { BASE_DAYS }
    }
}

/// Days for which a holding is marked whose quantity follows no base price.
pub(crate) const BASE_DAYS: i32 = 7;

/// Days for which shares of a bonus or a split are waited for. Brokers credit them within days,
/// some weeks after a bonus.
pub(super) const SHARES_DAYS: i32 = 30;

/// Whether `size`, new shares for an old one, is a ratio that companies use.
pub(crate) fn is_usual_ratio(size: Decimal) -> bool {
    USUAL_RATIOS.into_iter().any(|(new, old)| {
        let usual = Decimal::from(new) / Decimal::from(old);
        (size - usual).abs() <= usual.saturating_mul(USUAL_TOLERANCE)
    })
}

/// Largest distance of a ratio from a usual one. A quantity is rarely exact, because fractions of a
/// share are paid out in money.
const USUAL_TOLERANCE: Decimal = Decimal::from_parts(5, 0, 0, false, 3);

/// New shares for old ones of the bonuses (1:10 to 9:1) and splits (into 2 to 100) that companies
/// make.
pub(crate) const USUAL_RATIOS: [(i64, i64); 22] = [
    (11, 10),
    (9, 8),
    (8, 7),
    (7, 6),
    (6, 5),
    (5, 4),
    (4, 3),
    (7, 5),
    (3, 2),
    (8, 5),
    (5, 3),
    (7, 4),
    (2, 1),
    (5, 2),
    (3, 1),
    (4, 1),
    (5, 1),
    (6, 1),
    (8, 1),
    (10, 1),
    (20, 1),
    (100, 1),
];
