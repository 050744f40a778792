//! Settings of the market files.

use std::path::PathBuf;

/// Files that replace or add to the embedded market data, and what is made of it.
#[derive(Debug, Clone, Default)]
pub struct MarketSettings {
    /// Operator's calendar entries, which win over the embedded ones (`BHAV_CALENDAR_FILE`).
    pub calendar_file: Option<PathBuf>,
    /// Replaces the embedded index and sector list (`BHAV_INDICES_FILE`).
    pub indices_file: Option<PathBuf>,
    /// Replaces the embedded list of shares that signals are made of (`BHAV_UNIVERSE_FILE`).
    pub universe_file: Option<PathBuf>,
    /// Candles that are not finished give signals too, marked as such.
    pub signals_provisional: bool,
}
