//! `GET /api/signals`, and the signals of the snapshot.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::civil::Date;
use serde::Serialize;

use super::values::{Day, Instant, Mark, Share, Simulated};
use crate::base::Symbol;
use crate::signals;
use crate::signals::{DISCLAIMER, Direction, HORIZON_SESSIONS, MEANING};
use crate::views::values;

/// The signals of the last published date.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SignalList<'a> {
    /// The last published date.
    pub as_of: Day,
    /// Date of the unfinished candles; only where provisional signals are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisional_as_of: Option<Day>,
    /// When the unfinished candles were evaluated; only where provisional signals are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisional_at: Option<Instant>,
    pub horizon_sessions: usize,
    /// Number of signals listed.
    pub count: usize,
    /// Highest confidence first, except that signals of one symbol and date are listed together.
    pub signals: Vec<ListedSignal<'a>>,
    /// Explains what a confidence is.
    pub meaning: &'static str,
    pub disclaimer: &'static str,
}

/// A candlestick pattern and its past performance; not advice.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Signal<'a> {
    pub symbol: Symbol,
    /// Name of the pattern.
    #[cfg_attr(
        test,
        schemars(extend("pattern" = "^[a-z0-9_]+$", "examples" = ["bullish_engulfing"]))
    )]
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
    /// Share of hits among the pattern's past signals in the window, each counted once; null for a
    /// pattern never seen, and for a signal published before these were counted.
    pub hit_rate: Option<Share>,
    /// The base rate: share of all symbol-days in the window that moved in this direction.
    pub base_rate: Share,
    #[serde(skip_serializing_if = "Simulated::is_absent")]
    pub simulated: Simulated,
    /// Present, and true, while the candle is unfinished, so that the pattern can still vanish;
    /// absent otherwise.
    #[serde(skip_serializing_if = "Mark::is_absent")]
    pub provisional: Mark,
}

/// A signal with the data that its confidence was derived from; not advice.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ListedSignal<'a> {
    #[serde(flatten)]
    pub signal: Signal<'a>,
    /// Past signals of the pattern in the window; null for a signal published before they were
    /// counted.
    pub past_signals: Option<u32>,
    /// How many of `past_signals` hit.
    pub past_hits: Option<u32>,
    /// Mean over the dates in `samples` of the share of hits on each, which the confidence uses;
    /// null for a pattern never seen.
    pub date_hit_rate: Option<Share>,
    /// Weight of the base rate in the confidence, in dates.
    #[cfg_attr(test, schemars(extend("minimum" = 1)))]
    pub prior_dates: u32,
    /// Present, and true, if another signal of the same symbol and date has the opposite direction;
    /// absent otherwise.
    #[serde(skip_serializing_if = "Mark::is_absent")]
    pub conflict: Mark,
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
        Self { top: Arc::new([]), as_of: None }
    }

    /// The signals of a published list.
    pub fn of(list: &signals::SignalList) -> Self {
        let owned = |listed: &signals::ListedSignal| Signal {
            pattern: Cow::Owned(listed.pattern.clone()),
            ..Signal::of(list, listed)
        };
        Self { top: list.top().into_iter().map(owned).collect(), as_of: Some(list.as_of) }
    }
}

impl<'a> SignalList<'a> {
    /// The document of `list` with the signals that `keep` chooses.
    pub fn of(
        list: &'a signals::SignalList,
        keep: impl Fn(&signals::ListedSignal) -> bool,
    ) -> Self {
        let mut rows: Vec<ListedSignal<'_>> = Vec::with_capacity(list.signals.len());
        // Rows of one candle are adjacent.
        for of_candle in list.signals.chunk_by(signals::ListedSignal::is_of_candle) {
            let conflict = of_candle.iter().any(|row| row.direction != of_candle[0].direction);
            let kept = of_candle.iter().filter(|signal| keep(signal));
            rows.extend(kept.map(|kept| ListedSignal::of(list, kept, conflict)));
        }
        let look = list.look.filter(|_| rows.iter().any(|row| row.signal.provisional.0));
        Self {
            as_of: Day(list.as_of),
            provisional_as_of: look.map(|look| Day(look.date)),
            provisional_at: look.map(|look| Instant(look.at)),
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
        let of_look = list.look.filter(|_| signal.provisional);
        Self {
            symbol: signal.symbol.clone(),
            pattern: Cow::Borrowed(&signal.pattern),
            direction: signal.direction,
            confidence: Share::of(signal.confidence),
            as_of: Day(of_look.map_or(list.as_of, |look| look.date)),
            horizon_sessions: HORIZON_SESSIONS,
            samples: signal.samples,
            hit_rate: signal.hit_rate().map(Share::of),
            base_rate: Share::of(signal.base_rate),
            simulated: Simulated(signal.simulated),
            provisional: Mark(signal.provisional),
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
