//! How long a connection to the database waits for another process that uses the file.

use std::time::Duration;

/// Another process may be a backup. Less than any write's deadline.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_millis(2_000);
