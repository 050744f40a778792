//! The reply to a sync, from its bounded outcome.

use crate::base::{Broker, Holding};
use crate::portfolio::{Change, Difference, Reconciliation as Compared, SyncOutcome};
use crate::views::sync::{
    ChangedHolding, CountedHolding, PositionCounts, Reconciliation, RowName, SuspectedAction,
    SyncChanges, SyncReport, SyncWarning, SyncedTradesView,
};
use crate::views::values::{Exact, Instant, Money, Quantity, Simulated};

/// The reply to `broker`'s sync, with `counts` under the broker's name for them.
pub(super) fn report<'a, Counts>(
    broker: Broker,
    outcome: &'a SyncOutcome,
    counts: Counts,
    synced: SyncedNow<'a>,
) -> SyncReport<'a, Counts> {
    let SyncedNow {
        at,
        warnings,
        trades,
        simulated,
        broker_user,
    } = synced;
    let suspected = outcome.suspected.rows.iter();
    let suspected = suspected.map(|(row, why)| SuspectedAction {
        row: named(row),
        reason: why.as_str(),
    });
    SyncReport {
        holdings_count: outcome.holdings,
        counts,
        broker,
        broker_user,
        synced_at: at,
        changes: changes(outcome),
        unresolved_count: outcome.unresolved.count,
        unresolved: outcome.unresolved.rows.iter().map(String::as_str).collect(),
        suspected_corporate_actions: suspected.collect(),
        reconciliation: reconciliation(outcome.reconciliation),
        warnings: Some(warnings).filter(|warnings| !warnings.is_empty()),
        trades,
        simulated: Simulated(simulated),
    }
}

/// Facts about a sync that its outcome does not have.
pub(super) struct SyncedNow<'a> {
    pub(super) at: Instant,
    pub(super) warnings: Vec<SyncWarning>,
    pub(super) trades: SyncedTradesView,
    pub(super) simulated: bool,
    pub(super) broker_user: Option<&'a str>,
}

fn changes(outcome: &SyncOutcome) -> SyncChanges<'_> {
    let SyncOutcome {
        added,
        removed,
        changed,
        positions,
        ..
    } = outcome;
    SyncChanges {
        added_count: added.count,
        added: added.rows.iter().map(counted).collect(),
        removed_count: removed.count,
        removed: removed.rows.iter().map(counted).collect(),
        changed_count: changed.count,
        changed: changed.rows.iter().map(changed_holding).collect(),
        positions: PositionCounts {
            day: positions.day,
            net: positions.net,
        },
    }
}

fn counted(row: &Holding) -> CountedHolding<'_> {
    CountedHolding {
        row: named(row),
        quantity: Quantity(row.quantity()),
    }
}

fn changed_holding((before, after): &(Holding, Holding)) -> ChangedHolding<'_> {
    let change = Change { before, after };
    ChangedHolding {
        row: named(after),
        quantity: change
            .quantity()
            .map(|(from, to)| [Quantity(from), Quantity(to)]),
        average_price: change
            .average_price()
            .map(|(from, to)| [from.map(Exact), to.map(Exact)]),
    }
}

fn named(row: &Holding) -> RowName<'_> {
    let Holding {
        exchange,
        tradingsymbol,
        isin,
        ..
    } = row;
    RowName {
        exchange,
        tradingsymbol,
        isin: isin.as_deref(),
    }
}

fn reconciliation(compared: Compared) -> Reconciliation {
    match compared {
        Compared::NoBrokerFigure => Reconciliation {
            broker_pnl: None,
            our_pnl: None,
            difference: None,
            reason: Some("no_broker_figure"),
        },
        Compared::Compared {
            broker,
            ours,
            reason,
        } => Reconciliation {
            broker_pnl: Some(Money(broker)),
            our_pnl: Some(Money(ours)),
            difference: Some(Money(ours.saturating_sub(broker))),
            reason: reason.map(Difference::as_str),
        },
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
