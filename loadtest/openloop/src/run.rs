//! A run over one or more threads: connect, warm up, wait for the word, measure, merge.

use std::net::SocketAddr;
use std::sync::{Arc, Barrier};
use std::thread;

use crate::engine::{Engine, EngineError, Pace};
use crate::report::{LoadReport, Percentiles};
use crate::schedule::{NS_PER_S, Schedule};
use crate::sys;
use crate::tally::Tally;

/// How requests are paced over all threads together.
#[derive(Debug, Clone, Copy)]
pub enum Load {
    /// At a fixed rate.
    Open {
        /// Requests a second.
        rate_per_s: u64,
        /// Length of the ticks at whose beginning requests are gathered; 0 spaces them evenly.
        tick_us: u64,
    },
    /// As fast as the answers come.
    Closed,
}

/// One run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Server under load.
    pub target: SocketAddr,
    /// One rendered request per connection.
    pub requests: Vec<Arc<[u8]>>,
    /// Pace.
    pub load: Load,
    /// Length of the measured part, in milliseconds.
    pub duration_ms: u64,
    /// Threads; connections and rate are shared out among them.
    pub threads: usize,
    /// Status that every answer is expected to have.
    pub status: u16,
    /// Send one request on every connection before the measured part.
    pub warm_up: bool,
}

impl Plan {
    /// Opens the connections, calls `wait_for_start` once all are warm, and measures.
    ///
    /// # Errors
    /// As [`Engine::connect`] and [`Engine::run`].
    pub fn execute(self, wait_for_start: impl FnOnce()) -> Result<LoadReport, EngineError> {
        let threads = self.threads.clamp(1, self.requests.len().max(1));
        let share = self.requests.len().div_ceil(threads);
        let mut engines = Vec::with_capacity(threads);
        for requests in self.requests.chunks(share) {
            let mut engine = Engine::connect(self.target, requests, self.status)?;
            if self.warm_up {
                let lost = engine.run(Pace::Once)?.errors;
                if lost > 0 {
                    return Err(EngineError::ColdStart { lost });
                }
            }
            engines.push((engine, self.pace_of(requests.len())));
        }
        wait_for_start();
        let cpu_before_ns = sys::own_cpu_ns();
        let tally = measure(engines)?;
        let cpu_ns = sys::own_cpu_ns() - cpu_before_ns;
        Ok(report(&tally, cpu_ns))
    }

    /// Each thread's rate is its share of the connections, so that every connection has the same
    /// period.
    fn pace_of(&self, connections: usize) -> Pace {
        match self.load {
            Load::Open { rate_per_s, tick_us } => {
                let share = rate_per_s * connections as u64 / self.requests.len() as u64;
                let even = Schedule::new(share, self.duration_ms, connections);
                Pace::Open(even.in_bursts(tick_us))
            }
            Load::Closed => Pace::Closed { duration_ns: self.duration_ms * (NS_PER_S / 1_000) },
        }
    }
}

fn measure(engines: Vec<(Engine, Pace)>) -> Result<Tally, EngineError> {
    let barrier = Arc::new(Barrier::new(engines.len()));
    let threads: Vec<_> = engines
        .into_iter()
        .map(|(mut engine, pace)| {
            let barrier = Arc::clone(&barrier);
            thread::spawn(move || {
                sys::tighten_timers();
                barrier.wait();
                // The engine comes back with the tally: closing its connections is not load.
                engine.run(pace).map(|tally| (engine, tally))
            })
        })
        .collect();
    let mut merged = Tally::new();
    let mut finished = Vec::with_capacity(threads.len());
    for thread in threads {
        let (engine, tally) = thread.join().expect("an engine never panics")?;
        merged.merge(&tally);
        finished.push(engine);
    }
    Ok(merged)
}

fn report(tally: &Tally, generator_cpu_ns: u64) -> LoadReport {
    let elapsed_s = tally.elapsed_ns as f64 / NS_PER_S as f64;
    LoadReport {
        requests: tally.requests,
        errors: tally.errors,
        unanswered: tally.unanswered,
        other_status: tally.other_status,
        reconnects: tally.reconnects,
        bytes_per_response: tally.response_bytes as f64 / tally.requests.max(1) as f64,
        elapsed_s,
        rate_per_s: tally.requests as f64 / elapsed_s.max(f64::MIN_POSITIVE),
        latency: Percentiles::of(&tally.latency),
        send_lag: Percentiles::of(&tally.send_lag),
        generator_cpu_s: generator_cpu_ns as f64 / NS_PER_S as f64,
    }
}
