//! Settings of both cache levels.

/// The two cache levels.
#[derive(Debug, Clone)]
pub struct CacheSettings {
    /// Quotes and negative entries held in memory.
    pub l1_entries_max: usize,
    /// How long a symbol that no source knows is remembered as such.
    pub negative_ttl_ms: u64,
    /// How long a live-prices request may wait for symbols that are not cached.
    pub miss_wait_ms: u64,
    /// Requests that may wait at once.
    pub waiters_max: usize,
    /// Symbols that a client asked for within this time are kept fresh.
    pub demand_ttl_ms: u64,
    /// Records of each kind that L2 keeps on disk.
    pub l2_records_max: usize,
    /// Bytes of users' finished responses held in memory.
    pub answers_bytes_max: usize,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self {
            l1_entries_max: 10_000,
            negative_ttl_ms: 15 * 60_000,
            miss_wait_ms: 2_500,
            waiters_max: 2_000,
            demand_ttl_ms: 60_000,
            l2_records_max: 10_000,
            answers_bytes_max: 64 * 1024 * 1024,
        }
    }
}
