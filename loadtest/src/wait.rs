//! The one loop that waits for a condition.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

/// Pause between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Checks `ready` until it returns a value; `None` if it has not by the deadline.
pub fn until<T>(
    deadline: Duration,
    mut ready: impl FnMut() -> Result<Option<T>>,
) -> Result<Option<T>> {
    let started = Instant::now();
    loop {
        if let Some(found) = ready()? {
            return Ok(Some(found));
        }
        if started.elapsed() >= deadline {
            return Ok(None);
        }
        thread::sleep(POLL_INTERVAL);
    }
}
