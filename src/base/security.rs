//! A row of broker B's security master, the file that maps its short codes to exchange tickers.

/// One share on one exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterRow {
    /// Broker B's own code of at most six letters.
    pub short_code: String,
    /// `NSE` or `BSE`.
    pub exchange: &'static str,
    /// The exchange's ticker.
    pub ticker: String,
    /// `None` if the file has none.
    pub isin: Option<String>,
    /// Series as the file writes it: `EQ`, `BE`, ...
    pub series: String,
}
