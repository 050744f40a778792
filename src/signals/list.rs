//! The published list of a date's signals. Pure.
//!
//! Signals of one symbol and date are listed together, at the position of the best of them. The
//! list is made from the ledger (the append-only record in the store), so that every listed signal
//! is on record. Provisional signals, of an unfinished candle, may be listed among them; each is
//! marked and has its own date. Shares and probabilities are binary floats, because they are
//! statistics and not prices.

use std::cmp::Ordering;
use std::collections::HashMap;

use jiff::Timestamp;
use jiff::civil::Date;

use crate::base::Symbol;
use crate::signals::confidence::{PRIOR_DATES, Weight};
use crate::signals::patterns::{Direction, Key};

/// Most signals in the snapshot.
pub(crate) const TOP_MAX: usize = 10;
/// Lowest confidence for the snapshot. A signal below it is likelier wrong than right.
pub(crate) const TOP_CONFIDENCE_MIN: f64 = 0.5;

/// A published signal.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedSignal {
    pub symbol: Symbol,
    pub pattern: String,
    pub direction: Direction,
    pub confidence: f64,
    /// Weight of the prior in the confidence, in dates.
    pub prior_dates: u32,
    /// Dates with the same pattern in the window.
    pub samples: u32,
    /// Mean over these dates of the share of hits on each; `None` for a pattern never seen.
    pub date_hit_rate: Option<f64>,
    /// Signals on these dates, and how many of them hit; `None` if they were not counted.
    pub past: Option<(u32, u32)>,
    pub base_rate: f64,
    pub simulated: bool,
    /// Whether its candle is unfinished.
    pub provisional: bool,
}

/// All signals of one date, in the published order.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalList {
    /// The date of the finished candles.
    pub as_of: Date,
    pub signals: Vec<ListedSignal>,
    /// When the provisional signals in the list were found; `None` if there are none.
    pub look: Option<ScanTime>,
}

/// A look for patterns in the candles of a session that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanTime {
    pub date: Date,
    pub at: Timestamp,
}

impl SignalList {
    /// A list of signals of finished candles, which come in ranked order. Those of one symbol are
    /// moved together.
    pub fn complete(as_of: Date, mut signals: Vec<ListedSignal>) -> Self {
        put_together(&mut signals);
        Self { as_of, signals, look: None }
    }

    /// The list with the provisional signals `found`, which replace earlier provisional ones. All
    /// are ranked together. Among equals a complete signal comes first.
    pub(crate) fn with_provisional(&self, look: ScanTime, found: Vec<ListedSignal>) -> Self {
        let mut list = self.without_provisional();
        if !found.is_empty() {
            list.signals.extend(found);
            list.signals.sort_by(by_rank);
            put_together(&mut list.signals);
            list.look = Some(look);
        }
        list
    }

    /// The list without provisional signals.
    pub(crate) fn without_provisional(&self) -> Self {
        let complete = self.signals.iter().filter(|signal| !signal.provisional);
        Self::complete(self.as_of, complete.cloned().collect())
    }

    /// The signals for the snapshot: the best of each symbol, at most [`TOP_MAX`], none that is
    /// likelier wrong than right, and none of a symbol with signals of both directions.
    pub(crate) fn top(&self) -> Vec<&ListedSignal> {
        let mut top: Vec<&ListedSignal> = Vec::with_capacity(TOP_MAX);
        let good = self.signals.iter().filter(|s| s.confidence >= TOP_CONFIDENCE_MIN);
        for signal in good {
            if top.len() == TOP_MAX {
                break;
            }
            let is_new = top.iter().all(|listed| listed.symbol != signal.symbol);
            if is_new && !self.signals.iter().any(|other| signal.is_contradicted_by(other)) {
                top.push(signal);
            }
        }
        top
    }
}

impl ListedSignal {
    /// The signal of a pattern with this weight.
    pub(crate) fn of(symbol: Symbol, key: Key, weight: &Weight) -> Self {
        Self {
            symbol,
            pattern: key.name().to_owned(),
            direction: key.direction(),
            confidence: weight.confidence,
            prior_dates: PRIOR_DATES,
            samples: weight.dates,
            date_hit_rate: weight.date_hit_rate,
            past: Some((weight.signals, weight.hits)),
            base_rate: weight.base_rate,
            simulated: false,
            provisional: false,
        }
    }

    /// Share of hits among the pattern's past signals.
    pub(crate) fn hit_rate(&self) -> Option<f64> {
        let (signals, hits) = self.past.filter(|(signals, _)| *signals > 0)?;
        Some(f64::from(hits) / f64::from(signals))
    }

    /// Whether both signals are of one candle. Complete and provisional signals are of different
    /// dates.
    pub(crate) fn is_of_candle(&self, other: &Self) -> bool {
        (&self.symbol, self.provisional) == (&other.symbol, other.provisional)
    }

    fn is_contradicted_by(&self, other: &Self) -> bool {
        self.symbol == other.symbol && self.direction != other.direction
    }
}

/// The values that decide the position of a signal in a list.
pub struct Rank<'a> {
    pub confidence: f64,
    /// Dates with the same pattern in the window.
    pub dates: u32,
    pub pattern: &'a str,
    pub symbol: &'a str,
    pub provisional: bool,
}

/// A row of a list of signals.
pub trait Ranked {
    fn rank(&self) -> Rank<'_>;
}

impl Ranked for ListedSignal {
    fn rank(&self) -> Rank<'_> {
        Rank {
            confidence: self.confidence,
            dates: self.samples,
            pattern: &self.pattern,
            symbol: self.symbol.as_str(),
            provisional: self.provisional,
        }
    }
}

/// The order of publication: highest confidence first, then most dates, then pattern, then symbol.
/// Among equals a complete signal comes first. Ties are common, since all symbols with one pattern
/// have the same confidence.
pub fn by_rank<T: Ranked>(one: &T, other: &T) -> Ordering {
    let one = one.rank();
    let other = other.rank();
    other
        .confidence
        .total_cmp(&one.confidence)
        .then_with(|| other.dates.cmp(&one.dates))
        .then_with(|| one.pattern.cmp(other.pattern))
        .then_with(|| one.symbol.cmp(other.symbol))
        .then_with(|| one.provisional.cmp(&other.provisional))
}

/// Moves rows of one candle together, to the position of the first of them. The order is otherwise
/// kept.
pub(crate) fn put_together<T: Ranked>(rows: &mut Vec<T>) {
    let mut first = HashMap::new();
    let candles = rows.iter().map(|row| {
        let Rank { symbol, provisional, .. } = row.rank();
        (symbol, provisional)
    });
    let places: Vec<usize> =
        candles.enumerate().map(|(at, candle)| *first.entry(candle).or_insert(at)).collect();
    let mut placed: Vec<(usize, T)> = places.into_iter().zip(rows.drain(..)).collect();
    placed.sort_by_key(|(place, _)| *place);
    rows.extend(placed.into_iter().map(|(_, row)| row));
}

// ---- Wording
//
// Sentences that go out with every list of signals.

/// The meaning of a confidence.
pub(crate) const MEANING: &str = "Estimated chance that the close five sessions later has moved \
    this way. Most of it is the market's own drift: how often any share moved this way on any day. \
    The pattern's own last two years add the rest, the more dates the more. Patterns have not been \
    shown to add anything. Closes before 3 August 2026 are averages of the last half hour, later \
    ones auction prices; what that changes is not known yet.";

/// The meaning of a provisional signal.
pub(crate) const PROVISIONAL_MEANING: &str = "Found in a day's candle before its official close, \
    where a pattern can appear and vanish; kept as first shown. Confirmed are those that the \
    finished candle has too, vanished those that it has not. Judged from the official close of \
    their date, not from the price at which they were shown.";

/// The disclaimer.
pub(crate) const DISCLAIMER: &str = "Information, not investment advice. No costs are counted; \
    entering at the next open would give less. Signals of one day are not independent. A universe \
    of today's members leaves out those that fell out of it, so that rises look likelier than they \
    were.";
