//! The trades of a sync: asked for with its session, once its holdings are stored, and handed to
//! the ledger.
//!
//! The handler parks for the broker's lane and for the ledger's, with one deadline for both. What
//! fails here is told in the report, and the sync stands.

use crate::api::portfolio::opened_session::OpenedSession;
use crate::api::state::{BrokerAccess, State};
use crate::api::trades::{SyncedBy, add_synced, known_quarters};
use crate::brokers::{BrokerError, BrokerErrorKind, SyncedTrades};
use crate::rt::LaneError;
use crate::store::Turn;
use crate::views::sync::{SyncedTradesView, TradesReason};

/// Longest wait for the trades and for the ledger: eight calls at broker B, which each take about a
/// second when it is slow.
const TRADES_DEADLINE_MS: u64 = 10_000;

/// Asks for the trades of a sync and adds them to the ledger. Consumes the session. Calls `extend`
/// for the user's turn while it waits.
pub(super) fn synced_trades(
    state: &State,
    by: SyncedBy,
    opened: OpenedSession,
    extend: impl Fn(),
) -> SyncedTradesView {
    let until_ms = state
        .clock
        .monotonic_ms()
        .saturating_add(TRADES_DEADLINE_MS);
    let user = by.user.0;
    let trades = match asked(state, &by, opened, &extend) {
        Ok(trades) => trades,
        Err(reason) => return told(None, Some(reason)),
    };
    let failed = trades.error().map(|error| {
        tracing::info!(user, %error, "trades of a sync not read to the end");
        reason_of(error)
    });
    if failed.is_some() && trades.count() == 0 && trades.quarters().is_empty() {
        return told(None, failed);
    }
    let left_ms = until_ms.saturating_sub(state.clock.monotonic_ms());
    match add_synced(state, by, trades, left_ms, Turn::EXTENDED_EACH_MS, &extend) {
        Ok(added) => told(Some(added), failed),
        Err(reason) => told(None, Some(reason)),
    }
}

fn told(added: Option<usize>, reason: Option<TradesReason>) -> SyncedTradesView {
    SyncedTradesView { added, reason }
}

/// The broker's answers. The job has the session, so that it ends also after the deadline.
fn asked(
    state: &State,
    by: &SyncedBy,
    opened: OpenedSession,
    extend: impl Fn(),
) -> Result<SyncedTrades, TradesReason> {
    let user = by.user.0;
    let known = known_quarters(state, by.user, by.broker).map_err(|error| {
        tracing::warn!(user, %error, "trades of a sync not asked for");
        TradesReason::LedgerUnavailable
    })?;
    let BrokerAccess { lane, .. } = &state.brokers[by.broker];
    let submitted = lane.submit(TRADES_DEADLINE_MS, move || {
        let trades = opened
            .session
            .as_ref()
            .map(|session| session.trades(&known));
        (trades, opened)
    });
    let ticket = submitted.map_err(|_| TradesReason::HeldBack)?;
    match ticket.wait_beside(Turn::EXTENDED_EACH_MS, extend) {
        Ok((Some(trades), _)) => Ok(trades),
        Ok((None, _)) | Err(LaneError::Closed | LaneError::Panicked) => {
            Err(TradesReason::BrokerFailed)
        }
        Err(LaneError::Late) => Err(TradesReason::Late),
    }
}

fn reason_of(error: &BrokerError) -> TradesReason {
    match error.kind {
        BrokerErrorKind::NotReady(_) | BrokerErrorKind::RateLimited => TradesReason::HeldBack,
        _ => TradesReason::BrokerFailed,
    }
}
