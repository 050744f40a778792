//! Edge liveness: sends one coroutine at a time through every edge worker and remembers when each
//! worker last finished one.
//!
//! The main thread sends them about once a second. One costs a worker a few microseconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::base::Clock;
use crate::rt::coroutines::{spawn_for, workers};

struct Worker {
    /// When the worker last finished a probe.
    passed_mono_ms: AtomicU64,
    /// A probe is queued or runs. No other is sent then, so that none pile up on a stuck worker.
    under_way: AtomicBool,
}

/// Probe coroutines of all edge workers.
pub(crate) struct EdgeLiveness {
    clock: Clock,
    workers: Arc<[Worker]>,
}

impl EdgeLiveness {
    /// For the configured workers. Each counts as having finished a probe now.
    pub(crate) fn new(clock: &Clock) -> Self {
        let now_mono_ms = clock.monotonic_ms();
        let worker = |_| Worker {
            passed_mono_ms: AtomicU64::new(now_mono_ms),
            under_way: AtomicBool::new(false),
        };
        Self {
            clock: clock.clone(),
            workers: (0..workers()).map(worker).collect(),
        }
    }

    /// Sends a probe to each worker that has finished its last one.
    pub(crate) fn send(&self) {
        for index in 0..self.workers.len() {
            if self.workers[index].under_way.swap(true, Ordering::AcqRel) {
                continue;
            }
            let workers = Arc::clone(&self.workers);
            let clock = self.clock.clone();
            let sent = spawn_for(index as i32, move || {
                let worker = &workers[index];
                worker
                    .passed_mono_ms
                    .store(clock.monotonic_ms(), Ordering::Release);
                worker.under_way.store(false, Ordering::Release);
            });
            if sent.is_err() {
                // No memory for a stack: the next call tries again.
                self.workers[index]
                    .under_way
                    .store(false, Ordering::Release);
            }
        }
    }

    /// The earliest, among all workers, of the times at which they last finished a probe.
    pub(crate) fn passed_mono_ms(&self) -> u64 {
        let passed = |worker: &Worker| worker.passed_mono_ms.load(Ordering::Acquire);
        self.workers.iter().map(passed).min().unwrap_or(0)
    }
}
