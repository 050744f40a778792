//! The members of the export that are of the trades ledger, with every digit.

use crate::views::values::{Day, Exact, Instant, documents};

documents! {
    /// A file or a sync, and whose the file says it is.
    pub(crate) struct ExportedImport<'a> {
        pub id: i64,
        pub account: &'a str,
        pub state: &'a str,
        pub kind: &'a str,
        pub format: &'a str,
        /// Of the file, in hexadecimal.
        pub sha256: Option<&'a str>,
        pub client_kind: Option<&'a str>,
        pub client_id: Option<&'a str>,
        pub period_from: Option<Day>,
        pub period_to: Option<Day>,
        pub rows: usize,
        pub new: usize,
        pub known: usize,
        pub conflicts: usize,
        pub refused: usize,
        pub created_at: Instant,
    }

    /// What a line of an import says of one execution.
    pub(crate) struct ExportedRow<'a> {
        pub import_id: i64,
        pub line: u32,
        pub symbol: &'a str,
        pub isin: Option<&'a str>,
        pub exchange: &'a str,
        pub segment: &'a str,
        pub series: Option<&'a str>,
        pub date: Day,
        pub time: Option<String>,
        pub side: &'a str,
        pub quantity: Exact,
        pub price: Exact,
        pub trade_id: Option<&'a str>,
        pub order_id: Option<&'a str>,
        pub product: Option<&'a str>,
        pub auction: bool,
        pub expiry: Option<Day>,
        pub brokerage: Option<Exact>,
        pub stt: Option<Exact>,
        pub stamp_duty: Option<Exact>,
        pub other_charges: Option<Exact>,
        pub stt_paid: Option<bool>,
        pub mark: Option<&'a str>,
    }

    /// A line of a broker's own report, as it states it.
    pub(crate) struct ExportedReportLine<'a> {
        pub import_id: i64,
        pub line: u32,
        pub section: &'a str,
        pub symbol: &'a str,
        pub isin: Option<&'a str>,
        pub acquired_on: Option<Day>,
        pub sold: Option<Day>,
        pub quantity: Exact,
        pub cost: Option<Exact>,
        pub cost_considered: Option<Exact>,
        pub proceeds: Exact,
        pub gain: Exact,
        pub taxable: Option<Exact>,
        pub fmv: Option<Exact>,
        pub turnover: Option<Exact>,
        pub brokerage: Option<Exact>,
        pub stt: Option<Exact>,
        pub stamp_duty: Option<Exact>,
        pub other_charges: Option<Exact>,
        pub purchase_expenses: Option<Exact>,
        pub stt_paid: Option<bool>,
    }

    /// A dividend of such a report.
    pub(crate) struct ExportedIncome<'a> {
        pub import_id: i64,
        pub line: u32,
        pub symbol: &'a str,
        pub isin: Option<&'a str>,
        pub ex_date: Day,
        pub quantity: Exact,
        pub per_share: Option<Exact>,
        pub amount: Exact,
    }

    pub(crate) struct ExportedCorrection<'a> {
        pub id: &'a str,
        /// The JSON document that was put.
        pub document: &'a str,
    }

    /// Which of two rows with one id is kept.
    pub(crate) struct ExportedChoice<'a> {
        pub conflict: &'a str,
        pub keep: &'a str,
    }
}
