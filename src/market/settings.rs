//! Settings of the market files.

use std::path::PathBuf;

/// Files that replace or extend the embedded market data, and whether provisional signals are made.
#[derive(Debug, Clone, Default)]
pub struct MarketSettings {
    /// The operator's calendar entries, which override the embedded ones (`BHAV_CALENDAR_FILE`).
    pub calendar_file: Option<PathBuf>,
    /// Replaces the embedded index and sector list (`BHAV_INDICES_FILE`).
    pub indices_file: Option<PathBuf>,
    /// Replaces the embedded list of shares that signals are made of (`BHAV_UNIVERSE_FILE`).
    pub universe_file: Option<PathBuf>,
    /// Whether unfinished candles are searched for signals too. Such signals are marked as
    /// provisional.
    pub signals_provisional: bool,
}
