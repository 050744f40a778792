//! The walk-forward evaluation: for each past date, the confidence that would have been published,
//! and the outcome of the signal.
//!
//! Pure; the command `signals evaluate` reads the files. Every number for a date is made of earlier
//! dates alone. Sums run in a fixed order, so a run repeats to the last digit.

use std::collections::HashMap;

use jiff::civil::Date;

use super::blocks::{Blocks, Numbering, Place};
use super::confidence::{Bar, Moves, Outcomes, PRIOR_DATES, Record, WINDOW_DATES, Weight, pair};
use super::list::{Rank, Ranked, by_rank, put_together};
use super::patterns::{Columns, Detector, Key};
use super::silence::Silence;
use crate::base::Candle;

/// Upper edges of the bins of the reliability table. One more bin is above the last edge.
pub const BIN_EDGES: [f64; 12] =
    [0.44, 0.45, 0.46, 0.47, 0.48, 0.49, 0.50, 0.51, 0.52, 0.53, 0.54, 0.55];
/// Bins for the calibration error, each with about equally many signals. There are fewer if many
/// confidences are equal.
const CALIBRATION_BINS: usize = 10;

/// One symbol's candles, oldest first, at most one a date.
#[derive(Debug, Clone)]
pub struct History {
    pub symbol: String,
    pub candles: Vec<Candle>,
}

/// The symbols of a universe with their signals and outcomes.
pub struct Universe {
    dates: Vec<Date>,
    symbols: Vec<Examined>,
    record: Record,
}

struct Examined {
    name: String,
    bars: Vec<Bar>,
    /// Signals with the index of their bar, by bar and then in the order of the pattern functions.
    signals: Vec<(usize, Key)>,
}

/// One signal: the confidence that would have been published, and the outcome.
#[derive(Debug, Clone, Copy)]
pub struct Judged {
    pub date: Date,
    pub key: Key,
    pub confidence: f64,
    /// Base rate of the signal's direction, as it was known on the date.
    pub base_rate: f64,
    pub hit: bool,
    /// Share of the universe that moved in the signal's direction over the same sessions; `None` if
    /// that was not counted.
    pub same_day: Option<f64>,
}

impl Judged {
    /// The confidence that a perfect forecast would have given: 1 for a hit, 0 for a miss.
    pub fn outcome(&self) -> f64 {
        if self.hit { 1.0 } else { 0.0 }
    }
}

/// A signal of one date.
#[derive(Debug, Clone)]
pub struct Signal<'a> {
    pub symbol: &'a str,
    pub key: Key,
    pub weight: Weight,
}

impl Ranked for Signal<'_> {
    fn rank(&self) -> Rank<'_> {
        Rank {
            confidence: self.weight.confidence,
            dates: self.weight.dates,
            pattern: self.key.name(),
            symbol: self.symbol,
            provisional: false,
        }
    }
}

impl Universe {
    /// Finds all signals and counts their outcomes. Calls `examined` with each symbol when it is
    /// done.
    pub fn examine(histories: &[History], examined: impl FnMut(&str)) -> Self {
        Self::examine_with(histories, &[], PRIOR_DATES, examined)
    }

    /// Same as [`examine`](Self::examine), without the silent dates and with another prior.
    /// `silences` has one entry for each history, or none at all. The prior weighs `prior_dates`.
    pub fn examine_with(
        histories: &[History],
        silences: &[Silence],
        prior_dates: u32,
        mut examined: impl FnMut(&str),
    ) -> Self {
        let dates = sessions(histories);
        let detector = Detector::default();
        let mut outcomes = Outcomes::new(dates.len());
        let mut symbols = Vec::with_capacity(histories.len());
        for (at, history) in histories.iter().enumerate() {
            let mut symbol = examine_one(history, &dates, &detector);
            if let Some(silence) = silences.get(at) {
                symbol.keep_silent(&silence.silent);
            }
            outcomes.add(&symbol.bars, &symbol.signals);
            symbols.push(symbol);
            examined(&history.symbol);
        }
        Self { dates, symbols, record: outcomes.finish(prior_dates) }
    }

    /// All dates on which some symbol traded.
    pub fn dates(&self) -> &[Date] {
        &self.dates
    }

    /// The weight of `key` as it was known at the close of the date with index `date`.
    ///
    /// If the index is one past the last date, the weight is the one during the session that
    /// follows. That session's own close is left out, although it decides the signals of five
    /// sessions before.
    pub fn weigh(&self, key: Key, date: usize) -> Weight {
        self.record.weigh(key, date)
    }

    /// Weight of the prior, in dates.
    pub fn prior_dates(&self) -> u32 {
        self.record.prior_dates()
    }

    /// Number of symbols in the universe.
    pub fn symbols(&self) -> usize {
        self.symbols.len()
    }

    /// Every signal with a known outcome, from the first date with a full window on, date by date.
    pub fn judged(&self) -> Vec<Judged> {
        let mut judged = Vec::new();
        let mut moves: HashMap<(usize, usize), Moves> = HashMap::new();
        for symbol in &self.symbols {
            for (at, key) in &symbol.signals {
                let date = symbol.bars[*at].date;
                let pair = pair(&symbol.bars, *at).filter(|_| date >= WINDOW_DATES);
                let Some((bar, later)) = pair else { continue };
                let hit = key.direction().is_hit(bar.close_e4, later.close_e4);
                let Weight { confidence, base_rate, .. } = self.record.weigh(*key, date);
                let moves = moves.entry((date, later.date));
                let moves = moves.or_insert_with(|| self.moves(date, later.date));
                let same_day = moves.share_if_any(key.direction());
                let date = self.dates[date];
                judged.push(Judged { date, key: *key, confidence, base_rate, hit, same_day });
            }
        }
        judged.sort_by_key(|judged| judged.date);
        judged
    }

    /// The moves of the symbols that traded on both dates and are silent on neither.
    fn moves(&self, from: usize, to: usize) -> Moves {
        let mut moves = Moves::default();
        for Examined { bars, .. } in &self.symbols {
            let close = |date: usize| {
                let at = bars.binary_search_by_key(&date, |bar| bar.date).ok()?;
                (!bars[at].is_silent).then_some(bars[at].close_e4)
            };
            if let (Some(from_e4), Some(to_e4)) = (close(from), close(to)) {
                moves.count(from_e4, to_e4);
            }
        }
        moves
    }

    /// The signals of the date with index `date`, in the published order: by [`by_rank`], with
    /// those of one symbol together.
    pub fn signals_on(&self, date: usize) -> Vec<Signal<'_>> {
        let mut signals = Vec::new();
        for symbol in &self.symbols {
            for (at, key) in &symbol.signals {
                if symbol.bars[*at].date == date {
                    let weight = self.record.weigh(*key, date);
                    signals.push(Signal { symbol: &symbol.name, key: *key, weight });
                }
            }
        }
        signals.sort_by(by_rank);
        put_together(&mut signals);
        signals
    }
}

impl Examined {
    fn keep_silent(&mut self, silent: &[bool]) {
        for (bar, is_silent) in self.bars.iter_mut().zip(silent) {
            bar.is_silent = *is_silent;
        }
        self.signals.retain(|(at, _)| !self.bars[*at].is_silent);
    }
}

/// All dates on which some symbol traded.
pub fn sessions(histories: &[History]) -> Vec<Date> {
    let mut dates: Vec<Date> =
        histories.iter().flat_map(|h| h.candles.iter().map(|candle| candle.date)).collect();
    // The dates are mostly ascending runs, which the sort merges. A tree of all of them costs
    // several times more.
    dates.sort();
    dates.dedup();
    dates
}

fn examine_one(history: &History, dates: &[Date], detector: &Detector) -> Examined {
    let bars = history.candles.iter().map(|candle| Bar {
        date: dates.partition_point(|date| *date < candle.date),
        close_e4: candle.close_e4,
        is_silent: false,
    });
    let mut signals = Vec::new();
    detector.scan(&Columns::of(&history.candles), |bar, key| signals.push((bar, key)));
    signals.sort_by_key(|(bar, _)| *bar);
    Examined { name: history.symbol.clone(), bars: bars.collect(), signals }
}

/// How published confidences compare with outcomes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scores {
    pub signals: u64,
    confidence_sum: f64,
    brier_sum: f64,
    log_loss_sum: f64,
    pub lowest: f64,
    pub highest: f64,
    /// Mean distance between mean confidence and share of hits, over bins with about equally many
    /// signals.
    pub calibration_error: f64,
    /// The calibration error that chance alone causes: its expected value if every confidence were
    /// right.
    pub calibration_error_if_perfect: f64,
}

impl Scores {
    /// Scores the confidences that `model` gives to the signals in `judged`.
    pub fn of(judged: &[Judged], model: fn(&Judged) -> f64) -> Self {
        let mut scores = Self { lowest: f64::INFINITY, highest: 0.0, ..Self::default() };
        for signal in judged {
            scores.count(signal, model(signal));
        }
        if judged.is_empty() {
            scores.lowest = 0.0;
        }
        let mut numbering = Numbering::default();
        let predictions = judged.iter().map(|signal| {
            (model(signal), OutcomeAt { place: numbering.take(signal.date), hit: signal.hit })
        });
        (scores.calibration_error, scores.calibration_error_if_perfect) =
            calibration_errors(predictions.collect());
        scores
    }

    /// Counts one more signal. The lowest and highest confidence and the calibration errors are set
    /// only by [`of`](Self::of).
    pub fn count(&mut self, signal: &Judged, confidence: f64) {
        let miss = confidence - signal.outcome();
        self.signals += 1;
        self.confidence_sum += confidence;
        self.brier_sum += miss * miss;
        let predictions = if signal.hit { confidence } else { 1.0 - confidence };
        self.log_loss_sum -= predictions.ln();
        self.lowest = self.lowest.min(confidence);
        self.highest = self.highest.max(confidence);
    }

    /// Mean confidence.
    pub fn mean_confidence(&self) -> f64 {
        mean(self.confidence_sum, self.signals)
    }

    /// The Brier score: the mean squared error. A coin flip has 0.25.
    pub fn brier(&self) -> f64 {
        mean(self.brier_sum, self.signals)
    }

    /// Mean negative log likelihood. A coin flip has 0.6931.
    pub fn log_loss(&self) -> f64 {
        mean(self.log_loss_sum, self.signals)
    }
}

/// `sum` divided by `count`; zero if `count` is.
pub fn mean(sum: f64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// The bin that a confidence belongs to. A confidence on an edge belongs to the bin below it.
pub fn bin_of(confidence: f64) -> usize {
    BIN_EDGES.partition_point(|edge| *edge < confidence)
}

/// Lower and upper edge of a bin. The lowest bin has no lower edge and the highest no upper edge.
pub fn edges_of(bin: usize) -> (Option<f64>, Option<f64>) {
    (bin.checked_sub(1).map(|below| BIN_EDGES[below]), BIN_EDGES.get(bin).copied())
}

/// A signal's outcome, and the number of its date and block.
#[derive(Clone, Copy)]
struct OutcomeAt {
    place: Place,
    hit: bool,
}

/// The calibration error, and its expected value if every confidence were right.
///
/// The expected distance of a normal distribution from its mean is √(2/π) of its standard
/// deviation. The deviation used is the standard error over blocks of dates. Equal confidences stay
/// in one bin, so that the order of the signals of a date does not matter.
fn calibration_errors(mut predictions: Vec<(f64, OutcomeAt)>) -> (f64, f64) {
    predictions.sort_by(|one, other| one.0.total_cmp(&other.0));
    let size = predictions.len().div_ceil(CALIBRATION_BINS).max(1);
    let (mut calibration, mut by_chance) = (0.0, 0.0);
    let mut rest = predictions.as_mut_slice();
    while let Some((edge, _)) = rest.get(size - 1).or(rest.last()).copied() {
        let until = rest.partition_point(|(confidence, _)| *confidence <= edge);
        let (bin, after) = std::mem::take(&mut rest).split_at_mut(until);
        bin.sort_by_key(|(_, outcome)| outcome.place.date);
        let mut blocks = Blocks::default();
        let mut sum = 0.0;
        for (confidence, OutcomeAt { place, hit }) in bin.iter() {
            let miss = confidence - if *hit { 1.0 } else { 0.0 };
            sum += miss;
            blocks.count(*place, miss);
        }
        calibration += sum.abs();
        by_chance +=
            bin.len() as f64 * blocks.standard_error() * std::f64::consts::FRAC_2_PI.sqrt();
        rest = after;
    }
    let count = predictions.len() as u64;
    (mean(calibration, count), mean(by_chance, count))
}

#[cfg(test)]
#[path = "backtest_tests.rs"]
mod tests;
