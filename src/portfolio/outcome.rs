//! The result of a sync as its user sees it: the changes, the codes that stayed unresolved, the
//! rows that look like a split, and our profit compared with the broker's own.
//!
//! Pure. Counts cover all rows; of each kind the first [`LISTED_MAX`] rows are named.

use rust_decimal::Decimal;

use super::corporate_actions::{Suspicion, Why, suspicions};
use super::valuation::valuation;
use crate::base::{Holding, Position, PositionKind, words};
use crate::portfolio::sync::{Change, Diff};
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
    pub(crate) added: First<HeldRow>,
    pub(crate) removed: First<HeldRow>,
    pub(crate) changed: First<ChangedRow>,
    /// Codes of the broker that no list knows, each once.
    pub unresolved: First<String>,
    pub(crate) suspected: First<SuspectedRow>,
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
        Self { count: 0, rows: Vec::new() }
    }
}

impl<T> First<T> {
    fn of<S>(all: &[S], row: impl Fn(&S) -> T) -> Self {
        Self { count: all.len(), rows: all.iter().take(LISTED_MAX).map(row).collect() }
    }
}

/// Open positions of each list, before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PositionChanges {
    pub day: [usize; 2],
    pub net: [usize; 2],
}

/// The fields that distinguish one row from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowName {
    pub exchange: String,
    pub tradingsymbol: String,
    pub isin: Option<String>,
}

/// A row that came or went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeldRow {
    pub name: RowName,
    pub quantity: Decimal,
}

/// A row that stayed, with the numbers before and after that differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangedRow {
    pub name: RowName,
    pub quantity: Option<(Decimal, Decimal)>,
    pub average_price: Option<(Option<Decimal>, Option<Decimal>)>,
}

/// A row that looks like a split, a bonus or a merger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SuspectedRow {
    pub name: RowName,
    pub why: Why,
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
            added: First::of(&diff.added, |row| held(row)),
            removed: First::of(&diff.removed, |row| held(row)),
            changed: First::of(&diff.changed, changed),
            unresolved: unresolved(holdings, positions),
            suspected: First::of(&suspicions(holdings), suspected),
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

fn named(row: &Holding) -> RowName {
    RowName {
        exchange: row.exchange.clone(),
        tradingsymbol: row.tradingsymbol.clone(),
        isin: row.isin.clone(),
    }
}

fn held(row: &Holding) -> HeldRow {
    HeldRow { name: named(row), quantity: row.quantity() }
}

fn changed(change: &Change<'_>) -> ChangedRow {
    ChangedRow {
        name: named(change.after),
        quantity: change.quantity(),
        average_price: change.average_price(),
    }
}

fn suspected(suspicion: &Suspicion<'_>) -> SuspectedRow {
    SuspectedRow { name: named(suspicion.holding), why: suspicion.why }
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
    let Some(Sums { broker, ours, undelivered, rows }) = sums.filter(|sums| sums.rows > 0) else {
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
    Reconciliation::Compared { broker, ours, reason }
}

struct Sums {
    broker: Decimal,
    ours: Decimal,
    /// The part of our profit that T1 shares make.
    undelivered: Decimal,
    rows: u32,
}

fn sums(holdings: &[Holding]) -> Option<Sums> {
    let mut sums =
        Sums { broker: Decimal::ZERO, ours: Decimal::ZERO, undelivered: Decimal::ZERO, rows: 0 };
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
