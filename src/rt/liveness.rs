//! Whether the edge gets on: one coroutine after the other through each worker, and when the last
//! one of each came through.
//!
//! Sent by the main thread about once a second; costs a worker some microseconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::coroutines;
use crate::base::Clock;

struct Worker {
    /// When the last probe came through.
    passed_mono_ms: AtomicU64,
    /// One is on its way: a stuck worker must not gather more.
    under_way: AtomicBool,
}

/// Probes of all edge workers.
pub struct EdgeLiveness {
    clock: Clock,
    workers: Arc<[Worker]>,
}

impl EdgeLiveness {
    /// For the workers that are configured; each counts as having got on now.
    pub fn new(clock: &Clock) -> Self {
        let now_mono_ms = clock.monotonic_ms();
        let worker = |_| Worker {
            passed_mono_ms: AtomicU64::new(now_mono_ms),
            under_way: AtomicBool::new(false),
        };
        Self { clock: clock.clone(), workers: (0..coroutines::workers()).map(worker).collect() }
    }

    /// Sends a probe to each worker whose last one has come through.
    pub fn send(&self) {
        for index in 0..self.workers.len() {
            if self.workers[index].under_way.swap(true, Ordering::AcqRel) {
                continue;
            }
            let (workers, clock) = (Arc::clone(&self.workers), self.clock.clone());
            let sent = coroutines::spawn_for(index as i32, move || {
                let worker = &workers[index];
                worker.passed_mono_ms.store(clock.monotonic_ms(), Ordering::Release);
                worker.under_way.store(false, Ordering::Release);
            });
            if sent.is_err() {
                // No memory for a stack just now: the next round tries again.
                self.workers[index].under_way.store(false, Ordering::Release);
            }
        }
    }

    /// When the worker that is furthest behind last got on.
    pub fn passed_mono_ms(&self) -> u64 {
        let passed = |worker: &Worker| worker.passed_mono_ms.load(Ordering::Acquire);
        self.workers.iter().map(passed).min().unwrap_or(0)
    }
}
