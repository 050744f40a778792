//! Counts, rates and scores of judged signals, each with its standard error. Pure sums over signals
//! in order of date. The public record and the evaluation both use them.

use crate::signals::backtest::{BIN_EDGES, Judged, Scores, bin_of, mean};
use crate::signals::blocks::{BLOCKS_MIN, Blocks, Estimate, Numbering, Place};
use crate::signals::patterns::Direction;

/// Confidence of a coin flip.
const COIN: f64 = 0.5;

/// Signals of one kind, such as one confidence bin, one direction or one quarter.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cell {
    pub signals: u64,
    pub hits: u64,
    /// Dates with such a signal.
    pub dates: u64,
    pub bullish: u64,
    confidence_sum: f64,
    last_date: u64,
    /// Hit (1 or 0) minus confidence, for each signal.
    hit_minus_confidence: Blocks,
    /// Share of the universe that moved in the same direction over the same sessions.
    same_day: Blocks,
    /// Hit minus that share, for each signal.
    lift: Blocks,
}

impl Cell {
    /// Counts a signal whose date has the number `place`.
    pub fn count(&mut self, place: Place, signal: &Judged) {
        self.signals += 1;
        self.hits += u64::from(signal.hit);
        self.dates += u64::from(self.last_date != place.date);
        self.last_date = place.date;
        self.bullish += u64::from(signal.key.direction() == Direction::Bullish);
        self.confidence_sum += signal.confidence;
        self.hit_minus_confidence
            .count(place, signal.outcome() - signal.confidence);
        if let Some(share) = signal.same_day {
            self.same_day.count(place, share);
            self.lift.count(place, signal.outcome() - share);
        }
    }

    /// Mean confidence.
    pub fn mean_confidence(&self) -> Option<f64> {
        self.of_signals(self.confidence_sum)
    }

    /// Share of hits.
    pub fn hit_rate(&self) -> Option<f64> {
        self.of_signals(self.hits as f64)
    }

    /// Share of signals that claimed a rise.
    pub fn bullish_share(&self) -> Option<f64> {
        self.of_signals(self.bullish as f64)
    }

    fn of_signals(&self, sum: f64) -> Option<f64> {
        (self.signals > 0).then(|| mean(sum, self.signals))
    }

    /// Share of hits minus mean confidence.
    pub fn observed_minus_said(&self) -> Option<Estimate> {
        self.hit_minus_confidence.estimate()
    }

    /// Mean share of the universe that moved as the signals claimed, over the same sessions.
    pub fn same_day_rate(&self) -> Option<f64> {
        self.same_day.mean()
    }

    /// The lift: the share of hits minus the same-day rate. It is the part that the market's move
    /// does not explain.
    pub fn lift(&self) -> Option<Estimate> {
        self.lift.estimate()
    }

    /// Whether there are enough dates for a score.
    pub fn is_scored(&self) -> bool {
        self.hit_minus_confidence.blocks() >= BLOCKS_MIN
    }
}

/// All judged signals.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Performance {
    numbering: Numbering,
    pub all: Cell,
    pub confidence: Scores,
    /// Scores of the base rate alone, used as confidence for each signal.
    pub base: Scores,
    from_coin: Blocks,
    from_base: Blocks,
    pub bins: [Cell; BIN_EDGES.len() + 1],
    pub bullish: Cell,
    pub bearish: Cell,
}

impl Performance {
    /// Counts one more signal, of the same date as the one before or of a later one. Returns the
    /// number of its date and block.
    pub fn count(&mut self, signal: &Judged) -> Place {
        let place = self.numbering.take(signal.date);
        self.all.count(place, signal);
        self.confidence.count(signal, signal.confidence);
        self.base.count(signal, signal.base_rate);
        let squared_error = |confidence: f64| (confidence - signal.outcome()).powi(2);
        let missed = squared_error(signal.confidence);
        self.from_coin.count(place, missed - squared_error(COIN));
        self.from_base
            .count(place, missed - squared_error(signal.base_rate));
        self.bins[bin_of(signal.confidence)].count(place, signal);
        match signal.key.direction() {
            Direction::Bullish => self.bullish.count(place, signal),
            Direction::Bearish => self.bearish.count(place, signal),
        }
        place
    }

    /// The signals of each direction.
    pub fn directions(&self) -> [(Direction, &Cell); 2] {
        [
            (Direction::Bullish, &self.bullish),
            (Direction::Bearish, &self.bearish),
        ]
    }

    /// Brier score minus that of a coin flip; below zero is better.
    pub fn against_coin(&self) -> Option<Estimate> {
        self.from_coin.estimate()
    }

    /// Brier score minus that of the base rate; below zero is better.
    pub fn against_base(&self) -> Option<Estimate> {
        self.from_base.estimate()
    }
}

/// The interval of a difference of Brier scores as a sentence. `with` names the other side of the
/// comparison.
pub fn verdict(difference: &Estimate, with: &str) -> String {
    match difference.side() {
        std::cmp::Ordering::Less => format!("better than {with}"),
        std::cmp::Ordering::Equal => format!("not distinguishable from {with}"),
        std::cmp::Ordering::Greater => format!("worse than {with}"),
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;

    use super::*;
    use crate::signals::patterns::Key;

    /// A performance over `dates` dates with one signal each, which hits if `hit` returns true.
    fn performance(dates: usize, confidence: f64, hit: fn(usize) -> bool) -> Performance {
        let first = Date::constant(2026, 1, 1);
        let key = Key::from_name("bullish_engulfing").unwrap();
        let mut performance = Performance::default();
        for (at, date) in first
            .series(jiff::Span::new().days(1))
            .take(dates)
            .enumerate()
        {
            let same_day = Some(if hit(at) { 0.75 } else { 0.25 });
            let judged = Judged {
                date,
                key,
                confidence,
                base_rate: 0.5,
                hit: hit(at),
                same_day,
            };
            performance.count(&judged);
        }
        performance
    }

    #[test]
    fn the_verdict_follows_from_the_interval() {
        let said = |performance: &Performance| {
            verdict(&performance.against_base().unwrap(), "the base rate")
        };
        assert_eq!(said(&performance(100, 0.9, |_| true)), "better than the base rate");
        assert_eq!(said(&performance(100, 0.9, |_| false)), "worse than the base rate");
        let even = performance(100, 0.501, |at| at % 2 == 0);
        assert_eq!(said(&even), "not distinguishable from the base rate");
    }

    #[test]
    fn lift_compares_with_the_same_sessions_and_needs_enough_dates() {
        let done = performance(100, 0.6, |at| at % 4 == 0);
        let bullish = &done.bullish;
        assert_eq!((bullish.signals, bullish.hits, bullish.dates), (100, 25, 100));
        assert_eq!(bullish.same_day_rate(), Some(0.375));
        assert!((bullish.lift().unwrap().value + 0.125).abs() < 1e-12);
        assert!((bullish.observed_minus_said().unwrap().value + 0.35).abs() < 1e-12);
        assert_eq!(done.bearish, Cell::default());
        let few = performance(45, 0.6, |_| true);
        assert!(!few.all.is_scored() && few.against_coin().is_none() && few.all.lift().is_none());
        assert_eq!(few.all.hit_rate(), Some(1.0));
    }
}
