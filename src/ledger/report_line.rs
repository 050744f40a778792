//! What a broker's own report says of one exit or one dividend, kept as it states it.

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::Isin;
use crate::base::words;
use crate::ledger::row::Charges;

words! {
    /// The part of a report that a line stands in.
    #[derive(Hash, PartialOrd, Ord)]
    pub(crate) enum ReportSection {
        Long = "long",
        Short = "short",
        Intraday = "intraday",
        Buyback = "buyback",
        /// What the broker does not take for equity, such as a gold ETF.
        NonEquity = "non_equity",
        Fund = "fund",
        Derivatives = "fno",
        Commodity = "commodity",
        Currency = "currency",
    }
}

/// One exit. Values and the value of 31 January 2018 are totals of its quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportLine {
    /// As a row's.
    pub line: u32,
    pub section: ReportSection,
    pub symbol: String,
    pub isin: Option<Isin>,
    /// `None` in a report of average rates.
    pub acquired_on: Option<Date>,
    /// `None` in a report of average rates.
    pub sold: Option<Date>,
    pub quantity: Decimal,
    pub cost: Option<Decimal>,
    /// The cost after the rule of 31 January 2018, where the report gives that.
    pub cost_considered: Option<Decimal>,
    pub proceeds: Decimal,
    /// Broker A's before charges, broker B's after them.
    pub gain: Decimal,
    pub taxable: Option<Decimal>,
    /// Value on 31 January 2018.
    pub fmv: Option<Decimal>,
    pub turnover: Option<Decimal>,
    /// Of the sale, or of sale and purchase where the report does not tell them apart.
    pub charges: Charges,
    pub purchase_expenses: Option<Decimal>,
    /// Whether its section says that securities transaction tax was paid.
    pub stt_paid: Option<bool>,
}

/// One dividend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Income {
    pub line: u32,
    pub symbol: String,
    pub isin: Option<Isin>,
    pub ex_date: Date,
    pub quantity: Decimal,
    pub per_share: Option<Decimal>,
    pub amount: Decimal,
}
