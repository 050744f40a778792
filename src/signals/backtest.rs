//! The walk-forward evaluation: what confidence would have been printed each day, and what became
//! of it.
//!
//! Pure; the command reads the files. Every number printed for a date is made of earlier dates
//! alone. Sums run in one order, so a run repeats to the last digit.

use std::collections::HashMap;

use jiff::civil::Date;

use super::blocks::{Blocks, Numbering, Place};
use super::confidence::{Bar, Moves, Outcomes, PRIOR_DATES, Record, WINDOW_DATES, Weight, pair};
use super::list::{OfCandle, put_together};
use super::patterns::{Columns, Detector, Key};
use super::silence::Silence;
use crate::base::Candle;

/// Upper edges of the reliability table's bins; one more bin lies above the last.
pub const BIN_EDGES: [f64; 12] =
    [0.44, 0.45, 0.46, 0.47, 0.48, 0.49, 0.50, 0.51, 0.52, 0.53, 0.54, 0.55];
/// Bins of equal size for the calibration error, or fewer where many confidences are equal.
const CALIBRATION_BINS: usize = 10;

/// One symbol's history, oldest first, without two candles of one date.
#[derive(Debug, Clone)]
pub struct History {
    pub symbol: String,
    pub candles: Vec<Candle>,
}

/// A universe with its signals and their outcomes.
pub struct Universe {
    dates: Vec<Date>,
    symbols: Vec<Examined>,
    record: Record,
}

struct Examined {
    name: String,
    bars: Vec<Bar>,
    /// By bar, then in the order of the functions.
    signals: Vec<(usize, Key)>,
}

/// One signal with what would have been printed and what became of it.
#[derive(Debug, Clone, Copy)]
pub struct Judged {
    pub date: Date,
    pub key: Key,
    pub confidence: f64,
    /// Of its direction, as it was known on the date.
    pub base_rate: f64,
    pub hit: bool,
    /// Share of the universe that moved as it claims over the same sessions; `None` where that was
    /// not counted.
    pub same_day: Option<f64>,
}

impl Judged {
    /// What a certain prophet would have said.
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

impl OfCandle for Signal<'_> {
    fn candle(&self) -> (&str, bool) {
        (self.symbol, false)
    }
}

impl Universe {
    /// Finds all signals and counts their outcomes. `examined` hears of each symbol that is done.
    pub fn examine(histories: &[History], examined: impl FnMut(&str)) -> Self {
        Self::examine_with(histories, &[], PRIOR_DATES, examined)
    }

    /// The same without the dates that are silent in `silences`, one for each history or none at
    /// all, and with a prior that weighs `prior_dates`.
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

    /// What was known of `key` at the close of the date with index `date`; or, with the index
    /// after the last, what is known during the session that follows: its own close, which decides
    /// about the signals of five sessions before, is left out.
    pub fn weigh(&self, key: Key, date: usize) -> Weight {
        self.record.weigh(key, date)
    }

    /// Weight of the prior, in dates.
    pub fn prior_dates(&self) -> u32 {
        self.record.prior_dates()
    }

    /// Number of symbols.
    pub fn symbols(&self) -> usize {
        self.symbols.len()
    }

    /// Every signal from the first date with a full window on whose outcome is known, date by date.
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

    /// How the symbols moved that traded on both dates and are silent on neither.
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

    /// The signals of the date with index `date`, in the published order: by [`rank`], but those of
    /// one symbol together.
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
        signals.sort_by(rank);
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
    // Mostly rising runs, which the sort merges; a tree of them all costs several times more.
    dates.sort();
    dates.dedup();
    dates
}

/// Highest confidence first, then most dates, then name, then symbol: ties are the rule, since all
/// symbols with one pattern share its confidence.
pub fn rank(one: &Signal<'_>, other: &Signal<'_>) -> std::cmp::Ordering {
    other
        .weight
        .confidence
        .total_cmp(&one.weight.confidence)
        .then_with(|| other.weight.dates.cmp(&one.weight.dates))
        .then_with(|| one.key.name().cmp(other.key.name()))
        .then_with(|| one.symbol.cmp(other.symbol))
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

/// How printed confidences compare with what came.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scores {
    pub signals: u64,
    confidence_sum: f64,
    brier_sum: f64,
    log_loss_sum: f64,
    pub lowest: f64,
    pub highest: f64,
    /// Mean distance between confidence and share of hits, over bins of equal size.
    pub calibration_error: f64,
    /// What it would be on average if all confidences were right: chance alone parts them.
    pub calibration_error_if_perfect: f64,
}

impl Scores {
    /// The scores of what `model` would have said of `judged`.
    pub fn of(judged: &[Judged], model: fn(&Judged) -> f64) -> Self {
        let mut scores = Self { lowest: f64::INFINITY, highest: 0.0, ..Self::default() };
        for signal in judged {
            scores.count(signal, model(signal));
        }
        if judged.is_empty() {
            scores.lowest = 0.0;
        }
        let mut numbering = Numbering::default();
        let said = judged.iter().map(|signal| {
            (model(signal), Spoken { place: numbering.take(signal.date), hit: signal.hit })
        });
        (scores.calibration_error, scores.calibration_error_if_perfect) =
            calibration_errors(said.collect());
        scores
    }

    /// Counts one more signal. Lowest, highest and calibration error are [`of`](Self::of)'s alone.
    pub fn count(&mut self, signal: &Judged, confidence: f64) {
        let miss = confidence - signal.outcome();
        self.signals += 1;
        self.confidence_sum += confidence;
        self.brier_sum += miss * miss;
        let said = if signal.hit { confidence } else { 1.0 - confidence };
        self.log_loss_sum -= said.ln();
        self.lowest = self.lowest.min(confidence);
        self.highest = self.highest.max(confidence);
    }

    /// Mean of what was printed.
    pub fn mean_confidence(&self) -> f64 {
        mean(self.confidence_sum, self.signals)
    }

    /// Mean squared error; a coin has 0.25.
    pub fn brier(&self) -> f64 {
        mean(self.brier_sum, self.signals)
    }

    /// Mean negative log likelihood; a coin has 0.6931.
    pub fn log_loss(&self) -> f64 {
        mean(self.log_loss_sum, self.signals)
    }
}

/// Zero where there is nothing to divide by.
pub fn mean(sum: f64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// The bin that a confidence falls into; an edge belongs to the bin below it.
pub fn bin_of(confidence: f64) -> usize {
    BIN_EDGES.partition_point(|edge| *edge < confidence)
}

/// What the confidences of a bin are above, and up to; none where it has no such edge.
pub fn edges_of(bin: usize) -> (Option<f64>, Option<f64>) {
    (bin.checked_sub(1).map(|below| BIN_EDGES[below]), BIN_EDGES.get(bin).copied())
}

/// A signal's outcome and where its date stands.
#[derive(Clone, Copy)]
struct Spoken {
    place: Place,
    hit: bool,
}

/// The calibration error, and what it would be if every confidence were right: the mean of a normal
/// distribution's distance from zero is √(2/π) of its standard deviation, which is the standard
/// error over blocks of dates. Equal confidences stay in one bin, so that the order of the signals
/// of a date cannot matter.
fn calibration_errors(mut said: Vec<(f64, Spoken)>) -> (f64, f64) {
    said.sort_by(|one, other| one.0.total_cmp(&other.0));
    let size = said.len().div_ceil(CALIBRATION_BINS).max(1);
    let (mut apart, mut by_chance) = (0.0, 0.0);
    let mut rest = said.as_mut_slice();
    while let Some((edge, _)) = rest.get(size - 1).or(rest.last()).copied() {
        let until = rest.partition_point(|(confidence, _)| *confidence <= edge);
        let (bin, after) = std::mem::take(&mut rest).split_at_mut(until);
        bin.sort_by_key(|(_, spoken)| spoken.place.date);
        let mut blocks = Blocks::default();
        let mut sum = 0.0;
        for (confidence, Spoken { place, hit }) in bin.iter() {
            let miss = confidence - if *hit { 1.0 } else { 0.0 };
            sum += miss;
            blocks.count(*place, miss);
        }
        apart += sum.abs();
        by_chance +=
            bin.len() as f64 * blocks.standard_error() * std::f64::consts::FRAC_2_PI.sqrt();
        rest = after;
    }
    let count = said.len() as u64;
    (mean(apart, count), mean(by_chance, count))
}

#[cfg(test)]
#[path = "backtest_tests.rs"]
mod tests;
