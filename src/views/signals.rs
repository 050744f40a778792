//! `GET /api/signals`, and the signals of the snapshot.

use std::borrow::Cow;
use std::sync::Arc;

use crate::base::Symbol;
use crate::signals;
use crate::signals::{DISCLAIMER, Direction, HORIZON_SESSIONS, MEANING};
use crate::views::states::DataState;
use crate::views::values::{self, Day, Mark, Share, Simulated, documents};
use jiff::civil::Date;

documents! {
    /// How much of what is being made is there.
    #[derive(Copy, Eq)]
    pub struct Progress {
        pub done: usize,
        pub of: usize,
    }

    /// The signals of the last published date.
    pub struct SignalList<'a> {
        /// `ready` once a list was published. Before: `loading` while candles are fetched,
        /// `unreachable` while they cannot be, `none` if the calendar knows no date to fetch.
        pub state: DataState,
        /// Why there is no list; present with `unreachable` and `none`.
        pub detail?: Option<&'a str>,
        /// Shares whose candles are there, of those of which signals are made; present while it is
        /// known and no list was published.
        pub progress?: Option<Progress>,
        /// The last published date; null before there is one.
        pub as_of: Option<Day>,
        pub horizon_sessions: usize,
        /// Number of signals listed.
        pub count: usize,
        /// Highest confidence first, except that signals of one symbol and date are listed
        /// together.
        pub signals: Vec<ListedSignal<'a>>,
        /// Explains what a confidence is.
        pub meaning: &'static str,
        pub disclaimer: &'static str,
    }

    /// A candlestick pattern and its past performance; not advice.
    pub struct Signal<'a> {
        pub symbol: Symbol,
        /// Name of the pattern.
        pub pattern: Cow<'a, str>,
        pub direction: Direction,
        /// Estimated probability that the close after the horizon has moved in this direction.
        pub confidence: Share,
        /// Date of the candle.
        pub as_of: Day,
        /// Sessions after which the signal is judged.
        pub horizon_sessions: usize,
        /// Dates with the same pattern in the window of two years.
        pub samples: u32,
        /// Share of hits among the pattern's past signals in the window, each counted once; null
        /// for a pattern never seen, and for a signal published before these were counted.
        pub hit_rate: Option<Share>,
        /// The base rate: share of all symbol-days in the window that moved in this direction.
        pub base_rate: Share,
        pub(crate) simulated?: Simulated,
    }

    /// A signal with the data that its confidence was derived from; not advice.
    pub struct ListedSignal<'a> {
        #[serde(flatten)]
        pub signal: Signal<'a>,
        /// Past signals of the pattern in the window; null for a signal published before they were
        /// counted.
        pub past_signals: Option<u32>,
        /// How many of `past_signals` hit.
        pub past_hits: Option<u32>,
        /// Mean over the dates in `samples` of the share of hits on each, which the confidence
        /// uses; null for a pattern never seen.
        pub date_hit_rate: Option<Share>,
        /// Weight of the base rate in the confidence, in dates.
        pub prior_dates: u32,
        /// Present, and true, if another signal of the same symbol and date has the opposite
        /// direction; absent otherwise.
        pub conflict?: Mark,
    }
}

/// The signals in the snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownSignals {
    /// The best signals of the list.
    pub top: Arc<[Signal<'static>]>,
    /// The date of the list; `None` before there is one.
    pub as_of: Option<Date>,
}

impl ShownSignals {
    /// No signals, for the time before the first list.
    pub fn none() -> Self {
        Self {
            top: Arc::new([]),
            as_of: None,
        }
    }

    /// The signals of a published list.
    pub fn of(list: &signals::SignalList) -> Self {
        let owned = |listed: &signals::ListedSignal| Signal {
            pattern: Cow::Owned(listed.pattern.clone()),
            ..Signal::of(list, listed)
        };
        Self {
            top: list.top().into_iter().map(owned).collect(),
            as_of: Some(list.as_of),
        }
    }
}

impl<'a> SignalList<'a> {
    /// The document before the first list.
    pub(crate) fn awaited(
        state: DataState,
        detail: Option<&'a str>,
        progress: Option<Progress>,
    ) -> Self {
        Self {
            state,
            detail,
            progress,
            as_of: None,
            horizon_sessions: HORIZON_SESSIONS,
            count: 0,
            signals: Vec::new(),
            meaning: MEANING,
            disclaimer: DISCLAIMER,
        }
    }

    /// The document of `list` with the signals that `keep` chooses.
    pub fn of(
        list: &'a signals::SignalList,
        keep: impl Fn(&signals::ListedSignal) -> bool,
    ) -> Self {
        let mut rows: Vec<ListedSignal<'_>> = Vec::with_capacity(list.signals.len());
        // Rows of one symbol are adjacent.
        for of_symbol in list
            .signals
            .chunk_by(|one, other| one.symbol == other.symbol)
        {
            let conflict = of_symbol
                .iter()
                .any(|row| row.direction != of_symbol[0].direction);
            let kept = of_symbol.iter().filter(|signal| keep(signal));
            rows.extend(kept.map(|kept| ListedSignal::of(list, kept, conflict)));
        }
        Self {
            state: DataState::Ready,
            detail: None,
            progress: None,
            as_of: Some(Day(list.as_of)),
            horizon_sessions: HORIZON_SESSIONS,
            count: rows.len(),
            signals: rows,
            meaning: MEANING,
            disclaimer: DISCLAIMER,
        }
    }

    /// The body of the response.
    pub fn write(&self, out: &mut Vec<u8>) {
        values::write(out, self);
    }
}

impl<'a> Signal<'a> {
    fn of(list: &signals::SignalList, signal: &'a signals::ListedSignal) -> Self {
        Self {
            symbol: signal.symbol.clone(),
            pattern: Cow::Borrowed(&signal.pattern),
            direction: signal.direction,
            confidence: Share::of(signal.confidence),
            as_of: Day(list.as_of),
            horizon_sessions: HORIZON_SESSIONS,
            samples: signal.samples,
            hit_rate: signal.hit_rate().map(Share::of),
            base_rate: Share::of(signal.base_rate),
            simulated: Simulated(signal.simulated),
        }
    }
}

impl<'a> ListedSignal<'a> {
    fn of(list: &signals::SignalList, signal: &'a signals::ListedSignal, conflict: bool) -> Self {
        Self {
            signal: Signal::of(list, signal),
            past_signals: signal.past.map(|(signals, _)| signals),
            past_hits: signal.past.map(|(_, hits)| hits),
            date_hit_rate: signal.date_hit_rate.map(Share::of),
            prior_dates: signal.prior_dates,
            conflict: Mark(conflict),
        }
    }
}

#[cfg(test)]
#[path = "signals_tests.rs"]
mod tests;
