//! Settings of the store.

/// Accounts, portfolios and the journal on disk.
#[derive(Debug, Clone)]
pub struct StoreSettings {
    /// Threads that read, beside the one that writes.
    pub readers: usize,
    /// Waiting writes that one commit carries at most.
    pub writes_per_commit_max: usize,
    /// Of one user, to the journal or to delete; 0 switches the limit off.
    pub writes_per_user_per_minute: u32,
}

impl Default for StoreSettings {
    fn default() -> Self {
        // As many at once, for a page of a ledger that is taken over, and ten a second after that.
        Self { readers: 2, writes_per_commit_max: 256, writes_per_user_per_minute: 600 }
    }
}
