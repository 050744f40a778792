//! Documents of imports: a preview, and the list of what was imported.

use crate::ledger::file::RefusedReason;
use crate::ledger::trades::Figures;
use crate::views::trades::corrections::CorrectionView;
use crate::views::values::{Day, Exact, Instant, Quantity, documents};

documents! {
    /// The first and the last date of an import's rows.
    pub(crate) struct ImportPeriod {
        pub from: Day,
        pub to: Day,
    }

    /// Quantity and price of a row.
    pub(crate) struct FiguresView {
        pub quantity: Quantity,
        /// Of one unit, in rupees.
        pub price: Exact,
    }

    /// A line with the id of a stored trade and other figures.
    pub(crate) struct ConflictLine {
        pub line: u32,
        /// The id of the trade.
        pub trade: String,
        pub stated: FiguresView,
        pub stored: FiguresView,
    }

    /// A line that is not taken.
    pub(crate) struct RefusedLine {
        pub line: u32,
        pub reason: RefusedReason,
    }

    /// A line that is no trade, and the correction that it offers.
    pub(crate) struct ProposalLine {
        pub line: u32,
        pub correction: CorrectionView,
    }

    /// What a file would add. Nothing of it counts before it is confirmed.
    pub(crate) struct PreviewView<'a> {
        pub id: i64,
        /// `trades` or `tax_report`.
        pub kind: &'a str,
        /// Whose file it is, and which: `zerodha_tradebook`.
        pub format: &'a str,
        pub account: &'a str,
        /// Whose the account is.
        pub person: &'a str,
        pub period: Option<ImportPeriod>,
        /// Lines of the file: `new`, `known`, and those of the three lists.
        pub rows: usize,
        /// Lines whose trade is not in the ledger yet.
        pub new: usize,
        /// Lines whose trade the ledger, or an earlier line, has.
        pub known: usize,
        /// The first 200 of them.
        pub conflicts: &'a [ConflictLine],
        pub conflict_count: usize,
        /// The first 200 of them.
        pub refused: &'a [RefusedLine],
        pub refused_count: usize,
        /// The first 200 of them.
        pub proposals: &'a [ProposalLine],
        pub proposal_count: usize,
        /// What else a person has to know of how the file was read.
        pub notes: &'a [String],
        /// From then on it cannot be confirmed.
        pub expires_at: Instant,
    }

    /// What a confirmed import has added.
    pub(crate) struct ImportConfirmed {
        pub id: i64,
        pub new: usize,
        pub known: usize,
        pub conflicts: usize,
        pub refused: usize,
    }

    /// One import: a file, or what the syncs of a month brought.
    pub(crate) struct ImportView<'a> {
        pub id: i64,
        /// `preview` or `live`.
        pub state: &'a str,
        pub kind: &'a str,
        pub format: &'a str,
        pub account: &'a str,
        pub period: Option<ImportPeriod>,
        /// Rows that are stored of it.
        pub rows: usize,
        pub new: usize,
        pub known: usize,
        pub conflicts: usize,
        pub refused: usize,
        pub created_at: Instant,
        /// Of a preview.
        pub expires_at: Option<Instant>,
    }

    /// The imports, the newest first.
    pub(crate) struct Imports<'a> {
        pub imports: Vec<ImportView<'a>>,
    }
}

impl FiguresView {
    pub(crate) fn of(figures: Figures) -> Self {
        Self {
            quantity: Quantity(figures.quantity),
            price: Exact(figures.price),
        }
    }
}
