//! `GET /api/signals/record`: how the published signals did.

use crate::signals::backtest::edges_of;
use crate::signals::blocks::{Estimate, SCORE_DATES_MIN};
use crate::signals::performance::{Cell, Performance, verdict};
use crate::signals::track_record::Kind;
use crate::signals::{DISCLAIMER, Direction, HORIZON_SESSIONS, MEANING, Reliability};
use crate::views::values::{Day, Share, Simulated, documents, rounded};
use jiff::civil::Date;

documents! {
    /// Outcomes of all published signals. Simulated ones are counted only while there are no
    /// others.
    pub(crate) struct SignalRecord {
        /// First date with a signal.
        pub since: Option<Day>,
        /// The last published date.
        pub as_of: Option<Day>,
        pub horizon_sessions: usize,
        /// Dates with a list since `since`, including empty lists.
        pub dates_published: usize,
        /// Trading dates since `since` without a list.
        pub dates_missed: usize,
        pub published: u64,
        pub judged: u64,
        /// Published and not yet judged: the sum of `due` and `never`.
        pub pending: u64,
        /// Signals whose outcome is still to come.
        pub due: u64,
        /// Signals without an expected outcome: the share has left the universe, its history lacks
        /// the date, or it has traded on fewer than five of the ten sessions after. If the share
        /// comes back, the signal is judged all the same.
        pub never: u64,
        pub hits: u64,
        /// Dates with a judged signal.
        pub dates: u64,
        pub hit_rate: Option<Share>,
        pub mean_confidence: Option<Share>,
        /// Fewest dates for scores and standard errors. With fewer there are none.
        pub score_dates_min: u64,
        pub brier: Brier,
        /// One entry for bullish and one for bearish signals.
        pub directions: [DirectionRecord; 2],
        /// Lowest confidence first.
        pub reliability: Vec<ReliabilityBin>,
        pub(crate) simulated?: Simulated,
        pub meaning: &'static str,
        pub disclaimer: &'static str,
    }

    /// Mean squared error; lower is better.
    pub(crate) struct Brier {
        /// Score of the published confidences; null if the judged signals are of fewer dates than
        /// `score_dates_min`.
        pub confidence: Option<f64>,
        /// Score of a coin flip, a confidence of one half each time.
        pub coin: f64,
        /// Score of the base rate, the market's own drift, as confidence each time.
        pub base_rate: Option<f64>,
        /// The confidences compared with a coin; null with too few dates.
        pub from_coin: Option<BrierComparison>,
        /// The confidences compared with the base rate; null with too few dates.
        pub from_base_rate: Option<BrierComparison>,
    }

    /// Brier score of the confidences minus another's; below zero is better. The standard error is
    /// computed from sums over blocks of five dates.
    pub(crate) struct BrierComparison {
        pub difference: f64,
        pub standard_error: f64,
        /// Lower end of the 95 % interval.
        pub low: f64,
        /// Upper end of the 95 % interval.
        pub high: f64,
        /// Meaning of the interval: better than the other, worse, or not distinguishable from it.
        pub verdict: String,
    }

    /// Judged signals of one direction.
    pub(crate) struct DirectionRecord {
        pub direction: Direction,
        pub judged: u64,
        pub hits: u64,
        /// Dates with such a signal.
        pub dates: u64,
        pub hit_rate: Option<Share>,
        pub mean_confidence: Option<Share>,
        /// Share of the universe that moved in this direction over the same sessions: the mean over
        /// the signals for which it is known.
        pub same_day_rate: Option<Share>,
        /// Share of hits minus `same_day_rate`; null with too few dates.
        pub lift: Option<Interval>,
        /// Share of hits minus mean confidence; null with too few dates.
        pub observed_minus_said: Option<Interval>,
    }

    /// Judged signals by confidence.
    pub(crate) struct ReliabilityBin {
        /// Confidences above this value; null for the lowest row.
        pub over: Option<f64>,
        /// Confidences up to this value; null for the highest row.
        pub up_to: Option<f64>,
        pub judged: u64,
        pub hits: u64,
        /// Dates with such a signal.
        pub dates: u64,
        pub mean_confidence: Option<Share>,
        pub hit_rate: Option<Share>,
        /// Share of hits minus mean confidence; null with too few dates.
        pub observed_minus_said: Option<Interval>,
        pub bullish_share: Option<Share>,
    }

    /// A mean, its standard error from sums over blocks of five dates, and its 95 % interval.
    pub(crate) struct Interval {
        pub value: f64,
        pub standard_error: f64,
        pub low: f64,
        pub high: f64,
    }
}

/// Brier score of a coin flip: one half, squared.
const COIN_BRIER: f64 = 0.25;

impl SignalRecord {
    /// The document of `record`. `as_of` is the last published date.
    pub(crate) fn of(record: &Reliability, as_of: Option<Date>) -> Self {
        let (
            simulated,
            Kind {
                published,
                since,
                outcomes,
            },
        ) = record.sums.shown();
        let done = &outcomes.done;
        let all = &done.all;
        let from_since =
            |dates: &[Date]| dates.iter().filter(|date| Some(**date) >= *since).count();
        Self {
            since: since.map(Day),
            as_of: as_of.map(Day),
            horizon_sessions: HORIZON_SESSIONS,
            dates_published: from_since(&record.dates_published),
            dates_missed: from_since(&record.dates_missed),
            published: *published,
            judged: all.signals,
            pending: published - all.signals,
            due: outcomes.due(*published),
            never: outcomes.never,
            hits: all.hits,
            dates: all.dates,
            hit_rate: all.hit_rate().map(Share::of),
            mean_confidence: all.mean_confidence().map(Share::of),
            score_dates_min: SCORE_DATES_MIN,
            brier: Brier::of(done),
            directions: directions(done),
            reliability: done.bins.iter().enumerate().map(bin).collect(),
            simulated: Simulated(simulated),
            meaning: MEANING,
            disclaimer: DISCLAIMER,
        }
    }
}

impl Brier {
    fn of(done: &Performance) -> Self {
        let scored = |brier: f64| done.all.is_scored().then(|| six_places(brier));
        Self {
            confidence: scored(done.confidence.brier()),
            coin: COIN_BRIER,
            base_rate: scored(done.base.brier()),
            from_coin: done
                .against_coin()
                .map(|from| BrierComparison::of(from, "a coin")),
            from_base_rate: done
                .against_base()
                .map(|from| BrierComparison::of(from, "the base rate")),
        }
    }
}

impl BrierComparison {
    fn of(difference: Estimate, with: &str) -> Self {
        Self {
            verdict: verdict(&difference, with),
            difference: six_places(difference.value),
            standard_error: six_places(difference.standard_error),
            low: six_places(difference.low),
            high: six_places(difference.high),
        }
    }
}

impl Interval {
    fn in_four_places(estimate: Estimate) -> Self {
        let Estimate {
            value,
            standard_error,
            low,
            high,
        } = estimate;
        let four = |value| rounded(value, 10_000.0);
        Self {
            value: four(value),
            standard_error: four(standard_error),
            low: four(low),
            high: four(high),
        }
    }
}

fn six_places(score: f64) -> f64 {
    rounded(score, 1e6)
}

fn directions(done: &Performance) -> [DirectionRecord; 2] {
    done.directions()
        .map(|(direction, cell): (Direction, &Cell)| DirectionRecord {
            direction,
            judged: cell.signals,
            hits: cell.hits,
            dates: cell.dates,
            hit_rate: cell.hit_rate().map(Share::of),
            mean_confidence: cell.mean_confidence().map(Share::of),
            same_day_rate: cell.same_day_rate().map(Share::of),
            lift: cell.lift().map(Interval::in_four_places),
            observed_minus_said: cell.observed_minus_said().map(Interval::in_four_places),
        })
}

fn bin((at, bin): (usize, &Cell)) -> ReliabilityBin {
    let (over, up_to) = edges_of(at);
    ReliabilityBin {
        over,
        up_to,
        judged: bin.signals,
        hits: bin.hits,
        dates: bin.dates,
        mean_confidence: bin.mean_confidence().map(Share::of),
        hit_rate: bin.hit_rate().map(Share::of),
        observed_minus_said: bin.observed_minus_said().map(Interval::in_four_places),
        bullish_share: bin.bullish_share().map(Share::of),
    }
}

#[cfg(test)]
#[path = "signal_record_tests.rs"]
mod tests;
