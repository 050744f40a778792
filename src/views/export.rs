//! `GET /api/portfolio/export`: everything stored of a user, with every digit.

use crate::base::{Broker, PositionKind};
use crate::portfolio::PointSource;
use crate::views::account::{ApiKey, Watchlist};
use crate::views::export_ledger::{
    ExportedChoice, ExportedCorrection, ExportedImport, ExportedIncome, ExportedReportLine,
    ExportedRow,
};
use crate::views::journal::JournalEntry;
use crate::views::trades::accounts::AccountPerson;
use crate::views::values::{self, Day, Exact, Instant, Simulated, documents};

/// The end of the document, after the last entry.
const CLOSING: &[u8] = b"]}";

impl Export<'_> {
    /// Appends the document up to the end of `journal`, its last member, so that more entries can
    /// follow. A long journal is never in memory as a whole. [`Export::close`] ends the document.
    pub(crate) fn open(&self, out: &mut Vec<u8>) {
        values::write(out, self);
        out.truncate(out.len() - CLOSING.len());
    }

    /// Appends one more entry.
    pub(crate) fn add(out: &mut Vec<u8>, entry: &JournalEntry<'_>) {
        if out.last() != Some(&b'[') {
            out.push(b',');
        }
        values::write(out, entry);
    }

    /// Ends the document.
    pub(crate) fn close(out: &mut Vec<u8>) {
        out.extend_from_slice(CLOSING);
    }
}

documents! {
    /// Everything stored of the user.
    pub(crate) struct Export<'a> {
        pub exported_at: Instant,
        pub user: ExportedUser<'a>,
        pub syncs: Vec<ExportedSync<'a>>,
        pub holdings: Vec<ExportedHolding<'a>>,
        /// No holdings any more, but the trades may not tell of their sale yet.
        pub sold_holdings: Vec<ExportedSoldHolding<'a>>,
        pub positions: Vec<ExportedPosition<'a>>,
        pub pnl_snapshots: Vec<ExportedPoint>,
        pub watchlists: &'a [Watchlist],
        /// Every one that is stored, also expired ones and those of an earlier database. Of a
        /// secret there is a hash alone, which is left out.
        pub api_keys: Vec<ApiKey<'a>>,
        pub known_networks: Vec<ExportedNetwork<'a>>,
        pub ledger_accounts: Vec<AccountPerson<'a>>,
        pub ledger_imports: Vec<ExportedImport<'a>>,
        /// At most 50,000.
        pub ledger_rows: Vec<ExportedRow<'a>>,
        /// Rows that are stored beyond those: `/api/trades.csv` has all trades.
        pub ledger_rows_left_out: usize,
        pub ledger_report_lines: Vec<ExportedReportLine<'a>>,
        pub ledger_income: Vec<ExportedIncome<'a>>,
        pub ledger_corrections: Vec<ExportedCorrection<'a>>,
        pub ledger_choices: Vec<ExportedChoice<'a>>,
        pub journal: Vec<JournalEntry<'a>>,
    }

    pub(crate) struct ExportedUser<'a> {
        pub id: i64,
        pub email: &'a str,
        pub name: Option<&'a str>,
        pub created_at: Instant,
    }

    /// A network from which the account was used lately.
    pub(crate) struct ExportedNetwork<'a> {
        /// Keyed hash of the network, as it is stored. It cannot be turned back into an address.
        pub network: &'a str,
        pub last_used_at: Instant,
    }

    pub(crate) struct ExportedSync<'a> {
        pub broker: Broker,
        /// The broker's id of the person; null where it was not kept or not said.
        pub broker_user: Option<&'a str>,
        pub synced_at: Instant,
        pub(crate) simulated?: Simulated,
    }

    pub(crate) struct ExportedHolding<'a> {
        pub broker: Broker,
        pub exchange: &'a str,
        pub tradingsymbol: &'a str,
        pub isin: Option<&'a str>,
        pub settled_quantity: Exact,
        pub t1_quantity: Exact,
        pub pledged_quantity: Exact,
        pub mtf_quantity: Exact,
        pub used_quantity: Exact,
        pub disputed_quantity: Exact,
        pub average_price: Option<Exact>,
        /// Cost of `costed_quantity` shares together.
        pub cost: Option<Exact>,
        /// Owned shares whose cost is known.
        pub costed_quantity: Option<Exact>,
        pub last_price: Option<Exact>,
        pub close_price: Option<Exact>,
        /// The price's change since the previous close in percent, where the broker says that
        /// alone.
        pub change_pct: Option<Exact>,
        pub broker_pnl: Option<Exact>,
        pub as_of: Instant,
        pub unresolved: bool,
        pub discrepancy: bool,
        pub corporate_action: bool,
    }

    /// A holding of which nothing is left, because all of it was sold on the day of the sync.
    pub(crate) struct ExportedSoldHolding<'a> {
        pub broker: Broker,
        pub exchange: &'a str,
        pub tradingsymbol: &'a str,
        pub isin: Option<&'a str>,
        pub used_quantity: Exact,
    }

    pub(crate) struct ExportedPosition<'a> {
        pub broker: Broker,
        pub exchange: &'a str,
        pub tradingsymbol: &'a str,
        pub product: &'a str,
        /// Which of the broker's lists the position is from.
        pub r#type: PositionKind,
        pub quantity: Exact,
        pub multiplier: Exact,
        pub average_price: Option<Exact>,
        pub last_price: Option<Exact>,
        pub close_price: Option<Exact>,
        pub pnl: Option<Exact>,
        pub realised: Option<Exact>,
        pub unrealised: Option<Exact>,
        pub unresolved: bool,
    }

    pub(crate) struct ExportedPoint {
        pub date: Day,
        pub total_invested: Exact,
        pub total_current_value: Exact,
        pub total_pnl: Exact,
        /// The part of `total_current_value` whose cost is not known. Null in points that an older
        /// version wrote, whose value leaves it out.
        pub value_without_cost: Option<Exact>,
        /// `close` if every price is the date's closing price, as after the revaluation; else
        /// `sync`.
        pub source: PointSource,
        /// As in the trend.
        pub brokers: Option<Vec<Broker>>,
        pub holdings: Option<u32>,
        /// Holdings without cost or price, which cost and profit leave out.
        pub left_out: u32,
        /// Holdings valued at a price that is older than the date's trading and than the last close
        /// before the date's end.
        pub carried: u32,
        /// As in the trend.
        pub suspect: bool,
        /// As in the trend.
        pub discrepancies: Option<u32>,
    }
}
