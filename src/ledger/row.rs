//! What one line of a file, or of a sync, says of one execution.
//!
//! Rows are kept as they were read. Which of them are one trade is decided by `trades`.

use std::ops::Deref;
use std::sync::Arc;

use compact_str::CompactString;
use jiff::civil::{Date, Time};
use rust_decimal::Decimal;

use crate::base::Isin;
use crate::base::symbol::Exchange;
use crate::base::words;

/// Longest name of an account.
const ACCOUNT_BYTES_MAX: usize = 40;

/// One demat account. `a` and `b` are those that are synced. Any other name is never synced, so
/// nothing in it is ever proved.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct AccountName(Arc<str>);

impl AccountName {
    /// The account of a name: 1 to 40 of `a-z`, `0-9`, `_` and `-`.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
        let well_formed = (1..=ACCOUNT_BYTES_MAX).contains(&name.len());
        (well_formed && name.bytes().all(allowed)).then(|| Self(name.into()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

words! {
    /// Which side of a trade the account's owner was on.
    #[derive(Hash, PartialOrd, Ord)]
    pub(crate) enum Side {
        Buy = "buy",
        Sell = "sell",
    }

    /// The market segment. Only equity has lots of a demat account.
    #[derive(Hash, PartialOrd, Ord)]
    pub(crate) enum Segment {
        /// Shares, fund units, bonds and trusts of the cash market.
        Equity = "EQ",
        /// Futures and options on shares and indices.
        Derivatives = "FO",
        /// Commodity derivatives.
        Commodity = "COM",
        /// Currency derivatives.
        Currency = "CD",
    }

    /// What is to be known of a trade beside its figures.
    #[derive(Hash, PartialOrd, Ord)]
    pub(crate) enum Mark {
        /// Bought with the broker's money (margin trading facility).
        MarginFunded = "mtf",
        /// Its charges do not add up to the sum that stands beside them, so none is taken.
        ChargesUnclear = "charges_unclear",
        /// Its date is no trading day.
        NoSession = "no_session",
        /// Bought on one exchange and sold on the other on one day: both are deliveries.
        Check = "check",
        /// Two rows with one id differ in quantity or price, and neither counts.
        Conflict = "conflict",
    }
}

/// Charges that a file states, in rupees. One that it does not state is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Charges {
    /// With the tax on it.
    pub brokerage: Option<Decimal>,
    /// Securities transaction tax. It is never deducted from a gain.
    pub stt: Option<Decimal>,
    pub stamp_duty: Option<Decimal>,
    /// Charges of the exchange, SEBI and the clearing house, and goods and services tax on them.
    pub other: Option<Decimal>,
}

/// Charges of a row or a trade. Most have none, which then take no memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RowCharges(Option<Box<Charges>>);

impl From<Charges> for RowCharges {
    fn from(charges: Charges) -> Self {
        Self(if charges == Charges::default() {
            None
        } else {
            Some(Box::new(charges))
        })
    }
}

impl Deref for RowCharges {
    type Target = Charges;

    fn deref(&self) -> &Charges {
        const NONE: &Charges = &Charges {
            brokerage: None,
            stt: None,
            stamp_duty: None,
            other: None,
        };
        self.0.as_deref().unwrap_or(NONE)
    }
}

/// One line of a file or of a sync.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    /// Counts from 1; in a workbook it is the sheet's row. What syncs bring is counted by import.
    pub line: u32,
    /// The name as the source writes it: an exchange's ticker, a contract, or broker B's own code.
    pub symbol: CompactString,
    pub isin: Option<Isin>,
    pub exchange: Exchange,
    pub segment: Segment,
    /// The exchange's series or group. It decides nothing.
    pub series: Option<CompactString>,
    pub date: Date,
    /// IST.
    pub time: Option<Time>,
    pub side: Side,
    /// Above zero, at most nine decimals.
    pub quantity: Decimal,
    /// Per unit in rupees, above zero, without charges.
    pub price: Decimal,
    /// The exchange's number of the execution, as text: it has up to 19 digits.
    pub trade_id: Option<CompactString>,
    pub order_id: Option<CompactString>,
    /// The broker's product, such as `CNC` or `MIS`. It decides nothing.
    pub product: Option<CompactString>,
    /// A purchase in an auction that covers a delivery which failed.
    pub auction: bool,
    /// Of a contract of derivatives.
    pub expiry: Option<Date>,
    pub charges: RowCharges,
    /// Whether the source says that securities transaction tax was paid.
    pub stt_paid: Option<bool>,
    pub mark: Option<Mark>,
}
