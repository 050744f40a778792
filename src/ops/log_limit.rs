//! How many lines the log gets about refused requests, so that clients cannot fill the disk with
//! them: a burst, then so many a second; what is left out is counted and told by code.
//!
//! Asked on the edge for each refusal: atomics alone, and in a flood the bucket is only read. The
//! main thread tells, about once a second.

use std::fmt::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Counter;
use crate::base::limiter::{Limiter, Rate};

/// Lines about clients' faults at once, and the time between two in the long run: enough to see who
/// errs and how, and at some 300 bytes each no more than a rotated log can take.
const CLIENT_BURST: u64 = 200;
const CLIENT_EACH_MS: u64 = 50;

/// Lines about our own failures and unavailability; apart, so that no flood of the others hides
/// them.
const SERVER_BURST: u64 = 1_000;
const SERVER_EACH_MS: u64 = 10;

/// Between two summaries while a flood goes on.
const TOLD_EVERY_MS: u64 = 10_000;

/// Codes told apart; the rest count as one. The API has some fifty, of which a flood has a few.
const CODES_MAX: usize = 24;

const OTHER: &str = "other";

/// Lines about refusals of clients, 4xx, and about failures, 5xx.
#[derive(Debug)]
pub struct RefusalLines {
    client: LinePace,
    server: LinePace,
}

impl Default for RefusalLines {
    fn default() -> Self {
        Self {
            client: LinePace::new(Rate::new(CLIENT_EACH_MS, CLIENT_BURST)),
            server: LinePace::new(Rate::new(SERVER_EACH_MS, SERVER_BURST)),
        }
    }
}

impl RefusalLines {
    /// Whether this answer gets a line of its own; counted if not.
    pub fn admit(&self, status: u16, code: &'static str, now_mono_ms: u64) -> bool {
        let pace = if status >= 500 { &self.server } else { &self.client };
        pace.admit(code, now_mono_ms)
    }

    /// Lines left out since the start: about clients' faults, about our own.
    pub fn left_out(&self) -> (u64, u64) {
        (self.client.left_out.value(), self.server.left_out.value())
    }

    /// Logs what was left out once it has calmed down, or goes on for long. To be called about once
    /// a second, by one thread.
    pub fn tell(&self, now_mono_ms: u64) {
        if let Some(Summary { lines, codes }) = self.client.due(now_mono_ms) {
            tracing::info!(lines, codes, "more requests refused, without a line each");
        }
        if let Some(Summary { lines, codes }) = self.server.due(now_mono_ms) {
            tracing::warn!(lines, codes, "more requests failed, without a line each");
        }
    }
}

/// What was left out since the last time it was told.
#[derive(Debug, PartialEq, Eq)]
struct Summary {
    lines: u64,
    /// `code=lines`, separated by commas.
    codes: String,
}

/// A limit of lines, and what did not get through it.
#[derive(Debug)]
struct LinePace {
    limiter: Limiter,
    left_out: Counter,
    codes: [Left; CODES_MAX],
    others: AtomicU64,
    /// Of `left_out`: at the last look, and when it was last told; the teller's own.
    seen: AtomicU64,
    told: AtomicU64,
    told_mono_ms: AtomicU64,
}

/// Lines left out of one code, since they were last told.
#[derive(Debug, Default)]
struct Left {
    code: OnceLock<&'static str>,
    lines: AtomicU64,
}

impl LinePace {
    fn new(rate: Rate) -> Self {
        Self {
            limiter: Limiter::new(rate),
            left_out: Counter::new(),
            codes: Default::default(),
            others: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            told: AtomicU64::new(0),
            told_mono_ms: AtomicU64::new(0),
        }
    }

    fn admit(&self, code: &'static str, now_mono_ms: u64) -> bool {
        let admitted = self.limiter.admit(now_mono_ms).is_ok();
        if !admitted {
            self.left_out.increment();
            let own = self.codes.iter().find(|left| *left.code.get_or_init(|| code) == code);
            own.map_or(&self.others, |left| &left.lines).fetch_add(1, Relaxed);
        }
        admitted
    }

    /// What is to be told now, if anything.
    fn due(&self, now_mono_ms: u64) -> Option<Summary> {
        let left_out = self.left_out.value();
        let calm = self.seen.swap(left_out, Relaxed) == left_out;
        let since_ms = now_mono_ms.saturating_sub(self.told_mono_ms.load(Relaxed));
        let told = self.told.load(Relaxed);
        if left_out == told {
            self.told_mono_ms.store(now_mono_ms, Relaxed);
            return None;
        }
        if !calm && since_ms < TOLD_EVERY_MS {
            return None;
        }
        self.told.store(left_out, Relaxed);
        self.told_mono_ms.store(now_mono_ms, Relaxed);
        let named = self.codes.iter().map_while(|left| Some((*left.code.get()?, &left.lines)));
        let mut codes = String::new();
        for (code, lines) in named.chain([(OTHER, &self.others)]) {
            let lines = lines.swap(0, Relaxed);
            if lines > 0 {
                let comma = if codes.is_empty() { "" } else { "," };
                // Writing to a String cannot fail.
                let _ = write!(codes, "{comma}{code}={lines}");
            }
        }
        Some(Summary { lines: left_out - told, codes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_a_pace_and_the_rest_is_told_by_code() {
        let pace = LinePace::new(Rate::new(500, 10));
        let admitted =
            |code, now_ms, tries| (0..tries).filter(|_| pace.admit(code, now_ms)).count();
        assert_eq!(pace.due(0), None);
        assert_eq!(admitted("not_found", 0, 100), 10);
        assert_eq!(admitted("token_missing", 500, 3), 1);
        assert_eq!(admitted("not_found", 1_000, 1), 1);
        assert_eq!(pace.due(1_000), None, "it goes on");
        let told = pace.due(2_000).unwrap();
        assert_eq!((told.lines, told.codes.as_str()), (92, "not_found=90,token_missing=2"));
        assert_eq!(pace.due(3_000), None);
        // A flood that goes on is told each ten seconds.
        let mut lines = 0;
        for second in 4..34 {
            assert!(admitted("not_found", second * 1_000, 50) < 10);
            lines += pace.due(second * 1_000).map_or(0, |told| told.lines);
            assert_eq!(lines > 0, second >= 13, "{second}");
        }
        lines += pace.due(34_000).map_or(0, |told| told.lines);
        assert_eq!(lines + 92, pace.left_out.value());
        assert_eq!(admitted("not_found", 60_000, 100), 10, "no more than the burst after a rest");
    }

    #[test]
    fn failures_have_a_bucket_of_their_own() {
        let lines = RefusalLines::default();
        for _ in 0..10_000 {
            lines.admit(404, "not_found", 0);
        }
        assert_eq!(lines.left_out(), (10_000 - CLIENT_BURST, 0));
        let failures = (0..2 * SERVER_BURST).filter(|_| lines.admit(503, "x", 0)).count();
        assert_eq!(failures as u64, SERVER_BURST);
        assert_eq!(lines.left_out().1, SERVER_BURST);
    }

    #[test]
    fn more_codes_than_are_told_apart_count_as_one() {
        let pace = LinePace::new(Rate::every_ms(1_000));
        pace.admit("first", 0);
        let names: Vec<&'static str> =
            (0..=CODES_MAX).map(|n| &*Box::leak(n.to_string().into_boxed_str())).collect();
        names.iter().for_each(|name| assert!(!pace.admit(name, 0)));
        pace.due(0);
        let told = pace.due(1_000).unwrap();
        assert!(told.codes.ends_with(",23=1,other=1"), "{}", told.codes);
    }

    #[test]
    fn threads_together_get_no_more_than_the_burst_and_none_is_lost() {
        let lines = RefusalLines::default();
        let admitted: usize = std::thread::scope(|scope| {
            let each = || (0..5_000).filter(|_| lines.admit(404, "not_found", 7)).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(each)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(admitted as u64, CLIENT_BURST);
        assert_eq!(lines.left_out().0, 20_000 - CLIENT_BURST);
    }
}
