//! The walk-forward evaluation: for each past date, the confidence that would have been published,
//! and the outcome of the signal.
//!
//! Pure; `examples/evaluate-signals` reads the files. Every number for a date is made of earlier
//! dates alone. Sums run in a fixed order, so a run repeats to the last digit.

use std::collections::HashMap;

use jiff::civil::Date;

use crate::base::Candle;
use crate::signals::blocks::{Blocks, Numbering, Place};
use crate::signals::confidence::{
    Bar, Moves, Outcomes, PRIOR_DATES, Record, WINDOW_DATES, Weight, pair,
};
use crate::signals::history::{HOLES_MAX, SESSIONS_KEPT, Suspected, suspected};
use crate::signals::list::{Rank, Ranked, by_rank, put_together};
use crate::signals::patterns::{Columns, Detector, Key};

/// Upper edges of the bins of the reliability table. One more bin is above the last edge.
pub(crate) const BIN_EDGES: [f64; 12] = [
    0.44, 0.45, 0.46, 0.47, 0.48, 0.49, 0.50, 0.51, 0.52, 0.53, 0.54, 0.55,
];
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
    pub(crate) fn outcome(&self) -> f64 {
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
        }
    }
}

impl Universe {
    /// Finds all signals and counts their outcomes.
    pub fn examine(histories: &[History]) -> Self {
        Self::examine_with(histories, &[], PRIOR_DATES)
    }

    /// Same as [`examine`](Self::examine), without the silent dates and with another prior.
    /// `silences` has one entry for each history, or none at all. The prior weighs `prior_dates`.
    pub fn examine_with(histories: &[History], silences: &[Silence], prior_dates: u32) -> Self {
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
        }
        Self {
            dates,
            symbols,
            record: outcomes.finish(prior_dates),
        }
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
                let Weight {
                    confidence,
                    base_rate,
                    ..
                } = self.record.weigh(*key, date);
                let moves = moves.entry((date, later.date));
                let moves = moves.or_insert_with(|| self.moves(date, later.date));
                let same_day = moves.share_if_any(key.direction());
                let date = self.dates[date];
                judged.push(Judged {
                    date,
                    key: *key,
                    confidence,
                    base_rate,
                    hit,
                    same_day,
                });
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
                    signals.push(Signal {
                        symbol: &symbol.name,
                        key: *key,
                        weight,
                    });
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
    let mut dates: Vec<Date> = histories
        .iter()
        .flat_map(|h| h.candles.iter().map(|candle| candle.date))
        .collect();
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
    Examined {
        name: history.symbol.clone(),
        bars: bars.collect(),
        signals,
    }
}

/// Comparison of published confidences with outcomes.
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
        let mut scores = Self {
            lowest: f64::INFINITY,
            highest: 0.0,
            ..Self::default()
        };
        for signal in judged {
            scores.count(signal, model(signal));
        }
        if judged.is_empty() {
            scores.lowest = 0.0;
        }
        let mut numbering = Numbering::default();
        let predictions = judged.iter().map(|signal| {
            (
                model(signal),
                OutcomeAt {
                    place: numbering.take(signal.date),
                    hit: signal.hit,
                },
            )
        });
        (scores.calibration_error, scores.calibration_error_if_perfect) =
            calibration_errors(predictions.collect());
        scores
    }

    /// Counts one more signal. The lowest and highest confidence and the calibration errors are set
    /// only by [`of`](Self::of).
    pub(crate) fn count(&mut self, signal: &Judged, confidence: f64) {
        let miss = confidence - signal.outcome();
        self.signals += 1;
        self.confidence_sum += confidence;
        self.brier_sum += miss * miss;
        let predictions = if signal.hit {
            confidence
        } else {
            1.0 - confidence
        };
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
pub(crate) fn mean(sum: f64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// The bin that a confidence belongs to. A confidence on an edge belongs to the bin below it.
pub(crate) fn bin_of(confidence: f64) -> usize {
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
    let mut calibration = 0.0;
    let mut by_chance = 0.0;
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

// ---- Silence
//
// The silent dates of a symbol, on which its candles cannot be trusted, judged from a folder of
// candles. Pure.
//
// Follows the rules by which the service judges a history that it fetched once: it keeps
// [`SESSIONS_KEPT`] sessions, and a symbol gives no signal while more than [`HOLES_MAX`] of them
// are missing or a split is suspected among them. Each date is judged from what lies before it, so
// a later candle never silences an earlier date. A session is a date on which any symbol of the
// folder traded.

/// The faults of a symbol's candles and the dates that they silence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    /// Sessions between its first and its last candle without a candle.
    pub missing: usize,
    pub suspected: Vec<Suspected>,
    /// For each candle, whether its date is silent.
    pub silent: Vec<bool>,
}

impl Silence {
    /// Number of silent dates.
    pub fn dates(&self) -> usize {
        self.silent.iter().filter(|silent| **silent).count()
    }

    /// Whether there is no fault.
    pub fn is_clean(&self) -> bool {
        self.missing == 0 && self.suspected.is_empty()
    }
}

/// Judges `history` against the sessions of its universe, which are ascending and include its own.
pub fn judge(history: &History, sessions: &[Date]) -> Silence {
    let place = |date: Date| sessions.partition_point(|session| *session < date);
    let places: Vec<usize> = history
        .candles
        .iter()
        .map(|candle| place(candle.date))
        .collect();
    let suspected = suspected(&history.candles);
    let splits: Vec<usize> = suspected
        .iter()
        .map(|suspected| place(suspected.date))
        .collect();
    let mut first = 0;
    let silent = places.iter().enumerate().map(|(at, today)| {
        // Index of the first candle that is still kept.
        while today - places[first] >= SESSIONS_KEPT {
            first += 1;
        }
        let holes = (today - places[first]) - (at - first);
        let split = |split: &usize| *split <= *today && today - split < SESSIONS_KEPT;
        holes > HOLES_MAX || splits.iter().any(split)
    });
    let silent = silent.collect();
    let spanned = places
        .last()
        .zip(places.first())
        .map_or(0, |(last, first)| last - first + 1);
    Silence {
        missing: spanned - places.len(),
        suspected,
        silent,
    }
}

#[cfg(test)]
#[path = "backtest_tests.rs"]
mod tests;

#[cfg(test)]
mod silence_tests {
    use super::*;
    use crate::base::Candle;
    use crate::base::candle::PRICE_E4;

    const COUNT: usize = 700;

    fn sessions() -> Vec<Date> {
        Date::constant(2020, 1, 1)
            .series(jiff::Span::new().days(1))
            .take(COUNT)
            .collect()
    }

    /// A share with a constant price, without the candles at `missing`, at half the price from
    /// `split`
    /// on.
    fn judged(missing: &[usize], split: Option<usize>) -> Silence {
        let sessions = sessions();
        let all = 0..COUNT;
        let candle = |at: usize| {
            let parts = if split.is_some_and(|split| at >= split) {
                2
            } else {
                1
            };
            let price = 100 * PRICE_E4 / parts;
            Candle {
                date: sessions[at],
                open_e4: price,
                high_e4: price,
                low_e4: price,
                close_e4: price,
                volume: 1_000 * parts,
            }
        };
        let candles = all.filter(|at| !missing.contains(at)).map(candle).collect();
        judge(
            &History {
                symbol: "A".into(),
                candles,
            },
            &sessions,
        )
    }

    fn silent(silence: &Silence) -> Vec<usize> {
        (0..silence.silent.len())
            .filter(|at| silence.silent[*at])
            .collect()
    }

    #[test]
    fn a_seventh_missing_session_silences_while_all_are_kept() {
        assert!(judged(&[], None).is_clean());
        let six = judged(&[10, 11, 12, 13, 14, 15], None);
        assert_eq!((six.missing, six.dates()), (6, 0));
        // Seven sessions are missing, 10 to 16. Dates are silent from 17 on, until the first of
        // these is no longer kept.
        let seven = judged(&[10, 11, 12, 13, 14, 15, 16], None);
        assert_eq!(seven.missing, 7);
        let dates: Vec<usize> = silent(&seven).iter().map(|at| at + 7).collect();
        let kept_until = 10 + SESSIONS_KEPT - 1;
        assert_eq!(dates, (17..=kept_until - 1).collect::<Vec<_>>());
        // A later gap changes no earlier date.
        let later = judged(&[10, 11, 12, 13, 14, 15, 600], None);
        assert_eq!(later.dates(), 0, "the older ones are kept no more");
    }

    #[test]
    fn a_suspected_split_silences_its_date_and_those_after() {
        let split = judged(&[], Some(50));
        assert_eq!(split.suspected.len(), 1);
        assert_eq!(silent(&split), (50..50 + SESSIONS_KEPT).collect::<Vec<_>>());
        assert!(!split.is_clean());
    }
}
