//! The typed records of candles and signals. Plain values; nothing here knows SQL.

use jiff::civil::Date;

use crate::base::{Candle, Source, Symbol};

/// What is stored of a symbol's candles, but for the candles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandleHistory {
    pub symbol: Symbol,
    /// Who sent all of them.
    pub source: Source,
    pub simulated: bool,
    /// They cannot be trusted until all of them have been fetched again.
    pub refetch: bool,
    /// Of the newest candle.
    pub last: Option<Date>,
    pub suspicions: Vec<SplitSuspicion>,
}

/// A day that looks as if the share had been split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitSuspicion {
    pub date: Date,
    /// A fresh fetch of everything said the same on a later date: it was a real move.
    pub confirmed: bool,
}

/// A whole history, in place of what is stored.
#[derive(Clone, Debug)]
pub struct NewHistory {
    pub symbol: Symbol,
    pub source: Source,
    pub simulated: bool,
    /// Ascending.
    pub candles: Vec<Candle>,
    pub suspicions: Vec<SplitSuspicion>,
}

/// What a confidence was made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Basis {
    /// Weight of the prior, in dates.
    pub prior_dates: u32,
    /// Dates with such a signal in the window.
    pub dates: u32,
    /// Mean over those dates of the share of hits on each.
    pub date_hit_rate: Option<f64>,
    /// Signals on those dates and how many of them hit; `None` in lines older than the count.
    pub signals_and_hits: Option<(u32, u32)>,
    pub base_rate: f64,
}

/// A signal as it was published.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedSignal {
    pub symbol: Symbol,
    pub pattern: String,
    /// It claims a rise; else a fall.
    pub bullish: bool,
    pub confidence: f64,
    pub basis: Basis,
    /// Close of its day, in ten-thousandths of a rupee.
    pub close_e4: i64,
    /// Among the date's signals, from 1.
    pub rank: u32,
    pub simulated: bool,
}

/// What became of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalOutcome {
    /// The session on which it was known.
    pub judged_on: Date,
    /// Closes of both sessions as the history had them then, which a split rewrites.
    pub from_close_e4: i64,
    pub to_close_e4: i64,
    pub hit: bool,
    /// Symbols of the universe that traded on both dates, and those of them that moved as the
    /// signal claims; `None` in outcomes older than the count.
    pub universe: Option<(u32, u32)>,
}

/// A line of the ledger.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerEntry {
    /// Rising, in the order of publication.
    pub id: i64,
    pub on: Date,
    pub signal: PublishedSignal,
    pub outcome: Option<SignalOutcome>,
    /// It has one, or its candle is among the stored ones, so that it can be judged.
    pub has_candle: bool,
}

/// A signal of an unfinished candle, as it was when it was first found.
#[derive(Clone, Debug, PartialEq)]
pub struct ProvisionalSignal {
    pub symbol: Symbol,
    pub pattern: String,
    /// It claims a rise; else a fall.
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
    /// The date's complete list is not there.
    Unknown,
    Confirmed,
    Vanished,
}

/// A line of the ledger of provisional signals.
#[derive(Clone, Debug, PartialEq)]
pub struct ProvisionalEntry {
    /// Rising, in the order of first sight.
    pub id: i64,
    pub on: Date,
    pub signal: ProvisionalSignal,
    pub first_seen_ms: i64,
    pub completion: Completion,
    pub outcome: Option<SignalOutcome>,
    /// As for complete ones.
    pub has_candle: bool,
}
