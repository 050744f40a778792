//! A share as broker B's security master lists it.

/// One row: what a short code of broker B stands for on one exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterRow {
    /// Broker B's own code of at most six letters.
    pub short_code: String,
    /// `NSE` or `BSE`.
    pub exchange: &'static str,
    /// The exchange's ticker.
    pub ticker: String,
    /// `None` where the list has none.
    pub isin: Option<String>,
    /// `EQ`, `BE`, ...; as the list says.
    pub series: String,
}
