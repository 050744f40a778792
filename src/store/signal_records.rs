//! The typed records of candles and signals. Plain values that know no SQL.

use jiff::civil::Date;

use crate::base::{Candle, Source, Symbol};

/// A symbol's stored history, without the candles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandleHistory {
    pub symbol: Symbol,
    /// The source of all candles.
    pub source: Source,
    pub simulated: bool,
    /// Whether the candles cannot be trusted until all are fetched again.
    pub refetch: bool,
    /// Date of the newest candle.
    pub last: Option<Date>,
    pub suspicions: Vec<SplitSuspicion>,
}

/// A symbol's newest candles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCandles {
    /// The source of all candles.
    pub source: Source,
    pub simulated: bool,
    /// Whether the candles cannot be trusted until all are fetched again.
    pub refetch: bool,
    /// Oldest first.
    pub candles: Vec<Candle>,
}

/// A date that looks like an unadjusted split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitSuspicion {
    pub date: Date,
    /// Whether a later fetch of the whole history had the same prices, so that it was a real move.
    pub confirmed: bool,
}

/// A whole history that replaces the stored one.
#[derive(Clone, Debug)]
pub struct NewHistory {
    pub symbol: Symbol,
    pub source: Source,
    pub simulated: bool,
    /// Ascending.
    pub candles: Vec<Candle>,
    pub suspicions: Vec<SplitSuspicion>,
}

/// The data that a confidence was derived from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Basis {
    /// Weight of the prior, in dates.
    pub prior_dates: u32,
    /// Dates with the same pattern in the window.
    pub dates: u32,
    /// Mean over these dates of the share of hits on each.
    pub date_hit_rate: Option<f64>,
    /// Signals on these dates, and how many of them hit; `None` in entries older than this count.
    pub signals_and_hits: Option<(u32, u32)>,
    pub base_rate: f64,
}

/// A signal as it was published.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedSignal {
    pub symbol: Symbol,
    pub pattern: String,
    /// True if the signal claims a rise, false for a fall.
    pub bullish: bool,
    pub confidence: f64,
    pub basis: Basis,
    /// Close of its date, in ten-thousandths of a rupee.
    pub close_e4: i64,
    /// Rank among the date's signals, from 1.
    pub rank: u32,
    pub simulated: bool,
}

/// The outcome of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalOutcome {
    /// The session on which the outcome was known.
    pub judged_on: Date,
    /// Closes of both sessions as the history had them at that time. A later split changes them in
    /// the history.
    pub from_close_e4: i64,
    pub to_close_e4: i64,
    pub hit: bool,
    /// Symbols of the universe that traded on both dates, and how many of them moved in the
    /// signal's direction; `None` in outcomes older than this count.
    pub universe: Option<(u32, u32)>,
}

/// An entry of the ledger of published signals.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerEntry {
    /// Ascending in the order of publication.
    pub id: i64,
    pub on: Date,
    pub signal: PublishedSignal,
    pub outcome: Option<SignalOutcome>,
    /// Whether the signal can be judged: it has an outcome, or its candle is stored.
    pub has_candle: bool,
}

/// A provisional signal (of an unfinished candle), as it was when it was first found.
#[derive(Clone, Debug, PartialEq)]
pub struct ProvisionalSignal {
    pub symbol: Symbol,
    pub pattern: String,
    /// True if the signal claims a rise, false for a fall.
    pub bullish: bool,
    pub confidence: f64,
    pub basis: Basis,
    /// Last price of the candle, in ten-thousandths of a rupee.
    pub price_e4: i64,
    pub simulated: bool,
}

/// Whether the finished candle has the pattern too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The date's complete list has not been published.
    Unknown,
    Confirmed,
    Vanished,
}

/// An entry of the ledger of provisional signals.
#[derive(Clone, Debug, PartialEq)]
pub struct ProvisionalEntry {
    /// Ascending in the order in which the signals were found.
    pub id: i64,
    pub on: Date,
    pub signal: ProvisionalSignal,
    pub first_seen_ms: i64,
    pub completion: Completion,
    pub outcome: Option<SignalOutcome>,
    /// Whether the signal can be judged, as in [`LedgerEntry`].
    pub has_candle: bool,
}
