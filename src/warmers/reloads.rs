//! The result of the last reload. Written by the main thread, read by the scheduler.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;

/// Whether what an operator changed last is in force.
#[derive(Debug, Default)]
pub struct Reloads {
    /// Unix milliseconds; 0 while the last reload, if any, was good.
    refused_ms: AtomicI64,
}

impl Reloads {
    /// A reload was refused at `now`, and the settings before it stay in force.
    pub fn refused(&self, now: Timestamp) {
        self.refused_ms.store(now.as_millisecond(), Ordering::Relaxed);
    }

    /// A reload was taken into use.
    pub fn taken(&self) {
        self.refused_ms.store(0, Ordering::Relaxed);
    }

    /// When the last one was refused; `None` where it was taken or there was none.
    pub fn refused_at(&self) -> Option<Timestamp> {
        let refused_ms = self.refused_ms.load(Ordering::Relaxed);
        (refused_ms != 0).then(|| Timestamp::from_millisecond(refused_ms).ok()).flatten()
    }
}
