//! Rate limit for log lines about refused requests, so that clients cannot fill the disk with them.
//! Lines beyond the limit are left out, counted by error code and summarised.
//!
//! The edge asks [`RefusalLines::admit`] for each refusal. That uses atomics only, and during a
//! flood it only reads the limiter. The main thread logs the summaries, about once a second.

use std::fmt::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::base::limiter::{Limiter, Rate};
use crate::ops::Counter;

/// Lines about 4xx responses: the burst, and the interval between lines after it. Enough to see
/// which clients fail and how, and at about 300 bytes a line no more than log rotation handles.
const CLIENT_BURST: u64 = 200;
const CLIENT_INTERVAL_MS: u64 = 50;

/// Lines about 5xx responses. A limit of their own, so that a flood of 4xx cannot hide them.
const SERVER_BURST: u64 = 1_000;
const SERVER_INTERVAL_MS: u64 = 10;

/// Time between two summaries while a flood goes on.
const SUMMARY_INTERVAL_MS: u64 = 10_000;

/// Most error codes counted each by itself; further ones count as `other`. The API has about fifty,
/// and a flood contains a few.
const CODES_MAX: usize = 24;

const OTHER: &str = "other";

/// The limits of lines about 4xx (`client`) and 5xx (`server`) responses.
#[derive(Debug)]
pub struct RefusalLines {
    client: LineLimit,
    server: LineLimit,
}

impl Default for RefusalLines {
    fn default() -> Self {
        Self {
            client: LineLimit::new(Rate::new(CLIENT_INTERVAL_MS, CLIENT_BURST)),
            server: LineLimit::new(Rate::new(SERVER_INTERVAL_MS, SERVER_BURST)),
        }
    }
}

impl RefusalLines {
    /// Whether this response may be logged. If not, it is counted for the summary.
    pub(crate) fn admit(&self, status: u16, code: &'static str, now_mono_ms: u64) -> bool {
        let limit = if status >= 500 {
            &self.server
        } else {
            &self.client
        };
        limit.admit(code, now_mono_ms)
    }

    /// Lines left out since the start: about 4xx, about 5xx.
    pub(crate) fn left_out(&self) -> (u64, u64) {
        (self.client.left_out.value(), self.server.left_out.value())
    }

    /// Logs a summary of the lines left out: when a flood has ended, or every ten seconds while it
    /// goes on. One thread calls this, about once a second.
    pub(crate) fn log_summaries(&self, now_mono_ms: u64) {
        if let Some(Summary { lines, codes }) = self.client.summary_due(now_mono_ms) {
            tracing::info!(lines, codes, "refused requests not logged one by one");
        }
        if let Some(Summary { lines, codes }) = self.server.summary_due(now_mono_ms) {
            tracing::warn!(lines, codes, "failed requests not logged one by one");
        }
    }
}

/// Lines left out since the last summary.
#[derive(Debug, PartialEq, Eq)]
struct Summary {
    lines: u64,
    /// `code=lines`, separated by commas.
    codes: String,
}

/// A limit of log lines, with counts of the lines left out.
#[derive(Debug)]
struct LineLimit {
    limiter: Limiter,
    /// Lines left out since the start.
    left_out: Counter,
    codes: [CodeCount; CODES_MAX],
    others: AtomicU64,
    // Only the thread that logs summaries writes the next three.
    /// `left_out` at the previous call of `summary_due`.
    left_out_before: AtomicU64,
    /// `left_out` at the last summary.
    summarised: AtomicU64,
    /// Time of the last summary, or of the last call that had nothing to summarise.
    summary_mono_ms: AtomicU64,
}

/// Lines left out about one error code since the last summary.
#[derive(Debug, Default)]
struct CodeCount {
    code: OnceLock<&'static str>,
    lines: AtomicU64,
}

impl LineLimit {
    fn new(rate: Rate) -> Self {
        Self {
            limiter: Limiter::new(rate),
            left_out: Counter::new(),
            codes: Default::default(),
            others: AtomicU64::new(0),
            left_out_before: AtomicU64::new(0),
            summarised: AtomicU64::new(0),
            summary_mono_ms: AtomicU64::new(0),
        }
    }

    fn admit(&self, code: &'static str, now_mono_ms: u64) -> bool {
        let admitted = self.limiter.admit(now_mono_ms).is_ok();
        if !admitted {
            self.left_out.increment();
            let own = self
                .codes
                .iter()
                .find(|count| *count.code.get_or_init(|| code) == code);
            own.map_or(&self.others, |count| &count.lines)
                .fetch_add(1, Relaxed);
        }
        admitted
    }

    /// The summary to log now, if one is due.
    fn summary_due(&self, now_mono_ms: u64) -> Option<Summary> {
        let left_out = self.left_out.value();
        let flood_ended = self.left_out_before.swap(left_out, Relaxed) == left_out;
        let since_ms = now_mono_ms.saturating_sub(self.summary_mono_ms.load(Relaxed));
        let summarised = self.summarised.load(Relaxed);
        if left_out == summarised {
            self.summary_mono_ms.store(now_mono_ms, Relaxed);
            return None;
        }
        if !flood_ended && since_ms < SUMMARY_INTERVAL_MS {
            return None;
        }
        self.summarised.store(left_out, Relaxed);
        self.summary_mono_ms.store(now_mono_ms, Relaxed);
        let counted = self
            .codes
            .iter()
            .map_while(|count| Some((*count.code.get()?, &count.lines)));
        let mut codes = String::new();
        for (code, lines) in counted.chain([(OTHER, &self.others)]) {
            let lines = lines.swap(0, Relaxed);
            if lines > 0 {
                let comma = if codes.is_empty() { "" } else { "," };
                // Writing to a String cannot fail.
                let _ = write!(codes, "{comma}{code}={lines}");
            }
        }
        Some(Summary {
            lines: left_out - summarised,
            codes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_limit_are_left_out_and_summarised_by_code() {
        let limit = LineLimit::new(Rate::new(500, 10));
        let admitted =
            |code, now_ms, tries| (0..tries).filter(|_| limit.admit(code, now_ms)).count();
        assert_eq!(limit.summary_due(0), None);
        assert_eq!(admitted("not_found", 0, 100), 10);
        assert_eq!(admitted("token_missing", 500, 3), 1);
        assert_eq!(admitted("not_found", 1_000, 1), 1);
        assert_eq!(limit.summary_due(1_000), None, "the flood goes on");
        let summary = limit.summary_due(2_000).unwrap();
        assert_eq!((summary.lines, summary.codes.as_str()), (92, "not_found=90,token_missing=2"));
        assert_eq!(limit.summary_due(3_000), None);
        // A flood that goes on is summarised every ten seconds.
        let mut lines = 0;
        for second in 4..34 {
            assert!(admitted("not_found", second * 1_000, 50) < 10);
            lines += limit
                .summary_due(second * 1_000)
                .map_or(0, |summary| summary.lines);
            assert_eq!(lines > 0, second >= 13, "{second}");
        }
        lines += limit.summary_due(34_000).map_or(0, |summary| summary.lines);
        assert_eq!(lines + 92, limit.left_out.value());
        assert_eq!(admitted("not_found", 60_000, 100), 10, "no more than the burst after a rest");
    }

    #[test]
    fn a_flood_of_4xx_leaves_the_limit_of_5xx_untouched() {
        let lines = RefusalLines::default();
        for _ in 0..10_000 {
            lines.admit(404, "not_found", 0);
        }
        assert_eq!(lines.left_out(), (10_000 - CLIENT_BURST, 0));
        let failures = (0..2 * SERVER_BURST)
            .filter(|_| lines.admit(503, "x", 0))
            .count();
        assert_eq!(failures as u64, SERVER_BURST);
        assert_eq!(lines.left_out().1, SERVER_BURST);
    }

    #[test]
    fn error_codes_beyond_the_maximum_count_as_other() {
        let limit = LineLimit::new(Rate::every_ms(1_000));
        limit.admit("first", 0);
        let names: Vec<&'static str> = (0..=CODES_MAX)
            .map(|n| &*Box::leak(n.to_string().into_boxed_str()))
            .collect();
        names.iter().for_each(|name| assert!(!limit.admit(name, 0)));
        limit.summary_due(0);
        let summary = limit.summary_due(1_000).unwrap();
        assert!(summary.codes.ends_with(",23=1,other=1"), "{}", summary.codes);
    }

    #[test]
    fn concurrent_threads_get_only_the_burst_and_every_other_line_is_counted() {
        let lines = RefusalLines::default();
        let admitted: usize = std::thread::scope(|scope| {
            let each = || {
                (0..5_000)
                    .filter(|_| lines.admit(404, "not_found", 7))
                    .count()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(each)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert_eq!(admitted as u64, CLIENT_BURST);
        assert_eq!(lines.left_out().0, 20_000 - CLIENT_BURST);
    }
}
