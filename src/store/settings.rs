//! Settings of the store.

/// Accounts, portfolios and the journal on disk.
#[derive(Debug, Clone)]
pub struct StoreSettings {
    /// Number of reader threads, besides the one that writes.
    pub readers: usize,
    /// Most waiting writes that one commit carries.
    pub writes_per_commit_max: usize,
    /// Changes that one user may make to the journal, or by deleting, each minute; 0 disables the
    /// limit.
    pub writes_per_user_per_minute: u32,
}

impl Default for StoreSettings {
    fn default() -> Self {
        // Up to 600 at once, for an import of old entries, and then ten a second.
        Self { readers: 2, writes_per_commit_max: 256, writes_per_user_per_minute: 600 }
    }
}
