//! When an operation has to be over.

use std::time::Duration;

use crate::base::Clock;

/// A deadline. Each wait of an operation takes from what is left of it.
#[derive(Clone)]
pub(crate) struct Deadline {
    clock: Clock,
    at_mono_ms: u64,
}

impl Deadline {
    /// A deadline `ms` from now.
    pub(crate) fn in_ms(ms: u64, clock: &Clock) -> Self {
        Self { clock: clock.clone(), at_mono_ms: clock.monotonic_ms() + ms }
    }

    pub(crate) fn left(&self) -> Duration {
        Duration::from_millis(self.at_mono_ms.saturating_sub(self.clock.monotonic_ms()))
    }
}
