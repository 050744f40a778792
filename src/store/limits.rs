//! How much a store takes of one user, whatever the engine.

/// What one sync of one broker may bring of each. The largest retail accounts hold some hundreds;
/// the rest is room.
pub const ROWS_MAX: usize = 5_000;
/// What one user may keep in the journal: forty a trading day for a year.
pub const ENTRIES_MAX: usize = 10_000;
/// Bytes of text in them (symbol, strategy, notes and tags, as stored): 800 each, if all are there.
/// Bounds what one account takes of the disk, of memory for an export, and of the writer when it is
/// erased; the longest texts in every entry would be 200 MB.
pub const TEXT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Text of a page, but for one longer entry: it is made into JSON in some hundred microseconds.
pub const PAGE_BYTES_MAX: usize = 256 * 1024;
/// Changes of accounts and tokens that are read at a time.
pub const CHANGES_PAGE: usize = 500;
/// Changes of accounts and tokens that are kept, for nodes that were away for a while: some
/// megabyte. One that misses more of them reads all accounts anew, as at its start.
pub const CHANGES_KEPT: usize = 10_000;
/// Networks that are kept of an account: home, work, and the last few of a phone.
pub const LOGIN_NETWORKS_MAX: usize = 8;
/// Networks of all accounts that are read at a time, the newest: some 10 MB. Logins from those that
/// were not read are strangers' until they succeed.
pub const LOGIN_NETWORKS_READ: usize = 200_000;
/// A network is written again once its last use was written so long before.
pub const LOGIN_NETWORK_AGAIN_MS: i64 = 20 * 3_600_000;
