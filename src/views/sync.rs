//! `POST /api/portfolio/sync` and `/api/portfolio/brokerb-sync`: what a sync changed.

use super::values::{Exact, Instant, Money, Quantity, Simulated, documents};
use crate::base::{Broker, words};

words! {
    /// Why the trades of a sync, or some of them, are not in the ledger.
    pub(crate) enum TradesReason {
        /// The broker did not answer the call for trades, or refused it.
        BrokerFailed = "broker_failed",
        /// A limit of calls holds it back: the next sync asks again.
        HeldBack = "held_back",
        /// It took too long.
        Late = "late",
        /// The account's files are of another client of the broker.
        AccountDiffers = "account_differs",
        /// The ledger has as many rows, imports or accounts as it may have.
        LedgerFull = "ledger_full",
        /// The ledger is busy, or the database takes no writes.
        LedgerUnavailable = "ledger_unavailable",
    }
}

documents! {
    /// The members that the answers to both syncs have.
    #[cfg_attr(test, schemars(rename = "{Counts}"))]
    pub(crate) struct SyncReport<'a, Counts> {
        pub holdings_count: usize,
        // The counts have different names for each broker.
        #[serde(flatten)]
        pub counts: Counts,
        pub broker: Broker,
        /// The broker's id of the person whose portfolio this is; null if the broker does not say.
        pub broker_user: Option<&'a str>,
        pub synced_at: Instant,
        pub changes: SyncChanges<'a>,
        pub unresolved_count: usize,
        /// Broker codes that could not be resolved to a ticker, each once.
        pub unresolved: Vec<&'a str>,
        pub suspected_corporate_actions: Vec<SuspectedAction<'a>>,
        pub(crate) reconciliation: Reconciliation,
        /// Present only if there are warnings.
        pub warnings?: Option<Vec<SyncWarning>>,
        /// What came of asking for trades, which never fails a sync.
        pub trades: SyncedTradesView,
        pub(crate) simulated?: Simulated,
    }

    /// The trades that a sync brought. With both members, what came before the reason is added.
    #[derive(Copy)]
    pub(crate) struct SyncedTradesView {
        /// Trades that are new to the ledger.
        pub added?: Option<usize>,
        /// Why none, or not all, were added.
        pub reason?: Option<TradesReason>,
    }

    /// Counts of a sync with broker A.
    #[derive(Copy)]
    #[cfg_attr(test, schemars(rename = "SyncedBrokerA"))]
    pub(crate) struct NetPositions {
        /// Open positions in the net list.
        pub net_positions_count: usize,
    }

    /// Counts of a sync with broker B.
    #[derive(Copy)]
    #[cfg_attr(test, schemars(rename = "SyncedBrokerB"))]
    pub(crate) struct OpenPositions {
        /// Open positions.
        pub positions_count: usize,
    }

    pub(crate) struct SyncWarning {
        pub code: &'static str,
        pub detail: &'static str,
    }

    /// The computed profit and the broker's own figure, over the holdings for which the broker
    /// gives one.
    pub(crate) struct Reconciliation {
        pub broker_pnl: Option<Money>,
        pub our_pnl: Option<Money>,
        pub difference: Option<Money>,
        /// Why they differ; null if they do not. `t1_quantity`: the broker leaves out shares that
        /// were bought and not yet delivered.
        pub reason: Option<&'static str>,
    }

    /// What this sync changed. Lists have at most 100 rows; counts include all.
    pub(crate) struct SyncChanges<'a> {
        pub added_count: usize,
        pub added: Vec<CountedHolding<'a>>,
        pub removed_count: usize,
        pub removed: Vec<CountedHolding<'a>>,
        pub changed_count: usize,
        pub changed: Vec<ChangedHolding<'a>>,
        pub positions: PositionCounts,
    }

    pub(crate) struct PositionCounts {
        /// Number of open positions before and after.
        pub day: [usize; 2],
        /// Number of open positions before and after.
        pub net: [usize; 2],
    }

    /// Identifies a holding.
    pub(crate) struct RowName<'a> {
        pub exchange: &'a str,
        pub tradingsymbol: &'a str,
        pub isin: Option<&'a str>,
    }

    pub(crate) struct CountedHolding<'a> {
        #[serde(flatten)]
        pub row: RowName<'a>,
        pub(crate) quantity: Quantity,
    }

    /// Each pair is before and after; a pair is present if the two differ.
    pub(crate) struct ChangedHolding<'a> {
        #[serde(flatten)]
        pub row: RowName<'a>,
        pub(crate) quantity?: Option<[Quantity; 2]>,
        /// Average cost before and after; null if unknown.
        pub average_price?: Option<[Option<Exact>; 2]>,
    }

    /// Looks like a split, a bonus or a merger.
    pub(crate) struct SuspectedAction<'a> {
        #[serde(flatten)]
        pub row: RowName<'a>,
        /// `inverse_ratios`: quantity and price moved by inverse ratios. `price_leap`: the price
        /// moved that far and the quantity has not followed, so the value is in doubt.
        /// `base_price`: the exchange adjusted the base price, and the quantity has not followed,
        /// so the value is in doubt. `average_awaited`: the quantity has followed it, and the
        /// average cost has not, so the profit is in doubt. `shares_arrived`: shares
        /// came without money, which completes an earlier leap.
        /// `broker_discrepancy`: the broker calls its own average unreliable.
        pub reason: &'static str,
    }
}
