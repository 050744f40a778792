//! Documents of the comparison of a broker's report with the ledger.

use crate::views::values::{Day, Money, Quantity, Simulated, documents};

documents! {
    /// What one side says.
    pub(crate) struct FiguresOfSideView {
        pub quantity: Quantity,
        /// Without charges of the purchase. Of broker B it is the considered one.
        pub cost: Option<Money>,
        pub proceeds: Option<Money>,
        pub gain: Option<Money>,
        /// The part of the report, or the ledger's class.
        pub section: &'static str,
    }

    /// Lines of reports and parts of sales that are of the same shares sold.
    pub(crate) struct AgreementLineView<'a> {
        pub account: &'a str,
        pub isin: Option<&'a str>,
        pub symbol: Option<&'a str>,
        /// `null` of contracts, and of a report without dates.
        pub acquired_on: Option<Day>,
        pub sold: Option<Day>,
        /// `agreed`, `differs`, `only_report` or `only_ledger`.
        pub status: &'a str,
        /// What differs: `quantity`, `cost`, `proceeds`, `term`, `fmv`, `class`.
        pub what: Vec<&'a str>,
        /// What is counted otherwise and agrees: `term_at_anniversary`, `purchase_expenses`.
        pub notes: Vec<&'a str>,
        pub report: Option<FiguresOfSideView>,
        pub ledger: Option<FiguresOfSideView>,
        pub simulated?: Simulated,
    }

    /// A financial year's reports against the ledger.
    pub(crate) struct AgreementView<'a> {
        pub fy: String,
        pub agreed: usize,
        pub differs: usize,
        pub only_report: usize,
        pub only_ledger: usize,
        /// Gains of the lines that agree, in rupees.
        pub amount_agreed: Option<Money>,
        /// Gains of all others.
        pub amount_open: Option<Money>,
        pub lines: Vec<AgreementLineView<'a>>,
        pub next_cursor: Option<String>,
    }
}
