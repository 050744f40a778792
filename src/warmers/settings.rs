//! Settings of the evening's close and of signals.

/// The evening's revaluation of stored portfolios.
#[derive(Debug, Clone)]
pub struct CloseSettings {
    /// Users valued and written in one transaction.
    pub page_users: usize,
    /// Held symbols whose closing price one evening asks for.
    pub symbols_max: usize,
}

impl Default for CloseSettings {
    fn default() -> Self {
        // All shares of both exchanges are fewer than half as many.
        Self { page_users: 200, symbols_max: 20_000 }
    }
}
