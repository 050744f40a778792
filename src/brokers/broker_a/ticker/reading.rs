//! What the ticker's thread tells of itself: a few relaxed atomics, read by the scheduler.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::watch::Why;
use crate::ops::histogram::{DurationCounts, Durations};

/// Every state, as health names it.
pub const TICKER_STATES: [&str; 6] =
    ["off", "connecting", "subscribing", "speaking", "waiting", "refused"];

/// What the thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Without a token, or while the market rests.
    Off,
    Connecting,
    /// No tick of every leading index yet.
    Subscribing,
    Speaking,
    /// Until the next try.
    Waiting,
    /// The broker refused the connection; waits for another token, or for a call that succeeds.
    Refused,
}

/// Why a connection ended or was not opened, and why what came was not taken.
const REASONS: [&str; 12] = [
    "unreachable",
    "timed_out",
    "tls",
    "refused",
    "busy",
    "redirected",
    "not_websocket",
    "broken",
    "silent",
    "no_pong",
    "no_ticks",
    "bad_messages",
];
const FAULTS: [&str; 3] = ["framing", "length", "segment"];

/// A connection that broke by itself.
pub(super) const BROKEN: &str = "broken";

/// What came and was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    Framing,
    Length,
    Segment,
}

/// Written by the thread, and by the scheduler what it says of batches.
pub(super) struct Counters {
    state: AtomicU8,
    live: AtomicBool,
    subscribed: AtomicUsize,
    /// Of the last tick, plus one; 0 before the first.
    ticked_mono_ms: AtomicU64,
    pub(super) ticks: AtomicU64,
    pub(super) frames: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) merged: AtomicU64,
    pub(super) published: Durations,
    ended: [AtomicU64; REASONS.len()],
    bad: [AtomicU64; FAULTS.len()],
    /// The place in [`REASONS`] of the last failure, plus one; 0 once it speaks.
    failure: AtomicU8,
}

/// One reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TickerReading {
    /// One of [`TICKER_STATES`].
    pub state: &'static str,
    /// Every leading index has ticked within seconds.
    pub live: bool,
    /// Since the last tick; `None` before the first.
    pub age_ms: Option<u64>,
    pub subscribed: usize,
    pub ticks: u64,
    pub frames: u64,
    pub bytes: u64,
    /// Times that a batch had to wait for the one before.
    pub merged: u64,
    /// From the first tick of a batch to when requests can read its prices.
    pub published: DurationCounts,
    /// Connections that ended or could not be opened, by reason.
    pub ended: Vec<(&'static str, u64)>,
    /// Messages and packets that were not taken, by fault.
    pub bad: Vec<(&'static str, u64)>,
    /// Why the last connection ended or could not be opened; `None` once it speaks.
    pub failure: Option<&'static str>,
}

impl TickerReading {
    /// Of a ticker that does not exist.
    pub fn off() -> Self {
        Counters::default().read(0)
    }
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            state: AtomicU8::default(),
            live: AtomicBool::default(),
            subscribed: AtomicUsize::default(),
            ticked_mono_ms: AtomicU64::default(),
            ticks: AtomicU64::default(),
            frames: AtomicU64::default(),
            bytes: AtomicU64::default(),
            merged: AtomicU64::default(),
            published: Durations::new(1),
            ended: Default::default(),
            bad: Default::default(),
            failure: AtomicU8::default(),
        }
    }
}

impl Counters {
    pub(super) fn set_state(&self, state: State) {
        self.state.store(state as u8, Relaxed);
        match state {
            State::Speaking => self.failure.store(0, Relaxed),
            State::Subscribing => {}
            State::Off => {
                self.failure.store(0, Relaxed);
                self.set_gone();
            }
            State::Connecting | State::Waiting | State::Refused => self.set_gone(),
        }
    }

    fn set_gone(&self) {
        self.live.store(false, Relaxed);
        self.subscribed.store(0, Relaxed);
    }

    pub(super) fn set_live(&self, live: bool) {
        self.live.store(live, Relaxed);
    }

    pub(super) fn set_subscribed(&self, subscribed: usize) {
        self.subscribed.store(subscribed, Relaxed);
    }

    pub(super) fn ticked(&self, now_mono_ms: u64) {
        self.ticks.fetch_add(1, Relaxed);
        self.ticked_mono_ms.store(now_mono_ms + 1, Relaxed);
    }

    pub(super) fn bad(&self, bad: Bad) {
        self.bad[bad as usize].fetch_add(1, Relaxed);
    }

    /// Counts the end of a connection. Gives false where the last one ended likewise.
    pub(super) fn ended(&self, reason: &str) -> bool {
        let Some(place) = REASONS.iter().position(|known| *known == reason) else { return true };
        self.ended[place].fetch_add(1, Relaxed);
        let told = place as u8 + 1;
        self.failure.swap(told, Relaxed) != told
    }

    pub(super) fn is_live(&self) -> bool {
        self.live.load(Relaxed)
    }

    pub(super) fn read(&self, now_mono_ms: u64) -> TickerReading {
        let ticked_mono_ms = self.ticked_mono_ms.load(Relaxed).checked_sub(1);
        let counts = |names: &[&'static str], counts: &[AtomicU64]| {
            names.iter().zip(counts).map(|(name, count)| (*name, count.load(Relaxed))).collect()
        };
        let failure = usize::from(self.failure.load(Relaxed)).checked_sub(1);
        TickerReading {
            state: TICKER_STATES[usize::from(self.state.load(Relaxed))],
            live: self.is_live(),
            age_ms: ticked_mono_ms.map(|at| now_mono_ms.saturating_sub(at)),
            subscribed: self.subscribed.load(Relaxed),
            ticks: self.ticks.load(Relaxed),
            frames: self.frames.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            merged: self.merged.load(Relaxed),
            published: self.published.read(0),
            ended: counts(&REASONS, &self.ended),
            bad: counts(&FAULTS, &self.bad),
            failure: failure.and_then(|place| REASONS.get(place).copied()),
        }
    }
}

impl Why {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::NoPong => "no_pong",
            Self::NoTicks => "no_ticks",
            Self::BadMessages => "bad_messages",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::brokers::broker_a::ticker::dial::OpenFailure;

    #[test]
    fn every_reason_is_counted_under_its_name_and_told_once_in_a_row() {
        let counters = Counters::default();
        let opening = [
            OpenFailure::Unreachable,
            OpenFailure::TimedOut,
            OpenFailure::Tls,
            OpenFailure::Refused,
            OpenFailure::Busy,
            OpenFailure::Redirected,
            OpenFailure::NotWebSocket,
        ];
        let watching = [Why::Silent, Why::NoPong, Why::NoTicks, Why::BadMessages];
        let mut reasons: Vec<&str> = opening.map(OpenFailure::as_str).into();
        reasons.push(BROKEN);
        reasons.extend(watching.map(Why::as_str));
        assert_eq!(reasons, REASONS);
        for reason in reasons {
            assert!(counters.ended(reason) && !counters.ended(reason));
            assert_eq!(counters.read(0).failure, Some(reason));
        }
        assert!(counters.read(0).ended.iter().all(|(_, count)| *count == 2));
        counters.set_state(State::Speaking);
        assert_eq!((counters.read(0).state, counters.read(0).failure), ("speaking", None));
    }
}
