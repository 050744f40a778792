//! Documents of the ledger against what the brokers hold.

use serde::ser::Error;
use serde::{Serialize, Serializer};

use crate::views::values::{Day, Instant, Quantity, Simulated, documents};

/// A correction as JSON text, which is written as it is. What only the person knows is null in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CorrectionText<'a>(pub &'a str);

impl Serialize for CorrectionText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: sonic_rs::LazyValue<'_> =
            sonic_rs::from_str(self.0).map_err(S::Error::custom)?;
        value.serialize(serializer)
    }
}

documents! {
    /// Trades that the sync may or may not show.
    pub(crate) struct PendingView {
        pub bought: Quantity,
        pub sold: Quantity,
    }

    /// The time of which files seem to be missing.
    pub(crate) struct WantedFiles {
        pub from: Option<Day>,
        pub to: Option<Day>,
    }

    /// What a person can do: put a correction, or import files.
    pub(crate) struct MendView<'a> {
        pub correction?: Option<CorrectionText<'a>>,
        pub import?: Option<WantedFiles>,
    }

    /// An account's security.
    pub(crate) struct ProofView<'a> {
        pub account: &'a str,
        /// The newest ISIN.
        pub isin: Option<&'a str>,
        /// All ISINs of the security.
        pub isins: Vec<&'a str>,
        pub symbol: Option<&'a str>,
        /// Open lots without the pending trades.
        pub ledger: Quantity,
        /// What the broker held; `null` if the account was never synced.
        pub synced: Option<Quantity>,
        /// `synced` less `ledger`.
        pub difference: Option<Quantity>,
        pub pending: PendingView,
        /// Sold without a purchase.
        pub uncovered: Quantity,
        pub conflicts: u32,
        /// Whether the two agree, and nothing else speaks against it.
        pub proved: bool,
        pub reasons: Vec<&'a str>,
        pub cause: Option<&'a str>,
        pub mends: Vec<MendView<'a>>,
        pub synced_at: Option<Instant>,
        pub simulated?: Simulated,
    }

    /// The ledger against the brokers' quantities, by account and security.
    pub(crate) struct LedgerProof<'a> {
        pub rows: Vec<ProofView<'a>>,
        /// Whether every row is proved, those of other pages too.
        pub complete: bool,
        pub next_cursor: Option<String>,
    }
}
