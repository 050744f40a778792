//! How signals did, date by date, and the confidence that follows.
//!
//! One date counts once per key, however many symbols gave it: signals of one day share the
//! market's move. Pure arithmetic over sums that are made once; asking is a few subtractions.

use super::patterns::{KEYS, Key};
use super::{Direction, HORIZON_SESSIONS};

/// Dates that the window reaches back, about two years.
pub const WINDOW_DATES: usize = 504;
/// Weight of the prior, in dates. Smaller ones predict worse, larger ones make the number constant.
const PRIOR_DATES: f64 = 300.0;
/// How far the base rate is believed: two years of drift say little about the next week.
const BASE_WEIGHT: f64 = 0.5;

/// One symbol's bars on the common index of dates, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    /// Place of its date among the dates of the universe.
    pub date: usize,
    pub close_e4: i64,
}

/// What is known of a key at a date, from dates before it alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weight {
    /// Estimated probability that the close five sessions later has moved as the key claims.
    pub confidence: f64,
    /// Dates with such a signal in the window.
    pub dates: u32,
    /// Signals on them.
    pub signals: u32,
    /// Share of hits, each date counted once; `None` for a key never seen.
    pub hit_rate: Option<f64>,
    /// Share of all symbol-days in the window that moved in the key's direction.
    pub base_rate: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    signals: u32,
    hits: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Moves {
    all: u64,
    up: u64,
    down: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    dates: u32,
    signals: u32,
    /// Sum over dates of hits / signals.
    share: f64,
}

/// Collects outcomes, symbol by symbol.
pub struct Outcomes {
    moves: Vec<Moves>,
    tallies: Vec<Vec<Tally>>,
}

impl Outcomes {
    /// For a universe with this many dates.
    pub fn new(dates: usize) -> Self {
        Self { moves: vec![Moves::default(); dates], tallies: vec![Vec::new(); KEYS] }
    }

    /// Counts a symbol's days and its signals, each given by the bar it stands on.
    pub fn add(&mut self, bars: &[Bar], signals: &[(usize, Key)]) {
        for (bar, later) in bars.iter().zip(bars.iter().skip(HORIZON_SESSIONS)) {
            let moves = &mut self.moves[bar.date];
            moves.all += 1;
            moves.up += u64::from(Direction::Bullish.is_hit(bar.close_e4, later.close_e4));
            moves.down += u64::from(Direction::Bearish.is_hit(bar.close_e4, later.close_e4));
        }
        for (at, key) in signals {
            let Some(hit) = hit(bars, *at, *key) else { continue };
            let dates = self.moves.len();
            let tallies = &mut self.tallies[key.index()];
            if tallies.is_empty() {
                tallies.resize(dates, Tally::default());
            }
            let tally = &mut tallies[bars[*at].date];
            tally.signals += 1;
            tally.hits += u32::from(hit);
        }
    }

    /// Makes the sums.
    pub fn finish(self) -> Record {
        let mut moves = vec![Moves::default()];
        for day in &self.moves {
            let so_far = moves[moves.len() - 1];
            moves.push(Moves {
                all: so_far.all + day.all,
                up: so_far.up + day.up,
                down: so_far.down + day.down,
            });
        }
        Record { moves, sums: self.tallies.iter().map(|tallies| sums(tallies)).collect() }
    }
}

/// What a key never seen is given: the base rate, half believed.
pub fn prior(base_rate: f64) -> f64 {
    0.5 + BASE_WEIGHT * (base_rate - 0.5)
}

fn sums(tallies: &[Tally]) -> Vec<Sums> {
    let mut sums = vec![Sums::default(); usize::from(!tallies.is_empty())];
    for tally in tallies {
        let mut next = sums[sums.len() - 1];
        if tally.signals > 0 {
            next.dates += 1;
            next.signals += tally.signals;
            next.share += f64::from(tally.hits) / f64::from(tally.signals);
        }
        sums.push(next);
    }
    sums
}

/// Whether the signal on bar `at` came true; `None` while that is not known.
pub fn hit(bars: &[Bar], at: usize, key: Key) -> Option<bool> {
    let (bar, later) = (bars.get(at)?, bars.get(at + HORIZON_SESSIONS)?);
    Some(key.direction().is_hit(bar.close_e4, later.close_e4))
}

/// Outcomes as sums over dates; entry `i` covers the dates before `i`.
pub struct Record {
    moves: Vec<Moves>,
    /// Per key; empty for a key that never came.
    sums: Vec<Vec<Sums>>,
}

impl Record {
    /// What was known of `key` at the close of `date`.
    pub fn weigh(&self, key: Key, date: usize) -> Weight {
        let from = date.saturating_sub(WINDOW_DATES);
        // Outcomes of the last dates are not known yet.
        let until = (date + 1).saturating_sub(HORIZON_SESSIONS).max(from);
        let base_rate = self.base_rate(key.direction(), from, until);
        let prior = prior(base_rate);
        let (first, last) = match self.sums[key.index()].as_slice() {
            [] => (Sums::default(), Sums::default()),
            sums => (sums[from], sums[until]),
        };
        let dates = last.dates - first.dates;
        // A difference of sums may come out a hair below zero.
        let share = (last.share - first.share).max(0.0);
        Weight {
            confidence: (share + PRIOR_DATES * prior) / (f64::from(dates) + PRIOR_DATES),
            dates,
            signals: last.signals - first.signals,
            hit_rate: (dates > 0).then(|| share / f64::from(dates)),
            base_rate,
        }
    }

    /// A coin where nothing is known.
    fn base_rate(&self, direction: Direction, from: usize, until: usize) -> f64 {
        let (first, last) = (self.moves[from], self.moves[until]);
        let moved = match direction {
            Direction::Bullish => last.up - first.up,
            Direction::Bearish => last.down - first.down,
        };
        match last.all - first.all {
            0 => 0.5,
            all => moved as f64 / all as f64,
        }
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
