//! How signals did, date by date, and the confidence that follows.
//!
//! One date counts once per key, however many symbols gave it: signals of one day share the
//! market's move. An outcome counts from the date on which it is known: a symbol that misses
//! sessions is judged by its own, and that is later. Sums of shares are made anew for each
//! question, oldest date first, so that nothing that came after leaves a trace in the last digit.
//! Pure arithmetic.

use super::direction::Direction;
use super::direction::HORIZON_SESSIONS;
use super::patterns::{KEYS, Key};

/// Dates that the window reaches back, about two years.
pub const WINDOW_DATES: usize = 504;
/// Weight of the prior, in dates. The differences between patterns, less what chance alone makes of
/// them, are about nothing: in 71 % of windows of 50 large Indian shares the data would ask for the
/// prior alone. Twice the window takes half of that noise out.
pub const PRIOR_DATES: u32 = 1_000;
/// How far the base rate is believed: two years of drift say little about the next week.
const BASE_WEIGHT: f64 = 0.5;

/// One symbol's bars on the common index of dates, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    /// Place of its date among the dates of the universe.
    pub date: usize,
    pub close_e4: i64,
    /// Its symbol gives no signals on the date, and its outcomes are not to be believed.
    pub is_silent: bool,
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
    /// Those of them that hit.
    pub hits: u32,
    /// Mean over the dates of the share of hits on each; `None` for a key never seen.
    pub date_hit_rate: Option<f64>,
    /// Share of all symbol-days in the window that moved in the key's direction.
    pub base_rate: f64,
}

impl Weight {
    /// Share of hits among the signals; `None` for a key never seen.
    pub fn hit_rate(&self) -> Option<f64> {
        (self.signals > 0).then(|| f64::from(self.hits) / f64::from(self.signals))
    }
}

/// Symbols and how many of them moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moves {
    pub all: u64,
    pub up: u64,
    pub down: u64,
}

impl Moves {
    /// Counts a move from one close to another.
    pub fn count(&mut self, from_e4: i64, to_e4: i64) {
        self.all += 1;
        self.up += u64::from(Direction::Bullish.is_hit(from_e4, to_e4));
        self.down += u64::from(Direction::Bearish.is_hit(from_e4, to_e4));
    }

    /// Those that moved this way.
    pub fn moved(&self, direction: Direction) -> u64 {
        match direction {
            Direction::Bullish => self.up,
            Direction::Bearish => self.down,
        }
    }

    /// Share that moved this way.
    pub fn share_if_any(&self, direction: Direction) -> Option<f64> {
        (self.all > 0).then(|| self.moved(direction) as f64 / self.all as f64)
    }

    /// The same, and a coin where nothing is known.
    fn share(&self, direction: Direction) -> f64 {
        self.share_if_any(direction).unwrap_or(0.5)
    }

    fn add(&mut self, other: &Self) {
        self.all += other.all;
        self.up += other.up;
        self.down += other.down;
    }

    fn take_away(&mut self, other: &Self) {
        self.all -= other.all;
        self.up -= other.up;
        self.down -= other.down;
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    signals: u32,
    hits: u32,
}

impl Tally {
    fn count(&mut self, hit: bool) {
        self.signals += 1;
        self.hits += u32::from(hit);
    }
}

/// What became of the bar of a date: known [`HORIZON_SESSIONS`] dates later, where its symbol
/// traded on all of them, and else later.
#[derive(Debug, Clone, Copy)]
struct Late<T> {
    date: usize,
    known: usize,
    what: T,
}

/// Outcomes of one kind by the date of their bar.
#[derive(Debug, Clone)]
struct ByDate<T, L> {
    prompt: Vec<T>,
    late: Vec<Late<L>>,
}

/// Collects outcomes, symbol by symbol.
pub struct Outcomes {
    dates: usize,
    moves: ByDate<Moves, Moves>,
    /// Per key; empty for a key that never came.
    tallies: Vec<ByDate<Tally, bool>>,
}

impl Outcomes {
    /// For a universe with this many dates.
    pub fn new(dates: usize) -> Self {
        let none = ByDate { prompt: Vec::new(), late: Vec::new() };
        Self {
            dates,
            moves: ByDate { prompt: vec![Moves::default(); dates], late: Vec::new() },
            tallies: vec![none; KEYS],
        }
    }

    /// Counts a symbol's days and its signals, each given by the bar it stands on.
    pub fn add(&mut self, bars: &[Bar], signals: &[(usize, Key)]) {
        for at in 0..bars.len() {
            let Some((bar, later)) = pair(bars, at) else { continue };
            let mut moves = Moves::default();
            moves.count(bar.close_e4, later.close_e4);
            if is_prompt(bar, later) {
                self.moves.prompt[bar.date].add(&moves);
            } else {
                self.moves.late.push(Late { date: bar.date, known: later.date, what: moves });
            }
        }
        for (at, key) in signals {
            let Some((bar, later)) = pair(bars, *at) else { continue };
            let hit = key.direction().is_hit(bar.close_e4, later.close_e4);
            let tallies = &mut self.tallies[key.index()];
            if tallies.prompt.is_empty() {
                tallies.prompt.resize(self.dates, Tally::default());
            }
            if is_prompt(bar, later) {
                tallies.prompt[bar.date].count(hit);
            } else {
                tallies.late.push(Late { date: bar.date, known: later.date, what: hit });
            }
        }
    }

    /// Makes the sums, of which confidence follows with a prior that weighs `prior_dates`.
    pub fn finish(mut self, prior_dates: u32) -> Record {
        for tallies in &mut self.tallies {
            tallies.late.sort_by_key(|late| late.date);
        }
        Record { prior_dates, moves: in_window(self.moves), tallies: self.tallies }
    }
}

/// The bar at `at` and the one that decides about it; `None` while there is none, and where their
/// symbol is silent.
pub fn pair(bars: &[Bar], at: usize) -> Option<(&Bar, &Bar)> {
    let (bar, later) = (bars.get(at)?, bars.get(at + HORIZON_SESSIONS)?);
    (!bar.is_silent && !later.is_silent).then_some((bar, later))
}

/// Whether the symbol traded on all dates between them.
fn is_prompt(bar: &Bar, later: &Bar) -> bool {
    later.date - bar.date == HORIZON_SESSIONS
}

/// First date of the window of `date`.
fn window_from(date: usize) -> usize {
    date.saturating_sub(WINDOW_DATES)
}

/// By date, and for the session after the last one: moves that began in its window and were known
/// by then.
fn in_window(moves: ByDate<Moves, Moves>) -> Vec<Moves> {
    let ByDate { prompt, mut late } = moves;
    let dates = prompt.len();
    late.sort_by_key(|late| late.known);
    let mut late = late.into_iter().peekable();
    let mut counted = vec![Moves::default(); dates];
    let mut sum = Moves::default();
    let mut sums = Vec::with_capacity(dates + 1);
    for today in 0..=dates {
        let from = window_from(today);
        if let Some(left) = from.checked_sub(1) {
            sum.take_away(&counted[left]);
        }
        if let Some(date) = today.checked_sub(HORIZON_SESSIONS) {
            sum.add(&prompt[date]);
            counted[date].add(&prompt[date]);
        }
        while let Some(known) = late.next_if(|late| late.known <= today) {
            if known.date >= from {
                sum.add(&known.what);
                counted[known.date].add(&known.what);
            }
        }
        sums.push(sum);
    }
    sums
}

/// What a key never seen is given: the base rate, half believed.
pub fn prior(base_rate: f64) -> f64 {
    0.5 + BASE_WEIGHT * (base_rate - 0.5)
}

/// Outcomes by date. What is said of a date is made of those that were known by its close.
pub struct Record {
    prior_dates: u32,
    /// Of each date's window; one more for the session after the last date.
    moves: Vec<Moves>,
    /// Per key.
    tallies: Vec<ByDate<Tally, bool>>,
}

impl Record {
    /// What was known of `key` at the close of `date`.
    pub fn weigh(&self, key: Key, date: usize) -> Weight {
        let base_rate = self.moves[date].share(key.direction());
        let (weight, prior) = (f64::from(self.prior_dates), prior(base_rate));
        let (mut dates, mut share, mut all) = (0_u32, 0.0, Tally::default());
        for tally in self.known(key, date) {
            dates += 1;
            share += f64::from(tally.hits) / f64::from(tally.signals);
            all.signals += tally.signals;
            all.hits += tally.hits;
        }
        Weight {
            confidence: (share + weight * prior) / (f64::from(dates) + weight),
            dates,
            signals: all.signals,
            hits: all.hits,
            date_hit_rate: (dates > 0).then(|| share / f64::from(dates)),
            base_rate,
        }
    }

    /// What was known at the close of `today` of the signals of each date of its window, oldest
    /// first; dates without are left out.
    fn known(&self, key: Key, today: usize) -> impl Iterator<Item = Tally> {
        let ByDate { prompt, late } = &self.tallies[key.index()];
        let from = window_from(today);
        let prompt_until = (today + 1).saturating_sub(HORIZON_SESSIONS);
        let mut late = &late[late.partition_point(|late| late.date < from)..];
        let until = today.min(prompt.len());
        (from..until).filter_map(move |date| {
            let mut tally = if date < prompt_until { prompt[date] } else { Tally::default() };
            let of_date = late.partition_point(|late| late.date == date);
            let (these, rest) = late.split_at(of_date);
            late = rest;
            for outcome in these.iter().filter(|outcome| outcome.known <= today) {
                tally.count(outcome.what);
            }
            (tally.signals > 0).then_some(tally)
        })
    }

    /// Weight of the prior, in dates.
    pub fn prior_dates(&self) -> u32 {
        self.prior_dates
    }
}

#[cfg(test)]
#[path = "confidence_tests.rs"]
mod tests;
