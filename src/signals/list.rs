//! The published list of a date's signals. Pure.
//!
//! Signals of one symbol and date are listed together, at the position of the best of them. The
//! list is made from the ledger (the append-only record in the store), so that every listed signal
//! is on record. Shares and probabilities are binary floats, because they are statistics and not
//! prices.

use std::cmp::Ordering;
use std::collections::HashMap;

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
}

/// All signals of one date, in the published order.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalList {
    pub as_of: Date,
    pub signals: Vec<ListedSignal>,
}

impl SignalList {
    /// The list of `signals`, which come in ranked order. Those of one symbol are moved together.
    pub fn of(as_of: Date, mut signals: Vec<ListedSignal>) -> Self {
        put_together(&mut signals);
        Self { as_of, signals }
    }

    /// The signals for the snapshot: the best of each symbol, at most [`TOP_MAX`], none that is
    /// likelier wrong than right, and none of a symbol with signals of both directions.
    pub(crate) fn top(&self) -> Vec<&ListedSignal> {
        let mut top: Vec<&ListedSignal> = Vec::with_capacity(TOP_MAX);
        let good = self
            .signals
            .iter()
            .filter(|s| s.confidence >= TOP_CONFIDENCE_MIN);
        for signal in good {
            if top.len() == TOP_MAX {
                break;
            }
            let is_new = top.iter().all(|listed| listed.symbol != signal.symbol);
            if is_new
                && !self
                    .signals
                    .iter()
                    .any(|other| signal.is_contradicted_by(other))
            {
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
        }
    }

    /// Share of hits among the pattern's past signals.
    pub(crate) fn hit_rate(&self) -> Option<f64> {
        let (signals, hits) = self.past.filter(|(signals, _)| *signals > 0)?;
        Some(f64::from(hits) / f64::from(signals))
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
        }
    }
}

/// The order of publication: highest confidence first, then most dates, then pattern, then symbol.
/// Ties are common, since all symbols with one pattern have the same confidence.
pub fn by_rank<T: Ranked>(one: &T, other: &T) -> Ordering {
    let one = one.rank();
    let other = other.rank();
    other
        .confidence
        .total_cmp(&one.confidence)
        .then_with(|| other.dates.cmp(&one.dates))
        .then_with(|| one.pattern.cmp(other.pattern))
        .then_with(|| one.symbol.cmp(other.symbol))
}

/// Moves rows of one symbol together, to the position of the first of them. The order is otherwise
/// kept.
pub(crate) fn put_together<T: Ranked>(rows: &mut Vec<T>) {
    let mut first = HashMap::new();
    let symbols = rows.iter().map(|row| row.rank().symbol);
    let places: Vec<usize> = symbols
        .enumerate()
        .map(|(at, symbol)| *first.entry(symbol).or_insert(at))
        .collect();
    let mut placed: Vec<(usize, T)> = places.into_iter().zip(rows.drain(..)).collect();
    placed.sort_by_key(|(place, _)| *place);
    rows.extend(placed.into_iter().map(|(_, row)| row));
}

// ---- Wording
//
// Sentences that go out with every list of signals.

/// The meaning of a confidence.
pub const MEANING: &str = "Estimated chance that the close five sessions later has moved \
    this way. Most of it is the market's own drift: how often any share moved this way on any day. \
    The pattern's own last two years add the rest, the more dates the more. Patterns have not been \
    shown to add anything. Closes before 3 August 2026 are averages of the last half hour, later \
    ones auction prices; what that changes is not known yet.";

/// The disclaimer.
pub const DISCLAIMER: &str = "Information, not investment advice. No costs are counted; \
    entering at the next open would give less. Signals of one day are not independent. A universe \
    of today's members leaves out those that fell out of it, so that rises look likelier than they \
    were.";
