//! What health says of the settings in force, and of the last reload. Written by the main thread,
//! read by the scheduler.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arc_swap::ArcSwap;
use jiff::Timestamp;

use crate::views::health::HealthExposed;

/// Whether what an operator changed last is in force.
#[derive(Debug, Default)]
pub struct Reloads {
    /// Unix milliseconds; 0 while the last reload, if any, was good.
    refused_ms: AtomicI64,
    /// Connections that the settings leave unprotected.
    exposed: ArcSwap<Vec<HealthExposed>>,
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

    /// What the settings in force leave unprotected.
    pub fn set_exposed(&self, exposed: Vec<HealthExposed>) {
        self.exposed.store(Arc::new(exposed));
    }

    pub fn exposed(&self) -> Arc<Vec<HealthExposed>> {
        self.exposed.load_full()
    }

    /// When the last one was refused; `None` where it was taken or there was none.
    pub fn refused_at(&self) -> Option<Timestamp> {
        let refused_ms = self.refused_ms.load(Ordering::Relaxed);
        (refused_ms != 0).then(|| Timestamp::from_millisecond(refused_ms).ok()).flatten()
    }
}
