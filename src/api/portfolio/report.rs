//! The report of a sync: what changed, what stayed unresolved, what looks like a split, and how our
//! profit compares with the broker's own. Pure; made on the edge once the sync is stored.

use rust_decimal::Decimal;

use crate::base::{Broker, Holding, Position, PositionKind};
use crate::portfolio::{self, Change, Derived, Suspicion};
use crate::store::Replaced;
use crate::views::sync::{
    ChangedHolding, CountedHolding, PositionCounts, Reconciliation, RowName, SuspectedAction,
    SyncChanges, SyncReport, SyncWarning,
};
use crate::views::values::{Exact, Instant, Money, Quantity, Simulated};

/// Rows named of each kind; all are counted.
const LISTED_MAX: usize = 100;
/// Rounding of a broker's own figure, per row.
const ROUNDING: Decimal = Decimal::from_parts(1, 0, 0, false, 2);

/// The reply to `broker`'s sync, with `counts` under the name that it has there.
pub fn report<Counts>(
    broker: Broker,
    replaced: &Replaced,
    counts: Counts,
    synced: SyncedNow,
) -> SyncReport<'_, Counts> {
    let Replaced { before, synced: rows, derived } = replaced;
    let stood: Vec<&Holding> = before.holdings.iter().filter(|row| row.broker == broker).collect();
    let positions: Vec<&Position> =
        before.positions.iter().filter(|row| row.broker == broker).collect();
    let codes = unresolved(&derived.holdings, &rows.positions);
    let suspicions = portfolio::suspicions(&derived.holdings);
    let SyncedNow { at, warnings, simulated } = synced;
    SyncReport {
        holdings_count: derived.counts.holdings,
        counts,
        broker,
        synced_at: at,
        changes: changes(&stood, &positions, derived),
        unresolved_count: codes.len(),
        unresolved: codes.into_iter().take(LISTED_MAX).collect(),
        suspected_corporate_actions: suspicions.iter().take(LISTED_MAX).map(suspected).collect(),
        reconciliation: reconciliation(&derived.holdings),
        warnings: Some(warnings).filter(|warnings| !warnings.is_empty()),
        simulated: Simulated(simulated),
    }
}

/// What the rows do not say of a sync.
pub struct SyncedNow {
    pub at: Instant,
    pub warnings: Vec<SyncWarning>,
    pub simulated: bool,
}

fn changes<'a>(
    stood: &[&'a Holding],
    positions: &[&'a Position],
    derived: &'a Derived,
) -> SyncChanges<'a> {
    let diff = portfolio::diff(stood, &derived.holdings);
    let counted = |rows: &[&'a Holding]| -> Vec<CountedHolding<'a>> {
        let listed = rows.iter().take(LISTED_MAX);
        listed
            .map(|row| CountedHolding { row: named(row), quantity: Quantity(row.quantity()) })
            .collect()
    };
    let of = |kind, now| [portfolio::open_positions(positions.iter().copied(), kind), now];
    SyncChanges {
        added_count: diff.added.len(),
        added: counted(&diff.added),
        removed_count: diff.removed.len(),
        removed: counted(&diff.removed),
        changed_count: diff.changed.len(),
        changed: diff.changed.iter().take(LISTED_MAX).map(changed).collect(),
        positions: PositionCounts {
            day: of(PositionKind::Day, derived.counts.day_positions),
            net: of(PositionKind::Net, derived.counts.net_positions),
        },
    }
}

fn changed<'a>(change: &Change<'a>) -> ChangedHolding<'a> {
    let price = |price: Option<Decimal>| price.map(Exact);
    ChangedHolding {
        row: named(change.after),
        quantity: change.quantity().map(|(from, to)| [Quantity(from), Quantity(to)]),
        average_price: change.average_price().map(|(from, to)| [price(from), price(to)]),
    }
}

/// What tells one row from another.
fn named(row: &Holding) -> RowName<'_> {
    let Holding { exchange, tradingsymbol, isin, .. } = row;
    RowName { exchange, tradingsymbol, isin: isin.as_deref() }
}

/// The codes that no list knows, each once.
fn unresolved<'a>(holdings: &'a [Holding], positions: &'a [Position]) -> Vec<&'a str> {
    let holdings = holdings.iter().filter(|row| row.unresolved);
    let positions = positions.iter().filter(|row| row.unresolved);
    let mut codes: Vec<&str> = holdings
        .map(|row| row.tradingsymbol.as_str())
        .chain(positions.map(|row| row.tradingsymbol.as_str()))
        .collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

fn suspected<'a>(suspicion: &Suspicion<'a>) -> SuspectedAction<'a> {
    SuspectedAction { row: named(suspicion.holding), reason: suspicion.why.as_str() }
}

/// Our profit beside the broker's, over the rows for which it names one. A broker counts settled
/// shares alone, we count those of yesterday too.
fn reconciliation(holdings: &[Holding]) -> Reconciliation {
    let sums = sums(holdings);
    let Some(Sums { broker, ours, undelivered, rows }) = sums.filter(|sums| sums.rows > 0) else {
        let reason = Some("no_broker_figure");
        return Reconciliation { broker_pnl: None, our_pnl: None, difference: None, reason };
    };
    let difference = ours.saturating_sub(broker);
    let tolerance = ROUNDING.saturating_mul(Decimal::from(rows));
    let small = |value: Decimal| value.abs() <= tolerance;
    let reason = match () {
        () if difference.is_zero() => None,
        () if small(difference) => Some("rounding"),
        () if small(difference.saturating_sub(undelivered)) => Some("t1_quantity"),
        () => Some("unexplained"),
    };
    Reconciliation {
        broker_pnl: Some(Money(broker)),
        our_pnl: Some(Money(ours)),
        difference: Some(Money(difference)),
        reason,
    }
}

struct Sums {
    broker: Decimal,
    ours: Decimal,
    /// The part of ours that T1 shares make.
    undelivered: Decimal,
    rows: u32,
}

fn sums(holdings: &[Holding]) -> Option<Sums> {
    let mut sums =
        Sums { broker: Decimal::ZERO, ours: Decimal::ZERO, undelivered: Decimal::ZERO, rows: 0 };
    for row in holdings {
        let (Some(theirs), Some(pnl)) = (row.broker_pnl, portfolio::valuation(row).ok()?.pnl)
        else {
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

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
