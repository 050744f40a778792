//! State and counters of the ticker's thread, read by the scheduler. The lock is held for a few
//! instructions.

use parking_lot::Mutex;

use crate::base::words;
use crate::ops::counter::Counts;
use crate::ops::histogram::{DurationCounts, Durations};

pub(super) use crate::views::states::TickerState as State;

words! {
    /// The reason why a connection ended or could not be opened.
    pub(super) enum Reason {
        /// The name has no address, or the connection was refused.
        Unreachable = "unreachable",
        TimedOut = "timed_out",
        Tls = "tls",
        /// 403: the token is dead, the plan has no data, or too many connections are open.
        Refused = "refused",
        /// 429, or a server error of the broker.
        Busy = "busy",
        Redirected = "redirected",
        /// Any other answer to the upgrade.
        NotWebSocket = "not_websocket",
        /// The connection broke.
        Broken = "broken",
        /// No message came, not even a heartbeat.
        Silent = "silent",
        NoPong = "no_pong",
        /// The leading indices do not tick.
        NoTicks = "no_ticks",
        BadMessages = "bad_messages",
    }
}

words! {
    /// Faults of received data that is not used.
    pub(super) enum Bad {
        Framing = "framing",
        Length = "length",
        Segment = "segment",
    }
}

/// Written by the thread; `published` by the scheduler.
#[derive(Default)]
pub(super) struct Counters {
    /// Without its age and the counts beside it here.
    reading: Mutex<TickerReading>,
    ticked_mono_ms: Mutex<Option<u64>>,
    pub(super) published: Durations,
    ended: Counts<Reason>,
    pub(super) bad: Counts<Bad>,
}

/// State and counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TickerReading {
    pub state: State,
    /// Every leading index has ticked within the last seconds.
    pub live: bool,
    /// Time since the last tick; `None` before the first.
    pub age_ms: Option<u64>,
    pub subscribed: usize,
    pub ticks: u64,
    pub frames: u64,
    pub bytes: u64,
    /// Number of batches that had to wait for the one before.
    pub merged: u64,
    /// Time from the first tick of a batch until requests can read its prices.
    pub published: DurationCounts,
    /// Connections that ended or could not be opened, by reason.
    pub ended: Vec<(&'static str, u64)>,
    /// Messages and packets that were dropped, by fault.
    pub bad: Vec<(&'static str, u64)>,
    /// Why the last connection ended or could not be opened; `None` once prices flow.
    pub failure: Option<&'static str>,
}

impl Counters {
    /// Changes what the thread alone knows.
    pub(super) fn update(&self, change: impl FnOnce(&mut TickerReading)) {
        change(&mut self.reading.lock());
    }

    pub(super) fn set_state(&self, state: State) {
        let mut reading = self.reading.lock();
        reading.state = state;
        if let State::Speaking | State::Off = state {
            reading.failure = None;
        }
        if !matches!(state, State::Speaking | State::Subscribing) {
            (reading.live, reading.subscribed) = (false, 0);
        }
    }

    pub(super) fn ticked(&self, now_mono_ms: u64) {
        self.update(|reading| reading.ticks += 1);
        *self.ticked_mono_ms.lock() = Some(now_mono_ms);
    }

    /// Counts the end of a connection. Returns false if the last one ended for the same reason.
    pub(super) fn ended(&self, reason: Reason) -> bool {
        self.ended.increment(reason);
        let told = Some(reason.as_str());
        std::mem::replace(&mut self.reading.lock().failure, told) != told
    }

    pub(super) fn is_live(&self) -> bool {
        self.reading.lock().live
    }

    pub(super) fn read(&self, now_mono_ms: u64) -> TickerReading {
        let ticked_mono_ms = *self.ticked_mono_ms.lock();
        TickerReading {
            age_ms: ticked_mono_ms.map(|at| now_mono_ms.saturating_sub(at)),
            published: self.published.read(0),
            ended: self.ended.by_word(),
            bad: self.bad.by_word(),
            ..self.reading.lock().clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_counted_under_its_name_and_told_once_in_a_row() {
        let counters = Counters::default();
        for reason in Reason::ALL {
            assert!(counters.ended(reason) && !counters.ended(reason));
            assert_eq!(counters.read(0).failure, Some(reason.as_str()));
        }
        assert!(counters.read(0).ended.iter().all(|(_, count)| *count == 2));
        counters.set_state(State::Speaking);
        assert_eq!((counters.read(0).state, counters.read(0).failure), (State::Speaking, None));
    }
}
